"""Languages of the first documents of a run: by rank, and by the language of the query."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.evaluate.measures.base import Material, RankedMaterial, Run
from langshift.evaluate.measures.distributions import mean, top_distributions
from langshift.languages import UNDETERMINED

DEPTH = 20


class Shares(NamedTuple):
    """A table of shares.

    Attributes:
        rows: their labels.
        columns: theirs.
        values: rows x columns, 0 to 1; NaN where nothing could be counted.
        queries: how many queries with an answer were counted.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: NDArray[np.float64]
    queries: int


def by_rank(
    run: Run, queries: Mapping[str, str | None], documents: Mapping[str, str | None], language: str, depth: int = DEPTH
) -> Shares:
    """Document languages by rank, for the queries in one language: the paper's Figure 2 (section 5.2).

    A cell is the share of that language among the documents at that rank, over the queries that have a
    document there: a column adds to 1, and is NaN where no query has so long an answer.

    Args:
        run: query id -> document id -> score; ranked as trec_eval ranks.
        queries: query id -> language, None where unknown, which counts as ``und``.
        documents: document id -> language, None likewise, of all documents: a language that is never found
            has a row of zeros. A document that is not in it counts as ``und``.
        language: whose queries to count.
        depth: how many ranks.
    """
    ranked = _ranked(run, {query: tag for query, tag in _known(queries).items() if tag == language}, documents)
    tops = [top for query in ranked.queries if (top := ranked.top(query, depth))]
    found = [[ranked.language(document) or UNDETERMINED for document in top] for top in tops]
    rows = _languages(documents, (tag for tags in found for tag in tags))
    place = {tag: number for number, tag in enumerate(rows)}
    counts = np.zeros((len(rows), depth))
    for tags in found:
        for rank, tag in enumerate(tags):
            counts[place[tag], rank] += 1
    totals = counts.sum(axis=0)
    values = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    return Shares(rows, [str(rank) for rank in range(1, depth + 1)], values, len(tops))


def by_language(
    run: Run, queries: Mapping[str, str | None], documents: Mapping[str, str | None], depth: int = DEPTH
) -> Shares:
    """Document languages among the first documents, by query language: the table of the measure Share@20.

    A cell is the mean, over the queries of that language that have an answer, of that document language's
    share of the first ``depth``: a row adds to 1, and is NaN where no query has an answer.

    Args:
        run: as in `by_rank`; so are ``queries`` and ``documents``.
        queries: rows are their languages.
        documents: columns are their languages.
        depth: how many of the first documents.
    """
    known = _known(queries)
    found = top_distributions(_ranked(run, known, documents), depth)
    rows = _languages(known, ())
    columns = _languages(documents, (tag for pairs in found.values() for _, tags in pairs for tag in tags))
    values = np.full((len(rows), len(columns)), np.nan)
    for row, pairs in found.items():
        shares = mean([tags for _, tags in pairs])
        values[rows.index(row)] = [shares.get(column, 0.0) for column in columns]
    return Shares(rows, columns, values, sum(len(pairs) for pairs in found.values()))


def _known(languages: Mapping[str, str | None]) -> dict[str, str]:
    return {name: tag or UNDETERMINED for name, tag in languages.items()}


def _ranked(run: Run, queries: Mapping[str, str], documents: Mapping[str, str | None]) -> RankedMaterial:
    return RankedMaterial(Material(qrels={}, run=run, queries=dict(queries), documents=documents))


def _languages(given: Mapping[str, str | None], found: Iterable[str]) -> list[str]:
    """Sorted, ``und`` last."""
    tags = {tag or UNDETERMINED for tag in given.values()} | set(found)
    return sorted(tags, key=lambda tag: (tag == UNDETERMINED, tag))
