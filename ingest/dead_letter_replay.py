"""Dead letters sent again: made by what the index was made with, under the versions that they had."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from opensearchpy import OpenSearch

from langshift.client import open_cluster
from langshift.debias.encoders.base import is_given
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.adopt.transform import StoredDocumentBuilder, document_of
from langshift.ingest.bulk.chunked import Ended, LineParts, StaleChunks, left_by
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters
from langshift.ingest.bulk.delivery import open_bulk_writer
from langshift.ingest.bulk.document_versions import VersionWatch
from langshift.ingest.bulk.journal import IDENTITY, SUMMARY, Journal
from langshift.ingest.bulk.journal_store import LoadWorkspace, load_workspaces
from langshift.ingest.bulk.writer import ActionResult, BulkAction, Stage
from langshift.ingest.config import EmbeddingPipeline, PipelineOptions
from langshift.ingest.documents import SourceRow
from langshift.ingest.parsing import Parser
from langshift.ingest.parts.folder import StateFolder
from langshift.ingest.parts.journal import DEAD, borrowed_letters
from langshift.ingest.progress import LoadProgress
from langshift.ingest.resume import ActionBuilderFactory
from langshift.ingest.transform import ActionBuilder, encoded_batches, index_batches
from langshift.ingest.updates import ChunkUpdater, Updater
from langshift.log_file import log_to
from langshift.plugin import metadata
from langshift.plugin.index_health import require_unblocked
from langshift.plugin.metadata import FieldNames
from langshift.plugin.versions import IndexInfo, Target, check_name, live
from langshift.reporting import note
from langshift.retry import PATIENCE, at_work
from langshift.settings import Settings
from langshift.wording import iso_time


class Verdicts:
    """What became of each letter, told by its version, which no other line of any load into the index has.

    Attributes:
        indexed: how many the server has taken.
        superseded: how many came too late.
        ended: what letters that are no dead ones any more have left of documents in chunks.
    """

    def __init__(self) -> None:
        self.indexed = self.superseded = 0
        self.ended: list[Ended] = []
        self._gone: set[int] = set()
        self._wrong: dict[int, tuple[str, str, str, Stage]] = {}
        self._lock = threading.Lock()
        self._parts = LineParts()

    @property
    def wrong(self) -> int:
        """How many stay."""
        return len(self._wrong)

    def settle(self, outcomes: Sequence[ActionResult]) -> None:
        """Take what the server said, or which letters are still no document."""
        with self._lock:
            for one in self._parts.lines(outcomes):
                item, state, _, kind, why, stage, *_ = one
                if state != "dead" or one.chunks:
                    self.ended.append(left_by(one))
                if state == "dead":
                    self._wrong[item.line] = item.id, kind, why, stage
                    continue
                self._gone.add(item.line)
                self.superseded += state == "superseded"
                self.indexed += state == "done"

    def revised(self, letter: DeadLetter) -> DeadLetter | None:
        """A letter as it is now: gone, or with its new reason, or as it was where it was not sent."""
        if letter.version in self._gone:
            return None
        if letter.version not in self._wrong:
            return letter
        identifier, kind, why, stage = self._wrong[letter.version]
        return letter._replace(id=identifier or letter.id, type=kind, reason=why, stage=stage, time=iso_time())


@at_work()
def replay(
    client: OpenSearch, letters: DeadLetters, target: Target, pipeline: EmbeddingPipeline, progress: LoadProgress
) -> Verdicts:
    """Send dead letters again. Nobody else may write their file meanwhile, but for a person who has mended them.

    A letter goes only once the server has confirmed its document, so whoever is killed here loses nothing: what was
    sent before is sent once more under the same version, which changes nothing.

    Args:
        client: the cluster.
        letters: the letters.
        target: the version that they go to; one that was adopted has fields of its own.
        pipeline: how their documents are made.
        progress: shows what became of them, after each answer.

    Raises:
        UsageError: the file holds a line that is no dead letter.
        LangshiftError: the encoder or the cluster fails; letters that did not go through are kept.
    """
    verdicts, loaded = Verdicts(), target.fields.split
    versions = VersionWatch(client, target.index, 0, PATIENCE)

    def settle(outcomes: Sequence[ActionResult]) -> None:
        # Documents of an adopted index have versions of their own, which are no times.
        verdicts.settle([versions.doubted(one) if loaded else one for one in outcomes])
        dead, retries, at_once = verdicts.wrong, chunk_sender.retries, chunk_sender.limit.at_once
        progress.update(verdicts.indexed + verdicts.superseded + dead, retries, dead, at_once)

    def write(batch: list[BulkAction]) -> None:
        for item in batch:
            writer.send(item)

    factory: ActionBuilderFactory = ActionBuilder if loaded else partial(StoredDocumentBuilder, fields=target.fields)
    # A letter's version is base plus line of its load; here it stands for the line, over a base of 0.
    builder = factory(pipeline, verdicts.settle, 0, lambda _: False)
    try:
        with ExitStack() as stack:
            kind = Updater if pipeline.chunking is None else ChunkUpdater
            merge = kind(client, target.index, pipeline, 0, stack, target.fields).merge
            opening = open_bulk_writer(client, target, settle, PATIENCE, merge=merge)
            writer, chunk_sender = stack.enter_context(opening)
            index_batches(encoded_batches(_rows(letters, pipeline, target.fields), builder), builder, write)
    except LangshiftError as error:
        kept = "Dead letters that were not indexed are kept: replay them again."
        raise error.reworded(f"{error.sentence} {kept}") from error
    finally:
        letters.revise(verdicts.revised)
    client.indices.refresh(index=target.index)
    if pipeline.chunking is not None:
        StaleChunks(client, target.index, 0, target.fields).remove(sorted(verdicts.ended, key=attrgetter("line")))
    return verdicts


def _rows(letters: DeadLetters, pipeline: EmbeddingPipeline, fields: FieldNames) -> Iterator[SourceRow]:
    """Each letter parsed again, as the load did with its line, or with the document of the index that it adopted."""
    given, weighted = is_given(pipeline.encoder.id), pipeline.brings_weights
    parser = Parser("needed" if given else "refused", pipeline.encoder.dimension if given else None, fields, weighted)
    for letter in letters:
        if isinstance(letter.document, bytes) and not fields.split:
            content = document_of(letter.document, fields, pipeline.encoder.dimension)
            yield SourceRow(letter.version, content, letter.document)
        elif isinstance(letter.document, bytes):
            yield parser.line((letter.version, letter.document))
        else:
            yield parser.row(letter.version, letter.document)


class LettersReplayed(NamedTuple):
    """What became of dead letters that were sent again.

    Attributes:
        total: how many there were.
        indexed: how many the server has taken.
        superseded: how many came too late, as the index has a later version of the document.
        file: the file, or the folder, with those that are left; empty where there were none.
    """

    total: int
    indexed: int = 0
    superseded: int = 0
    file: str = ""

    @property
    def left(self) -> int:
        """How many stay."""
        return self.total - self.indexed - self.superseded


def replay_letters(
    name: str,
    encoder: str | None,
    display: Callable[[int], AbstractContextManager[LoadProgress]],
    state: StateFolder | None = None,
) -> LettersReplayed:
    """Send the dead letters of an index again.

    Args:
        name: the index.
        encoder: where its encoder is now; None for where it was in the last load.
        display: shows how far this is, given the number of letters.
        state: the state of the load that they are of; None for those of this machine's loads.

    Raises:
        UsageError: a load into the index was cut off; the letters' file is damaged; how documents were made is not
            known any more.
        FingerprintError: the index holds vectors of another making.
        ClusterError: there is no such index.
        LangshiftError: a load is at work; the cluster, the encoder or the state's store fails.
    """
    found = with_letters(name)
    if state is None and not found:
        return LettersReplayed(0)
    client = open_cluster()
    place = LoadWorkspace.of(Settings.from_env().home, client, name)
    if state is None and place not in found:
        note(f"The dead letters in {found[0].dead_letters} belong to another cluster.")
        return LettersReplayed(0)
    with ExitStack() as stack:
        place.make()
        # Also keeps loads away, which would write to the file of letters.
        journal = stack.enter_context(Journal(place.journal))
        journal.require_sound()
        if journal.begun and journal.fact("resumable"):
            raise _interrupted(journal.identity, name)
        letters, options, shown = DeadLetters(place.dead_letters), place.pipeline_options, str(place.dead_letters)
        if state is not None:
            facts, letters, options = stack.enter_context(borrowed_letters(state))
            shown = f"{state.shown}/{DEAD}"
            if (loaded := facts[IDENTITY]["index"]) != name:
                raise UsageError(f"{state.shown} is the state of a load into {loaded}, not into {name}.")
            if SUMMARY not in facts:
                raise _interrupted(facts[IDENTITY], name)
        index = live(client, name)
        require_unblocked(client, name, index.index, metadata.read_settings(client, index.index), appending=True)
        if not (total := letters.total()):
            return LettersReplayed(0)
        pipeline = _open_pipeline(options, shown, encoder, index, metadata.read_metadata(client, index.index))
        pipeline = pipeline.for_fields(index.fields)
        index.fingerprint.require_same(
            pipeline.fingerprint(), name, "load these documents again with the settings the index was built with"
        )
        stack.enter_context(log_to(place.log))
        progress = stack.enter_context(display(total))
        target = Target(name, index.index, "", created=False, live=index.index, if_exists="append", fields=index.fields)
        verdicts = replay(client, letters, target, pipeline, progress)
    return LettersReplayed(total, verdicts.indexed, verdicts.superseded, shown)


def _interrupted(identity: Mapping[str, Any], name: str) -> UsageError:
    corpus = identity.get("corpus")
    return UsageError(f"The load of {corpus} into {name} was interrupted: continue it with --resume first.")


def _open_pipeline(
    file: Path, letters: str, encoder: str | None, index: IndexInfo, meta: Mapping[str, Any]
) -> EmbeddingPipeline:
    """How the load made its documents by whose options in a file, with the shift that the index has now."""
    try:
        options = PipelineOptions.read(file)
    except (OSError, ValueError, RecursionError, msgspec.DecodeError) as error:
        raise UsageError(
            f"{file} does not show how the documents of {index.name} are built: load those in {letters} again with "
            "`langshift ingest`."
        ) from error
    if encoder:
        options = replace(options, encoder=encoder, named_by="")
    return options.open_for(index.fingerprint, meta)


def with_letters(name: str | None) -> list[LoadWorkspace]:
    """The places that have dead letters, of one index or of all.

    Raises:
        UsageError: ``name`` cannot be an index's name.
    """
    if name is not None:
        check_name(name)
    return [place for place in load_workspaces(Settings.from_env().home, name) if place.dead_letters.exists()]
