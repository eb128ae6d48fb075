"""A load whose journal is in parts: whole documents in runs of lines, then deletes and updates, then the check."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from opensearchpy import OpenSearch

from langshift.errors import UsageError
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.journal import Journal, Ledger
from langshift.ingest.bulk.journal_store import LineRanges, LoadWorkspace
from langshift.ingest.bulk.writer import ActionResult, BulkAction, Operation
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import SourceRow
from langshift.ingest.load import LoadRun
from langshift.ingest.parts.folder import StateFolder
from langshift.ingest.parts.journal import DEAD, OPTIONS, LateLine, StateJournal
from langshift.ingest.progress import LoadObserver, LoadSummary, no_progress
from langshift.ingest.resume import DOCUMENTS, LoadOptions, LoadSession
from langshift.ingest.sources import Files, NumberedFiles
from langshift.ingest.updates import missing_document
from langshift.plugin.versions import Target
from langshift.settings import Settings

#: What a process that is killed does in vain at most: so many lines, seconds, or bytes of lines, which may all wait.
LINES = 50_000
_SECONDS, _BYTES = 60.0, 64 << 20
# Lines whose journal is some 80 MB.
_LINES_OF_A_BUCKET = 2_000_000


class Run(Iterator[SourceRow]):
    """Some lines in a row.

    Attributes:
        first: the number of the first one.
        last: that of the last one that was read.
    """

    def __init__(self, begin: SourceRow, rows: Iterator[SourceRow], most: int | None = None) -> None:
        """Take the first line, what gives those after it, and how many there may be; ``LINES`` where that is None."""
        self.first = self.last = begin.line
        self._rows = self._until(begin, rows, most or LINES)

    def __next__(self) -> SourceRow:
        row = next(self._rows)
        self.last = row.line
        return row

    @staticmethod
    def _until(begin: SourceRow, rows: Iterator[SourceRow], most: int) -> Iterator[SourceRow]:
        end, size = time.monotonic() + _SECONDS, 0
        for row in chain([begin], islice(rows, most - 1)):
            yield row
            size += row.size
            if time.monotonic() > end or size > _BYTES:
                return


class PartedRun(LoadRun):
    """One run of a load whose journal is a ``StateJournal``."""

    _source: NumberedFiles
    _journal: StateJournal

    def __init__(self, opened: LoadSession, watch: LoadObserver | None, scratch: Path) -> None:
        """Take a load that is open, who looks on, and a folder for this process alone."""
        super().__init__(opened, no_progress, watch)
        self._summary.state = self._journal.shown
        self._summary.dead_letters = f"{self._journal.shown}/{DEAD}"
        # What a process has sent that was killed before its part is known to nobody.
        self._doubtful = self._source.total or 0 if opened.goes_on else 0
        self._scratch, self._lost = scratch, LineRanges()

    def _write(self, target: Target) -> None:
        """Write every line that no part has; or once more those that the cluster has lost."""
        self._forget_buckets()
        lost, self._lost = self._lost, LineRanges()
        if lost.ranges():
            self._repair(lost)
            return
        self._write_whole_documents()
        if buckets := self._journal.late_buckets():
            self._write_buckets(buckets, target)
        self._forget_buckets()

    # Where others do the work, they are given it here.
    def _write_whole_documents(self) -> None:
        with closing(self._source.read(self._journal.handled())) as rows:
            for begin in rows:
                self._journal.require_own()
                self.write_run(Run(begin, rows))

    def _write_buckets(self, buckets: Iterable[int], target: Target) -> None:
        for bucket in buckets:
            self._journal.require_own()
            self.write_late(bucket, target)

    @contextmanager
    def _recording(self) -> Iterator[tuple[Journal, DeadLetters, Ledger]]:
        with self._journal.recording() as (journal, letters):
            yield (
                journal,
                letters,
                Ledger(journal, letters, self._source.place, self._opened.base, self._report_progress),
            )

    def write_run(self, run: Run) -> None:
        """Write the whole documents of some lines, and leave a part that says so."""
        late: list[LateLine] = []

        def hold(batch: list[BulkAction]) -> list[BulkAction]:
            waits = [one for one in batch if one.operation != "index"]
            late.extend(LateLine(one.line, one.id, one.operation, one.original) for one in waits)
            return [one for one in batch if one.operation == "index"] if waits else batch

        with self._recording() as (journal, letters, ledger):
            self._rows.write(run, journal, ledger, self._doubtful, hold)
            self._journal.commit_run(run.first, run.last, journal, letters, late)

    def write_late(self, bucket: int, target: Target) -> None:
        """Write the lines of a bucket that have waited, and leave a part that says so."""
        with self._bucket(bucket) as known:
            missing, void = too_early(self._journal.late_ids(bucket), known, created=target.created)
        with self._recording() as (journal, letters, ledger):

            def hold(batch: list[BulkAction]) -> list[BulkAction]:
                ended = [ActionResult(one, "superseded") for one in batch if one.line in void]
                for one in batch:
                    if one.line in missing:
                        ended.append(ActionResult(one, "dead", "", "missing_document", missing_document(one.id)))
                if ended:
                    ledger.settle(ended)
                return [one for one in batch if one.line not in void and one.line not in missing]

            for rows in self._late_runs(bucket):
                self._rows.write(rows, journal, ledger, self._doubtful, hold)
            self._journal.commit_late(bucket, journal, letters)

    # Whoever may die of a line divides them.
    def _late_runs(self, bucket: int) -> Iterator[Iterator[SourceRow]]:
        yield (self._source.parsed(*one) for one in self._journal.late(bucket))

    def _repair(self, lost: LineRanges) -> None:
        with self._recording() as (journal, letters, ledger):
            ledger.lost = lost
            self._rows.write(self._source.read(_AllBut(lost)), journal, ledger, self._doubtful)
            self._journal.commit_repair(journal, letters)

    def _journals(self) -> Iterator[Journal]:
        for number in range(self._journal.buckets):
            with self._bucket(number) as journal:
                yield journal

    def _bucket(self, number: int) -> Journal:
        path = self._scratch / f"bucket-{number}.sqlite"
        return Journal(path) if path.exists() else self._journal.of_bucket(number, path)

    def _forget_buckets(self) -> None:
        for path in self._scratch.glob("bucket-*"):
            path.unlink()

    def _forget(self, lines: list[int]) -> None:
        for line in lines:
            self._lost.add(line, line)

    def _leave_nothing(self, target: Target, why: str) -> None:
        # The dead letters stay.
        self._finish(target, unpublished=why)

    def _finish(self, target: Target, **more: str) -> None:
        # Dead letters are sent again by these, wherever that is.
        self._journal.folder.put(OPTIONS, self._opened.place.pipeline_options.read_bytes())
        super()._finish(target, **more)


class _AllBut:
    """All lines but some."""

    def __init__(self, lines: LineRanges) -> None:
        self._lines = lines

    def __contains__(self, line: int, /) -> bool:
        return line not in self._lines


# Of each late line the last line that writes its document as a whole or deletes it, and the last such one before it.
_TOO_EARLY = """
    WITH events AS (
        SELECT id, line, 'index' AS operation FROM lines WHERE id IN (SELECT id FROM late)
            AND (state IN ('index', 'superseded') OR (state = 'dead' AND chunks))
        UNION ALL SELECT id, line, operation FROM late),
    ordered AS (
        SELECT line, operation, max(iif(operation = 'update', 0, line)) OVER (PARTITION BY id) AS last,
            max(iif(operation = 'update', 0, 2 * line + (operation = 'index'))) OVER (
                PARTITION BY id ORDER BY line ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM events)
    SELECT line, operation = 'update' AND coalesce(before, 0) % 2 = 0 FROM ordered
    WHERE operation != 'index' AND line < last ORDER BY line"""


def too_early(
    late: Iterable[tuple[int, str, Operation]], journal: Journal, *, created: bool
) -> tuple[LineRanges, LineRanges]:
    """Late lines that change nothing, since a later line writes the whole document, or deletes it.

    None of them is sent: done a second time, an update before a delete would find no document.

    Args:
        late: number, ``_id`` and operation of each late line of a bucket.
        journal: what became of the bucket's whole documents.
        created: whether nobody else writes to the version, so that it is known what was there when.

    Returns:
        The lines of updates that came before their document, and of the others.
    """
    missing, void = LineRanges(), LineRanges()
    with journal.writing() as database:
        database.execute("CREATE TEMP TABLE late (line INTEGER PRIMARY KEY, id TEXT NOT NULL, operation TEXT NOT NULL)")
        database.executemany("INSERT INTO late VALUES (?, ?, ?)", late)
        for line, was_missing in database.execute(_TOO_EARLY):
            (missing if was_missing and created else void).add(line, line)
        database.execute("DROP TABLE late")
    return missing, void


def load_in_parts(
    client: OpenSearch,
    source: Files,
    name: str,
    pipeline: EmbeddingPipeline,
    state: str,
    options: LoadOptions,
    watch: LoadObserver,
    make_run: Callable[[LoadSession, LoadObserver, Path], PartedRun] = PartedRun,
) -> LoadSummary:
    """Index a source that is open, with its journal in a state folder; see ``langshift.ingest.load.load``.

    Args:
        client: the cluster.
        source: the corpus.
        name: the index's name, an alias over its versions.
        pipeline: encoder, shift and detector.
        state: the folder's path or address.
        options: how it is done.
        watch: looks on.
        make_run: makes the run of it.

    Raises:
        UsageError: also where the folder is another load's, or holds something else.
        LangshiftError: also where it cannot be read or written.
    """
    place = LoadWorkspace.of(Settings.from_env().home, client, name)
    place.make()
    folder, buckets = StateFolder(state, options.patience), max(1, (source.total or 0) // _LINES_OF_A_BUCKET)
    with ExitStack() as stack:
        # Nobody else loads into the index from this machine meanwhile.
        own = stack.enter_context(Journal(place.journal))
        own.require_sound()
        if own.begun and own.fact("resumable"):
            raise UsageError(
                f"A load of {own.identity.get('corpus')} into {name} without --state was interrupted: continue it with "
                f"--resume and without --state, or remove {own.shown} to abandon it."
            )
        scratch = Path(stack.enter_context(TemporaryDirectory()))
        journal = StateJournal(scratch / "load.sqlite", folder, buckets)
        stack.callback(journal.close)
        if (other := journal.identity.get("index", name)) != name:
            raise UsageError(f"{folder.shown} is the state of a load into {other}: give each load a folder of its own.")
        opened = LoadSession(client, source, pipeline, options, DOCUMENTS, place, journal)
        try:
            opened.open()
        except BaseException:
            if journal.is_own and not journal.identity:
                journal.remove()
            raise
        if opened.target is not None:
            journal.take_over()
        return make_run(opened, watch, scratch).run()
