"""Indexing a corpus: each of its lines is then on the server or in the dead letters."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any, TypeVar

from opensearchpy import OpenSearch

from langshift.debias.encoders.base import is_given
from langshift.errors import LangshiftError
from langshift.ingest.bulk.chunked import StaleChunks
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.delivery import ChunkSender, open_bulk_writer
from langshift.ingest.bulk.document_versions import VersionsAhead, VersionWatch, version_after
from langshift.ingest.bulk.final_pipeline import final_pipeline, refused
from langshift.ingest.bulk.journal import RESULT, Journal, Ledger
from langshift.ingest.bulk.journal_store import LoadWorkspace, priority_cutoff, sample_priority
from langshift.ingest.bulk.writer import COUNT, UNDELIVERED, ActionResult, BulkAction
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import DocumentSource, Embeddings, SourceRow
from langshift.ingest.open_corpus import open_source
from langshift.ingest.progress import LoadObserver, LoadProgress, LoadSummary, OnStage, no_progress
from langshift.ingest.publication import LoadNotPublished, VerificationResult, check, require_publishable
from langshift.ingest.resume import DOCUMENTS, USUAL, LoadOptions, LoadSession, LoadStrategy
from langshift.ingest.transform import ActionBuilder, encoded_batches, index_batches
from langshift.ingest.updates import ChunkUpdater, Updater
from langshift.plugin import version_writer
from langshift.plugin.index_sample import unread_of
from langshift.plugin.inventory import noted_translations
from langshift.plugin.pipelines import inherit_pipeline_on_load
from langshift.plugin.version_writer import NotPublished
from langshift.plugin.versions import Target, version_behind
from langshift.reporting import note
from langshift.retry import RetryBudget, at_work, retry_until_available
from langshift.settings import Settings
from langshift.wording import pluralize

T = TypeVar("T")

_REPAIRS = 3  # rounds
_NAMED = 10  # ids in a message
_LOST = "lost"  # the journal's name for lines that the server had confirmed, and lost


class RowWriter:
    """Makes documents of lines, and writes them into a version.

    Attributes:
        stale: removes chunks that an earlier form of a document has left; None where documents are no chunks.
    """

    def __init__(self, opened: LoadSession, target: Target, on_stage: OnStage) -> None:
        """Take a load and the version that it writes to; ``on_stage`` is called after each batch of each stage."""
        self._opened, self._target, self._on_stage = opened, target, on_stage
        self._retries = 0
        self._sender: ChunkSender | None = None
        client, base = opened.client, opened.base
        chunked = opened.pipeline.chunking is not None
        self.stale = StaleChunks(client, target.index, base, target.fields) if chunked else None
        # Nobody else writes to a version that this load has made.
        watched = not target.created
        self._versions = VersionWatch(client, target.index, base, opened.options.patience) if watched else None

    @property
    def retries(self) -> int:
        """Requests that were sent again."""
        return self._retries + (self._sender.retries if self._sender else 0)

    def add_retries(self, count: int) -> None:
        """Count requests that another process has sent again."""
        self._retries += count

    @property
    def at_once(self) -> int:
        """Requests that may be under way at once."""
        return self._sender.limit.at_once if self._sender else 0

    def write(
        self,
        rows: Iterator[SourceRow],
        journal: Journal,
        ledger: Ledger,
        doubtful: int,
        hold: Callable[[list[BulkAction]], list[BulkAction]] | None = None,
    ) -> None:
        """Write lines; each has come to an end when this returns.

        Args:
            rows: the lines.
            journal: keeps what becomes of them.
            ledger: settles them in it.
            doubtful: up to this line an earlier run may have sent lines whose answers it did not live to see.
            hold: takes the operations of a batch, and gives back those that are to be written now.

        Raises:
            VersionsAhead: the index holds versions of which nobody knew.
            LangshiftError: a stage fails.
        """
        opened, target = self._opened, self._target
        cutoff = priority_cutoff(opened.source.total)

        def settle(outcomes: Sequence[ActionResult]) -> None:
            if self._versions is not None:
                self._versions.require_known(outcomes)
            ended = ledger.settle(outcomes)
            # Nobody searches a version that this load has made.
            if self.stale is not None and not target.created:
                self.stale.remove_at_once(ended)

        def wants(line: int) -> bool:
            return sample_priority(line) <= cutoff and journal.wants(line)

        def builder() -> ActionBuilder:
            return opened.kind.builder_factory(opened.pipeline, settle, opened.base, wants, fields=target.fields)

        encoded = encoded_batches(rows, builder(), self._on_stage)
        # Whatever ends this, nothing is read any more before the source is closed.
        with ExitStack() as stack, closing(encoded):
            kind = Updater if opened.pipeline.chunking is None else ChunkUpdater
            updater = kind(opened.client, target.index, opened.pipeline, opened.base, stack, target.fields)
            options = opened.options
            opening = open_bulk_writer(
                opened.client, target, settle, options.patience, doubtful, updater.merge, options.requests
            )
            with opening as (writer, self._sender):
                now = writer.write if hold is None else lambda batch: writer.write(hold(batch))
                index_batches(encoded, builder(), now, self._on_stage)
            seconds = self._sender.limit.seconds
            self._retries, self._sender = self.retries, None
        self._on_stage("write", 0, seconds)


class LoadRun:
    """One run of a load."""

    def __init__(self, opened: LoadSession, on_stage: OnStage, watch: LoadObserver | None) -> None:
        self._opened, self._on_stage, self._watch = opened, on_stage, watch
        self._client, self._source, self._journal = opened.client, opened.source, opened.journal
        place = opened.place
        made, longest = opened.pipeline.fingerprint(), opened.pipeline.encoder.longest
        self._summary = LoadSummary(place.name, "", made, self._source.shown, longest=longest, resumed=opened.resumed)
        self._summary.dead_letters, self._summary.log = str(place.dead_letters), str(place.log)
        self._letters = DeadLetters(place.dead_letters)
        self._begin_ledger()
        for first, last in self._journal.fact(_LOST) or ():
            self._ledger.lost.add(first, last)
        # The last line that may have been sent without the journal's knowing.
        self._doubtful = self._journal.last_line() + UNDELIVERED * COUNT if opened.goes_on else 0
        self._rows: RowWriter
        self._progress: LoadProgress | None = None
        self._handled, self._dead = opened.resumed, 0
        self._counted: dict[str, int] = {}

    @at_work()
    def run(self) -> LoadSummary:
        """Load, check and publish."""
        target = self._opened.target
        if target is None:
            return self._done_before()
        self._summary.index, place = target.index, self._opened.place
        self._begin_writing(target)
        try:
            if self._watch:
                self._progress = self._watch.begin(place, self._source.total, self._opened.resumed)
            self._write_in_order(target)
            checked = self._checked(target)
            self._source.require_unchanged()
            self._opened.read_whole = True
            self._count(checked)
            limit = self._opened.options.max_refused
            self._patiently(lambda: require_publishable(self._client, target, self._summary, limit))
            before = target.live if target.created else None
            if before is not None:
                debias = self._opened.pipeline.debias
                self._patiently(lambda: inherit_pipeline_on_load(self._client, before, target, debias))
            live = self._patiently(lambda: version_writer.publish(self._client, target))
        except NotPublished as error:
            raise self._unpublished(target, error) from error
        except (Exception, KeyboardInterrupt) as error:
            if (raised := self._opened.clean_up(target, error)) is error:
                raise
            raise raised from error
        # An earlier run may have made the version, and have been killed when it was published.
        if self._journal.fact("created"):
            # Sent again, they would bring back what this version has left behind.
            self._opened.keep_letters(lambda version: version > self._opened.base)
        if live != target.index:
            note(f"{target.name} now points to {live}, which has the documents of {target.index} too.")
        self._summary.unread = self._patiently(lambda: unread_of(self._client, live, self._summary.languages))
        count = partial(noted_translations, self._client, live, target.fields)
        self._summary.translations = self._patiently(count)
        self._finish(target)
        return self._summary

    def _count(self, checked: VerificationResult) -> None:
        self._summary.present = checked.documents
        self._summary.chunks = checked.entries if self._opened.pipeline.chunking else 0
        self._counted = self._tallies()
        self._summary.count(self._counted)

    def _finish(self, target: Target, **more: str) -> None:
        """Let the journal keep that the load is complete."""
        summary = self._summary
        facts: dict[str, Any] = {"index": target.index, "uuid": target.uuid, "tallies": self._counted}
        facts |= {"present": summary.present, "chunks": summary.chunks, "repaired": summary.repaired, **more}
        self._journal.finish({**facts, "last": self._opened.base + self._journal.last_line()})

    def _unpublished(self, target: Target, error: NotPublished) -> LoadNotPublished:
        """Let the journal keep that the load is complete, but its version not live; or nothing, where that is gone."""
        self._summary.index, self._summary.published = error.version or "", False
        if error.version is None:
            self._leave_nothing(target, error.why)
        else:
            self._finish(target, unpublished=error.why)
        return LoadNotPublished(str(error), self._summary)

    def _leave_nothing(self, target: Target, why: str) -> None:  # noqa: ARG002 - for others
        self._journal.remove()

    def _tallies(self) -> dict[str, int]:
        """What the journal has counted, but for what the server says of a delivery that was not the first."""
        tallies: dict[str, int] = self._journal.tallies()
        doubtful = any(f"{RESULT}{name}" in tallies for name in ("updated", "resent", "not_found"))
        if not doubtful or not self._journal.fact("created") or self._opened.kind.keeps_versions:
            return tallies
        results = sum((Counter(journal.results()) for journal in self._journals()), Counter[str]())
        names = {f"{RESULT}{name}": results[name] for name in ("updated", "created", "deleted", "not_found")}
        return {**tallies, **names, f"{RESULT}resent": 0}

    def _begin_ledger(self) -> None:
        place, base = self._source.place, self._opened.base
        self._ledger = Ledger(self._journal, self._letters, place, base, self._report_progress)

    def _begin_writing(self, target: Target) -> None:
        self._rows = RowWriter(self._opened, target, self._stage)

    def _done_before(self) -> LoadSummary:
        assert self._journal.finished is not None  # noqa: S101 - what `LoadSession.open` found
        _, summary = self._journal.finished
        self._summary.count(summary["tallies"])
        self._summary.index, self._summary.present = summary["index"], summary["present"]
        self._summary.repaired, self._summary.resumed = summary["repaired"], self._summary.lines
        self._summary.chunks = summary.get("chunks", 0)
        name, index, uuid = self._summary.name, summary["index"], summary["uuid"]
        if (why := summary.get("unpublished")) and not version_writer.stands(self._client, name, index, uuid):
            live = version_behind(self._client, name)
            target = Target(name, index, uuid, created=True, live=live, if_exists="new-version")
            self._summary.published = False
            raise LoadNotPublished(str(version_writer.keep_aside(self._client, target, why)), self._summary)
        note(f"This load into {self._summary.name} is already complete: there is nothing to resume.")
        return self._summary

    def _write_in_order(self, target: Target) -> None:
        """Write every line; all of them anew where the index holds versions of which nobody knew.

        Raises:
            VersionsAhead: it does, and the input cannot be read a second time, or somebody goes on writing such ones.
        """
        for _ in range(_REPAIRS):
            try:
                self._write(target)
            except VersionsAhead as ahead:
                base = version_after(self._client, target.index, ahead.version, self._opened.options.patience)
                if not self._source.resumable:
                    raise
                self._begin_again(target, base)
            else:
                return
        self._write(target)

    def _begin_again(self, target: Target, base: int) -> None:
        first, last = self._opened.base, self._journal.last_line()
        self._doubtful = last + UNDELIVERED * COUNT
        # Who is killed between the two has letters twice, rather than none.
        self._opened.begin_again(base)
        self._opened.keep_letters(lambda version: not first < version <= first + last)
        self._summary.resumed = 0
        self._handled, self._dead = 0, 0
        self._begin_ledger()
        self._begin_writing(target)

    # A load that keeps its journal in parts has ways of its own to write, to forget, and to end.
    def _write(self, target: Target) -> None:  # noqa: ARG002 - ``_rows`` knows it, too
        """Write every line that the journal does not have."""
        rows = self._source.read(self._journal.handled())
        self._rows.write(rows, self._journal, self._ledger, self._doubtful)

    def _journals(self) -> Iterable[Journal]:
        """What became of all lines; each document's are in one of them."""
        return [self._journal]

    def _checked(self, target: Target) -> VerificationResult:
        """The final check; what was lost is written once more where that is possible."""
        base = None if self._opened.kind.keeps_versions else self._opened.base
        for left in reversed(range(_REPAIRS + 1)):
            checked = self._patiently(lambda: self._verified(target, base))
            lost = list(dict.fromkeys(one.document for one in (*checked.missing, *checked.differing)))
            if not lost:
                if checked.surplus:
                    noun = "document" if self._rows.stale is None else "chunk"
                    note(
                        f"{target.index} holds {pluralize(checked.surplus, noun)} that this load did not write: "
                        "another process has written to it."
                    )
                return checked
            if checked.differing and (name := self._patiently(lambda: final_pipeline(self._client, target.index))):
                raise refused(target.index, name, f"has changed {_named([one.document for one in checked.differing])}")
            self._forget([line for journal in self._journals() for line in journal.written_by(lost)])
            problem = f"The final check found that the cluster has lost {_named(lost)} that it had confirmed"
            # In an index that people use, somebody may have deleted them.
            if not left or not target.created or not self._source.resumable:
                raise LangshiftError(f"{problem}.")
            note(f"{problem}: writing them again.")
            self._summary.repaired += len(lost)
            self._write(target)
        raise AssertionError

    def _verified(self, target: Target, base: int | None) -> VerificationResult:
        """What the check finds, once no chunk is there that an earlier form of its document has left."""
        checked, stale = check(self._client, target, self._journals, base), self._rows.stale
        # A version that this load has made has some only if the corpus writes a document several times.
        suspected = checked.surplus > 0 if target.created else True
        if stale is None or not suspected or not sum(stale.remove(journal.ended()) for journal in self._journals()):
            return checked
        return check(self._client, target, self._journals, base)

    def _forget(self, lines: list[int]) -> None:
        """Have lines written once more, by this run or another, without counting them again."""
        for line in lines:
            self._ledger.lost.add(line, line)
        # Noted first: a line that is noted and not forgotten is as it was.
        self._journal.set_fact(_LOST, self._ledger.lost.ranges())
        self._journal.forget(lines)

    def _patiently(self, action: Callable[[], T]) -> T:
        return retry_until_available(action, RetryBudget(self._opened.options.patience))

    def _stage(self, stage: str, documents: int, seconds: float) -> None:
        self._summary.seconds[stage] += seconds
        self._on_stage(stage, documents, seconds)
        if stage == "encode" and self._progress:
            self._progress.add_encoded(documents, seconds)

    def _report_progress(self, lines: int, dead: int) -> None:
        self._handled, self._dead = self._handled + lines, self._dead + dead
        self._summary.retries = self._rows.retries
        self._on_stage("write", lines, 0.0)
        if self._progress:
            self._progress.update(self._handled, self._summary.retries, self._dead, self._rows.at_once)


