"""Scoring a run of a dataset: what the measures may look at, put together in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import PER_LANGUAGE, Dataset
from langshift.evaluate.datasets.qrels import Qrels
from langshift.evaluate.datasets.texts import Languages
from langshift.evaluate.measures import parse_measure, split_measures
from langshift.evaluate.measures.material import Material, Run
from langshift.evaluate.measures.measures import default_measures, refuse, score
from langshift.evaluate.measures.scores import Scores
from langshift.languages import UNDETERMINED

NO_SCORES: Run = {}


def scored(
    names: Sequence[str],
    dataset: Dataset,
    languages: Languages,
    run: Run,
    group_scores: Run = NO_SCORES,
    qrels: Qrels | None = None,
) -> dict[str, Scores]:
    """Score a run.

    Args:
        names: measures.
        dataset: the queries and judgements.
        languages: of queries and documents.
        run: the answers.
        group_scores: query id -> every document of the target group -> score.
        qrels: judgements that take the place of the dataset's.

    Raises:
        UsageError: an unknown measure.
    """
    material = Material(
        qrels=dataset.qrels if qrels is None else qrels,
        run=run,
        queries=languages.queries,
        documents=languages.documents,
        groups={name: document.group for name, document in dataset.documents.items()},
        group_scores=group_scores,
        evidence=dataset.evidence,
        lengths=dataset.lengths,
        judged=dataset.judged,
    )
    return score(names, material)


def by_language(scores: Mapping[str, Scores], languages: Languages) -> dict[str, dict[str, Scores]]:
    """Query language -> measure -> figures, sorted by language."""
    return {
        language: {name: found.over(queries) for name, found in scores.items()}
        for language, queries in asked_by_language(languages).items()
    }


def asked_by_language(languages: Languages) -> dict[str, list[str]]:
    """Query language -> queries, sorted by language; ``und`` for those of unknown language."""
    asked: dict[str, list[str]] = {}
    for query, language in languages.queries.items():
        asked.setdefault(language or UNDETERMINED, []).append(query)
    return dict(sorted(asked.items()))


def parse_names(given: str | None, dataset: Dataset) -> list[str]:
    """Measures' names parted by white space or commas, each once.

    Where none are given: the usual ones, and LPR, less those that the dataset's judgements do not allow.

    Raises:
        UsageError: there is none, or one that is unknown, or that the judgements do not allow.
    """
    if given is None:
        return [*default_measures(dataset.judged), *(() if dataset.judged == PER_LANGUAGE else ("LPR",))]
    measures = [parse_measure(name) for name in split_measures(given)]
    if not measures:
        raise UsageError("--measures names nothing: give some, such as 'nDCG@20 TLR@20 SLR@20'.")
    refuse(measures, dataset.judged)
    return list(dict.fromkeys(measure.name for measure in measures))
