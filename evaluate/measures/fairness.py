"""How even a ranking is (PEER, Share, Entropy, JS, KL, PSI, EvidenceHit), and its language (LPR, Lang_nDCG, Top1)."""

import math
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.datasets.dataset import gather
from langshift.evaluate.measures import base
from langshift.evaluate.measures.base import Measure, MeasureCell, MeasureFamily, MeasureTable, RankedMaterial, Scores
from langshift.evaluate.measures.standard import calculate
from langshift.languages import UNDETERMINED, parse_tag, primary

#: Language -> share; the shares add to 1.
Distribution = dict[str, float]


def mean(distributions: Sequence[Distribution]) -> Distribution:
    """The average of several distributions, sorted by language."""
    total: Counter[str] = Counter()
    for distribution in distributions:
        total.update(distribution)
    return {language: total[language] / len(distributions) for language in sorted(total)}


def top_distributions(ranked: RankedMaterial, depth: int) -> dict[str, list[tuple[str, Distribution]]]:
    """Query language -> the queries that have an answer, each with the languages' shares of its first documents.

    Three English and two Chinese documents make .6 and .4. An answer of fewer than ``depth``
    documents is divided by its own length. Documents of unknown language are ``und``.
    """
    rows = {}
    for row, queries in ranked.by_language().items():
        tops = [(query, top) for query in queries if (top := ranked.top(query, depth))]
        if tops:
            rows[row] = [(query, shares_of(ranked.language(one) or UNDETERMINED for one in top)) for query, top in tops]
    return rows


def shares_of(languages: Iterable[str]) -> Distribution:
    """The share of each of some languages, in the order in which they come."""
    counts = Counter(languages)
    return {language: count / counts.total() for language, count in counts.items()}


_REAL = (int, float)
#: The base of the logarithm. LAURA names none; its entropies (2.03 to 2.27 for 13 languages, Table 4) are in nats.
BASE = base.MeasureOption(
    math.e, "a number above 1, such as 2 for bits", lambda value: type(value) in _REAL and 1 < value < math.inf
)


def language_entropy(measure: Measure, ranked: RankedMaterial) -> Scores:
    """Entropy@k: ``-Σ p log p`` of the languages' shares of the first k documents, mean over query languages.

    The shares are those of ``Share``: averaged over the queries of a query language first. The option
    ``base`` is the logarithm's, e (nats) by default.

    Direction: report. Source: LAURA, Table 4.
    """
    from scipy.stats import entropy

    rows = top_distributions(ranked, measure.depth)
    figures = []
    for pairs in rows.values():
        shares = list(mean([shares for _, shares in pairs]).values())
        figures.append((float(entropy(shares, base=measure.option("base"))), len(pairs)))
    return over_query_languages(measure, ranked, figures)


def over_query_languages(measure: Measure, ranked: RankedMaterial, figures: Sequence[tuple[float, int]]) -> Scores:
    """A measure whose figures belong to query languages, not to queries: their mean.

    Args:
        measure: what was computed.
        ranked: the run.
        figures: for each query language, its figure and the number of queries behind it.
    """
    counted = sum(queries for _, queries in figures)
    return Scores(
        {},
        len(ranked.queries) - counted,
        pooled=MeasureCell(base.mean_of([figure for figure, _ in figures]), counted),
        again=lambda queries: measure.family.compute(measure, ranked.only(queries)),
    )


ENTROPY = MeasureFamily("Entropy@k", "report", "LAURA, Table 4", language_entropy, {"base": BASE})


Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def jensen_shannon(measure: Measure, ranked: RankedMaterial) -> Scores:
    """JS@k: Jensen-Shannon distance of the languages' shares of the first k documents to the stand-in oracle's.

    For each query language, over the queries that have an answer and a relevant document of known
    language, both distributions are averaged over these queries, then compared; the figure is the mean
    over query languages. The oracle is a stand-in: the languages of the
    query's relevant documents, each of the same weight, since there are no utility scores.

    Base: e unless ``base`` says otherwise. Root: taken (the distance) unless ``root=False`` (the
    divergence). Smoothing: none needed. LAURA states neither base nor root; its figures (Table 4: JS
    .203 beside KL .186, .090 beside .041) fit the natural logarithm and the root, as SciPy has it.

    Direction: low. Source: LAURA, Table 4, with relevant documents' languages for its oracle.
    """
    power = 1 if measure.option("root") else 2
    return _compare(measure, ranked, lambda pair: shannon_distance(pair, measure.option("base")) ** power)


