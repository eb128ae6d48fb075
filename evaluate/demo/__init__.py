"""The demo: the bundled corpus indexed in three ways, its questions asked of each, and what changed in plain words."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from opensearchpy import OpenSearch

from langshift.debias.detector import open_detector
from langshift.debias.encoders.base import Encoder, Matrix
from langshift.evaluate.compare.comparison import changed
from langshift.evaluate.datasets.dataset import CORPUS, Dataset, DatasetQuery
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.most_shown import MOST_SHOWN_20, most_shown
from langshift.evaluate.replay.replay import ReplayResult
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.resume import LoadOptions
from langshift.plugin.inventory import drop_all
from langshift.retrieval.request import USUAL
from langshift.retrieval.result import Hit
from langshift.retrieval.searcher import Searcher
from langshift.wording import format_change, format_score

PLAIN, PAPER, SHIFTED = "langshift-demo-plain", "langshift-demo-paper", "langshift-demo-shifted"
FOLDER = Path(__file__).parent
#: Whether the first hit is the right page, in whatever language, and which translation of it is shown first.
RIGHT_PAGE, READERS = "P@1", "LPR"
_SHOWN = 10


class OnceEncoder(Encoder):
    """An encoder that encodes each text once: all indices have the same texts, and get the same questions.

    Args:
        encoder: what encodes.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._documents: dict[str, Matrix] = {}
        self._queries: dict[str, Matrix] = {}
        self.id, self.revision = encoder.id, encoder.revision
        self.dimension, self.normalised, self.longest = encoder.dimension, encoder.normalised, encoder.longest
        self.query_prefix, self.document_prefix = encoder.query_prefix, encoder.document_prefix

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """See ``Encoder.encode_documents``."""
        return self._once(self._documents, self._encoder.encode_documents, texts)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """See ``Encoder.encode_queries``."""
        return self._once(self._queries, self._encoder.encode_queries, texts)

    def _once(
        self, known: dict[str, Matrix], encode: Callable[[Sequence[str]], Matrix], texts: Sequence[str]
    ) -> Matrix:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
        return np.array([known[text] for text in texts], np.float32).reshape(len(texts), self.dimension)


class ReplayPair(NamedTuple):
    """Two replays of the same queries.

    Attributes:
        dataset: what was replayed.
        before: the index without the shift.
        after: the index with it.
    """

    dataset: Dataset
    before: ReplayResult
    after: ReplayResult

    def change(self, measure: str) -> dict[str, float]:
        """Query id -> change of a measure, for the queries that it counts."""
        return changed(self.before.scores[measure], self.after.scores[measure])


class DemoExample(NamedTuple):
    """One question and its first hits in both indices.

    Attributes:
        query: the question.
        before: hits without the shift.
        after: hits with it.
    """

    query: DatasetQuery
    before: Sequence[Hit]
    after: Sequence[Hit]

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the demo's JSON document."""
        return {
            "query": {name: value for name, value in self.query._asdict().items() if name != "embedding"},
            "before": [self._brief(hit) for hit in self.before],
            "after": [self._brief(hit) for hit in self.after],
        }

    def _brief(self, hit: Hit) -> dict[str, Any]:
        known = {name: getattr(hit, name) for name in ("id", "score", "language", "title")}
        return {**known, "relevant": hit.group == self.query.group}


def index_variants(client: OpenSearch, encoder: Encoder, on_document: Callable[[int], None] = lambda _: None) -> None:
    """Write the bundled corpus to the demo's indices, which are replaced.

    Without a shift; with the paper's alone; and as is recommended, by the defaults of a load.

    Args:
        client: the cluster.
        encoder: makes the vectors of all.
        on_document: called with the number of documents after each batch that is written.

    Raises:
        ClusterError: an index of that name is not langshift's, or the cluster fails.
    """
    detector = open_detector()

    def on_stage(stage: str, documents: int, _: float) -> None:
        if stage == "write":
            on_document(documents)

    # A demo that was cut off is given up.
    anew = LoadOptions(if_exists="replace")
    for name, alpha in ((PLAIN, 0.0), (PAPER, 1.0), (SHIFTED, None)):
        drop_all(client, name)
        pipeline = build_pipeline(encoder, detector, None, alpha, gamma=None if alpha is None else 0.0)
        load(client, str(FOLDER / CORPUS), name, pipeline, on_stage, anew)


def example(compared: ReplayPair, plain: Searcher, shifted: Searcher) -> DemoExample | None:
    """Search both indices for the pivot-language question whose first hits changed most.

    The one that gained most answers among its first ten hits, if any gained; None where no
    question's ranking changed.
    """
    changes = compared.change("nDCG@20")
    pivot = shifted.index.fingerprint.pivot
    gained = _gained(compared)
    ours = {query.id: query for query in compared.dataset.queries if query.language == pivot}
    changed = [name for name in ours if changes.get(name)]
    if not changed:
        return None
    chosen = max(changed, key=lambda name: (max(gained[name], 0), changes[name] > 0, abs(changes[name]), name))
    query = ours[chosen]
    found = (searcher.search(query.text, USUAL, language=query.language, size=_SHOWN) for searcher in (plain, shifted))
    return DemoExample(query, *(one.hits for one in found))


def _gained(compared: ReplayPair) -> dict[str, int]:
    """Query id -> how many more of its first hits answer it after than before."""
    gained: dict[str, int] = {}
    for sign, replayed in ((-1, compared.before), (1, compared.after)):
        for answer in replayed.answers:
            judged = compared.dataset.qrels.get(answer.query, {})
            right = sum(judged.get(name, 0) > 0 for name, _ in answer.hits[:_SHOWN])
            gained[answer.query] = gained.get(answer.query, 0) + sign * right
    return gained


_DIGITS = 3


def describe_changes(compared: ReplayPair) -> list[str]:
    """What the shift changed beside the figures of the table, in sentences made from figures alone."""
    return [line for line in (_by_question(compared), _most_shown(compared), _grain(compared)) if line]


def side_by_side(before: Scores, after: Scores) -> str:
    """``.612 → .641  +.029``, for a table."""
    old, new = before.mean, after.mean
    if old is None or new is None:
        return "-"
    # That of the figures as they are shown, so that a reader can check it.
    change = round(round(new, _DIGITS) - round(old, _DIGITS), _DIGITS)
    return f"{short_figure(old)} → {short_figure(new)} {format_change(change, _DIGITS):>6}"


def short_figure(value: float) -> str:
    """A figure between 0 and 1 as ``.612``."""
    return format_score(value, _DIGITS)


def _by_question(compared: ReplayPair) -> str:
    changes = compared.change("nDCG@20").values()
    better = sum(change > 0 for change in changes)
    worse = sum(change < 0 for change in changes)
    return (
        f"Question by question, nDCG@20 is better for {better:,}, worse for {worse:,} "
        f"and the same for {len(changes) - better - worse:,}."
    )


def _most_shown(compared: ReplayPair) -> str:
    before, after = (most_shown(side.scores[MOST_SHOWN_20]) for side in (compared.before, compared.after))
    if before is None or after is None:
        return ""
    return f"The language that is shown most: before, {before.sentence}; after, {after.sentence}."


def _grain(compared: ReplayPair) -> str:
    fewest = min(measures["nDCG@20"].queries for measures in compared.before.by_language().values())
    if not fewest:
        return ""
    return (
        f"With {fewest} questions per language, a single question can change a language's figure by "
        f"{short_figure(1 / fewest)}: small changes mean little."
    )
