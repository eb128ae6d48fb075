"""Runs of one dataset compared: read, cut into sections and slices, and tested."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import orjson

from langshift.debias.encoder_languages import unread_in_words
from langshift.errors import UsageError, no_file
from langshift.evaluate import runs, within
from langshift.evaluate.compare.significance import TestResult, paired_tests
from langshift.evaluate.datasets.dataset import PER_LANGUAGE, Clusters, Dataset, Qrels, clusters, identity, load_dataset
from langshift.evaluate.datasets.texts import DatasetLanguages, unknown_documents
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.base import Measure, Run, Scores, Spans
from langshift.evaluate.measures.standard import StandardFamily
from langshift.evaluate.replay.journal import RESULT, unfinished
from langshift.evaluate.replay.result import RUN
from langshift.files import load_json
from langshift.retrieval.request import SearchSettings, format_settings
from langshift.wording import join_words

# Those that have a superscript.
LETTERS = "abcdefghijklmnoprstuvwxyz"
_WRITTEN_BY = "a folder that `langshift evaluate replay` or `offline` wrote with --output, or a TREC run with --dataset"


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs.

    Attributes:
        letter: what tables call it.
        name: its folder's or file's name.
        place: that folder or file.
        run: the answers.
        group_scores: scores of whole target groups, empty where there are none.
        passages: query id -> document id -> the characters of the passage that was shown, empty where there are none.
        result: the content of ``result.json``, empty where there is none.
        dataset: what it is a run of, without the judgements of documents that a query did not search.
        how: the setting that a replay searched in, as options; None where that is not known.
        values: query id -> its value of the field by which it searched a part; empty where it searched all.
    """

    letter: str
    name: str
    place: Path
    run: Run = field(repr=False)
    group_scores: Run = field(repr=False)
    passages: Spans = field(repr=False)
    result: Mapping[str, Any] = field(repr=False)
    dataset: Dataset = field(repr=False)
    how: str | None = None
    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def depth(self) -> int | None:
        """How many hits of each query were requested; None where that is not known."""
        depth = self.result.get("top_k")
        return depth if isinstance(depth, int) else None

    @property
    def label(self) -> str:
        """``b (shifted)``."""
        return f"{self.letter} ({self.name})"


def load(
    places: Sequence[Path], folder: Path | None, dataset: Dataset | None = None
) -> tuple[Dataset, list[ComparedRun]]:
    """Read runs and the dataset that they are runs of.

    Args:
        places: folders or TREC runs.
        folder: the dataset; None takes what ``result.json`` names.
        dataset: the dataset, where it is no folder of its own; None reads it.

    Raises:
        UsageError: no such run, runs of different datasets, or a dataset that cannot be told.
    """
    if len(places) > len(LETTERS):
        raise UsageError(f"{len(places)} runs are too many for one table: give {len(LETTERS)} at most.")
    results = [read_result(place) for place in places]
    if dataset is None:
        dataset = load_dataset(folder or _folder(places, results))
    ours = identity(dataset)
    for place, result in zip(places, results, strict=True):
        theirs = result.get("dataset") or ours
        if theirs["hash"] != ours["hash"]:
            raise UsageError(
                f"{place} is a run of {theirs['folder']} as it was then ({theirs['documents']:,} documents, "
                f"{theirs['queries']:,} queries, {theirs['hash']}), which differs from {dataset.folder} "
                f"({ours['documents']:,}, {ours['queries']:,}, {ours['hash']}): give the same dataset, or rerun it."
            )
    return dataset, [
        _candidate(letter, name, place, result, dataset)
        for letter, name, place, result in zip(LETTERS, _names(places), places, results, strict=False)
    ]


def read_result(place: Path) -> dict[str, Any]:
    """Read the content of a run's ``result.json``; empty for a TREC run.

    Raises:
        UsageError: there is no such run, or the file is damaged.
    """
    if place.is_file():
        return {}
    if not place.is_dir():
        raise UsageError(f"{no_file(place, f'There is no run {place}')}: give {_WRITTEN_BY}.")
    if not (place / RUN).is_file():
        cut = ", because the replay was interrupted" if unfinished(place) else ""
        raise UsageError(f"{place} contains no {RUN}{cut}: give {_WRITTEN_BY}.")
    path = place / RESULT
    if not path.is_file():
        return {}
    try:
        result = load_json(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path} is not valid JSON ({error.msg}): run the evaluation again.") from None
    if not isinstance(result, dict) or not _is_identity(result.get("dataset")):
        raise UsageError(f"{path} is not in langshift's format: run the evaluation again.")
    return result


