"""Runs on disk: TREC files, group scores and the names of the files beside them; read, and scored."""

import math
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

import msgspec

from langshift.errors import UsageError, no_file
from langshift.evaluate.datasets.dataset import PER_LANGUAGE, Dataset, Qrels, gather
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift.evaluate.measures import default_measures, parse_measure, refuse, score, split_measures
from langshift.evaluate.measures.base import Material, Run, Scores, Spans, mean_of
from langshift.evaluate.measures.most_shown import MOST_SHOWN, most_shown
from langshift.evaluate.measures.standard import StandardFamily
from langshift.evaluate.replay.requests import TOP_K
from langshift.files import read_columns, records
from langshift.languages import UNDETERMINED
from langshift.wording import join_words, pluralize

GROUP_SCORES, PER_QUERY = "group-scores.jsonl", "per-query.jsonl"


class _Scored(msgspec.Struct):
    query: str
    scores: dict[str, float | None]


class _Answered(msgspec.Struct):
    query: str
    within: str | None = None
    outside: list[str] = []
    passages: dict[str, tuple[int, int]] = {}


_FORM_OF_SCORES = '{"query": id, "scores": {document: score}}'
_FORM_OF_ANSWERS = '{"query": id, "within": value, "outside": [document], "passages": {document: [start, end]}}'
_Line = TypeVar("_Line")


def _lines(path: Path, kind: type[_Line], form: str) -> Iterator[tuple[int, _Line]]:
    """The lines of a file with their numbers; none where there is no file.

    Raises:
        UsageError: a line that cannot be read; the message names it.
    """
    for number, record in records(path) if path.is_file() else ():
        try:
            yield number, msgspec.convert(record, kind)
        except msgspec.ValidationError:
            raise UsageError(f"{path}, line {number}, cannot be read: give {form}.") from None


def read_group_scores(path: Path) -> dict[str, dict[str, float]]:
    """Query id -> document id -> score; a document whose score is null was not matched, and is left out.

    Empty where there is no such file.

    Raises:
        UsageError: a line that cannot be read; the message names it.
    """
    found: dict[str, dict[str, float]] = {}
    for number, line in _lines(path, _Scored, _FORM_OF_SCORES):
        if line.query in found:
            raise UsageError(f"{path}, line {number}, repeats the query {line.query!r}: keep only one of the lines.")
        found[line.query] = {document: score for document, score in line.scores.items() if score is not None}
    return found


class SearchedQuery(NamedTuple):
    """What a query searched, with ``within``: its value, and which judged documents are outside."""

    value: str
    outside: Sequence[str] = ()


def read_searched(path: Path) -> dict[str, SearchedQuery]:
    """Query id -> what it searched, from ``per-query.jsonl``; empty where it has no such thing.

    Raises:
        UsageError: a line that cannot be read; the message names it.
    """
    lines = _lines(path, _Answered, _FORM_OF_ANSWERS)
    return {one.query: SearchedQuery(one.within, one.outside) for _, one in lines if one.within is not None}


def read_passages(path: Path) -> dict[str, dict[str, tuple[int, int]]]:
    """Query id -> document id -> the characters of the passage shown of it, from ``per-query.jsonl``.

    Empty where there is no such file, and where the index that was searched has no places of chunks.

    Raises:
        UsageError: a line that cannot be read; the message names it.
    """
    return {one.query: one.passages for _, one in _lines(path, _Answered, _FORM_OF_ANSWERS) if one.passages}


def format_run(rankings: Mapping[str, Sequence[tuple[str, float]]], tag: str) -> str:
    """A TREC run: query, Q0, document, rank from 1, score, tag, one line a hit.

    Scores are written in full, so that scoring the file gives the figures of the replay to the
    last digit. An id that is empty or has white space, which would break the columns, is percent-encoded; such a line
    has ``percent-encoded`` in its second column, which trec_eval does not read, so that a ``%`` in any other line is
    nothing but itself.

    Args:
        rankings: query id -> document ids and scores, best first.
        tag: name of the run; white space in it becomes ``_``.
    """
    tag = "_".join(tag.split())
    return "".join(
        f"{_columns(query, document)} {rank} {score!r} {tag}\n"
        for query, hits in rankings.items()
        for rank, (document, score) in enumerate(hits, 1)
    )


