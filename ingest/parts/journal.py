"""The journal of a load that is kept in parts, each of which says what became of some of its lines."""

import platform
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NamedTuple
from uuid import uuid4

import msgspec
import orjson

from langshift.errors import LangshiftError, UsageError
from langshift.files import batched, load_json
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.journal import IDENTITY, RESULT, SUMMARY, Journal, require_facts
from langshift.ingest.bulk.journal_store import Acknowledged, LineRanges, Sampled, State
from langshift.ingest.bulk.writer import Operation
from langshift.ingest.documents import Original
from langshift.ingest.parts.folder import AT_ONCE, StateFolder
from langshift.ingest.resume import OwnershipLost
from langshift.reporting import note

#: The file of a state that says which load it is.
LOAD = "load.json"
#: The file of a finished one that says how its documents were made.
OPTIONS = "making.json"
DEAD, _PARTS, _LATE, _ATTEMPTS = "dead", "parts", "late", "attempts"
_FORMAT, _RUN, _BUCKETS = "format", "run", "buckets"
_THIS_FORMAT = 1
# The letters that are left once they were sent again.
_LEFT = "left.jsonl"
# Names of parts: lines first to last, late lines of a bucket, lines that were written once more; each ends with the
# number of lines that it has counted. By their names, what was written later comes later.
_LATE_PART, _REPAIR_PART = "late-{:06}", "repair-{:06}"
_PART = re.compile(r"((?:\d{12}-\d{12}|late-\d{6}|repair-\d{6})-\d+)\.parquet")
_COLUMNS = (("bucket", "int32"), ("line", "int64"), ("id", "large_string"))
_PART_COLUMNS = (*_COLUMNS, ("state", "string"), ("chunks", "int32"), ("sampled", "large_string"), ("vector", "binary"))
_LATE_COLUMNS = (*_COLUMNS, ("operation", "string"), ("is_line", "bool"), ("original", "large_binary"))
_ATTEMPT = re.compile(r"((?:late-\d{6}-)?)(\d{12})-(\d{12})-[0-9a-f]{32}")


class LateLine(NamedTuple):
    """A delete, or an update of single fields, which waits for all whole documents.

    Attributes:
        line: its number.
        id: the document's ``_id``.
        operation: which of the two it is.
        original: the line as the input had it.
    """

    line: int
    id: str
    operation: Operation
    original: Original


class PartCounts(NamedTuple):
    """What a part has counted.

    Attributes:
        tallies: as ``Journal.tallies`` has them.
        late: how many of its lines wait.
        buckets: into how many parts the ids are divided.
    """

    tallies: dict[str, int]
    late: int
    buckets: int


class _Owned(msgspec.Struct):
    format: Literal[1]
    run: str
    buckets: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]


