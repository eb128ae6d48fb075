"""Judgements of lists on disk, each stored at once, and the dataset that their folder is.

::

    judgements.jsonl   a line for the two runs and the seed, then one for each judgement, in the order of judging
    corpus.jsonl       the documents of all lists that can be judged
    queries.jsonl      the queries that were judged
    qrels/test.tsv     the grades that follow, see ``grades``

Lines are only ever added to ``judgements.jsonl``: a judgement that is withdrawn has a line, too. The queries and grades
are written anew after each, so that the folder is a dataset at any time.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import orjson

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import CORPUS, QRELS, QRELS_HEADER, QUERIES
from langshift.evaluate.judging.pairing import PairedQuery, Pairing
from langshift.files import ensure_folder, json_lines, write_bytes
from langshift.wording import iso_time

JUDGEMENTS = "judgements.jsonl"
# Seconds that somebody else may take to write.
_PATIENCE = 10
Preference = Literal["first", "second", "both", "neither"]


class _Head(msgspec.Struct):
    runs: tuple[str, str]
    seed: int


class _Line(msgspec.Struct):
    query: str | None = None
    preferred: Preference | None = None
    revealed: bool = False


class Judgements(NamedTuple):
    """What was judged.

    Attributes:
        seed: of the order of queries and of the sides.
        preferences: query id -> judgement, in the order of judging.
        seen: the ids of all queries that were ever judged, those whose judgement was withdrawn, too.
        revealed: whether it is known which run is which, so that nothing more is judged.
    """

    seed: int
    preferences: Mapping[str, Preference]
    seen: tuple[str, ...]
    revealed: bool


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one process or thread at a time write judgements.

    Args:
        folder: of the judgements; made if it is not there, for the owner alone.

    Raises:
        OSError: it cannot be written, or somebody else writes there for long.
    """
    from filelock import FileLock

    ensure_folder(folder)
    with FileLock(folder / ".lock", timeout=_PATIENCE, mode=0o600):
        yield


def begin(folder: Path, pairing: Pairing, seed: int) -> None:
    """Make the folder of the judgements; one that is there already is left as it is.

    Raises:
        OSError: it cannot be written.
    """
    if (folder / JUDGEMENTS).exists():
        return
    rows = (_document(pairing, name) for name in sorted(pairing.documents))
    write_bytes(folder / CORPUS, json_lines(rows), private=True)
    head = {"runs": pairing.names, "seed": seed, "time": iso_time()}
    write_bytes(folder / JUDGEMENTS, json_lines([head]), private=True)


def _document(pairing: Pairing, name: str) -> dict[str, Any]:
    text, known = pairing.texts[name], pairing.documents[name]
    row = {"_id": name, "title": text.title, "text": text.text}
    return row | _known(language=text.language or known.language, group=known.group)


def _known(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def read_judgements(folder: Path, pairing: Pairing) -> Judgements | None:
    """Read what was judged; None where judging has not begun. A last line that was cut off does not count.

    Args:
        folder: of the judgements.
        pairing: the runs, whose queries alone are judged.

    Raises:
        UsageError: the file, or a line of it, cannot be read.
    """
    path = folder / JUDGEMENTS
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}): let the user that runs `langshift serve` read it."
        ) from None
    preferences: dict[str, Preference] = {}
    seed, seen, revealed = 0, dict[str, None](), False
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            break
        try:
            if number == 1:
                seed = msgspec.json.decode(line, type=_Head).seed
                continue
            row = msgspec.json.decode(line, type=_Line)
            if row.query is not None and row.query not in pairing.queries:
                raise ValueError(row.query)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise UsageError(f"{path}, line {number}, is not a judgement: remove the line.") from None
        revealed |= row.revealed
        if row.query is not None:
            preferences.pop(row.query, None)
            seen[row.query] = None
            if row.preferred is not None:
                preferences[row.query] = row.preferred
    return Judgements(seed, preferences, tuple(seen), revealed)


def add(folder: Path, pairing: Pairing, query: str, preferred: Preference | None) -> None:
    """Store a judgement, and write the dataset anew.

    Args:
        folder: of the judgements.
        pairing: the runs.
        query: the id of a query.
        preferred: the judgement; None withdraws the one that was given.

    Raises:
        OSError: it cannot be written.
    """
    _append(folder / JUDGEMENTS, {"query": query, "preferred": preferred, "time": iso_time()})
    judged = read_judgements(folder, pairing)
    assert judged is not None  # noqa: S101 - the line above is in it
    # No query ever leaves, and they come first: at no time does a grade stand for a query that is not there.
    known = [pairing.queries[one].query for one in judged.seen]
    rows = (
        {"_id": one.id, "text": one.text}
        | _known(language=one.tag or one.language, group=one.group, article=one.article)
        for one in known
    )
    write_bytes(folder / QUERIES, json_lines(rows), private=True)
    graded = (
        (one, name, str(grade))
        for one, given in judged.preferences.items()
        for name, grade in grades(pairing.queries[one], given).items()
        if name in pairing.documents
    )
    table = "".join("\t".join(row) + "\n" for row in (QRELS_HEADER, *graded))
    write_bytes(folder / QRELS, table.encode(), private=True)


def reveal(folder: Path) -> None:
    """Store that it is known from now on which run is which.

    Raises:
        OSError: it cannot be written.
    """
    _append(folder / JUDGEMENTS, {"revealed": True, "time": iso_time()})


def _append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a line that outlives a power cut; the rest of one that was cut off is removed."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)), "r+b", 0) as file:
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
        file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        os.fsync(file.fileno())


def grades(paired: PairedQuery, preferred: Preference) -> dict[str, int]:
    """The grades of documents that follow from a judgement of lists: document id -> 1 or 0.

    ``both`` gives 1 to the documents of both lists, ``neither`` gives 0 to them. Where one list is preferred, the
    documents that only this list shows get 1, those that only the other shows get 0, and those in both lists get no
    grade, since they are no reason to prefer either. A preference of two orders of the same documents gives none.
    """
    first, second = paired.hits
    if preferred in ("both", "neither"):
        return dict.fromkeys((*first, *second), int(preferred == "both"))
    better, worse = (first, second) if preferred == "first" else (second, first)
    alone = {name: 1 for name in better if name not in worse}
    return alone | {name: 0 for name in worse if name not in better}