_ENCODED = "percent-encoded"
#: What an empty id is written as: no character is encoded as that alone.
_EMPTY = "%"


def _columns(query: str, document: str) -> str:
    """The first three columns of a line."""
    if len(query.split()) == len(document.split()) == 1 and not re.search(r"\s", query + document):
        return f"{query} Q0 {document}"
    return " ".join([_encoded(query), _ENCODED, _encoded(document)])


def _encoded(name: str) -> str:
    return re.sub(r"[\s%]", lambda found: quote(found[0]), name) or _EMPTY


def _decoded(text: str) -> str:
    return "" if text == _EMPTY else unquote(text)


_COLUMNS = "a TREC run has six columns on each line: query, Q0, document, rank, score, tag"


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """Query id -> document id -> score, of a TREC run; its rank column is not used, as trec_eval does not.

    Lines of one query need not stand together. Gzip is unpacked.

    Raises:
        UsageError: no such file or an empty one, a line that is not of six columns, a score that is no
            finite number, or a document that a query has twice; the message names the line.
    """
    if not path.is_file():
        raise UsageError(f"{no_file(path, f'There is no run {path}')}: name a file with TREC's six columns.")
    run: dict[str, dict[str, float]] = {}
    first: dict[tuple[str, str], int] = {}
    for number, parts in read_columns(path):
        columns = " ".join(parts).split()
        if len(columns) != 6:
            raise UsageError(f"{path}, line {number}, has {len(columns)} columns: {_COLUMNS}.")
        query, form, document, _, given, _ = columns
        if form == _ENCODED:
            query, document = _decoded(query), _decoded(document)
        try:
            score = float(given)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise UsageError(f"{path}, line {number}, has the score {given!r}: give a finite number.")
        earlier = first.setdefault((query, document), number)
        if earlier != number:
            raise UsageError(
                f"{path}, line {number}, lists the document {document!r} for the query {query!r} a second time, "
                f"after line {earlier}: every document must be unique for a query."
            )
        run.setdefault(query, {})[document] = score
    if not run:
        raise UsageError(f"{path} is empty: {_COLUMNS}.")
    return run


def command() -> str:
    """The command that is running."""
    return shlex.join(["langshift", *sys.argv[1:]])


def scored(
    names: Sequence[str],
    dataset: Dataset,
    languages: DatasetLanguages,
    run: Run,
    group_scores: Run | None = None,
    qrels: Qrels | None = None,
    passages: Spans | None = None,
    held: Mapping[str, int] | None = None,
) -> dict[str, Scores]:
    """Score a run.

    Args:
        names: measures.
        dataset: the queries and judgements.
        languages: of queries and documents.
        run: the answers.
        group_scores: query id -> every document of the target group -> score; None where they are not known.
        qrels: judgements that take the place of the dataset's.
        passages: query id -> document id -> the characters of the passage that was shown; None where none was.
        held: language -> documents of the index; None where the dataset's documents are all that it has.

    Raises:
        UsageError: an unknown measure.
    """
    material = Material(
        qrels=dataset.qrels if qrels is None else qrels,
        run=run,
        queries=languages.queries,
        documents=languages.documents,
        groups={name: document.group for name, document in dataset.documents.items()},
        group_scores=group_scores or {},
        evidence=dataset.evidence.positions,
        lengths=dataset.evidence.lengths,
        spans=dataset.evidence.spans,
        passages=passages or {},
        held=held or {},
        judged=dataset.judged,
        outside=dataset.outside,
    )
    return score(names, material)


#: Of so many queries' hits a run may be, where more than the usual number are taken: some 2 GB of memory.
MOST_KEPT = 20_000_000


def require_room(queries: int, depth: int) -> None:
    """Refuse to keep so many hits that they would not fit into memory.

    Args:
        queries: how many, in all ways of searching together.
        depth: how many hits of each.

    Raises:
        UsageError: naming what would fit.
    """
    if depth > TOP_K and queries * depth > MOST_KEPT:
        raise UsageError(
            f"The {depth:,} best hits of {queries:,} searches do not fit into memory: lower --depth to "
            f"{max(TOP_K, MOST_KEPT // queries):,} or less, split the queries, or give fewer settings at a time."
        )


