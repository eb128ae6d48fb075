"""Opening a load: begun anew, or gone on with where one was cut off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import uuid4

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.console import counted, note
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.place import LoadPlace
from langshift.ingest.load_kind import LoadKind
from langshift.ingest.load_shape import noted, require_same_shape
from langshift.ingest.making import Making
from langshift.ingest.read import Source
from langshift.plugin import index_shift, load_settings, writing
from langshift.plugin.merged_template import USUAL_SHAPE, Shape
from langshift.plugin.target import IfExists, Target
from langshift.settings import Settings

PATIENCE = 300.0  # seconds
# Lines of a load have consecutive versions from its begin on; in a millisecond nobody reads a million of them, so
# that the next load's are later.
_LINES_A_MILLISECOND = 20  # bits
_PLANNED = "planned"  # the journal's name for the token of a version that is about to be made


class LoadOptions(NamedTuple):
    """How a load is done.

    Attributes:
        if_exists: what to do where the index exists.
        resume: whether to go on with a load that was cut off, if there is one.
        fast: whether a new index does without replicas during the load.
        patience: seconds for which a cluster that takes nothing is waited for.
        shape: how a version is made, where that is not as usual.
    """

    if_exists: IfExists = "fail"
    resume: bool = False
    fast: bool = False
    patience: float = PATIENCE
    shape: Shape = USUAL_SHAPE


USUAL = LoadOptions()


@dataclass(frozen=True)
class OpenedLoad:
    """A load that is under way.

    Attributes:
        place: its files.
        journal: its journal.
        base: the version that line 0 would have.
        target: the version that it writes to; None where all was done by an earlier run.
        goes_on: whether an earlier run began it.
        resumed: lines that earlier runs have handled.
    """

    place: LoadPlace
    journal: Journal
    base: int
    target: Target | None
    goes_on: bool
    resumed: int


@contextmanager
def open_load(
    client: OpenSearch, source: Source, name: str, making: Making, options: LoadOptions, kind: LoadKind
) -> Iterator[OpenedLoad]:
    """Open a load; nobody else can open one into this index from this machine meanwhile.

    Raises:
        UsageError: a load was cut off, and nobody says whether to go on with it; or what it began with has changed;
            or the index exists.
        FingerprintError: the index holds vectors of another making.
        LangshiftError: another load is at work, or the files cannot be written.
    """
    place = LoadPlace.of(Settings.from_env().home, client, name)
    try:
        place.make()
    except OSError as error:
        raise LangshiftError(
            f"langshift cannot keep a load's journal in {place.folder}: {error.strerror or error}; "
            "set LANGSHIFT_HOME to a folder that you may write in."
        ) from error
    identity = {
        "index": name,
        "corpus": source.shown,
        "content": source.content,
        "fingerprint": making.fingerprint().to_dict(),
        "least_confidence": making.least_confidence,
    }
    with Journal.open(place.journal) as journal:
        if token := journal.fact(_PLANNED):
            writing.discard_planned(client, name, token)
            journal.set_fact(_PLANNED, None)
        if journal.begun and options.resume and source.resumable:
            require_same_shape(journal, place, options.shape)
            yield _resumed(client, place, journal, identity)
        elif options.resume and _is_finished(client, journal, identity):
            yield OpenedLoad(place, journal, 0, None, True, 0)
        else:
            if journal.begun:
                _give_up(client, journal, place, options)
            yield _begun(client, source, place, journal, making, options, identity, kind)


def _resumed(client: OpenSearch, place: LoadPlace, journal: Journal, identity: dict[str, Any]) -> OpenedLoad:
    journal.require_same(identity)
    index, uuid = journal.fact("index"), journal.fact("uuid")
    target = writing.reopen(client, place.name, index, uuid, fast=journal.fact("fast"))
    resumed = sum(journal.counts().values())
    note(f"Going on with the load into {place.name} ({index}): {counted(resumed, 'line')} handled before.")
    return OpenedLoad(place, journal, journal.fact("base"), target, True, resumed)


def _is_finished(client: OpenSearch, journal: Journal, identity: dict[str, Any]) -> bool:
    """Whether the load that is to be gone on with was done by the time its process died, and still stands."""
    if journal.finished is None:
        return False
    kept, summary = journal.finished
    if kept.get("content") is None or {**kept, "corpus": ""} != {**identity, "corpus": ""}:
        return False
    return writing.stands(client, kept["index"], summary["index"], summary["uuid"])


def _begun(
    client: OpenSearch,
    source: Source,
    place: LoadPlace,
    journal: Journal,
    making: Making,
    options: LoadOptions,
    identity: dict[str, Any],
    kind: LoadKind,
) -> OpenedLoad:
    token, kept = uuid4().hex, index_shift.entries(making.debias)
    # Who is killed between the two leaves a version that the next run knows for its own.
    journal.set_fact(_PLANNED, token)
    try:
        target = writing.open_for_writing(
            client,
            place.name,
            making.fingerprint(),
            kept,
            if_exists=options.if_exists,
            fast=options.fast,
            token=token,
            body=kind.body,
            during=kind.during,
            shape=options.shape,
        )
    except (LangshiftError, RequestError):
        # Refused: nothing was made.
        journal.set_fact(_PLANNED, None)
        raise
    base = _base(journal)
    facts = {"index": target.index, "uuid": target.uuid, "created": target.created, "fast": options.fast}
    facts["shape"] = noted(options.shape)
    journal.begin(identity, {**facts, "base": base, "resumable": source.resumable})
    return OpenedLoad(place, journal, base, target, False, 0)


def _base(journal: Journal) -> int:
    """The time, but after every line of the load before: the clock may have been set back since."""
    last = 0
    if journal.begun:
        last = journal.fact("base") + journal.last_line()
    elif journal.finished is not None:
        last = journal.finished[1].get("last", 0)
    return max(int(time.time() * 1000) << _LINES_A_MILLISECOND, last)


def _give_up(client: OpenSearch, journal: Journal, place: LoadPlace, options: LoadOptions) -> None:
    """Leave a load that was cut off, if that is what the person wants, or if its version is gone.

    Raises:
        UsageError: nobody says so.
    """
    index, corpus = journal.fact("index"), journal.identity.get("corpus")
    handled = counted(sum(journal.counts().values()), "line")
    load_settings.restore(client, index)
    there = writing.may_reopen(client, place.name, index, journal.fact("uuid"))
    if journal.fact("resumable") and there and options.if_exists not in ("replace", "new-version"):
        raise UsageError(
            f"A load of {corpus} into {place.name} was cut off after {handled}: go on with it by --resume, "
            f"or remove {place.journal} to give it up."
        )
    if journal.fact("created"):
        writing.discard(client, Target(place.name, index, journal.fact("uuid"), True, None, "fail"))
    note(f"A load of {corpus} into {place.name} that was cut off after {handled} is given up.")
