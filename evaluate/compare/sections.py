"""What is compared: measures over all relevant documents, and over same-language and cross-language ones apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from langshift.evaluate.datasets.dataset import PER_LANGUAGE, Dataset
from langshift.evaluate.datasets.qrels import Qrels
from langshift.evaluate.datasets.texts import Languages
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.family import Measure
from langshift.evaluate.measures.material import Run
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.measures.standard import Standard
from langshift.evaluate.scoring import scored

ALL, SAME, CROSS = "all", "same-language", "cross-language"
SECTIONS = {
    ALL: "All relevant documents",
    SAME: "Same-language: relevant documents in the query's language; others count as not relevant",
    CROSS: "Cross-language: relevant documents in other languages; those in the query's count as not relevant",
}
_RECALLS = {SAME: "SLR", CROSS: "TLR"}


class Column(NamedTuple):
    """A measure over one part of the relevant documents."""

    section: str
    measure: str


def columns(names: Sequence[str], *, cross: bool = True) -> list[Column]:
    """The columns that measures ask for, section by section.

    A standard measure stands in every section; recall there is SLR and TLR. Those that compare languages
    themselves stand in the first, but SLR and TLR where they belong.

    Args:
        names: measures.
        cross: whether documents in other languages than the query's were judged.
    """
    parts = [ALL, SAME, *([CROSS] if cross else [])]
    found: dict[str, dict[str, None]] = {part: {} for part in parts}
    for measure in (parse_measure(name) for name in names):
        for part in parts:
            name = _in(part, measure)
            if name is not None:
                found[part][name] = None
    return [Column(part, name) for part in parts for name in found[part]]


def _in(part: str, measure: Measure) -> str | None:
    """What a measure is called in a section, None where it does not stand there."""
    family = measure.family
    if family.name in _RECALLS.values():
        return measure.name if _RECALLS.get(part) == family.name else None
    if part == ALL:
        return measure.name
    if not isinstance(family, Standard) or family.name == "Judged":
        return None
    if family.name == "R" and not measure.options:
        return f"{_RECALLS[part]}@{measure.cutoff}"
    return measure.name


def column_of(name: str) -> Column:
    """The column in which a measure that was asked for by this name stands."""
    measure = parse_measure(name)
    part = next((part for part, recall in _RECALLS.items() if recall == measure.family.name), ALL)
    return Column(part, measure.name)


def across(dataset: Dataset) -> bool:
    """Whether documents in other languages than the query's were judged."""
    return dataset.judged != PER_LANGUAGE


def score_columns(
    wanted: Sequence[Column], dataset: Dataset, languages: Languages, run: Run, group_scores: Run
) -> dict[Column, Scores]:
    """Score a run in every column."""
    found: dict[Column, Scores] = {}
    for part in SECTIONS:
        names = [column.measure for column in wanted if column.section == part]
        standard = [name for name in names if part != ALL and parse_measure(name).family.name not in _RECALLS.values()]
        rest = [name for name in names if name not in standard]
        scores = scored(rest, dataset, languages, run, group_scores) if rest else {}
        if standard:
            scores |= scored(standard, dataset, languages, run, qrels=part_of(dataset.qrels, part, languages))
        found |= {Column(part, name): scores[name] for name in names}
    return found


def part_of(qrels: Qrels, part: str, languages: Languages) -> Qrels:
    """The judgements of documents in the query's language, or of those in others; unknown languages stay out."""
    return {
        query: _kept(judged, part, languages.queries.get(query), languages.documents)
        for query, judged in qrels.items()
        if languages.queries.get(query) is not None
    }


def _kept(
    judged: Mapping[str, int], part: str, asked: str | None, documents: Mapping[str, str | None]
) -> dict[str, int]:
    return {
        name: grade
        for name, grade in judged.items()
        if documents.get(name) is not None and (documents[name] == asked) is (part == SAME)
    }