def _named(lost: list[str]) -> str:
    """``2 documents (_id 'a', 'b')``; of many the first."""
    ids = ", ".join(repr(identifier) for identifier in lost[:_NAMED])
    return f"{pluralize(len(lost), 'document')} (_id {ids}{', ...' if len(lost) > _NAMED else ''})"


def load(
    client: OpenSearch,
    corpus: str | Sequence[str],
    name: str,
    pipeline: EmbeddingPipeline,
    on_stage: OnStage = no_progress,
    options: LoadOptions = USUAL,
) -> LoadSummary:
    """Index a corpus; each of its lines is then on the server or in the dead letters.

    Args:
        client: the cluster.
        corpus: what ``open_source`` opens: files of JSON lines (plain, gzip or zstd) or Parquet, folders of such files,
            globs; or ``-`` for standard input.
        name: the index's name, an alias over its versions.
        pipeline: encoder, shift and detector.
        on_stage: called after each batch of each stage with the documents and seconds of that batch.
        options: how it is done.

    Raises:
        UsageError: the input cannot be used, or the index exists; nothing is changed.
        FingerprintError: the index holds vectors of another making; it is as it was.
        LoadNotPublished: the load is complete, but what it has made is not live: too much was refused.
        ChangedError: the corpus was written to while it was read; nothing is published.
        LangshiftError: the load broke off; unless nothing was written, it can be gone on with.
    """
    embeddings: Embeddings = "needed" if is_given(pipeline.encoder.id) else "refused"
    weighted, waits = pipeline.brings_weights, options.patience
    opening = open_source(corpus, embeddings=embeddings, fields=options.fields, weighted=weighted, patience=waits)
    with opening as source:
        return load_source(client, source, name, pipeline, on_stage, options)


def load_source(
    client: OpenSearch,
    source: DocumentSource,
    name: str,
    pipeline: EmbeddingPipeline,
    on_stage: OnStage = no_progress,
    options: LoadOptions = USUAL,
    watch: LoadObserver | None = None,
    kind: LoadStrategy = DOCUMENTS,
) -> LoadSummary:
    """Index a source that is open; see ``load``."""
    place = LoadWorkspace.of(Settings.from_env().home, client, name)
    place.make()
    with Journal(place.journal) as journal:
        opened = LoadSession(client, source, pipeline, options, kind, place, journal)
        opened.open()
        return LoadRun(opened, on_stage, watch).run()