class StateJournal(Journal):
    """A load's journal in a state folder.

    The facts are in ``load.json``. What became of lines is in ``parts/``; under the same names, ``late/`` has the lines
    that wait, and ``dead/`` the dead letters: a part is written last, and says that the others are there.
    """

    shared = True

    def __init__(self, path: Path, folder: StateFolder, buckets: int) -> None:
        """Open the state, which may be new.

        Args:
            path: a file for this process alone.
            folder: the state's folder.
            buckets: into how many parts the ids are divided, each of which fits into a journal.

        Raises:
            UsageError: the folder holds something else.
            LangshiftError: it cannot be read.
        """
        super().__init__(path)
        self.folder, self.shown = folder, folder.shown
        facts = _facts(folder)
        self.buckets: int = (facts or {}).get(_BUCKETS, buckets)
        if facts is None and folder.names():
            raise UsageError(f"{folder.shown} holds no state of a load, but other files: give a folder of its own.")
        self._own, self.owner = uuid4().hex, (facts or {}).get(_RUN)
        with self.writing() as database:
            kept = [(name, orjson.dumps(value)) for name, value in (facts or {}).items()]
            database.executemany("INSERT INTO facts VALUES (?, ?)", kept)
        self._parts: dict[str, PartCounts | None] = {}
        if self.begun:
            self.look_again()

    def look_again(self) -> None:
        """Take note of the parts that other processes have written."""
        there = [found[1] for name in self.folder.names(_PARTS) if (found := _PART.fullmatch(name))]
        self._parts = {name: self._parts.get(name) for name in there}
        for name in filter(_is_run, there):
            first, last, _ = map(int, name.split("-"))
            if not 0 < first <= last:
                raise self.folder.unusable(_part(name), "damaged")

    def require_sound(self, *, lines: bool = False) -> None:
        """Refuse parts that hold what no load writes; see ``Journal.require_sound``."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._counts, self._parts if lines else ()))

    def require_free(self) -> None:
        """Refuse to begin a load where another one is.

        Raises:
            UsageError: there is one, which is finished.
        """
        if self.finished is not None:
            corpus, index = (self.identity.get(name) for name in ("corpus", "index"))
            raise UsageError(
                f"{self.shown} is the state of the load of {corpus} into {index}, which is complete: give another "
                "folder with --state, or remove this one once its dead letters are not needed any more."
            )

    @property
    def is_own(self) -> bool:
        """Whether this process has begun the load that the state is of, or gone on with it."""
        return self.owner == self._own

    def require_own(self) -> None:
        """Stop where another process goes on with the load.

        Raises:
            OwnershipLost: one does, or somebody has removed the state.
        """
        facts = _facts(self.folder)
        if facts is None and self.owner is not None:
            raise OwnershipLost(f"The state {self.shown} was removed while the load ran: it was not completed.")
        if (facts or {}).get(_RUN) != self.owner:
            raise OwnershipLost(f"Another process has taken over the load with the state {self.shown}: this one stops.")

    def take_over(self) -> None:
        """Have every other process that is at this load stop.

        Raises:
            OwnershipLost: another one has done so since the state was opened.
            LangshiftError: the state cannot be written.
        """
        with self.reading() as database:
            facts = {name: orjson.loads(value) for name, value in database.execute("SELECT name, value FROM facts")}
        facts |= {_FORMAT: _THIS_FORMAT, _RUN: self._own, _BUCKETS: self.buckets}
        content = orjson.dumps(facts, option=orjson.OPT_INDENT_2)
        if self.owner is not None:
            self.require_own()
            self.folder.put(LOAD, content)
        elif not self.folder.create(LOAD, content):
            raise OwnershipLost(
                f"Another process has begun a load with the state {self.shown} at the same time: this one has changed "
                "nothing."
            )
        self.owner = self._own

    def set_fact(self, name: str, value: Any) -> None:  # noqa: ANN401 (JSON is anything)
        """Keep a JSON value under a name; see ``Journal.set_fact``."""
        super().set_fact(name, value)
        self.take_over()

    def begin(self, identity: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Begin a load; see ``Journal.begin``."""
        self.require_own()
        self._clear(_PARTS, _LATE, DEAD, _ATTEMPTS)
        # Whoever still works for the load as it was before stops.
        self._own = uuid4().hex
        super().begin(identity, facts)
        self.take_over()

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Say that the load is complete; the dead letters stay."""
        for name in self.folder.names(DEAD):
            if name.removesuffix(".jsonl") not in self._parts:
                self.folder.remove(f"{DEAD}/{name}")
        super().finish(summary)
        self.take_over()
        self._clear(_PARTS, _LATE, _ATTEMPTS)

    def remove(self) -> None:
        """Remove the state, as far as that is possible at once."""
        self.folder.stop_waiting()
        try:
            self.require_own()
            self._clear(_PARTS, _LATE, DEAD, _ATTEMPTS)
            self.folder.remove(LOAD)
        except LangshiftError as error:
            note(f"The state of the load stays: {error}")
        super().remove()

    def _clear(self, *folders: str) -> None:
        for folder in folders:
            for name in self.folder.names(folder):
                self.folder.remove(f"{folder}/{name}")
        self._parts = {}

    def handled(self) -> LineRanges:
        """The lines that need not be read again."""
        lines = LineRanges()
        for name in self._parts:
            if _is_run(name):
                first, last, _ = map(int, name.split("-"))
                lines.add(first, last)
        return lines

    def handled_lines(self) -> int:
        """How many lines came to an end."""
        return sum(int(name.rpartition("-")[2]) for name in self._parts)

    @contextmanager
    def attempt(self, first: int, last: int, bucket: int | None = None) -> Iterator[None]:
        """Let the state say meanwhile that lines, or late ones of a bucket, are tried, of which the process may die."""
        name = f"{_ATTEMPTS}/{_of_bucket(bucket)}{first:012}-{last:012}-{uuid4().hex}"
        self.folder.put(name, f"{platform.node()}\n".encode())
        try:
            yield
        finally:
            self.folder.remove(name)

    def attempts(self, bucket: int | None = None) -> list[tuple[int, int]]:
        """First and last line of each attempt that goes on, or that a process did not live to end."""
        return [lines for _, lines in self._attempts(bucket)]

    def forget_attempts(self, line: int, bucket: int | None = None) -> None:
        """Have a line tried as if no process had died of it."""
        for name, (first, last) in self._attempts(bucket):
            if first <= line <= last:
                self.folder.remove(f"{_ATTEMPTS}/{name}")

    def _attempts(self, bucket: int | None) -> Iterator[tuple[str, tuple[int, int]]]:
        for name in self.folder.names(_ATTEMPTS):
            if (found := _ATTEMPT.fullmatch(name)) and found[1] == _of_bucket(bucket):
                yield name, (int(found[2]), int(found[3]))

    def last_line(self) -> int:
        """The highest number among the lines that were read; 0 where none was."""
        return max((last for _, last in self.handled().ranges()), default=0)

    def tallies(self) -> Counter[str]:
        """What was added up over all parts."""
        sums, created = Counter[str](), self.fact("created")
        for name in self._parts:
            counted = Counter(self._counts(name).tallies)
            if created and _is_run(name):
                # Nobody else writes to the version: a whole document that came too late was written, and replaced,
                # by a process that was killed before its part.
                counted[f"{RESULT}resent"] += counted.pop(f"{RESULT}superseded", 0)
            sums.update(counted)
        return sums

    def _counts(self, name: str) -> PartCounts:
        if (known := self._parts[name]) is None:
            rows, found = self.folder.metadata(_part(name), _PART_COLUMNS)
            try:
                known = msgspec.json.decode(found.get(b"counts", b""), type=PartCounts)
            except msgspec.DecodeError as error:
                raise self.folder.unusable(_part(name), "damaged") from error
            late = self.folder.metadata(f"{_LATE}/{name}.parquet", _LATE_COLUMNS)[0] if known.late else 0
            repaired = name.startswith("repair")
            if (late, self.buckets) != known[1:] or not (repaired or rows == int(name.rpartition("-")[2])):
                raise self.folder.unusable(_part(name), "damaged")
            self._parts[name] = known
        return known

    @contextmanager
    def recording(self) -> Iterator[tuple[Journal, DeadLetters]]:
        """A journal and dead letters of their own for some lines, until ``commit`` keeps what they hold."""
        with TemporaryDirectory() as scratch, Journal(Path(scratch, "lines.sqlite")) as journal:
            yield journal, DeadLetters(Path(scratch, "dead-letters.jsonl"))

    def commit_run(self, first: int, last: int, journal: Journal, letters: DeadLetters, late: list[LateLine]) -> None:
        """Keep what became of all lines from ``first`` to ``last``, but of those that wait."""
        self._commit(f"{first:012}-{last:012}", journal, letters, late)

    def commit_late(self, bucket: int, journal: Journal, letters: DeadLetters) -> None:
        """Keep what became of the lines of a bucket that had waited."""
        self._commit(_LATE_PART.format(bucket), journal, letters)

    def commit_repair(self, journal: Journal, letters: DeadLetters) -> None:
        """Keep what became of lines that were written once more."""
        number = sum(name.startswith("repair") for name in self._parts)
        self._commit(_REPAIR_PART.format(number), journal, letters, counts=False)

    def _commit(
        self, name: str, journal: Journal, letters: DeadLetters, late: Sequence[LateLine] = (), *, counts: bool = True
    ) -> None:
        name = f"{name}-{journal.handled_lines() if counts else 0}"
        counted = PartCounts(journal.tallies(), len(late), self.buckets)
        self.require_own()
        if letters.path.exists():
            self.folder.put(f"{DEAD}/{name}.jsonl", letters.path.read_bytes())
        if late:
            waiting = (
                (self._bucket(id), line, id, operation, raw := isinstance(row, bytes), row if raw else _json(row))
                for line, id, operation, row in late
            )
            self.folder.put_table(f"{_LATE}/{name}.parquet", _LATE_COLUMNS, waiting, {})
        with journal.reading() as database:
            lines = database.execute(
                "SELECT line, lines.id, state, chunks, sample.id, vector FROM lines LEFT JOIN sample USING (line)"
            )
            rows = ((self._bucket(id := _text(text)), line, id, *rest) for line, text, *rest in lines)
            self.folder.put_table(_part(name), _PART_COLUMNS, rows, {"counts": orjson.dumps([*counted])})
        self._parts[name] = counted

    def _bucket(self, id: str) -> int:
        return zlib.crc32(id.encode()) % self.buckets

    def late_buckets(self) -> list[int]:
        """The buckets whose late lines are not done; none where no line is late."""
        if not self._late_files():
            return []
        done = {name.rpartition("-")[0] for name in self._parts}
        return [bucket for bucket in range(self.buckets) if _LATE_PART.format(bucket) not in done]

    def late_ids(self, bucket: int) -> Iterator[tuple[int, str, Operation]]:
        """Number, ``_id`` and operation of each late line of a bucket."""
        for name in self._late_files():
            yield from self.folder.rows(name, bucket, ["line", "id", "operation"])

    def late(self, bucket: int) -> Iterator[tuple[int, Original]]:
        """The late lines of a bucket in the order of the corpus, each with its number."""
        for name in self._late_files():
            for line, is_line, original in self.folder.rows(name, bucket, ["line", "is_line", "original"]):
                yield line, original if is_line else orjson.loads(original)

    def _late_files(self) -> list[str]:
        return [f"{_LATE}/{name}.parquet" for name in sorted(self._parts) if self._counts(name).late]

    def of_bucket(self, bucket: int, path: Path) -> Journal:
        """What became of the lines of a bucket, as a journal in a new file; who asks closes it."""
        journal, created = Journal(path), self.fact("created")
        try:
            for name in sorted(self._parts):
                columns = ["line", "id", "state", "chunks", "sampled", "vector"]
                lines = self.folder.rows(_part(name), bucket, columns)
                # See ``tallies``.
                late: State = "index" if created and _is_run(name) else "superseded"
                for some in batched(lines, AT_ONCE):
                    journal.acknowledge(
                        [Acknowledged(line, id, late if at == "superseded" else at, n) for line, id, at, n, *_ in some],
                        [Sampled(line, entry, sent) for line, *_, entry, sent in some if sent is not None],
                    )
        except BaseException:
            journal.remove()
            raise
        return journal


@contextmanager
def borrowed_letters(folder: StateFolder) -> Iterator[tuple[Mapping[str, Any], DeadLetters, Path]]:
    """The dead letters of a load, for a while in a file of this machine's; what changes there changes in the state.

    Args:
        folder: the state's folder.

    Yields:
        What the load began with, its dead letters, and a file with the options of its pipeline, where it is finished.

    Raises:
        UsageError: it holds no state of a load.
        LangshiftError: it cannot be read, or written.
    """
    if (facts := _facts(folder)) is None or IDENTITY not in facts:
        raise UsageError(f"{folder.shown} holds no state of a load: give the folder that a load had with --state.")
    names = folder.names(DEAD)
    if SUMMARY not in facts:
        # A process that was killed has left others, whose lines are not handled.
        parts = {name.removesuffix(".parquet") for name in folder.names(_PARTS)}
        names = [name for name in names if name.removesuffix(".jsonl") in parts]
    with TemporaryDirectory() as scratch:
        letters, options = DeadLetters(Path(scratch, "dead-letters.jsonl")), Path(scratch, OPTIONS)
        before = b"".join(folder.get(f"{DEAD}/{name}") or b"" for name in names)
        if before:
            letters.path.write_bytes(before)
        if SUMMARY in facts:
            options.write_bytes(folder.get(OPTIONS) or b"")
        try:
            yield facts, letters, options
        finally:
            after = letters.path.read_bytes() if letters.path.exists() else b""
            if after != before:
                if after:
                    folder.put(f"{DEAD}/{_LEFT}", after)
                for name in set(names) - ({_LEFT} if after else set()):
                    folder.remove(f"{DEAD}/{name}")


def _of_bucket(bucket: int | None) -> str:
    return "" if bucket is None else f"{_LATE_PART.format(bucket)}-"


def _part(name: str) -> str:
    return f"{_PARTS}/{name}.parquet"


def _is_run(name: str) -> bool:
    return name[0].isdigit()


def _text(id: str) -> str:
    """An id that can be written; only that of a dead line is changed by this."""
    return id.encode(errors="replace").decode()


def _json(row: Original) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY)


def _facts(folder: StateFolder) -> dict[str, Any] | None:
    content = folder.get(LOAD)
    if content is None:
        return None
    try:
        facts: dict[str, Any] = load_json(content)
        msgspec.convert(facts, _Owned)
        require_facts(facts)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{folder.shown}/{LOAD} is damaged, or was written by another version of langshift: give another folder "
            "with --state."
        ) from error
    return facts
