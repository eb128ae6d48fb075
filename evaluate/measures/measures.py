"""Measures of a ranking, all asked for by name in one list: ``nDCG@20 TLR@20 LPR``.

Nothing standard is written anew: trec_eval's code, through ir_measures, computes every nDCG and
recall, also those over a part of the relevant documents or with grades by language. Ties break as
trec_eval does: by document id, descending, after the score as a 32-bit float. A query without
answer counts 0, and a query without relevant document is left out and counted. What else a measure
leaves out, and what it does with ties and gaps, its own docstring says (``FAMILIES[name].compute``).
"""

from __future__ import annotations

from collections.abc import Sequence

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import PER_LANGUAGE
from langshift.evaluate.measures import DEFAULT_MEASURES, FAMILIES, parse_measure, split_measures
from langshift.evaluate.measures.family import Direction, Family, Measure
from langshift.evaluate.measures.material import Material, Run
from langshift.evaluate.measures.ranked import Ranked
from langshift.evaluate.measures.scores import Cell, Pooled, Scores, Table

__all__ = [
    "DEFAULT_MEASURES",
    "FAMILIES",
    "PER_LANGUAGE",
    "Cell",
    "Direction",
    "Family",
    "Material",
    "Measure",
    "Pooled",
    "Run",
    "Scores",
    "Table",
    "default_measures",
    "parse_measure",
    "refuse",
    "score",
    "split_measures",
]


def default_measures(judged: str) -> tuple[str, ...]:
    """What to measure where nobody says: ``DEFAULT_MEASURES``, less those that the judgements do not allow.

    Args:
        judged: ``Material.judged``.
    """
    return tuple(name for name in DEFAULT_MEASURES if judged != PER_LANGUAGE or not parse_measure(name).family.across)


def refuse(measures: Sequence[Measure], judged: str) -> None:
    """Refuse measures that the judgements do not allow.

    Args:
        measures: what is asked for.
        judged: ``Material.judged``.

    Raises:
        UsageError: documents were judged per language, and a measure compares languages.
    """
    across = [measure.name for measure in measures if measure.family.across]
    if judged == PER_LANGUAGE and across:
        raise UsageError(
            f"{', '.join(across)} cannot be had from this data: its documents are judged only for queries in their "
            'own language ("judged": "per-language" in dataset.json), so that an answer in another language counts '
            "as wrong; ask for measures that do not compare languages, such as nDCG@10, R@100 and SLR@20."
        )


def score(names: Sequence[str], material: Material) -> dict[str, Scores]:
    """Score a run with measures by name.

    Args:
        names: measures such as ``nDCG@20`` and ``TLR@20``.
        material: the run, the judgements, and what is known of queries and documents.

    Returns:
        For each name, less white space, the figures.

    Raises:
        UsageError: an unknown measure, or one that the judgements do not allow.
    """
    measures = [parse_measure(name) for name in names]
    refuse(measures, material.judged)
    ranked = Ranked(material)
    return {measure.name: measure.family.compute(measure, ranked) for measure in measures}
