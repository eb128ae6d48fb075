"""Opening a load: begun anew, or resumed where one was cut off; and what is cleaned up when it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException, RequestError

from langshift.client import address
from langshift.errors import ClusterError, LangshiftError, UsageError
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import DocumentSource
from langshift.ingest.transform import ActionBuilder, RejectionSink
from langshift.output import note, pluralize
from langshift.plugin import stored_shift, version_writer
from langshift.plugin.index_body import DEFAULT_INDEX_OPTIONS, LUCENE, IndexOptions
from langshift.plugin.versions import IfExists, Target, remove_impostor
from langshift.server_errors import failure
from langshift.settings import Settings


def clean_up_failed_load(
    client: OpenSearch, source: DocumentSource, journal: Journal, target: Target, error: BaseException
) -> BaseException:
    """Leave nothing half-written: what cannot be gone on with goes; else say how to go on.

    Args:
        client: the cluster.
        source: the input.
        journal: the load's journal; it is removed where no line was handled.
        target: the version that was written to.
        error: what broke the load off.

    Returns:
        The error to raise: the same, or one that says what to do too.
    """
    if isinstance(error, OpenSearchException):
        error = failure(error, address(client))
    handled = sum(journal.counts().values())
    sentences = []
    may_go_on = True
    try:
        if target.created and (handled == 0 or not source.resumable):
            version_writer.discard(client, target)
        else:
            remove_impostor(client, target.index, target.uuid)
            version_writer.restore(client, target.index)
            may_go_on = _may_go_on(client, target)
    except OpenSearchException:
        sentences.append(f"The cluster could not be told to leave {target.index}: the next run will do it.")
    if handled == 0:
        journal.remove()
    elif source.resumable:
        remedy = ": go on with" if may_go_on else ", but this load cannot be gone on with: begin anew without"
        sentences.append(f"{pluralize(handled, 'line')} of {source.shown} handled{remedy} --resume.")
    elif not target.created:
        sentences.append(f"{pluralize(handled, 'line')} handled; running the same command again doubles nothing.")
    if sentences and isinstance(error, LangshiftError):
        return type(error)(" ".join([str(error), *sentences]))
    for sentence in sentences:
        note(sentence)
    return error


def _may_go_on(client: OpenSearch, target: Target) -> bool:
    try:
        return version_writer.may_reopen(client, target.name, target.index, target.uuid)
    except ClusterError:
        # The alias is none, or one of several indices: whoever made that so can undo it.
        return True


ActionBuilderFactory = Callable[[EmbeddingPipeline, RejectionSink, int, Callable[[int], bool]], ActionBuilder]


@dataclass(frozen=True)
class LoadStrategy:
    """What is special about a load.

    Attributes:
        builder_factory: makes the builder of operations.
        body: of the version that is made, complete; None for an index of langshift's own form.
        during: index settings that hold only while the version is loaded.
        keeps_versions: whether documents keep versions that they have; else a document's version is its line's.
    """

    builder_factory: ActionBuilderFactory = ActionBuilder
    body: Mapping[str, Any] | None = None
    during: Mapping[str, str] = field(default_factory=dict)
    keeps_versions: bool = False


DOCUMENTS = LoadStrategy()


def noted(shape: IndexOptions) -> dict[str, str | None]:
    """What the journal keeps of it."""
    return {"template": shape.template.hash if shape.template else None, "engine": shape.engine or LUCENE}


def require_same_shape(journal: Journal, place: LoadWorkspace, shape: IndexOptions) -> None:
    """Refuse to go on with a load whose version was made in another shape than the one that is given now.

    Args:
        journal: of the load that was cut off.
        place: its files.
        shape: what is given now; nothing need be given, as the version is there.

    Raises:
        UsageError: another was given.
    """
    begun, given = journal.fact("shape"), noted(shape)
    differing = [f"--{name}" for name in begun if getattr(shape, name) is not None and begun[name] != given[name]]
    if differing:
        option_names = " and ".join(differing)
        raise UsageError(
            f"The load into {place.name} that was cut off has made its version with another {option_names}: leave "
            f"{option_names} out to go on with it, or remove {place.journal} to give it up."
        )


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
    shape: IndexOptions = DEFAULT_INDEX_OPTIONS


USUAL = LoadOptions()


@dataclass(frozen=True)
class LoadSession:
    """A load that is under way.

    Attributes:
        place: its files.
        journal: its journal.
        base: the version that line 0 would have.
        target: the version that it writes to; None where all was done by an earlier run.
        goes_on: whether an earlier run began it.
        resumed: lines that earlier runs have handled.
    """

    place: LoadWorkspace
    journal: Journal
    base: int
    target: Target | None
    goes_on: bool
    resumed: int


@contextmanager
def open_load(
    client: OpenSearch,
    source: DocumentSource,
    name: str,
    pipeline: EmbeddingPipeline,
    options: LoadOptions,
    kind: LoadStrategy,
) -> Iterator[LoadSession]:
    """Open a load; nobody else can open one into this index from this machine meanwhile.

    Raises:
        UsageError: a load was cut off, and nobody says whether to go on with it; or what it began with has changed;
            or the index exists.
        FingerprintError: the index holds vectors of another making.
        LangshiftError: another load is at work, or the files cannot be written.
    """
    place = LoadWorkspace.of(Settings.from_env().home, client, name)
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
        "fingerprint": pipeline.fingerprint().to_dict(),
        "least_confidence": pipeline.least_confidence,
    }
    with Journal(place.journal) as journal:
        if token := journal.fact(_PLANNED):
            version_writer.discard_planned(client, name, token)
            journal.set_fact(_PLANNED, None)
        if journal.begun and options.resume and source.resumable:
            require_same_shape(journal, place, options.shape)
            yield _resumed(client, place, journal, identity)
        elif options.resume and _is_finished(client, journal, identity):
            yield LoadSession(place, journal, 0, None, True, 0)
        else:
            if journal.begun:
                _give_up(client, journal, place, options)
            yield _begun(client, source, place, journal, pipeline, options, identity, kind)


def _resumed(client: OpenSearch, place: LoadWorkspace, journal: Journal, identity: dict[str, Any]) -> LoadSession:
    journal.require_same(identity)
    index, uuid = journal.fact("index"), journal.fact("uuid")
    target = version_writer.reopen(client, place.name, index, uuid, fast=journal.fact("fast"))
    resumed = sum(journal.counts().values())
    note(f"Going on with the load into {place.name} ({index}): {pluralize(resumed, 'line')} handled before.")
    return LoadSession(place, journal, journal.fact("base"), target, True, resumed)


def _is_finished(client: OpenSearch, journal: Journal, identity: dict[str, Any]) -> bool:
    """Whether the load that is to be gone on with was done by the time its process died, and still stands."""
    if journal.finished is None:
        return False
    recorded, summary = journal.finished
    if recorded.get("content") is None or {**recorded, "corpus": ""} != {**identity, "corpus": ""}:
        return False
    return version_writer.stands(client, recorded["index"], summary["index"], summary["uuid"])


def _begun(
    client: OpenSearch,
    source: DocumentSource,
    place: LoadWorkspace,
    journal: Journal,
    pipeline: EmbeddingPipeline,
    options: LoadOptions,
    identity: dict[str, Any],
    kind: LoadStrategy,
) -> LoadSession:
    token, shift_metadata = uuid4().hex, stored_shift.to_metadata(pipeline.debias)
    # Who is killed between the two leaves a version that the next run knows for its own.
    journal.set_fact(_PLANNED, token)
    try:
        target = version_writer.open_for_writing(
            client,
            place.name,
            pipeline.fingerprint(),
            shift_metadata,
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
    return LoadSession(place, journal, base, target, False, 0)


def _base(journal: Journal) -> int:
    """The time, but after every line of the load before: the clock may have been set back since."""
    last = 0
    if journal.begun:
        last = journal.fact("base") + journal.last_line()
    elif journal.finished is not None:
        last = journal.finished[1]["last"]
    return max(int(time.time() * 1000) << _LINES_A_MILLISECOND, last)


def _give_up(client: OpenSearch, journal: Journal, place: LoadWorkspace, options: LoadOptions) -> None:
    """Leave a load that was cut off, if that is what the person wants, or if its version is gone.

    Raises:
        UsageError: nobody says so.
    """
    index, corpus = journal.fact("index"), journal.identity.get("corpus")
    handled = pluralize(sum(journal.counts().values()), "line")
    version_writer.restore(client, index)
    there = version_writer.may_reopen(client, place.name, index, journal.fact("uuid"))
    if journal.fact("resumable") and there and options.if_exists not in ("replace", "new-version"):
        raise UsageError(
            f"A load of {corpus} into {place.name} was cut off after {handled}: go on with it by --resume, "
            f"or remove {place.journal} to give it up."
        )
    if journal.fact("created"):
        version_writer.discard(client, Target(place.name, index, journal.fact("uuid"), True, None, "fail"))
    note(f"A load of {corpus} into {place.name} that was cut off after {handled} is given up.")