def _is_identity(known: object) -> bool:
    """Whether that is what ``identity`` says of a dataset; None where nothing is known of it."""
    if known is None:
        return True
    kinds = {"folder": str, "hash": str, "documents": int, "queries": int}
    return isinstance(known, dict) and all(isinstance(known.get(name), kind) for name, kind in kinds.items())


def _folder(places: Sequence[Path], results: Sequence[Mapping[str, Any]]) -> Path:
    """The dataset that the results name.

    Raises:
        UsageError: none of them names one, or they name different ones.
    """
    named = [(place, result["dataset"]) for place, result in zip(places, results, strict=True) if result.get("dataset")]
    if not named:
        raise UsageError(f"{places[0]} does not record which dataset it is a run of: specify it with --dataset.")
    place, first = named[0]
    for other, known in named[1:]:
        if known["hash"] != first["hash"]:
            raise UsageError(
                f"{place} and {other} are runs of different datasets, {first['folder']} ({first['queries']:,} queries, "
                f"{first['hash']}) and {known['folder']} ({known['queries']:,} queries, {known['hash']}): "
                "compare runs of the same dataset."
            )
    folder = Path(first["folder"])
    if not folder.is_dir():
        raise UsageError(f"{place} is a run of {folder}, which no longer exists: give the dataset with --dataset.")
    return folder


def _names(places: Sequence[Path]) -> list[str]:
    """What to call each run: the last part of its path, or the whole of it where that is not enough."""
    short = [_short(place.absolute()) for place in places]
    taken = Counter(short)
    return [name if taken[name] == 1 else str(place) for name, place in zip(short, places, strict=True)]


def _short(place: Path) -> str:
    if not place.is_file():
        return place.name
    return place.parent.name if place.name == RUN else place.stem


def _candidate(letter: str, name: str, place: Path, result: Mapping[str, Any], dataset: Dataset) -> ComparedRun:
    path = place / RUN if place.is_dir() else place
    run = dataset.others(runs.read_run(path))
    if run.keys().isdisjoint(query.id for query in dataset.queries):
        raise UsageError(f"{path} answers no query of {dataset.folder}: it is a run of another dataset.")
    scores = dataset.others(runs.read_group_scores(path.with_name(runs.GROUP_SCORES)))
    # Nothing else asks where in a document a passage is.
    passages = runs.read_passages(path.with_name(runs.PER_QUERY)) if dataset.evidence.spans else {}
    try:
        how = format_settings(SearchSettings(**result["setting"])) if "setting" in result else None
    except TypeError:
        raise UsageError(f"{place / RESULT} is not in langshift's format: run the evaluation again.") from None
    parts = runs.read_searched(path.with_name(runs.PER_QUERY)) if result.get("within") else {}
    searched = dataset.within({query: one.outside for query, one in parts.items() if one.outside})
    values = {query: one.value for query, one in parts.items()}
    return ComparedRun(letter, name, place, run, scores, passages, result, searched, how, values)


class Column(NamedTuple):
    """A measure over one part of the relevant documents."""

    section: str
    measure: str


