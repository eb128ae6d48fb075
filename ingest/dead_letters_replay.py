"""What ``langshift dead-letters replay`` does and prints."""

from __future__ import annotations

from contextlib import ExitStack

from opensearchpy import OpenSearch

from langshift.cluster import open_cluster
from langshift.console import counted, emit_json, note, out, printable
from langshift.debias.encoders import Brought
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import FingerprintError, UsageError
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.delivery import Courier
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.place import LoadPlace, places
from langshift.ingest.load_progress import LoadProgress
from langshift.ingest.making import Making
from langshift.ingest.making_options import MakingOptions
from langshift.ingest.remarks import dead_letters_say
from langshift.ingest.replaying import Replayed, Verdicts, replay
from langshift.log_file import log_to
from langshift.plugin import origin
from langshift.plugin.target import Target
from langshift.plugin.versions import LiveIndex, check_name, live
from langshift.settings import Settings

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
    came = origin.read(client, index.index)
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