def too_shallow(names: Iterable[str], depth: int, documents: int) -> list[str]:
    """Say which measures look at more hits than a run has of each query.

    Args:
        names: measures.
        depth: how many hits of each query were requested.
        documents: how many there are to be found.
    """
    cutoffs = {name: parse_measure(name).cutoff for name in names}
    deeper = [name for name, cutoff in cutoffs.items() if isinstance(cutoff, int) and min(cutoff, documents) > depth]
    if not deeper:
        return []
    verb = "looks" if len(deeper) == 1 else "look"
    taken = f"{verb} at more than the {pluralize(depth, 'hit')} of each query that were taken"
    return [f"{join_words(deeper)} {taken}: evaluate with a higher --depth."]


def unlike_depths(names: Iterable[str], depths: Mapping[str, int]) -> list[str]:
    """Say which measures of runs cannot be compared, since they are over whole rankings that end at different depths.

    Args:
        names: measures.
        depths: run -> how many hits of each query were requested.
    """
    measures = map(parse_measure, names)
    whole = [one.name for one in measures if isinstance(one.family, StandardFamily) and one.cutoff is None]
    # A run of each depth.
    shown = {depth: f"{pluralize(depth, 'hit')} in {run}" for run, depth in reversed([*depths.items()])}
    if not whole or len(shown) < 2:
        return []
    return [
        f"{join_words(whole)} of these runs cannot be compared, because it depends on how many hits of each query were "
        f"taken: {join_words([shown[depth] for depth in sorted(shown)])}. Give all runs the same --depth."
    ]


def by_language(scores: Mapping[str, Scores], languages: Mapping[str, str | None]) -> dict[str, dict[str, Scores]]:
    """Query language -> measure -> figures, sorted by language; ``languages`` gives each query's."""
    return {
        language: {name: found.over(queries) for name, found in scores.items()}
        for language, queries in queries_by_language(languages).items()
    }


def queries_by_language(languages: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Query language -> queries, sorted by language; ``und`` for those of unknown language."""
    return dict(sorted(gather((language or UNDETERMINED, query) for query, language in languages.items()).items()))


def summary(scores: Mapping[str, Scores], **queries: int) -> dict[str, Any]:
    """Means, and the numbers of queries that they are over, as they stand in ``result.json``.

    Args:
        scores: measure -> figures.
        queries: further numbers of queries, by name; they come first.
    """
    shown = {name: most._asdict() for name, found in scores.items() if (most := most_shown(found))}
    return {
        "measures": {name: found.mean for name, found in scores.items()},
        "queries": queries | {name: found.queries for name, found in scores.items()},
        "most_shown": shown,
    }


def summary_by_language(scores: Mapping[str, Scores], languages: Mapping[str, str | None]) -> dict[str, Any]:
    """Query language -> the same over its queries."""
    return {language: summary(part) for language, part in by_language(scores, languages).items()}


def summary_by_value(within: str | None, scores: Mapping[str, Scores], values: Mapping[str, str]) -> dict[str, Any]:
    """What ``result.json`` says of ``within``: figures by value, and their means over values, each counting alike.

    Args:
        within: ``FIELD`` or ``FIELD=VALUE``; None where all is searched, of which there is nothing to say.
        scores: measure -> figures.
        values: query id -> value.
    """
    if within is None:
        return {"within": None, "by_value": {}, "macro": {}}
    parts = summary_by_language(scores, values)
    return {
        "within": within,
        "by_value": parts,
        "macro": {name: _macro(name, [part["measures"][name] for part in parts.values()]) for name in scores},
    }


def _macro(name: str, means: Sequence[float | None]) -> float | None:
    # The language that is shown most is another one for each value.
    alike = parse_measure(name).family is not MOST_SHOWN
    return mean_of([mean for mean in means if mean is not None and alike])


def versions() -> dict[str, str]:
    """The packages that a figure depends on."""
    return {name: version(name) for name in ("langshift", "ir_measures")}


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
        raise UsageError("--measures is empty: name measures such as 'nDCG@20 TLR@20 SLR@20'.")
    refuse(measures, dataset.judged)
    return list(dict.fromkeys(measure.name for measure in measures))