def warnings(dataset: Dataset, candidates: Sequence[ComparedRun], columns: Sequence[Column] = ()) -> list[str]:
    """Where runs, dataset and measures do not fit, in sentences."""
    names = list(dict.fromkeys(column.measure for column in columns))
    depths = {candidate.label: candidate.depth for candidate in candidates if candidate.depth}
    messages = [*dataset.remarks, *runs.unlike_depths(names, depths)]
    parts = {candidate.label: candidate.result.get("within") for candidate in candidates}
    if len(set(parts.values())) > 1:
        said = join_words([f"{label} searches {f'within {part}' if part else 'all'}" for label, part in parts.items()])
        messages.append(f"{said}: the figures of each run leave out what its queries do not search.")
    for candidate in candidates:
        messages += within.remarks(parts[candidate.label], candidate.dataset)
        if candidate.result.get("complete") is False:
            messages.append(f"{candidate.label} is an interrupted replay, so its figures are too low: resume it.")
        if failed := candidate.result.get("errors"):
            messages.append(f"{candidate.label} has {failed:,} failed queries, which count as 0.")
        if unread := candidate.result.get("unread"):
            encoder = candidate.result["fingerprint"]["encoder"]
            messages += [f"{candidate.label}: {sentence}" for sentence in unread_in_words(encoder, unread)]
        if strange := candidate.run.keys() - {query.id for query in dataset.queries}:
            messages.append(
                f"{candidate.label} answers {len(strange):,} queries that are not in the dataset (such as "
                f"{min(strange)}), which are not scored."
            )
        if unanswered := sum(not candidate.run.get(query.id) for query in dataset.queries):
            messages.append(f"{candidate.label} has no answer for {unanswered:,} queries, which count as 0.")
        shallow = runs.too_shallow(names, candidate.depth, len(dataset.documents)) if candidate.depth else []
        messages += [f"{candidate.label}: {said}" for said in shallow]
        # Without judgements only the first documents of each answer are known.
        if dataset.qrels:
            messages += [f"{candidate.label}: {said}" for said in unknown_documents(candidate.run, dataset)]
    return messages


ALL, SAME, CROSS = "all", "same-language", "cross-language"
SECTIONS = {
    ALL: "All relevant documents",
    SAME: "Same-language: relevant documents in the query's language; others count as not relevant",
    CROSS: "Cross-language: relevant documents in other languages; those in the query's count as not relevant",
}
# Measures that stand in one section alone.
_PLACED = {"SLR": SAME, "own": SAME, "TLR": CROSS}


def columns(names: Sequence[str], *, cross: bool = True) -> list[Column]:
    """The columns that measures ask for, section by section.

    A standard measure stands in every section; recall there is SLR and TLR. Those that compare languages
    themselves stand in the first, but SLR, own and TLR where they belong.

    Args:
        names: measures.
        cross: whether documents in other languages than the query's were judged.
    """
    parts = [ALL, SAME, *([CROSS] if cross else [])]
    measures = [parse_measure(name) for name in names]
    found = ((part, _in(part, measure)) for part in parts for measure in measures)
    return list(dict.fromkeys(Column(part, name) for part, name in found if name is not None))


def _in(part: str, measure: Measure) -> str | None:
    """What a measure is called in a section, None where it does not stand there."""
    family = measure.family
    if part == _PLACED.get(family.name, ALL):
        return measure.name
    if not isinstance(family, StandardFamily) or family.name == "Judged":
        return None
    if family.name == "R" and not measure.options:
        return f"{'SLR' if part == SAME else 'TLR'}@{measure.cutoff}"
    return measure.name


def column_of(name: str) -> Column:
    """The column in which a measure that was asked for by this name stands."""
    measure = parse_measure(name)
    return Column(_PLACED.get(measure.family.name, ALL), measure.name)


def judged_across_languages(dataset: Dataset) -> bool:
    """Whether documents in other languages than the query's were judged."""
    return dataset.judged != PER_LANGUAGE


def score_columns(wanted: Sequence[Column], languages: DatasetLanguages, run: ComparedRun) -> dict[Column, Scores]:
    """Score a run in every column."""
    dataset = run.dataset
    found: dict[Column, Scores] = {}
    for part in SECTIONS:
        names = [column.measure for column in wanted if column.section == part]
        standard = [name for name in names if column_of(name).section != part]
        rest = [name for name in names if name not in standard]
        scores = runs.scored(rest, dataset, languages, run.run, run.group_scores, passages=run.passages) if rest else {}
        if standard:
            scores |= runs.scored(standard, dataset, languages, run.run, qrels=part_of(dataset.qrels, part, languages))
        found |= {Column(part, name): scores[name] for name in names}
    return found


