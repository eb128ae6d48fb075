"""What a load keeps: its folder, and of its lines ranges, a sample, and what became of each."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from opensearchpy import OpenSearch

from langshift.errors import LangshiftError
from langshift.files import ensure_folder
from langshift.settings import ensure_home

State = Literal["index", "delete", "update", "superseded", "dead"]


class Acknowledged(NamedTuple):
    """A line that came to an end.

    Attributes:
        line: its number, from 1.
        id: the document's ``_id``; empty where it has none, because the line could not be read.
        state: ``index``, ``delete`` or ``update``: the server has confirmed it; ``superseded``: the server holds a
            later version of the document; ``dead``: it is in the dead letters.
        chunks: as ``ActionResult`` has them.
    """

    line: int
    id: str
    state: State
    chunks: int = 0


class Entry(NamedTuple):
    """An entry that is to be in the index.

    Attributes:
        id: its ``_id``.
        line: the line that was confirmed last; 0 of one that was updated last, which need only be there.
        document: the document's own id.
    """

    id: str
    line: int
    document: str


class Sampled(NamedTuple):
    """A line that the final check compares.

    Attributes:
        line: its number, from 1.
        id: the entry's ``_id``.
        vector: the vector as it was sent, float32, and a hash of the texts.
    """

    line: int
    id: str
    vector: bytes


class LineRanges:
    """A set of line numbers, held as sorted, disjoint ranges: 16 bytes for each, however long it is."""

    def __init__(self) -> None:
        self._firsts = array("q")
        self._lasts = array("q")

    def __contains__(self, line: int) -> bool:
        return self.covers(line, line)

    def covers(self, first: int, last: int) -> bool:
        """Whether it holds all lines from ``first`` to ``last``, both included."""
        place = bisect_right(self._firsts, first) - 1
        return place >= 0 and last <= self._lasts[place]

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges())

    def add(self, first: int, last: int) -> None:
        """Add the lines from ``first`` to ``last``, both included; some may be there already.

        Raises:
            ValueError: ``last`` is before ``first``.
        """
        if last < first:
            raise ValueError(f"{first} to {last} is not a valid range.")
        # The ranges that overlap the new one or touch it, which all become one.
        begin, end = bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)
        if begin < end:
            first, last = min(first, self._firsts[begin]), max(last, self._lasts[end - 1])
        self._firsts[begin:end] = array("q", [first])
        self._lasts[begin:end] = array("q", [last])

    def ranges(self) -> list[tuple[int, int]]:
        """First and last line of each range, in order; no two of them touch."""
        return list(zip(self._firsts, self._lasts, strict=True))


_LOADS = "loads"


@dataclass(unsafe_hash=True)
class LoadWorkspace:
    """The folder of the loads into one index of one cluster.

    Attributes:
        folder: the folder, with mode 0700.
        name: the index.
        journal: the journal of the load that was begun last.
        dead_letters: the dead letters of all loads.
        log: the log.
        pipeline_options: how the documents of the last load were made.
    """

    folder: Path
    name: str

    def __post_init__(self) -> None:
        """Name the files."""
        self.journal, self.dead_letters = self.folder / "journal.sqlite", self.folder / "dead-letters.jsonl"
        self.log, self.pipeline_options = self.folder / "load.log", self.folder / "making.json"

    @classmethod
    def of(cls, home: Path, client: OpenSearch, name: str) -> LoadWorkspace:
        """The place of an index; the cluster is told by its uuid, since its address may change."""
        cluster = str(client.info()["cluster_uuid"])
        # A cluster without a manager calls itself `_na_`; so does nobody else.
        return cls(home / _LOADS / "".join(c for c in cluster if c.isalnum() or c in "_-") / name, name)

    def make(self) -> None:
        """Make the folder, for the present user alone.

        Raises:
            LangshiftError: it cannot be made.
        """
        try:
            ensure_home(self.folder.parents[2])
            ensure_folder(self.folder)
        except OSError as error:
            raise LangshiftError(
                f"langshift cannot store the journal of a load in {self.folder}: {error.strerror or error}; "
                "set LANGSHIFT_HOME to a writable folder."
            ) from error


def load_workspaces(home: Path, name: str | None = None) -> list[LoadWorkspace]:
    """The places of all clusters' indices, or of those of one name."""
    return [
        LoadWorkspace(folder, folder.name)
        for folder in sorted((home / _LOADS).glob(f"*/{name or '*'}"))
        if folder.is_dir() and name in (None, folder.name)
    ]


#: How many lines the sample keeps.
SIZE = 200
#: The highest rank; SQLite's integers go no further.
HIGHEST = (1 << 63) - 1

_MASK = (1 << 64) - 1


# A line's rank is a hash of its number. So every line has the same chance wherever it stands and however many
# there are, and a load that goes on chooses as one that was never stopped.
def sample_priority(line: int) -> int:
    """A pseudo-random number from 0 to ``HIGHEST`` that depends on the line alone (SplitMix64)."""
    mixed = (line * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) >> 1


def priority_cutoff(total: int | None) -> int:
    """A rank above which no line of so many can be expected to stay in the sample; the highest where nobody knows.

    Without it the first lines would all be kept, until enough are there to tell which ranks are low.
    """
    return HIGHEST if total is None else min(HIGHEST, HIGHEST * 2 * SIZE // max(total, 1))
