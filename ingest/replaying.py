"""Dead letters sent again: made by what the index was made with, under the versions that they had."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from functools import partial
from itertools import islice
from typing import NamedTuple

from opensearchpy import OpenSearch

from langshift.debias.encoders import is_given
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.adopt.document import document_of
from langshift.ingest.adopt.maker import DocumentMaker
from langshift.ingest.bulk.dead_letter import DeadLetter, Stage
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.delivery import Courier
from langshift.ingest.bulk.item import Item, Original, Outcome
from langshift.ingest.bulk.stream import open_stream
from langshift.ingest.items import Maker
from langshift.ingest.load_kind import ItemMaker, MakerOf
from langshift.ingest.making import Making
from langshift.ingest.opened_load import PATIENCE
from langshift.ingest.parser import Parser
from langshift.ingest.read import Read
from langshift.ingest.summary import unwatched
from langshift.plugin.fields import USUAL, Fields
from langshift.plugin.target import Target

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
