"""Exact rankings by cosine in NumPy: settings, rankings, and their result on disk."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.similarity import with_norm_1
from langshift.debias.vectors import Vectors
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import identity
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.replay.journal import ReplayJournal
from langshift.evaluate.replay.load_generator import PERCENTILES
from langshift.evaluate.replay.requests import TOP_K, QueryResult
from langshift.evaluate.replay.result import per_query, provenance, searched, write_run
from langshift.evaluate.runs import scored, summary, summary_by_language, summary_by_value, too_shallow
from langshift.evaluate.within import remarks
from langshift.ingest.config import EmbeddingPipeline
from langshift.languages import UNDETERMINED, primary
from langshift_lab.methods.debiaser import QUERY_SIDE, MethodDebiaser, recommended
from langshift_lab.methods.vectors import MethodVectors
from langshift_lab.offline import encoding
from langshift_lab.offline.encoding import GIVEN, DocumentLanguages, EncodedDataset, LanguageSource, Matrix

# Scores held at once, 4 bytes each, and vectors that are raised to 64 bits at once.
_SCORES_AT_ONCE = 1 << 25
_QUERIES_AT_ONCE = 512
_ROWS_AT_ONCE = 1 << 14


class DebiasedVectors(NamedTuple):
    """Both sides as they are compared: moved by their languages, every row of norm 1.

    Attributes:
        documents: shape (documents, dimension), float32.
        queries: shape (queries, dimension), float32.
    """

    documents: Matrix
    queries: Matrix


class ExactRankings(NamedTuple):
    """What exact search found.

    Attributes:
        rankings: query id -> document ids and scores, best first.
        group_scores: query id -> document id -> score, for every passage of the query's target group.
    """

    rankings: Mapping[str, list[tuple[str, float]]]
    group_scores: Mapping[str, dict[str, float]]


def debias_vectors(
    encoded: EncodedDataset, debias: MethodDebiaser, document_languages: DocumentLanguages | None = None
) -> DebiasedVectors:
    """Move both sides as a method asks, and bring every vector to norm 1.

    Args:
        encoded: the vectors as the encoder makes them.
        debias: what moves documents, and queries where the method or its setting asks for it.
        document_languages: the languages by which documents move; those of ``encoded`` if not given. Queries move by
            those of ``encoded``.

    Raises:
        UsageError: probable languages with a method that cannot take them.
        LangshiftError: a vector of which the method leaves nothing.
    """
    move = (document_languages or encoding.given_languages(encoded)).move
    query_ids = [query.id for query in encoded.dataset.queries]
    known = encoded.languages
    languages = [known.query_tags.get(name) or known.queries[name] for name in query_ids]
    return DebiasedVectors(
        _unit_rows(encoded.documents, encoded.ids, "Document", lambda block, rows: move(debias, block, rows)),
        _unit_rows(encoded.queries, query_ids, "Query", lambda block, rows: debias.queries(block, languages[rows])),
    )


def _unit_rows(vectors: Matrix, names: Sequence[str], what: str, move: Callable[[Matrix, slice], Matrix]) -> Matrix:
    made = np.empty(vectors.shape, np.float32)
    for start in range(0, len(made), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        block = move(np.asarray(vectors[rows]), rows).astype(np.float64)
        if not block.any(axis=1).all():
            name = names[start + int(np.flatnonzero(~block.any(axis=1))[0])]
            raise LangshiftError(
                f"{what} {name!r}: nothing of its vector is left without the language, so it cannot be compared: "
                "remove it from the dataset, or choose another --method."
            )
        made[rows] = with_norm_1(block)
    return made


def rank(
    encoded: EncodedDataset,
    placed: DebiasedVectors,
    *,
    beta: float = 0.0,
    depth: int = TOP_K,
    on_queries: Callable[[int], None] = lambda _: None,
) -> ExactRankings:
    """The best documents of each query by exact cosine.

    The score is ``cos(q, d)``, plus ``beta`` where the document is in the query's language. Ties break as
    trec_eval breaks them: by document id, descending, after the score as a 32-bit float. A document that the query
    itself is, is left out.

    Args:
        encoded: the queries, the documents' ids, and the languages.
        placed: the vectors of both sides, of norm 1, in the order of ``encoded``.
        beta: what a document in the query's language gets on top of its cosine.
        depth: how many documents to keep for each query.
        on_queries: called with the number of queries after each block.
    """
    # In this order, a stable sort by score alone leaves ties by document id, descending.
    order = np.array(sorted(range(len(encoded.ids)), key=encoded.ids.__getitem__, reverse=True))
    names = [encoded.ids[place] for place in order]
    languages = np.array([encoded.languages.documents[name] or UNDETERMINED for name in names])
    place = {name: position for position, name in enumerate(names)}
    part = encoded.part
    # Value -> the places of its documents.
    inside: dict[str, NDArray[np.intp]] = {}
    if part is not None:
        inside = {value: np.array([place[name] for name in having]) for value, having in part.documents.items()}
    nothing, values = np.array([], np.intp), {} if part is None else part.values.texts
    rankings: dict[str, list[tuple[str, float]]] = {}
    groups: dict[str, dict[str, float]] = {}
    for first, scores in score_blocks(placed, order):
        for row, query in zip(scores, encoded.dataset.queries[first : first + len(scores)], strict=True):
            language = encoded.languages.queries[query.id]
            if beta and language:
                row[languages == language] += np.float32(beta)
            if part is not None:
                own = inside.get(values[query.id], nothing)
                searched_scores = row[own]
                row[:] = -np.inf
                row[own] = searched_scores
            best = top(row, depth + (query.id in encoded.dataset.own_documents))
            known = ((names[i], float(row[i])) for i in best if row[i] != -np.inf)
            rankings[query.id] = [*islice(encoded.dataset.without_own(query.id, known), depth)]
            if target := encoded.dataset.target_group(query.id):
                known_scores = {name: float(row[place[name]]) for name in target}
                groups[query.id] = {name: score for name, score in known_scores.items() if score != -np.inf}
        on_queries(len(scores))
    return ExactRankings(rankings, groups)


def score_blocks(placed: DebiasedVectors, order: NDArray[np.int64]) -> Iterator[tuple[int, Matrix]]:
    """Yield the first query of each block and its scores, shape (queries, documents), float32, in ``order``.

    Products are summed up in 64 bits, so that equal vectors get equal scores wherever they stand.
    """
    count = len(order)
    size = max(1, min(_QUERIES_AT_ONCE, _SCORES_AT_ONCE // count))
    for first in range(0, len(placed.queries), size):
        block = placed.queries[first : first + size].astype(np.float64)
        scores = np.empty((len(block), count), np.float32)
        for start in range(0, count, _ROWS_AT_ONCE):
            rows = order[start : start + _ROWS_AT_ONCE]
            scores[:, start : start + len(rows)] = block @ placed.documents[rows].astype(np.float64).T
        yield first, scores


def top(scores: Matrix, depth: int) -> NDArray[np.intp]:
    """The places of the highest scores, best first; among equal ones the first place comes first.

    Args:
        scores: shape (n,).
        depth: how many; all where there are fewer.
    """
    if depth >= len(scores):
        every: NDArray[np.intp] = np.argsort(-scores, kind="stable")
        return every
    least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    candidates = np.flatnonzero(scores >= least)
    best: NDArray[np.intp] = candidates[np.argsort(-scores[candidates], kind="stable")[:depth]]
    return best


def repivoted(vectors: MethodVectors, pivot: str) -> MethodVectors:
    """The same language vectors towards another pivot: ``V_ℓ^p = V_ℓ − V_p``.

    The mean of differences is linear, so where all languages were fitted on the same pairs this is what a fit
    towards that pivot gives, up to rounding. Means and principal directions belong to one language each and
    stay. Maps lead to the old pivot and cannot be turned; what was recommended or judged was measured with the
    old pivot: both are left out.

    Raises:
        UsageError: there is no vector for the new pivot.
    """
    pivot = primary(pivot)
    if pivot == vectors.pivot:
        return vectors
    if pivot not in vectors.vectors:
        known = ", ".join(sorted({vectors.pivot, *vectors.vectors}))
        raise UsageError(f"The language vectors do not include the pivot {pivot!r}: they have {known}.")
    pairs = {tag: count for tag, count in vectors.pairs.items() if tag != pivot}
    of_queries = vectors.query_vectors.get(pivot)
    lost = bool(vectors.query_vectors) and of_queries is None
    # The old pivot's means, each with the new one's difference from it.
    moved = {
        "documents": vectors.vectors[pivot],
        "queries": vectors.vectors[pivot] if of_queries is None else of_queries,
    }
    return replace(
        vectors,
        pivot=pivot,
        vectors=_turned(vectors.vectors, vectors.pivot, pivot),
        pairs=pairs | {vectors.pivot: vectors.pairs[pivot]},
        query_vectors=_turned(vectors.query_vectors, vectors.pivot, pivot) if of_queries is not None else {},
        common={} if lost else {side: mean + moved[side] for side, mean in vectors.common.items()},
        recommendation=None,
        maps={},
        evidence={},
        tuning={},
        # The means of queries in each language stay what they are.
        query_directions=None if lost else vectors.query_directions,
    )


def _turned(of: Vectors, old: str, new: str) -> Vectors:
    origin = of[new].astype(np.float64)
    moved = {tag: (vector.astype(np.float64) - origin).astype(np.float32) for tag, vector in of.items() if tag != new}
    return moved | {old: (-origin).astype(np.float32)}


#: What ``--shift-queries`` takes.
SHIFT_QUERIES = ("never", "always")
NOTHING, DOCUMENTS, BOTH_SIDES = "nothing", "documents", "both sides"


class OfflineSettings(NamedTuple):
    """What is done to the vectors before they are compared, and to the scores after.

    Attributes:
        debias: method and scales.
        source: what says the languages of documents.
        beta: what a document in the query's language gets on top of its cosine.
    """

    debias: MethodDebiaser
    source: LanguageSource = GIVEN
    beta: float = 0.0

    @property
    def moves(self) -> bool:
        """Whether any document can move."""
        debias = self.debias
        if debias.method == "none" or debias.vectors is None:
            return False
        return debias.method in QUERY_SIDE or bool(debias.alpha or debias.gamma or any(debias.alphas.values()))

    @property
    def changes(self) -> str:
        """Which vectors come out changed."""
        if not self.moves:
            return NOTHING
        entire = self.debias.method in QUERY_SIDE or self.debias.shift_queries
        return BOTH_SIDES if entire else DOCUMENTS

    @property
    def alpha(self) -> str | None:
        """The scale in words, ``1`` or ``0.6 (de 0.3)``; None where the method has none, or nothing moves."""
        if not self.moves or self.debias.method in QUERY_SIDE:
            return None
        own = ", ".join(f"{tag} {alpha:g}" for tag, alpha in sorted(self.debias.alphas.items()))
        return f"{self.debias.alpha:g} ({own})" if own else f"{self.debias.alpha:g}"


#: A language, and the scale that it alone has.
SingleAlpha = tuple[str, float]


class Grid(NamedTuple):
    """The settings to combine; see ``settings``.

    Attributes:
        methods: names from ``METHODS``.
        shift_queries: names from ``SHIFT_QUERIES``.
        sources: what says the languages of documents.
        alphas: scales of shift and affine; None takes what the language vectors recommend. Centering and LIR have none.
        gammas: how much of what all queries have in common shift takes out of documents; None takes what the language
            vectors recommend, but 0 beside an alpha, in a soft shift, and where queries are shifted, too.
        betas: what documents in the query's language get on top of their cosine.
        alphas_of: language -> scales of it alone, each beside every scale of the others; empty sweeps none.
    """

    methods: Sequence[str] = ("shift",)
    shift_queries: Sequence[str] = ("never",)
    sources: Sequence[LanguageSource] = (GIVEN,)
    alphas: Sequence[float] | None = None
    gammas: Sequence[float] | None = None
    betas: Sequence[float] = (0.0,)
    alphas_of: Mapping[str, Sequence[float]] = MappingProxyType({})


def settings(known: MethodVectors | None, grid: Grid) -> dict[str, OfflineSettings]:
    """Every combination, once where several come to the same.

    Args:
        known: the language vectors.
        grid: what to combine.

    Returns:
        Name -> setting, as folders are named: ``none``, ``shift``, ``shift-both-sides``, ``shift-detected-20``; where
        there are several of them, scales follow, and those of single languages: ``shift-alpha-0.2-th-0.4-gamma-0.97``.

    Raises:
        UsageError: a method that is unknown, for which nothing was fitted, or that cannot be soft; a gamma that cannot
            be used; a language to scale that has no vector.
    """
    found: dict[str, OfflineSettings] = {}
    unnamed: list[float | None] = [None]
    scales = product(grid.alphas or unnamed, grid.gammas or unnamed)
    single: list[SingleAlpha | None] = [(tag, alpha) for tag, alphas in grid.alphas_of.items() for alpha in alphas]
    for method, source, sides, (alpha, gamma), beta, own in product(
        grid.methods, grid.sources, grid.shift_queries, list(scales), grid.betas, single or [None]
    ):
        setting = _setting(known, method, alpha, sides == "always", source, gamma if method == "shift" else 0.0, own)
        setting = setting._replace(beta=beta)
        found.setdefault(_name(setting, grid, own), setting)
    return found


def _own_alpha(known: MethodVectors, own: SingleAlpha) -> dict[str, float]:
    key = known.key(own[0])
    if key is None:
        scaled = ", ".join(sorted(known.vectors))
        raise UsageError(f"There is no language vector for {own[0]} to scale: --alpha-for accepts {scaled}.")
    return {key: own[1]}


def _name(setting: OfflineSettings, grid: Grid, own: SingleAlpha | None) -> str:
    debias, parts = setting.debias, ["none"]
    if setting.moves:
        parts = [debias.method]
        parts += ["both-sides"] if debias.shift_queries else []
        parts += [] if setting.source == GIVEN else [str(setting.source).replace(":", "-")]
        parts += [f"alpha-{debias.alpha:g}"] if len(grid.alphas or ()) > 1 and setting.alpha else []
        parts += [f"{own[0]}-{own[1]:g}"] if own and setting.alpha else []
        parts += [f"gamma-{debias.gamma:g}"] if len(grid.gammas or ()) > 1 and debias.method == "shift" else []
    return "-".join([*parts, *([f"beta-{setting.beta:g}"] if len(grid.betas) > 1 else [])])


def _setting(
    known: MethodVectors | None,
    method: str,
    alpha: float | None,
    shift_queries: bool,
    source: LanguageSource,
    gamma: float | None,
    own: SingleAlpha | None,
) -> OfflineSettings:
    entire = method in QUERY_SIDE
    queries = shift_queries and not entire
    if gamma and source.soft:
        raise UsageError(f"--language-from {source} takes no gamma: leave --gamma or {source} out.")
    if queries or source.soft:
        gamma = gamma or 0.0
    debias = recommended(known, method, 1.0 if entire else alpha, gamma, shift_queries=queries)
    if own is not None and known is not None and method not in ("none", *QUERY_SIDE):
        debias = replace(debias, alphas={**debias.alphas, **_own_alpha(known, own)})
    if entire and known is None:
        raise UsageError(f"The method {method} needs language vectors: name them with --vectors.")
    setting = OfflineSettings(debias, source)
    if not setting.moves:
        return OfflineSettings(recommended(known, method, 0.0))
    if source.soft and method != "shift":
        raise UsageError(
            f"--language-from {source} works only with the method shift, not {method}: leave {method} out of --method, "
            f"or {source} out of --language-from."
        )
    return setting


def evaluate(
    encoded: EncodedDataset,
    setting: OfflineSettings,
    document_languages: DocumentLanguages,
    pipeline: EmbeddingPipeline,
    names: Sequence[str],
    *,
    on_queries: Callable[[int], None] = lambda _: None,
    folder: Path | None = None,
    depth: int = TOP_K,
) -> dict[str, Any]:
    """Move, search exactly, score, and write the files, each whole or not at all.

    Args:
        encoded: a dataset's vectors.
        setting: what to do to them, and to the scores.
        document_languages: the languages by which documents move.
        pipeline: encoder and detector.
        names: measures.
        on_queries: called with the number of queries after each block.
        folder: where to write, made if it is not there; files of an earlier evaluation are replaced. None writes none.
        depth: how many documents of each query.

    Returns:
        The content of ``result.json``, in the form of a replay's; there is no cluster, so no times.

    Raises:
        UsageError: an unknown measure.
        LangshiftError: a vector of which the method leaves nothing.
    """
    placed = debias_vectors(encoded, setting.debias, document_languages)
    ranked = rank(encoded, placed, beta=setting.beta, depth=depth, on_queries=on_queries)
    part = encoded.part
    within, values = (None, {}) if part is None else (part.within, part.values.texts)
    scores = score_ranked(names, encoded, ranked)
    fingerprint = replace(pipeline, debias=setting.debias).fingerprint()
    nothing: dict[str, None] = dict.fromkeys(f"p{p}" for p in PERCENTILES)
    notes = [f"{name}: {found.note}" for name, found in scores.items() if found.note]
    left_out = remarks(within, encoded.dataset)
    notes += too_shallow(names, depth, len(encoded.ids))
    document = {
        "complete": True,
        "index": None,
        "version": None,
        "mode": "exact",
        "method": setting.debias.method,
        "shift_queries": setting.changes == BOTH_SIDES,
        "language_from": str(setting.source),
        "detection": document_languages.detection,
        "beta": setting.beta,
        "gamma": setting.debias.gamma,
        "top_k": depth,
        **summary(scores, asked=len(encoded.dataset.queries)),
        "by_language": summary_by_language(scores, encoded.languages.queries),
        **summary_by_value(within, scores, values),
        "latency_ms": {"took": nothing, "wall": nothing},
        "errors": 0,
        "warnings": [*encoded.dataset.remarks, *encoded.languages.warnings, *notes, *left_out],
        "dataset": identity(encoded.dataset),
        **provenance(fingerprint, None),
    }
    if folder is not None:
        answers = [QueryResult(query, tuple(hits)) for query, hits in ranked.rankings.items()]
        rows = searched(per_query(answers, encoded.languages.queries, scores), values, encoded.dataset)
        write_run(folder, document, answers, rows, ranked.group_scores, folder.name or "offline")
        ReplayJournal.finish(folder)
    return document


def score_ranked(names: Sequence[str], encoded: EncodedDataset, ranked: ExactRankings) -> dict[str, Scores]:
    """Score rankings of an encoded dataset."""
    run = {query: dict(hits) for query, hits in ranked.rankings.items()}
    return scored(names, encoded.dataset, encoded.languages, run, ranked.group_scores)