def shannon_distance(pair: Pair, base: float = math.e) -> float:
    """Jensen-Shannon distance of two distributions: the root of the divergence."""
    from scipy.spatial.distance import jensenshannon

    # Rounding may leave less than 0 of two distributions that are alike, and SciPy takes its root.
    with np.errstate(invalid="ignore"):
        return float(np.nan_to_num(jensenshannon(*pair, base=base)))


def kullback_leibler(measure: Measure, ranked: RankedMaterial) -> Scores:
    """KL@k: Kullback-Leibler divergence ``KL(found || stand-in oracle)`` of the languages' shares of the first k.

    Distributions, oracle and averages are those of ``JS``. Base: e unless ``base`` says otherwise.
    Smoothing: ``smoothing`` (1e-6 unless given) is added to every language's share in both
    distributions, over the languages of the corpus, and both are divided by their new sums; without
    it, one document in a language that holds no answer would make the divergence infinite. Root: none.

    Direction: low. Source: LAURA, Table 4, with relevant documents' languages for its oracle.
    """
    options = measure.option("base"), measure.option("smoothing")
    return _compare(measure, ranked, lambda pair: smoothed_divergence(pair, *options))


def smoothed_divergence(pair: Pair, base: float = math.e, smoothing: float = 1e-6) -> float:
    """Kullback-Leibler divergence ``KL(first || second)`` of two distributions, ``smoothing`` added to every share."""
    from scipy.stats import entropy

    return float(entropy(*(part + smoothing for part in pair), base=base))


def aligned(one: Distribution, other: Distribution, languages: Iterable[str | None]) -> Pair:
    """Two distributions as arrays over the same languages: theirs and some more, shape (languages,), sorted."""
    every = sorted({language for language in (*languages, *one, *other) if language})
    first, second = (np.array([part.get(language, 0.0) for language in every]) for part in (one, other))
    return first, second


def _compare(measure: Measure, ranked: RankedMaterial, distance: Callable[[Pair], float]) -> Scores:
    """Compare with the languages of a query's relevant documents; ``evaluate rag`` has LAURA's own oracle."""
    figures = []
    for pairs in top_distributions(ranked, measure.depth).values():
        known = [(shares, set(ranked.languages_of_relevant(query).values())) for query, shares in pairs]
        both = [(shares, shares_of(languages)) for shares, languages in known if languages]
        if both:
            one, other = (mean(part) for part in zip(*both, strict=True))
            figures.append((distance(aligned(one, other, ranked.material.documents.values())), len(both)))
    return over_query_languages(measure, ranked, figures)


_ROOT = base.MeasureOption(True, "True or False", lambda value: isinstance(value, bool))
_SMOOTHING = base.MeasureOption(1e-6, "a number between 0 and 1", lambda value: type(value) in _REAL and 0 < value < 1)
_JS_OPTIONS, _KL_OPTIONS = {"base": BASE, "root": _ROOT}, {"base": BASE, "smoothing": _SMOOTHING}
JS = MeasureFamily("JS@k", "low", "LAURA, Table 4", jensen_shannon, _JS_OPTIONS, across=True)
KL = MeasureFamily("KL@k", "low", "LAURA, Table 4", kullback_leibler, _KL_OPTIONS, across=True)


_ENOUGH = 2
_UNDEFINED = (
    "undefined, because no query has two retrieved relevant documents in each of two languages; "
    "with one per language, the test gives the same p for every order."
)


