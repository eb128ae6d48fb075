"""Quality gates: rules that a run must not break, against a baseline or against the version that is live."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from opensearchpy import OpenSearch

from langshift.debias.encoders.base import Encoder
from langshift.errors import LangshiftError, UsageError, no_file
from langshift.evaluate.compare.comparison import Comparison
from langshift.evaluate.compare.remedies import sample_of, untried_search
from langshift.evaluate.compare.verdict import Verdict, judge_replays
from langshift.evaluate.datasets.dataset import Dataset, identity, load_dataset
from langshift.evaluate.datasets.texts import query_languages
from langshift.evaluate.measures import default_measures, parse_measure
from langshift.evaluate.replay.overlap import Overlap
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan
from langshift.evaluate.replay.replay import ReplayResult, failures, replay_all
from langshift.evaluate.replay.requests import LoadProfile
from langshift.evaluate.runs import parse_names
from langshift.files import atomic_write, batched
from langshift.languages import UNDETERMINED
from langshift.plugin.versions import live
from langshift.retrieval.calibration.stored import resolve_auto
from langshift.retrieval.question import USUAL_OPTIONS, SearchOptions
from langshift.retrieval.request import RECOMMENDED
from langshift.retrieval.searcher import Searcher
from langshift.settings import VERSION
from langshift.wording import format_change, format_score


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Means of one run, as they stand in a file.

    Attributes:
        langshift: the version that measured them.
        name: the run's.
        dataset: hash of the dataset.
        measures: measure -> mean over all queries, None where it has none.
        by_language: query language -> the same over its queries.
    """

    langshift: str
    name: str
    dataset: str
    measures: Mapping[str, float | None]
    by_language: Mapping[str, Mapping[str, float | None]]

    def mean(self, measure: str, language: str | None) -> float | None:
        """A figure, None where the run had none."""
        known = self.measures if language is None else self.by_language.get(language, {})
        return known.get(measure)


def baseline_of(compared: Comparison, letter: str) -> Baseline:
    """The figures of one of the compared runs, by the names that measures are asked for."""
    wanted = {column.measure: column for column in compared.named}

    def means(language: str | None) -> dict[str, float | None]:
        return {name: compared.mean(letter, column, language) for name, column in sorted(wanted.items())}

    by_language = {language: means(language) for language in compared.by_language}
    dataset = identity(compared.dataset)["hash"]
    return Baseline(VERSION, compared.candidate(letter).name, dataset, means(None), by_language)


def read_baseline(path: Path, dataset: str) -> Baseline:
    """Read a baseline and check that it is one of the dataset.

    Args:
        path: the file.
        dataset: hash of the dataset.

    Raises:
        UsageError: no such file, one that is no baseline, or one of another dataset.
    """
    how = "create one with `langshift evaluate compare RUN --save-baseline FILE`"
    if not path.is_file():
        raise UsageError(f"{no_file(path, f'There is no baseline {path}')}: {how}.")
    try:
        baseline = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError(f"{path} is not a baseline, or is damaged: {how}.") from None
    if baseline.dataset != dataset:
        raise UsageError(
            f"{path} is a baseline of another dataset ({baseline.dataset}, not {dataset}): "
            "use the dataset that the baseline was saved for, or save the baseline again."
        )
    return baseline


ANY = "any"
_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_FORM = re.compile(
    r"\s*(?:(?P<kind>change|value)\s+)?(?P<measure>[^\s<>()]+(?:\([^()]*\)[^\s<>()]*)?)"
    r"(?:\s+in\s+(?P<language>[A-Za-z]+))?\s*(?P<operator><=|>=|<|>)\s*(?P<limit>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
)
_HOW = (
    "write 'SLR@20 < -0.01' for the change from the first run (or the baseline) to the last, 'value nDCG@20 < 0.7' for "
    "the last run's figure itself, and 'SLR@20 in de < -0.01' or 'in any' for the queries in one language or in any"
)
#: A run's figure of a measure, over the queries of a language, or over all where that is None.
Figures = Callable[[str, str | None], float | None]


class Condition(NamedTuple):
    """When to fail.

    Attributes:
        text: as it was written.
        change: whether the change counts, and not the figure itself.
        measure: the measure's name.
        language: a query language, ``any`` for each of them, None for all queries together.
        operator: ``<``, ``<=``, ``>`` or ``>=``.
        limit: what is compared with.
    """

    text: str
    change: bool
    measure: str
    language: str | None
    operator: str
    limit: float


