"""What a generator is given to answer from, and what its answers say about the search (MLAIRE 2.2, LAURA 2.1)."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.stats import pearsonr

from langshift.errors import UsageError
from langshift.evaluate.compare.significance import TestResult, paired_tests
from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery, gather
from langshift.evaluate.measures.distributions import Distribution, mean, shares_of
from langshift.languages import UNDETERMINED

#: Documents that ``language-wise`` splits by language.
CANDIDATES = 50
Gold = Literal["gold-en", "gold-own"]
Searched = Literal["retrieved", "language-wise"]
_FORMS = "gold-en, gold-own, retrieved:K, language-wise:K or none, where K is a number of documents from 1 to 50"
# A correlation needs more than two points, which always lie on a line.
_LEAST_POINTS = 3


class Context(NamedTuple):
    """Which passages an answer is generated from.

    Attributes:
        kind: ``gold-en``, ``gold-own``, ``retrieved``, ``language-wise`` or ``none``.
        depth: K of ``retrieved:K`` and ``language-wise:K``; 0 for the others.
    """

    kind: Gold | Searched | Literal["none"]
    depth: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.depth}" if self.depth else self.kind

    @property
    def folder(self) -> str:
        """The name without a colon, which not every system takes in a file's."""
        return str(self).replace(":", "-")

    @property
    def search_depth(self) -> int:
        """How many documents a search must give; 0 where none is made."""
        return {"retrieved": self.depth, "language-wise": CANDIDATES}.get(self.kind, 0)


def parse_context(text: str) -> Context:
    """Return the context that ``--context`` names.

    Raises:
        UsageError: it names none, or K is no number from 1 to 50.
    """
    kind, colon, depth = text.partition(":")
    if not colon and kind in (*get_args(Gold), "none"):
        return Context(kind)  # type: ignore[arg-type]
    if kind in get_args(Searched) and depth.isascii() and depth.isdigit() and 1 <= int(depth) <= CANDIDATES:
        return Context(kind, int(depth))  # type: ignore[arg-type]
    raise UsageError(f"--context {text}: there is no such context; give {_FORMS}.")


def gold_passages(
    context: Context, query: DatasetQuery, dataset: Dataset, languages: Mapping[str, str | None]
) -> list[str]:
    """Return the relevant documents of a query, and their translations, in English or in the query's language.

    Args:
        context: ``gold-en`` or ``gold-own``.
        query: the query.
        dataset: where its relevant documents and their translation groups stand.
        languages: document id -> primary tag, None where it is not known.

    Returns:
        Ids of documents; none where there is no such passage, and the query is left out of the condition.
    """
    wanted = "en" if context.kind == "gold-en" else query.language
    group = dataset.target_group(query.id, query.group)
    return [one for one in group if wanted is not None and languages.get(one) == wanted]


def split_by_language(ranking: Sequence[str], languages: Mapping[str, str | None], depth: int) -> dict[str, list[str]]:
    """Return the best documents of each language (LAURA, section 2.1), languages in the order of their best.

    Args:
        ranking: ids of documents, the best first; those beyond the fiftieth are not read.
        languages: document id -> primary tag; documents without one stand together as ``und``.
        depth: how many of each language are kept.
    """
    split = gather((languages.get(one) or UNDETERMINED, one) for one in ranking[:CANDIDATES])
    return {language: found[:depth] for language, found in split.items()}


def best_languages(recalls: Mapping[str, float]) -> Distribution:
    """Return a query's oracle languages: those whose passages gave the best answer, evenly over ties.

    Args:
        recalls: language -> 3-gram recall of the answer from that language's passages, not empty.
    """
    best = max(recalls.values())
    return shares_of(language for language, recall in recalls.items() if recall == best)