def part_of(qrels: Qrels, part: str, languages: DatasetLanguages) -> Qrels:
    """The judgements of documents in the query's language, or of those in others; unknown languages stay out."""
    found = {}
    for query, judged in qrels.items():
        if own := languages.queries.get(query):
            tags = {name: languages.documents.get(name) for name in judged}
            found[query] = {name: judged[name] for name, tag in tags.items() if tag and (tag == own) is (part == SAME)}
    return found


OWN, NONE = "own", "none"
SLICES = {OWN: "Answer in the searcher's language", NONE: "No answer in the searcher's language"}


def slices(
    qrels: Qrels, queries: Mapping[str, str | None], documents: Mapping[str, str | None]
) -> dict[str, list[str]]:
    """Slice -> its queries; a slice without a query is left out.

    Empty where every query has an answer in its language: then there is nothing to tell apart. Queries of unknown
    language, and those without a relevant document, are in neither.

    Args:
        qrels: query id -> document id -> grade; above 0 is relevant.
        queries: query id -> language, None where unknown.
        documents: document id -> language, None where unknown.
    """
    found: dict[str, list[str]] = {part: [] for part in SLICES}
    for query, language in queries.items():
        relevant = [name for name, grade in qrels.get(query, {}).items() if grade > 0]
        if language is not None and relevant:
            own = any(documents.get(name) == language for name in relevant)
            found[OWN if own else NONE].append(query)
    return {part: members for part, members in found.items() if members} if found[NONE] else {}


#: The earlier and the later run, by letter or name; a difference is the later one's figure less the earlier one's.
Pair = tuple[str, str]

#: Run -> column -> figures.
RunScores = Mapping[str, Mapping[Column, Scores]]


class ComparedQueries(NamedTuple):
    """Figures and tests over all queries, or over some of them.

    Attributes:
        queries: the queries.
        scores: run -> column -> figures.
        tests: column and pair of runs -> test; what has no figures by query is missing.
    """

    queries: Sequence[str]
    scores: RunScores
    tests: Mapping[tuple[Column, Pair], TestResult]

    def mean(self, run: str, column: Column) -> float | None:
        """A run's figure."""
        return self.scores[run][column].mean

    def change(self, column: Column, pair: Pair) -> float | None:
        """What the later run's figure has more; None where either has none."""
        before, after = (self.mean(run, column) for run in pair)
        return None if before is None or after is None else after - before

    def tested(self, column: Column, pair: Pair) -> TestResult | None:
        """The test of a pair; None where the measure has no figures by query."""
        return self.tests.get((column, pair))

    def against(self, column: Column, run: str, other: str) -> TestResult | None:
        """The test of two runs in either order, its difference being that of ``run`` less that of ``other``."""
        if run > other:
            return self.tested(column, (other, run))
        found = self.tested(column, (run, other))
        return None if found is None else found._replace(difference=-found.difference)


class Comparison(NamedTuple):
    """Runs of one dataset, scored and tested against each other.

    Attributes:
        dataset: what they are runs of.
        languages: of queries and documents.
        clusters: which queries belong together.
        candidates: the runs, in the order given.
        columns: what was measured.
        whole: figures and tests over all queries.
        by_language: query language -> those over its queries.
        slices: slice -> those over its queries, tested in the columns of ``named``; empty where every query has an
            answer in its language.
        by_value: value of the field by which all runs searched the same part -> figures and tests over its queries;
            empty where there are not several.
    """

    dataset: Dataset
    languages: DatasetLanguages
    clusters: Clusters
    candidates: Sequence[ComparedRun]
    columns: Sequence[Column]
    whole: ComparedQueries
    by_language: Mapping[str, ComparedQueries]
    slices: Mapping[str, ComparedQueries]
    by_value: Mapping[str, ComparedQueries]

    @property
    def letters(self) -> list[str]:
        """The runs' letters, in the order given."""
        return [candidate.letter for candidate in self.candidates]

    @property
    def sections(self) -> list[str]:
        """The sections in which something was measured."""
        return list(dict.fromkeys(column.section for column in self.columns))

    @property
    def primary(self) -> Column | None:
        """The first measure of which more, or less, is better: what runs are judged by."""
        return next((column for column in self.columns if sign(column)), None)

    @property
    def named(self) -> list[Column]:
        """One column for each measure: that of the section in which it stands by its own name."""
        return [column for column in self.columns if column_of(column.measure) == column]

    def columns_of(self, section: str) -> list[Column]:
        """The columns of a section."""
        return [column for column in self.columns if column.section == section]

    def mean(self, letter: str, column: Column, language: str | None = None) -> float | None:
        """A run's figure, over the queries of one language where one is given."""
        return (self.whole if language is None else self.by_language[language]).mean(letter, column)

    def candidate(self, letter: str) -> ComparedRun:
        """The run of that letter."""
        return next(candidate for candidate in self.candidates if candidate.letter == letter)

    def labels(self, letters: Iterable[str]) -> list[str]:
        """What the runs of these letters are called."""
        return [self.candidate(letter).label for letter in letters]


