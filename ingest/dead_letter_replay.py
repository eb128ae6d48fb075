"""Dead letters sent again: made by what the index was made with, under the versions that they had."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from functools import partial
from itertools import islice
from typing import NamedTuple

from opensearchpy import OpenSearch

from langshift.client import open_cluster
from langshift.debias.encoders import Brought, is_given
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import FingerprintError, LangshiftError, UsageError
from langshift.ingest.adopt.transform import DocumentMaker, document_of
from langshift.ingest.bulk.chunks import Item, Original, Outcome
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters, Stage
from langshift.ingest.bulk.delivery import Courier
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.journal_store import LoadPlace, places
from langshift.ingest.bulk.writer import open_stream
from langshift.ingest.config import Making, MakingOptions
from langshift.ingest.documents import Parser, Read
from langshift.ingest.progress import LoadProgress, dead_letters_say, unwatched
from langshift.ingest.resume import PATIENCE, ItemMaker, MakerOf
from langshift.ingest.transform import Maker
from langshift.output import counted, emit_json, log_to, note, out, printable
from langshift.plugin import metadata
from langshift.plugin.metadata import USUAL, Fields
from langshift.plugin.versions import LiveIndex, Target, check_name, live
from langshift.settings import Settings

_BATCH = 256

# Called after each answer with the verdicts so far, and what sends.
OnSettled = Callable[["Verdicts", Courier], None]


class Replayed(NamedTuple):
    """What became of dead letters that were sent again.

    Attributes:
        replayed: how many there were.
        indexed: those that the server has taken now, deletions included.
        superseded: those whose document the server holds in a later version.
        left: those that stay.
    """

    replayed: int
    indexed: int
    superseded: int
    left: int


class Verdicts:
    """What became of each letter, told by its version, which no other line of any load into the index has.

    Attributes:
        indexed: how many the server has taken.
        superseded: how many came too late.
    """

    def __init__(self) -> None:
        self.indexed = self.superseded = 0
        self._gone: set[int] = set()
        self._wrong: dict[int, tuple[str | None, str, str, Stage]] = {}
        self._lock = threading.Lock()

    @property
    def wrong(self) -> int:
        """How many stay."""
        return len(self._wrong)

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        """Take what the server said."""
        with self._lock:
            for item, state, _, kind, why in outcomes:
                if state == "dead":
                    self._wrong[item.line] = item.id, kind, why, "write"
                    continue
                self._gone.add(item.line)
                self.superseded += state == "superseded"
                self.indexed += state == "done"

    def refuse(
        self,
        line: int,
        identifier: str | None,
        kind: str,
        why: str,
        original: Original,  # noqa: ARG002 - the letter has it
        stage: Stage,
    ) -> None:
        """Take a letter that is still no document."""
        with self._lock:
            self._wrong[line] = identifier, kind, why, stage

    def flush(self) -> None:
        """Nothing is put off."""

    def revised(self, letter: DeadLetter) -> DeadLetter | None:
        """A letter as it is now: gone, or with its new reason, or as it was where it was not sent."""
        if letter.version in self._gone:
            return None
        if letter.version not in self._wrong:
            return letter
        identifier, kind, why, stage = self._wrong[letter.version]
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return letter._replace(id=identifier or letter.id, type=kind, reason=why, stage=stage, time=now)


def replay(client: OpenSearch, letters: DeadLetters, target: Target, making: Making, on_settled: OnSettled) -> Replayed:
    """Send dead letters again. Nobody else may write their file meanwhile, but for a person who has mended them.

    A letter goes only once the server has confirmed its document, so whoever is killed here loses nothing: what was
    sent before is sent once more under the same version, which changes nothing.

    Args:
        client: the cluster.
        letters: the letters.
        target: the version that they go to; one that was adopted has fields of its own.
        making: how their documents are made.
        on_settled: called after each answer.

    Raises:
        UsageError: the file holds a line that is no dead letter.
        LangshiftError: the encoder or the cluster fails; letters that did not go through are kept.
    """
    total, verdicts = letters.total(), Verdicts()
    try:
        _send(client, _reads(letters, making, target.fields), target, making, verdicts, on_settled)
    except LangshiftError as error:
        raise type(error)(f"{error} Dead letters that did not go through are kept: replay them again.") from error
    finally:
        letters.revise(verdicts.revised)
    client.indices.refresh(index=target.index)
    return Replayed(total, verdicts.indexed, verdicts.superseded, total - verdicts.indexed - verdicts.superseded)


def _send(
    client: OpenSearch,
    reads: Iterator[Read],
    target: Target,
    making: Making,
    verdicts: Verdicts,
    on_settled: OnSettled,
) -> None:
    def settle(outcomes: Sequence[Outcome]) -> None:
        verdicts.settle(outcomes)
        on_settled(verdicts, stream.courier)

    # A letter's version is base plus line of its load; here it stands for the line, over a base of 0.
    maker_of: MakerOf = Maker if target.fields == USUAL else partial(DocumentMaker, target.fields)
    maker = maker_of(making, verdicts, 0, lambda _: False, unwatched)
    with open_stream(client, target, settle, PATIENCE) as stream:
        for item in _items(reads, maker):
            stream.send(item)


def _items(reads: Iterator[Read], maker: ItemMaker) -> Iterator[Item]:
    while batch := list(islice(reads, _BATCH)):
        yield from maker.items(batch)


def _reads(letters: DeadLetters, making: Making, fields: Fields) -> Iterator[Read]:
    """Each letter parsed again, as the load did with its line, or with the document of the index that it adopted."""
    given = is_given(making.encoder.id)
    parser = Parser("needed", making.encoder.dimension) if given else Parser("refused")
    for letter in letters:
        if letter.version is None:
            raise UsageError(
                f"{letters.path}: the letter of {letter.corpus}, line {letter.line}, has lost its 'version': "
                "put it back, or remove the letter."
            )
        if isinstance(letter.document, bytes) and fields != USUAL:
            content = document_of(letter.document, fields, making.encoder.dimension)
            yield Read(letter.version, content, letter.document)
        elif isinstance(letter.document, bytes):
            yield parser.line((letter.version, letter.document))
        else:
            yield parser.row(letter.version, letter.document)


SOME_LEFT = 3


def run_replay(name: str, *, as_json: bool) -> int:
    """Send the dead letters of an index again.

    Returns:
        The exit code: 0, or 3 where some stay.

    Raises:
        UsageError: a load into the index was cut off; the letters' file is damaged; how documents were made is not
            known any more.
        FingerprintError: the index holds vectors of another making.
        ClusterError: there is no such index.
        LangshiftError: a load is at work; the cluster or the encoder fails.
    """
    found = with_letters(name)
    if not found:
        return _tell(name, Replayed(0, 0, 0, 0), None, as_json=as_json)
    client = open_cluster()
    place = LoadPlace.of(Settings.from_env().home, client, name)
    if place not in found:
        note(f"Those in {found[0].dead_letters} are of another cluster.")
        return _tell(name, Replayed(0, 0, 0, 0), place, as_json=as_json)
    letters = DeadLetters(place.dead_letters)
    with ExitStack() as stack:
        # Also keeps loads away, which would write to the file of letters.
        journal = stack.enter_context(Journal.open(place.journal))
        _require_no_load(journal, name)
        index = live(client, name)
        making = _making(place, index.fingerprint)
        _require_not_retuned(client, index, making.fingerprint())
        index.fingerprint.require_same(
            making.fingerprint(), name, "load these documents again, with what the index was made with"
        )
        stack.enter_context(log_to(place.log))
        progress = stack.enter_context(LoadProgress(letters.total()))

        def show(verdicts: Verdicts, courier: Courier) -> None:
            gone = verdicts.indexed + verdicts.superseded
            progress.update(
                gone + verdicts.wrong, verdicts.indexed, courier.retries, verdicts.wrong, courier.limit.at_once
            )

        target = Target(name, index.index, "", created=False, live=index.index, if_exists="append", fields=index.fields)
        told = replay(client, letters, target, making, show)
    return _tell(name, told, place, as_json=as_json)


def _require_no_load(journal: Journal, name: str) -> None:
    if journal.begun and journal.fact("resumable"):
        raise UsageError(
            f"The load of {journal.identity.get('corpus')} into {name} was cut off: go on with it by --resume first."
        )


def _require_not_retuned(client: OpenSearch, index: LiveIndex, made: Fingerprint) -> None:
    """Refuse letters of a load from before a retune to a single other scale, and tell how to load them with that.

    Raises:
        FingerprintError: they are.
    """
    now = index.fingerprint
    came = metadata.read_origin(client, index.index)
    if came is None or came.kind != "retune" or now.alphas:
        return
    if {field for field, _, _ in now.differences(made)} <= {"alpha", "alphas"} and now.alpha != made.alpha:
        raise FingerprintError(
            f"Index {index.name} was retuned since (alpha {now.alpha:g}, not {made.alpha:g}): load the mended lines "
            f"with `langshift ingest FILE --index {index.name} --if-exists append --alpha {now.alpha:g}` and the other "
            f"options of that load, or go back by `langshift rollback {index.name}`."
        )


def _making(place: LoadPlace, made: Fingerprint) -> Making:
    """How the last load into the index made its documents."""
    try:
        options = MakingOptions.read(place.making)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{place.making} does not tell how the documents of {place.name} are made: load those of "
            f"{place.dead_letters} again with `langshift ingest`."
        ) from error
    return options.open(Brought(made.dimension, made.normalised))


def _tell(name: str, told: Replayed, place: LoadPlace | None, *, as_json: bool) -> int:
    if as_json:
        emit_json(told._asdict())
    elif not told.replayed:
        say(none_of(name))
    else:
        left = f"{told.left:,} stay in {place.dead_letters}" if told.left and place else "none is left"
        why = f" ({dead_letters_say(name)})" if told.left else ""
        say(
            f"Sent {counted(told.replayed, 'dead letter')} of {name} again: {told.indexed:,} went through, "
            f"{told.superseded:,} came after a later version of the document, {left}{why}."
        )
    return SOME_LEFT if told.left else 0


def with_letters(name: str | None) -> list[LoadPlace]:
    """The places that have dead letters, of one index or of all.

    Raises:
        UsageError: ``name`` cannot be an index's name.
    """
    if name is not None:
        check_name(name)
    return [place for place in places(Settings.from_env().home, name) if place.dead_letters.exists()]


def none_of(name: str | None) -> str:
    """That there are none."""
    return f"There are no dead letters{f' of {name}' if name else ''}."


def say(sentence: str) -> None:
    """A sentence on standard output, whatever the names in it hold."""
    out.print(printable(sentence), markup=False, soft_wrap=True)