def equal_expected_rank(measure: Measure, ranked: RankedMaterial) -> Scores:  # noqa: ARG001 - it has no cutoff or options
    """PEER, probability of equal expected rank: the p-value of a Kruskal-Wallis test, mean over queries.

    ``PEER(q) = p(KW({R_q,l}))``: for each language l, ``R_q,l`` are the ranks, in the whole answer, of the
    retrieved relevant documents in l. Languages with a single such document take part, but a query
    counts only where at least two languages have two or more; all others are left out, since with one
    document a language p is the same for every order. Documents of unknown language stay out.

    Direction: high, for near 1 no language is ranked apart. Source: LAURA, appendix A, Eq. 6.
    """
    from scipy.stats import kruskal

    per_query = {}
    for query in ranked.queries:
        ranks = _ranks(ranked, query)
        if sum(len(group) >= _ENOUGH for group in ranks) >= _ENOUGH:
            per_query[query] = float(kruskal(*ranks).pvalue)
    return Scores(per_query, len(ranked.queries) - len(per_query), note=None if per_query else _UNDEFINED)


def _ranks(ranked: RankedMaterial, query: str) -> list[list[int]]:
    """The ranks, from 1, of the relevant documents found, a list for each language."""
    languages = ranked.languages_of_relevant(query)
    ranks = gather((languages.get(document), rank) for rank, document in enumerate(ranked.rankings.get(query, ()), 1))
    return list(ranks.values())


PEER = MeasureFamily("PEER", "high", "LAURA, appendix A, Eq. 6", equal_expected_rank, across=True)


BINS = 20
_EDGES = [number / BINS for number in range(1, BINS)]
STEP = 512
BUCKETS = ("Q1", "Q2", "Q3", "Q4")
_NEEDS = "undefined without the evidence's positions and the documents' lengths (evidence.tsv)."
FLOOR, FLOOR_95, NDCG = "floor", "floor 95 %", "nDCG"
FIFTHS = tuple(f"fifth {number}" for number in range(1, 6))
_PERMUTATIONS, _SEED = 200, 0
#: All of what there is, where a table also has it in parts.
ALL = "all"
_OWN, _ORIGINAL = "own", "en"


def position_bin(position: float) -> int:
    """The bin, 0 to 19, of a relative position from 0 to 1: 20 bins of equal width, 1 itself in the last."""
    return bisect(_EDGES, position)


def bucket(length: int) -> str | None:
    """The bucket of a length in tokens: Q1 to 512, Q2 to 1024, Q3 to 1536, Q4 to 2048; None above that."""
    number = max(length - 1, 0) // STEP
    return BUCKETS[number] if number < len(BUCKETS) else None


def position_sensitivity(measure: Measure, ranked: RankedMaterial) -> Scores:
    """PSI@k, position sensitivity index: ``1 - min(s) / max(s)`` over bins of the evidence's relative position.

    ``s`` are the mean nDCG@k of the queries of one language in each of 20 bins of equal width; the figure
    is the mean over query languages. It takes documents of all lengths together, as the paper's Table 10
    does; the table also has it by bucket of the document's length in tokens (Q1 to 512, Q2 to 1024, Q3 to
    1536, Q4 to 2048) and by query language. Domains are taken together, too. Empty bins are left out and
    counted in the note. Where fewer than two bins hold queries, or every nDCG is 0, there is no PSI.

    Bins of few queries differ by chance alone. ``floor`` is what PSI would be without any bias: its mean
    over 200 permutations of the positions among the queries of one language and bucket, with its 95th
    percentile. A PSI below the latter shows no bias. A question that is there in several languages is
    moved alike in all.

    A query goes by its relevant document with evidence: of those of the highest grade by the one in its
    own language, else by the English one. Queries without evidence, or whose document has no length or
    more than 2048 tokens, are left out. nDCG counts all relevant documents, so also translations, which
    the paper's pools of one language do not have. With ``documents='own'`` only the version in the query's
    language counts, and the others are taken out of the answer (the paper's multilingual retrieval); with
    ``documents='en'``, or another language, only the version in that one, for queries in other languages
    (its cross-lingual retrieval).

    The table also has nDCG@k of all, of each fifth of the document and of each bin, as means over query
    languages.

    Direction: low. Source: PosIR, sections 3.1, 4.1 and 4.2.
    """
    import ir_measures

    chosen = {query: name for query in ranked.queries if (name := _evidenced(measure, ranked, query))}
    if not chosen:
        return Scores({}, len(ranked.queries), note=_NEEDS)
    material, run = ranked.material, ranked.run
    qrels = {query: ranked.relevant(query) for query in chosen}
    if measure.option("documents") != ALL:
        others = {query: qrels[query].keys() - {name} for query, name in chosen.items()}
        run = {query: {one: run[query][one] for one in run[query] if one not in others[query]} for query in others}
        qrels = {query: {name: qrels[query][name]} for query, name in chosen.items()}
    found = calculate(ir_measures.nDCG @ measure.depth, qrels, run)
    placed = _PlacedQueries(
        np.array([ranked.queries[query] or UNDETERMINED for query in chosen]),
        np.array([bucket(material.lengths[name]) for name in chosen.values()]),
        np.array([position_bin(material.evidence[query][name]) for query, name in chosen.items()]),
        np.array([found[query] for query in chosen]),
    )
    cells = _position_cells(placed)
    return Scores(
        {},
        len(ranked.queries) - len(chosen),
        note=_position_note(placed, cells),
        table=MeasureTable("position of the evidence", "length of the document, or query language", cells),
        pooled=cells[PSI.name][ALL],
        again=lambda queries: position_sensitivity(measure, ranked.only(queries)),
    )