def sign(column: Column) -> int:
    """1 where a higher figure is better, -1 where a lower one is, 0 where that depends on the searcher."""
    return {"high": 1, "low": -1, "report": 0}[parse_measure(column.measure).family.direction]


def compare(
    dataset: Dataset, languages: DatasetLanguages, candidates: Sequence[ComparedRun], columns: Sequence[Column]
) -> Comparison:
    """Score every run and test every pair.

    Four families of tests are corrected, each for itself: measures times pairs over all queries, measures
    times pairs times query languages, and times values, and measures by their own name times pairs times slices.

    Raises:
        UsageError: an unknown measure.
    """
    together = clusters(dataset)
    scores = {candidate.letter: score_columns(columns, languages, candidate) for candidate in candidates}
    changes = changes_between(scores, columns, list(combinations(scores, 2)))
    whole = ComparedQueries([query.id for query in dataset.queries], scores, paired_tests(changes, together.of))
    by_language = compare_parts(scores, changes, runs.queries_by_language(languages.queries), together)
    named = {key: change for key, change in changes.items() if column_of(key[0].measure) == key[0]}
    first, *others = candidates
    parts = slices(first.dataset.qrels, languages.queries, languages.documents)
    by_slice = compare_parts(scores, named, parts, together)
    values = runs.queries_by_language(first.values) if all(one.values == first.values for one in others) else {}
    by_value = compare_parts(scores, changes, values if len(values) > 1 else {}, together)
    return Comparison(dataset, languages, together, candidates, columns, whole, by_language, by_slice, by_value)


#: Column and pair of runs -> query id -> difference.
Changes = Mapping[tuple[Column, Pair], Mapping[str, float]]


def changes_between(scores: RunScores, columns: Sequence[Column], pairs: Sequence[Pair]) -> Changes:
    """The differences of pairs of runs in every column."""
    keys = ((column, pair) for column in columns for pair in pairs)
    return {(column, pair): changed(*(scores[run][column] for run in pair)) for column, pair in keys}


def compare_parts(
    scores: RunScores, changes: Changes, parts: Mapping[str, Sequence[str]], clusters: Clusters
) -> dict[str, ComparedQueries]:
    """Compare some of the queries at a time; all tests are corrected together."""
    differences = {
        (part, key): {query: change[query] for query in queries if query in change}
        for part, queries in parts.items()
        for key, change in changes.items()
    }
    tests = paired_tests(differences, clusters.of)
    return {
        part: ComparedQueries(
            queries,
            {run: {column: found.over(queries) for column, found in row.items()} for run, row in scores.items()},
            {key: test for (of, key), test in tests.items() if of == part},
        )
        for part, queries in parts.items()
    }


def changed(before: Scores, after: Scores) -> dict[str, float]:
    """Query id -> difference, for the queries that both runs have a figure for.

    Empty where the figure of the whole is not the mean of the queries': then nothing can be paired.
    """
    if not (paired(before) and paired(after)):
        return {}
    return {query: after.per_query[query] - old for query, old in before.per_query.items() if query in after.per_query}


def paired(scores: Scores) -> bool:
    """Whether the figure is the mean of figures by query."""
    mean = scores.mean
    return bool(scores.per_query) and mean is not None and abs(fmean(scores.per_query.values()) - mean) < 1e-9
