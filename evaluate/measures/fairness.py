"""How even a ranking is (PEER, Share, Entropy, JS, KL, PSI), and which language it prefers (LPR, Lang_nDCG, Top1)."""

import math
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.datasets.dataset import gather
from langshift.evaluate.measures import base
from langshift.evaluate.measures.base import Measure, MeasureCell, MeasureFamily, MeasureTable, RankedMaterial, Scores
from langshift.evaluate.measures.standard import calculate
from langshift.languages import UNDETERMINED

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
    from scipy.spatial.distance import jensenshannon

    def distance(pair: Pair) -> float:
        # Rounding may leave less than 0 of two distributions that are alike, and SciPy takes its root.
        with np.errstate(invalid="ignore"):
            root = float(np.nan_to_num(jensenshannon(*pair, base=measure.option("base"))))
        return root if measure.option("root") else root**2

    return _compare(measure, ranked, distance)


def kullback_leibler(measure: Measure, ranked: RankedMaterial) -> Scores:
    """KL@k: Kullback-Leibler divergence ``KL(found || stand-in oracle)`` of the languages' shares of the first k.

    Distributions, oracle and averages are those of ``JS``. Base: e unless ``base`` says otherwise.
    Smoothing: ``smoothing`` (1e-6 unless given) is added to every language's share in both
    distributions, over the languages of the corpus, and both are divided by their new sums; without
    it, one document in a language that holds no answer would make the divergence infinite. Root: none.

    Direction: low. Source: LAURA, Table 4, with relevant documents' languages for its oracle.
    """
    from scipy.stats import entropy

    def divergence(pair: Pair) -> float:
        shares, oracle = (part + measure.option("smoothing") for part in pair)
        return float(entropy(shares / shares.sum(), oracle / oracle.sum(), base=measure.option("base")))

    return _compare(measure, ranked, divergence)


def _compare(measure: Measure, ranked: RankedMaterial, distance: Callable[[Pair], float]) -> Scores:
    """Compare with the stand-in oracle: the languages of a query's relevant documents, each of the same weight.

    LAURA's oracle (section 2.1) is the language of the documents that give the best answer, several of them with
    the same weight where they tie: that needs utility scores.
    """
    corpus = {language for language in ranked.material.documents.values() if language}
    figures = []
    for pairs in top_distributions(ranked, measure.depth).values():
        known = [(shares, set(ranked.languages_of_relevant(query).values())) for query, shares in pairs]
        both = [(shares, shares_of(languages)) for shares, languages in known if languages]
        if both:
            means = [mean(part) for part in zip(*both, strict=True)]
            every = sorted(corpus.union(*means))
            one, other = (np.array([part.get(language, 0.0) for language in every]) for part in means)
            figures.append((distance((one, other)), len(both)))
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

#: A length bucket and a position bin.
Place = tuple[str, int]


def position_bin(position: float) -> int:
    """The bin, 0 to 19, of a relative position from 0 to 1: 20 bins of equal width, 1 itself in the last."""
    return bisect(_EDGES, position)


def bucket(length: int) -> str | None:
    """The bucket of a length in tokens: Q1 to 512, Q2 to 1024, Q3 to 1536, Q4 to 2048; None above that."""
    number = max(length - 1, 0) // STEP
    return BUCKETS[number] if number < len(BUCKETS) else None


def position_sensitivity(measure: Measure, ranked: RankedMaterial) -> Scores:
    """PSI@k, position sensitivity index: ``1 - min(s) / max(s)`` over bins of the evidence's relative position.

    ``s`` are the mean nDCG@k of the queries in each of 20 bins of equal width, within a bucket of
    the relevant document's length in tokens (Q1 to 512, Q2 to 1024, Q3 to 1536, Q4 to 2048). Empty
    bins are left out and counted in the note. A bucket has no PSI where fewer than two of its bins
    hold queries, or where every nDCG is 0. The figure is the mean over the buckets that have one; the
    table has each bucket's, and nDCG by bin. A query goes by its relevant document with evidence, the
    one of the highest grade where it has several; queries without evidence, or whose document has no
    length or more than 2048 tokens, are left out.

    Direction: low. Source: PosIR, sections 3.1, 4.1 and 4.2.
    """
    import ir_measures

    places = {query: place for query in ranked.queries if (place := _place(ranked, query))}
    if not places:
        return Scores({}, len(ranked.queries), note=_NEEDS)
    qrels = {query: ranked.material.qrels[query] for query in places}
    found = calculate(ir_measures.nDCG @ measure.depth, qrels, ranked.run)
    bins = gather((place, found[query]) for query, place in places.items())
    indices = {name: _index([fmean(bins[name, i]) for i in range(BINS) if (name, i) in bins]) for name in BUCKETS}
    defined = [index for index in indices.values() if index is not None]
    used = [name for name in BUCKETS if any(name == place[0] for place in bins)]
    empty = len(used) * BINS - len(bins)
    return Scores(
        {},
        len(ranked.queries) - len(places),
        note=f"{empty} of {len(used) * BINS} position bins contain no queries and are left out." if empty else None,
        table=_table(bins, indices, used),
        pooled=MeasureCell(base.mean_of(defined), len(places)),
        again=lambda queries: position_sensitivity(measure, ranked.only(queries)),
    )


def _place(ranked: RankedMaterial, query: str) -> Place | None:
    evidence = ranked.material.evidence.get(query, {})
    grades = {document: grade for document, grade in ranked.relevant(query).items() if document in evidence}
    if not grades:
        return None
    document = min(grades, key=lambda name: (-grades[name], name))
    length = ranked.material.lengths.get(document)
    name = None if length is None else bucket(length)
    return None if name is None else (name, position_bin(evidence[document]))


def _index(means: list[float]) -> float | None:
    return 1 - min(means) / max(means) if len(means) >= _ENOUGH and max(means) > 0 else None


def _table(bins: Mapping[Place, list[float]], indices: Mapping[str, float | None], used: list[str]) -> MeasureTable:
    cells = {
        f"{number / BINS:.2f}-{(number + 1) / BINS:.2f}": {
            name: MeasureCell(fmean(bins[name, number]), len(bins[name, number]))
            for name in used
            if (name, number) in bins
        }
        for number in range(BINS)
    }
    counts = {name: sum(len(found) for place, found in bins.items() if place[0] == name) for name in used}
    # First, so that the columns stand in the order of the buckets even where the first bins are empty.
    head = {"PSI": {name: MeasureCell(indices[name], counts[name]) for name in used}}
    return MeasureTable("relative position of the evidence", "length of the document", head | cells)


PSI = MeasureFamily("PSI@k", "low", "PosIR, sections 4.1 and 4.2", position_sensitivity)


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
    - A query whose group has no passage in its language cannot prefer one and is left out, as are one of
      unknown language and one whose group was not scored (it is not in ``group_scores``); the note counts
      the last.

    Direction: report, for it depends on what the searcher wants. Source: MLAIRE, section 3.2.
    """
    given = ranked.material.group_scores
    if not given:
        return Scores({}, len(ranked.queries), note=_NO_SCORES)
    per_query, unscored = {}, 0
    for query, language in ranked.queries.items():
        group = _group(ranked, query)
        if language is None or all(ranked.language(document) != language for document in group):
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
ALL = "all"


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