class ConditionResult(NamedTuple):
    """What became of a condition.

    Attributes:
        condition: the condition.
        failed: whether it holds, and the comparison fails by it.
        says: the figures, in a sentence.
    """

    condition: Condition
    failed: bool
    says: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON gives it."""
        return {"condition": self.condition.text, "failed": self.failed, "says": self.says}


def parse_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        UsageError: it is none, or its measure is unknown.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"--fail-if {text!r} is not a valid condition: {_HOW}.")
    measure, limit = parse_measure(match["measure"]).name, float(match["limit"])
    change = match["kind"] != "value"
    return Condition(" ".join(text.split()), change, measure, match["language"], match["operator"], limit)


def check_condition(
    condition: Condition, languages: Sequence[str], after: Figures, before: Figures | None
) -> ConditionResult:
    """Say whether a comparison fails by a condition; a figure that is missing fails, too.

    Args:
        condition: the condition.
        languages: the query languages that there are.
        after: the last run's figures.
        before: those of the first run or the baseline; None where there is neither.

    Raises:
        UsageError: it names a language in which nothing is asked, or a change with nothing to change from.
    """
    if condition.language not in (None, ANY, *languages):
        raise UsageError(
            f"--fail-if {condition.text!r}: there are no queries in {condition.language!r}; "
            f"the queries are in {', '.join(languages)}."
        )
    if condition.change and before is None:
        raise UsageError(
            f"--fail-if {condition.text!r} is about a change, but there is only one run: give two, or --baseline FILE, "
            f"or write 'value {condition.measure} {condition.operator} {condition.limit:g}' for the figure itself."
        )
    places = list(languages) if condition.language == ANY else [condition.language]
    checked = [_check(condition, language, after, before) for language in places]
    held = [says for failed, says in checked if failed]
    says = "; ".join(held or [says for _, says in checked])
    return ConditionResult(condition, bool(held), f"{says} (fails if '{condition.text}')." if held else f"{says}.")


def _check(condition: Condition, language: str | None, after: Figures, before: Figures | None) -> tuple[bool, str]:
    where = f"{condition.measure}{f' for queries in {language}' if language else ''}"
    new = after(condition.measure, language)
    old = before(condition.measure, language) if condition.change and before is not None else None
    if new is None or (condition.change and old is None):
        return True, f"{where} has no figure {'to compare with' if new is not None else 'in the last run'}"
    if old is None:
        return _OPERATORS[condition.operator](new, condition.limit), f"{where} is {format_score(new)}"
    change = new - old
    if not change:
        says = f"{where} is unchanged at {format_score(new)}"
    elif shown := format_change(change, same=""):
        says = f"{where} changes by {shown}, from {format_score(old)} to {format_score(new)}"
    else:
        says = f"{where} changes by less than .0001"
    return _OPERATORS[condition.operator](change, condition.limit), says


def write_junit(path: Path, suite: str, verdicts: Sequence[ConditionResult]) -> None:
    """Write one test case for each condition; the file appears whole or not at all.

    Args:
        path: the file.
        suite: names what was compared.
        verdicts: what became of each condition.
    """
    from junitparser import Failure, JUnitXml, TestCase, TestSuite

    made = TestSuite(suite)
    for verdict in verdicts:
        case = TestCase(verdict.condition.text, classname="langshift.evaluate.compare")
        if verdict.failed:
            failure = Failure(verdict.says, "fail-if")
            failure.text = verdict.says
            case.result = [failure]
        else:
            case.system_out = verdict.says
        made.add_testcase(case)
    document = JUnitXml("langshift evaluate compare")
    document.add_testsuite(made)
    with atomic_write(path) as partial:
        document.write(str(partial))


_IDS_PER_REQUEST = 1000


class GateResult(NamedTuple):
    """What a gate found.

    Attributes:
        before: the live version's replay.
        after: the new version's.
        verdict: whether to take the new version.
        losses: the verdict's conditions by which the new version loses, in sentences.
        accepted: whether these are accepted.
        conditions: what became of each further condition.
    """

    before: ReplayResult
    after: ReplayResult
    verdict: Verdict
    losses: Sequence[str]
    accepted: bool
    conditions: Sequence[ConditionResult]

    @property
    def failed(self) -> list[str]:
        """Why the new version is refused, in sentences."""
        losses = [] if self.accepted else self.losses
        return [*losses, *(condition.says for condition in self.conditions if condition.failed)]

    def to_dict(self) -> dict[str, Any]:
        """As ``langshift retune --json`` prints it."""
        return {
            "gate": [condition.to_dict() for condition in self.conditions],
            "verdict": self.verdict.to_dict(),
            "loss_accepted": bool(self.losses) and self.accepted,
        }


def _replayed(
    client: OpenSearch,
    searchers: Sequence[Searcher],
    dataset: Dataset,
    options: ReplayOptions,
    on_answer: Callable[[], None] = lambda: None,
) -> list[ReplayResult]:
    return replay_all([client], ReplayPlan.of(searchers, dataset, options), options, on_answer=on_answer)


def judge_live(
    client: OpenSearch,
    searcher: Searcher,
    before: ReplayResult,
    after: ReplayResult,
    overlap: Overlap | None = None,
    replay: Callable[..., list[ReplayResult]] = _replayed,
) -> Verdict:
    """Return the verdict on two replays; where it names a cost that another mode may save, a sample is replayed so.

    Args:
        client: the cluster.
        searcher: over the later side's index.
        before: the earlier, or first, replay.
        after: the other.
        overlap: how alike their answers are.
        replay: carries out a replay, given the client, searchers, dataset and options.
    """
    verdict = judge_replays(before, after, overlap)
    untried = untried_search(searcher.index, after.setting)
    if untried is None or after.dataset is None or verdict.kind != "at a cost" or not verdict.loses_own:
        return verdict
    words, setting = untried
    # Its times are nobody's: as many at once as the cluster has just answered.
    at_once = 1 if after.load.open_loop else after.load.concurrency
    options = ReplayOptions([setting], LoadProfile(at_once, warm_up=0), measures=[])
    sample = sample_of(query.id for query in after.dataset.queries)
    some = replace(after.dataset, queries=tuple(query for query in after.dataset.queries if query.id in sample))
    (tried,) = replay(client, [searcher], some, options)
    return judge_replays(before, after, overlap, {words: tried}, sample)


class Gate:
    """A dataset, the verdict's conditions and further ones, checked before anything is made."""

    def __init__(
        self,
        folder: Path,
        conditions: Sequence[str] = (),
        search: SearchOptions = USUAL_OPTIONS,
        *,
        accept_loss: bool = False,
    ) -> None:
        """Read both.

        Args:
            folder: the dataset.
            conditions: such as ``SLR@20 < -0.01``; each is held against the change from the live version to the new.
            search: where the index's encoder is.
            accept_loss: whether the new version may lose by the verdict's conditions.

        Raises:
            UsageError: a dataset that cannot be read, or a condition that cannot be judged by it.
        """
        self._conditions = [parse_condition(text) for text in conditions]
        self._dataset = load_dataset(folder)
        usual = default_measures(self._dataset.judged)
        requested = [*usual, *(condition.measure for condition in self._conditions)]
        self._measures = parse_names(" ".join(requested), self._dataset)
        # Figures that are all the same: what is refused now is not refused after hours of copying.
        found = {tag or UNDETERMINED for tag in query_languages(self._dataset.queries).values()}
        for condition in self._conditions:
            check_condition(condition, sorted(found), lambda *_: 0.0, lambda *_: 0.0)
        self._search, self._accept_loss = search, accept_loss
        self._opened: dict[str, Encoder] = {}

    @property
    def searches(self) -> int:
        """How many searches it takes: each query in both versions."""
        return 2 * len(self._dataset.queries)

    def open(self, client: OpenSearch, name: str) -> None:
        """Open the index's encoder, so that what is missing is known before anything is made.

        Raises:
            LangshiftError: there is no such index or encoder, it is not the one that made the index, or no document
                that the dataset judges relevant is in the index, so that no condition would ever fail.
        """
        index = Searcher(client, name, self._search, self._opened).index.index
        relevant = {name for judged in self._dataset.qrels.values() for name, grade in judged.items() if grade > 0}
        for ids in batched(sorted(relevant), _IDS_PER_REQUEST):
            if client.count(index=index, body={"query": {"ids": {"values": ids}}})["count"]:
                return
        raise UsageError(
            f"The gate cannot be evaluated: none of the {len(relevant):,} relevant documents of {self._dataset.folder} "
            f"is in {index}. Use a dataset whose documents are in the index, with the same _id."
        )

    def judge(
        self, client: OpenSearch, before: str, after: str, on_answer: Callable[[], None] = lambda: None
    ) -> GateResult:
        """Send every query to both versions, in alternation, and judge.

        Where there are too few questions to tell, only further conditions can fail.

        Args:
            client: the cluster.
            before: the live version.
            after: the new one.
            on_answer: called after each search.

        Raises:
            LangshiftError: a query failed, so that the figures say nothing.
        """
        client.indices.refresh(index=after)
        searchers = [
            Searcher(client, live(client, version, also_unfinished=True), self._search, self._opened)
            for version in (before, after)
        ]
        # The new version is calibrated only later, and searched as the live one is: only the shift is to differ.
        auto = resolve_auto(searchers[0].index)
        settings = [auto.setting if auto.origin == "calibration" else RECOMMENDED]
        options = ReplayOptions(settings, measures=self._measures, group_scores="LPR" in self._measures)
        old, new = _replayed(client, searchers, self._dataset, options, on_answer)
        if failed := next((one for one in (old, new) if one.failed), None):
            raise LangshiftError(f"The gate cannot be evaluated: {failed.version}: {failures(failed)}")
        tags, figures = list(new.by_language()), (_figures(new), _figures(old))
        verdict = judge_live(client, searchers[1], old, new)
        losses = [f"{figure.sentence}." for figure in verdict.lost]
        conditions = [check_condition(condition, tags, *figures) for condition in self._conditions]
        return GateResult(old, new, verdict, losses, self._accept_loss, conditions)


def _figures(found: ReplayResult) -> Figures:
    by_language = found.by_language()
    return lambda measure, language: (found.scores if language is None else by_language[language])[measure].mean
