"""What two runs show for the same queries, and in which order and on which side a person sees it."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from langshift.errors import UsageError
from langshift.evaluate.compare import comparison, log_replays
from langshift.evaluate.datasets.dataset import Clusters, DatasetDocument, DatasetQuery, clusters
from langshift.evaluate.datasets.texts import read_texts
from langshift.evaluate.measures.base import ranking
from langshift.evaluate.replay.result import RUN
from langshift.files import content_hash
from langshift.ingest.documents import Document

#: Documents of each list that are shown and judged.
DEPTH = 10
_LONGEST_NAME = 60


class PairedQuery(NamedTuple):
    """A query and what two runs show for it.

    Attributes:
        query: the query.
        hits: the documents of the first and of the second run, at most ``DEPTH``, best first.
    """

    query: DatasetQuery
    hits: tuple[Sequence[str], Sequence[str]]


class Pairing(NamedTuple):
    """Two runs side by side.

    Attributes:
        names: what the first and the second run are called.
        queries: query id -> what both show, for the queries whose lists differ.
        same: for how many queries both show the same documents in the same order.
        texts: document id -> title and text, of the documents shown that the dataset has; of a log how they begin.
        documents: document id -> language and group, of these.
        clusters: which queries belong together.
        key: names the folder of the judgements: runs with other names or other contents have another one.
    """

    names: tuple[str, str]
    queries: Mapping[str, PairedQuery]
    same: int
    texts: Mapping[str, Document]
    documents: Mapping[str, DatasetDocument]
    clusters: Clusters
    key: str

    def shuffled(self, seed: int) -> list[str]:
        """The ids of the queries in the order in which they are judged."""
        return sorted(self.queries, key=lambda query: _digest(seed, "order", query))


def pair_runs(names: tuple[str, str], places: tuple[Path, Path]) -> Pairing:
    """Read two runs of one dataset, or two replays of one log.

    Args:
        names: what to call them.
        places: their folders.

    Raises:
        UsageError: no such run, runs of different queries, queries without words, or runs that differ for no query.
    """
    logged = log_replays.load_logged(places) if log_replays.is_logged(places[0]) else None
    dataset, candidates = comparison.load(places, None, logged)
    if not all(query.text for query in dataset.queries):
        raise UsageError(
            f"{names[0]} does not have the words of its queries, which were not to be written: replay the log without "
            "--redact of these to judge it."
        )
    first, second = (candidate.run for candidate in candidates)
    queries, same = {}, 0
    for query in dataset.queries:
        hits = tuple(ranking(run.get(query.id, {}))[:DEPTH] for run in (first, second))
        if hits[0] == hits[1]:
            same += 1
        else:
            queries[query.id] = PairedQuery(query, (hits[0], hits[1]))
    if not queries:
        raise UsageError(
            f"{names[0]} and {names[1]} show the same first {DEPTH} documents for every query: choose other runs."
        )
    shown = {name for paired in queries.values() for hits in paired.hits for name in hits}
    documents = {name: dataset.documents[name] for name in shown if name in dataset.documents}
    texts = read_texts(dataset, documents) if logged is None else _logged_texts(places, documents)
    key = _key(names, [place / RUN for place in places])
    return Pairing(names, queries, same, texts, documents, clusters(dataset), key)


def _logged_texts(places: Sequence[Path], documents: Mapping[str, DatasetDocument]) -> dict[str, Document]:
    """What the replays of a log have written of documents; the id stands for one that they could not read."""
    texts = log_replays.beginnings_of(places)
    return {
        name: Document(name, "" if texts.get(name) else name, texts.get(name, ""), known.language, {})
        for name, known in documents.items()
    }


def _key(names: Sequence[str], files: Iterable[Path]) -> str:
    """A name for a folder, of letters, digits, dots and dashes."""
    content = [DEPTH, *zip(names, map(content_hash, files), strict=True)]
    readable = re.sub(r"[^A-Za-z0-9]+", "-", " ".join(names)).strip("-")[:_LONGEST_NAME]
    return f"{readable}-{hashlib.sha256(orjson.dumps(content)).hexdigest()[:12]}".lstrip("-")


def left_side(query: str, seed: int) -> int:
    """Which run is on the left for a query: 0 for the first, 1 for the second."""
    return _digest(seed, "left", query)[0] & 1


def _digest(seed: int, what: str, query: str) -> bytes:
    # Of each query alone, so that neither order nor side depends on how many there are.
    return hashlib.sha256(f"{seed} {what} {query}".encode()).digest()