def _evidenced(measure: Measure, ranked: RankedMaterial, query: str) -> str | None:
    """The document by whose evidence and length a query goes."""
    wanted, own = measure.option("documents"), ranked.queries[query]
    evidence = ranked.material.evidence.get(query, {})
    grades = {document: grade for document, grade in ranked.relevant(query).items() if document in evidence}
    if wanted != ALL:
        tag = own if wanted == _OWN else primary(wanted)
        known = tag is not None and (wanted == _OWN or tag != own)
        grades = {document: grade for document, grade in grades.items() if known and ranked.language(document) == tag}
    if not grades:
        return None
    order = {_ORIGINAL: 1, own: 0}
    document = min(grades, key=lambda name: (-grades[name], order.get(ranked.language(name), 2), name))
    length = ranked.material.lengths.get(document)
    return document if length is not None and bucket(length) else None


class _PlacedQueries(NamedTuple):
    """Language, bucket, bin and nDCG of each query."""

    language: NDArray[np.str_]
    bucket: NDArray[np.str_]
    bin: NDArray[np.int64]
    figure: NDArray[np.float64]

    def only(self, part: NDArray[np.bool_]) -> "_PlacedQueries":
        return _PlacedQueries(self.language[part], self.bucket[part], self.bin[part], self.figure[part])

    def mean(self) -> MeasureCell:
        """The mean over languages of their means."""
        _, places = np.unique(self.language, return_inverse=True)
        means = np.bincount(places, self.figure) / np.bincount(places)
        return MeasureCell(float(means.mean()), len(places))


def _indices(placed: _PlacedQueries) -> dict[str, NDArray[np.float64]]:
    """Bucket, or all -> PSI of one language's queries, first as they are, then of each permutation."""
    rows = np.tile(placed.figure, (1 + _PERMUTATIONS, 1))
    parts = {name: placed.bucket == name for name in BUCKETS}
    for part in parts.values():
        # From one seed, so that as many questions in another language are moved alike.
        rows[1:, part] = np.random.default_rng(_SEED).permuted(rows[1:, part], axis=1)
    found = {}
    for name, part in {**parts, ALL: np.full(len(placed.bin), fill_value=True)}.items():
        present, places = np.unique(placed.bin[part], return_inverse=True)
        if len(present) >= _ENOUGH and placed.figure[part].any():
            means = rows[:, part] @ np.eye(len(present))[places] / np.bincount(places)
            found[name] = 1 - means.min(axis=1) / means.max(axis=1)
    return found