def oracle_languages(
    queries: Mapping[str, Mapping[str, float]], languages: Mapping[str, str | None]
) -> dict[str, Distribution]:
    """Return the oracle's distribution of each query language, the mean over its queries, sorted.

    Args:
        queries: query id -> language -> 3-gram recall; a query without any is left out.
        languages: query id -> primary tag; None is ``und``.
    """
    found = gather(
        (languages.get(one) or UNDETERMINED, best_languages(recalls)) for one, recalls in queries.items() if recalls
    )
    return {language: mean(found[language]) for language in sorted(found)}


class Correlation(NamedTuple):
    """Pearson's correlation of the mean score of the documents found with the 3-gram recall (LAURA, Table 2).

    Attributes:
        pearson: -1 to 1; None where it is undefined.
        p: two-sided p-value, of queries taken as independent as the paper has it; None where it is undefined.
        queries: how many pairs there were.
    """

    pearson: float | None
    p: float | None
    queries: int


def correlation(scores: Mapping[str, Sequence[float]], recalls: Mapping[str, float]) -> Correlation:
    """Return how the retrieval score and the answer go together, over the queries that have both.

    It is undefined for fewer than three queries, and where all scores or all recalls are equal.

    Args:
        scores: query id -> scores of the K documents that the answer was generated from.
        recalls: query id -> 3-gram recall.
    """
    pairs = [(float(np.mean(found)), recalls[query]) for query, found in scores.items() if found and query in recalls]
    if len(pairs) < _LEAST_POINTS or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
        return Correlation(None, None, len(pairs))
    found = pearsonr(*zip(*pairs, strict=True))
    return Correlation(float(found.statistic), float(found.pvalue), len(pairs))


#: Measure -> figure of one answer, or of what was found for one query, 0 to 1; None where it is undecided.
Figures = Mapping[str, float | None]
RECALL, COHERENCE = "3-gram recall", "language coherence"
#: All that can be said without a generator. It rewards the overlap of words, and is no accuracy.
PRESENT = "answer string present in what was found"


def summary(figures: Mapping[str, Figures]) -> dict[str, Any]:
    """Return the means over a condition's queries, as ``rag.json`` gives them; None where there is nothing to average.

    ``language coherence`` is the mean over answers whose language is decided; ``undecided`` is the share of the others.

    Args:
        figures: query id -> its figures.
    """
    columns = gather((measure, figure) for one in figures.values() for measure, figure in one.items())
    decided = {measure: [figure for figure in column if figure is not None] for measure, column in columns.items()}
    means = {measure: fmean(column) if column else None for measure, column in decided.items()}
    undecided = {"undecided": 1 - len(decided[COHERENCE]) / len(columns[COHERENCE])} if COHERENCE in columns else {}
    return {"queries": len(figures), **means, **undecided}


def summary_by_language(figures: Mapping[str, Figures], languages: Mapping[str, str | None]) -> dict[str, Any]:
    """Return ``summary`` for each query language, sorted; queries of unknown language are ``und``."""
    rows = gather((languages.get(query) or UNDETERMINED, query) for query in figures)
    return {language: summary({query: figures[query] for query in rows[language]}) for language in sorted(rows)}


def compare_conditions(
    conditions: Mapping[str, Mapping[str, Figures]], clusters: Mapping[str, str]
) -> dict[tuple[str, str, str], TestResult]:
    """Test every two conditions in every measure, paired by query, with whole clusters' signs flipped.

    Only queries that both conditions answered count, and for coherence those decided in both.

    Args:
        conditions: context -> query id -> its figures.
        clusters: query id -> article, or what else stands together (``clusters`` of the dataset).

    Returns:
        (earlier condition, later one, measure) -> the difference, later less earlier, with ``corrected``
        after Holm over all that is returned. What no query has in both is left out.
    """
    differences: dict[tuple[str, str, str], dict[str, float]] = {}
    for (one, before), (other, after) in combinations(conditions.items(), 2):
        for query in (query for query in before if query in after):
            for measure, earlier in before[query].items():
                later = after[query].get(measure)
                if earlier is not None and later is not None:
                    differences.setdefault((one, other, measure), {})[query] = later - earlier
    return paired_tests(differences, clusters)