def _position_cells(placed: _PlacedQueries) -> dict[str, dict[str, MeasureCell]]:
    """PSI and its floor, then nDCG of all, by fifth and by bin; by bucket, of all, and by language where several."""
    indices = {tag: _indices(placed.only(placed.language == tag)) for tag in np.unique(placed.language).tolist()}
    columns = {name: placed.bucket == name for name in BUCKETS if name in placed.bucket}
    columns[ALL] = np.full(len(placed.bin), fill_value=True)
    sensitivity = {name: [found[name] for found in indices.values() if name in found] for name in columns}
    if len(indices) > 1:
        columns |= {tag: placed.language == tag for tag in indices}
        sensitivity |= {tag: [found[ALL]] if ALL in found else [] for tag, found in indices.items()}
    cells: dict[str, dict[str, MeasureCell]] = {name: {} for name in (PSI.name, FLOOR, FLOOR_95)}
    for name, found in sensitivity.items():
        count, means = int(columns[name].sum()), np.mean(found, axis=0) if found else None
        at_95 = None if means is None else float(np.quantile(means[1:], 0.95))
        cells[PSI.name][name] = MeasureCell(None if means is None else float(means[0]), count)
        cells[FLOOR][name] = MeasureCell(None if means is None else float(means[1:].mean()), count)
        cells[FLOOR_95][name] = MeasureCell(at_95, count)
    rows = {NDCG: columns[ALL]}
    rows |= {name: placed.bin * len(FIFTHS) // BINS == number for number, name in enumerate(FIFTHS)}
    rows |= {f"{number / BINS:.2f}-{(number + 1) / BINS:.2f}": placed.bin == number for number in range(BINS)}
    for row, inside in rows.items():
        cells[row] = {
            name: placed.only(inside & part).mean() for name, part in columns.items() if (inside & part).any()
        }
    return cells


def _position_note(placed: _PlacedQueries, cells: Mapping[str, Mapping[str, MeasureCell]]) -> str | None:
    floor, floor_95 = cells[FLOOR][ALL].mean, cells[FLOOR_95][ALL].mean
    sentences = []
    if floor is not None and floor_95 is not None:
        sentences = [f"without any bias it would be {floor:.3f} on average, and up to {floor_95:.3f} by chance."]
    used = {name: len(np.unique(placed.bin[placed.bucket == name])) for name in BUCKETS if name in placed.bucket}
    if empty := len(used) * BINS - sum(used.values()):
        sentences.append(f"{empty} of {len(used) * BINS} position bins contain no queries and are left out.")
    return " ".join(sentences) or None


def _version(value: object) -> bool:
    return value in (ALL, _OWN) or (isinstance(value, str) and parse_tag(value) is not None)


_VERSIONS = {"documents": base.MeasureOption(ALL, "'all', 'own', or a language such as 'en'", _version)}
PSI = MeasureFamily("PSI@k", "low", "PosIR, sections 4.1 and 4.2", position_sensitivity, _VERSIONS)


_NO_PASSAGES = "undefined, because the hits show no passages: it is of indices of chunks."
_NO_SPANS = "undefined without the characters of the evidence (start and end in evidence.tsv)."


def evidence_hit(measure: Measure, ranked: RankedMaterial) -> Scores:
    """EvidenceHit@k: share of queries with a document among the first k whose passage shows the evidence.

    A hit shows it where its document is relevant and its passage holds at least half of the characters of
    the evidence. Only the passage that the hit shows first counts. A whole document shows no place in it: a run
    without any passage has no EvidenceHit. Queries whose relevant documents have no evidence with
    ``start`` and ``end`` are left out; a query without answer counts 0.

    Direction: high. Source: langshift, by the reference spans of PosIR, section 2.2.
    """
    material = ranked.material
    spans = {
        query: {name: material.spans[query][name] for name in ranked.relevant(query) if name in material.spans[query]}
        for query in ranked.queries
        if query in material.spans
    }
    if not any(spans.values()):
        return Scores({}, len(ranked.queries), note=_NO_SPANS)
    if not any(material.passages.values()):
        return Scores({}, len(ranked.queries), note=_NO_PASSAGES)
    per_query = {
        query: float(
            any(
                _shows(material.passages.get(query, {}).get(name), found[name])
                for name in ranked.top(query, measure.depth)
                if name in found
            )
        )
        for query, found in spans.items()
        if found
    }
    return Scores(per_query, len(ranked.queries) - len(per_query))


def _shows(passage: tuple[int, int] | None, evidence: tuple[int, int]) -> bool:
    if passage is None:
        return False
    inside = min(passage[1], evidence[1]) - max(passage[0], evidence[0])
    return 2 * inside >= evidence[1] - evidence[0]


EVIDENCE_HIT = MeasureFamily(
    "EvidenceHit@k", "high", "langshift, by the reference spans of PosIR, section 2.2", evidence_hit
)


def language_share(measure: Measure, ranked: RankedMaterial) -> Scores:
    """Share@k: each language's share of the first k documents, averaged per query language first.

    The table holds, for each query language, the mean over its queries of each document language's
    share; a row adds to 1. A query's own figure is the share of documents in its language; the
    measure's is the mean of these per query language first, then over query languages. Queries
    without answer have no shares and are left out, as are those of unknown language; documents of
    unknown language are ``und``.

    Direction: report. Source: LAURA, section 2.1, vanilla distribution.
    """
    rows = top_distributions(ranked, measure.depth)
    per_query = {query: shares.get(row, 0.0) for row, pairs in rows.items() for query, shares in pairs}
    cells = {
        row: {
            language: MeasureCell(share, len(pairs))
            for language, share in mean([shares for _, shares in pairs]).items()
        }
        for row, pairs in rows.items()
    }
    own = [fmean(per_query[query] for query, _ in pairs) for pairs in rows.values()]
    return Scores(
        per_query,
        len(ranked.queries) - len(per_query),
        table=MeasureTable("query language", "document language", cells),
        pooled=MeasureCell(base.mean_of(own), len(per_query)),
        again=lambda queries: language_share(measure, ranked.only(queries)),
    )


SHARE = MeasureFamily("Share@k", "report", "LAURA, section 2.1", language_share)


def lang_ndcg(measure: Measure, ranked: RankedMaterial) -> Scores:
    """Lang_nDCG@k: nDCG@k with the grade ``same`` for a relevant document in the query's language, ``other`` else.

    The gain of a grade g is ``2^g - 1``: with the defaults 2 and 1, 3 for the query's language and 1
    for others. The ideal ranking is graded in the same way. The data's own grades only say what is
    relevant (above 0). Queries and documents of unknown language stay out, and queries without a
    document of gain above 0 are left out.

    Direction: high. Source: MLAIRE, section 3.2.
    """
    import ir_measures

    same, other = measure.option("same"), measure.option("other")
    qrels = {}
    for query, language in ranked.queries.items():
        if language is not None:
            languages = ranked.languages_of_relevant(query)
            grades = {document: same if its == language else other for document, its in languages.items()}
            if any(grades.values()):
                qrels[query] = grades
    gains = {grade: 2**grade - 1 for grade in (same, other)}
    graded = ir_measures.nDCG(gains=gains) @ measure.depth
    return Scores(calculate(graded, qrels, ranked.run), len(ranked.queries) - len(qrels))


def _grade(value: object) -> bool:
    return type(value) is int and 0 <= value <= 20


_HOW = "a whole number from 0 to 20"
_GRADES = {"same": base.MeasureOption(2, _HOW, _grade), "other": base.MeasureOption(1, _HOW, _grade)}
LANG_NDCG = MeasureFamily("Lang_nDCG@k", "high", "MLAIRE, section 3.2", lang_ndcg, _GRADES, across=True)


_NO_SCORES = "undefined without the scores of the whole target group, including those below the cutoff."


def language_preference(measure: Measure, ranked: RankedMaterial) -> Scores:  # noqa: ARG001 - it has no cutoff or options
    """LPR, language preference rate: share of queries that score a passage in their language best in the target group.

    The target group is the relevant documents and all documents of their translation groups, whether
    or not they made the top k: their scores are ``group_scores``.

    - Tie: where several passages have the best score (equal as 32-bit floats), the query counts as the
      share of these that is in its language, which is what breaking ties at random would give on average.
    - Non-match: a passage without a score is behind every passage that has one; a query that was scored
      and matched none of its passages counts 0, as a query without answer does.
    - A passage of unknown language counts as not in the query's language.
    - A query whose group has no passage in its language, or none in another, leaves nothing to prefer and is
      left out, as are one of unknown language and one whose group was not scored (it is not in
      ``group_scores``); the note counts the last.

    Direction: report, for it depends on what the searcher wants. Source: MLAIRE, section 3.2.
    """
    given = ranked.material.group_scores
    if not given:
        return Scores({}, len(ranked.queries), note=_NO_SCORES)
    per_query, unscored = {}, 0
    for query, language in ranked.queries.items():
        group = _group(ranked, query)
        if language is None or len({ranked.language(document) == language for document in group}) < 2:
            continue
        if query in given:
            per_query[query] = _preference(ranked, given[query], language, group)
        else:
            unscored += 1
    note = f"queries left out because their target group was not scored: {unscored:,}." if unscored else None
    return Scores(per_query, len(ranked.queries) - len(per_query), note)


def _group(ranked: RankedMaterial, query: str) -> set[str]:
    relevant = ranked.relevant(query)
    groups = {ranked.material.groups.get(document) for document in relevant} - {None}
    return set(relevant).union(*(ranked.members[group] for group in groups if group is not None))


def _preference(ranked: RankedMaterial, given: Mapping[str, float], language: str, group: set[str]) -> float:
    matched = [document for document in given if document in group]
    if not matched:
        return 0.0
    scores = base.as_float32([given[document] for document in matched])
    best = max(scores)
    leaders = [document for document, score in zip(matched, scores, strict=True) if score == best]
    return sum(ranked.language(document) == language for document in leaders) / len(leaders)


LPR = MeasureFamily("LPR", "report", "MLAIRE, section 3.2", language_preference, across=True)


OUTCOMES = ("perfect", "lang_fail", "sem_fail", "both_fail")


def first_document_outcomes(measure: Measure, ranked: RankedMaterial) -> Scores:
    """Top1: share of queries whose first document is perfect; the table has all four outcomes, which add to 1.

    perfect: relevant and in the query's language; lang_fail: relevant, in another language; sem_fail:
    not relevant, in the query's language; both_fail: neither. A query without answer is a both_fail,
    and a document of unknown language is not in the query's. Queries of unknown language, and those
    without relevant document, are left out.

    Direction: high. Source: MLAIRE, section 3.3.
    """
    found = {
        query: _outcome(ranked, query, language)
        for query, language in ranked.queries.items()
        if language is not None and ranked.relevant(query)
    }
    per_query = {query: float(outcome == "perfect") for query, outcome in found.items()}
    rows = {language: [q for q in queries if q in found] for language, queries in ranked.by_language().items()}
    cells = {row: _shares([found[query] for query in queries]) for row, queries in rows.items() if queries}
    if found:
        cells[ALL] = _shares(list(found.values()))
    return Scores(
        per_query,
        len(ranked.queries) - len(found),
        table=MeasureTable("query language", "first document", cells),
        again=lambda queries: first_document_outcomes(measure, ranked.only(queries)),
    )


def _outcome(ranked: RankedMaterial, query: str, language: str) -> str:
    for document in ranked.top(query, 1):
        right, own = document in ranked.relevant(query), ranked.language(document) == language
        return OUTCOMES[(not right) * 2 + (not own)]
    return "both_fail"


def _shares(outcomes: list[str]) -> dict[str, MeasureCell]:
    return {outcome: MeasureCell(outcomes.count(outcome) / len(outcomes), len(outcomes)) for outcome in OUTCOMES}


TOP1 = MeasureFamily("Top1", "high", "MLAIRE, section 3.3", first_document_outcomes, across=True)
