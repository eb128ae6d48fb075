"""A quality gate: a dataset replayed on the version that is live and on the one that is to follow it, and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from opensearchpy import OpenSearch

from langshift import console
from langshift.debias.encoders import Encoder
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.compare import compare_gate
from langshift.evaluate.compare.compare_gate import Condition, Figures, Verdict
from langshift.evaluate.datasets.dataset import Dataset, load_dataset
from langshift.evaluate.measures.measures import default_measures
from langshift.evaluate.replay.asked import Asked, Plan
from langshift.evaluate.replay.replay import replay_all
from langshift.evaluate.replay.replayed import Replay, failures
from langshift.evaluate.replay.requests import languages
from langshift.evaluate.scoring import parse_names
from langshift.languages import UNDETERMINED
from langshift.retrieval.opening import USUAL, SearchOptions
from langshift.retrieval.search import Searcher
from langshift.shown import figure, heading, line, signed

_ASKED_AT_ONCE = 1000


@dataclass(frozen=True)
class Judged:
    """What a gate found.

    Attributes:
        before: the live version's replay.
        after: the new version's.
        verdicts: one for each condition.
    """

    before: Replay
    after: Replay
    verdicts: Sequence[Verdict]

    @property
    def failed(self) -> list[Verdict]:
        """The verdicts by which the new version is refused."""
        return [verdict for verdict in self.verdicts if verdict.failed]


class Gate:
    """A dataset and conditions, checked before anything is made."""

    def __init__(self, folder: Path, conditions: Sequence[str], search: SearchOptions = USUAL) -> None:
        """Read both.

        Args:
            folder: the dataset.
            conditions: such as ``SLR@20 < -0.01``; each is held against the change from the live version to the new.
            search: where the index's encoder is.

        Raises:
            UsageError: a dataset that cannot be read, or a condition that cannot be judged by it.
        """
        self._conditions = [compare_gate.parse(text) for text in conditions]
        self._dataset = load_dataset(folder)
        asked = " ".join(condition.measure for condition in self._conditions)
        usual = default_measures(self._dataset.judged)
        self._measures = list(dict.fromkeys([*usual, *parse_names(asked, self._dataset)]))
        self._require_asked()
        self._search = search
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
        rest = iter(sorted(relevant))
        while ids := list(islice(rest, _ASKED_AT_ONCE)):
            if client.count(index=index, body={"query": {"ids": {"values": ids}}})["count"]:
                return
        raise UsageError(
            f"The gate cannot be judged: none of the {len(relevant):,} relevant documents of {self._dataset.folder} is "
            f"in {index}: give a dataset of what is in the index, with the same _id."
        )

    def judge(
        self, client: OpenSearch, before: str, after: str, on_answer: Callable[[], None] = lambda: None
    ) -> Judged:
        """Send every query to both versions, in alternation, and judge.

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
            Searcher(client, version, self._search, self._opened, also_unfinished=True) for version in (before, after)
        ]
        plan = Plan(measures=self._measures, group_scores="LPR" in self._measures)
        asked = Asked.of(searchers, self._dataset, plan)
        old, new = replay_all([client], asked, plan, on_answer=on_answer)
        for replayed in (old, new):
            if replayed.failed:
                raise LangshiftError(f"The gate cannot be judged: {replayed.version}: {failures(replayed)}")
        return Judged(old, new, [self._verdict(condition, old, new) for condition in self._conditions])

    def _require_asked(self) -> None:
        """Judge figures that are all the same: what is refused now is not refused after hours of copying."""
        found = {query: tag or UNDETERMINED for query, tag in languages(self._dataset.queries).items()}
        for condition in self._conditions:
            compare_gate.judge(condition, sorted(set(found.values())), _nothing, _nothing)

    def _verdict(self, condition: Condition, before: Replay, after: Replay) -> Verdict:
        return compare_gate.judge(condition, list(after.by_language()), _figures(after), _figures(before))


def show(judged: Judged) -> None:
    """Print both versions' figures, and what became of each condition."""
    before, after = judged.before, judged.after
    heading(f"{len(after.answers):,} queries of {_folder(after.dataset)} in {before.version} and in {after.version}")
    rows = [
        [name, figure(old.mean), figure(new.mean), signed(_change(old.mean, new.mean))]
        for name, old in before.scores.items()
        for new in [after.scores[name]]
    ]
    columns = ["measure", before.version, after.version, "change"]
    console.table(None, columns, rows, right=set(columns[1:]))
    heading("\nConditions")
    for verdict in judged.verdicts:
        line(f"- {'FAILS' if verdict.failed else 'passes'}: {verdict.says}")


def _figures(found: Replay) -> Figures:
    by_language = found.by_language()

    def mean(measure: str, language: str | None) -> float | None:
        return (found.scores if language is None else by_language[language])[measure].mean

    return mean


def _nothing(measure: str, language: str | None) -> float | None:  # noqa: ARG001 - figures' signature
    return 0.0


def _change(old: float | None, new: float | None) -> float | None:
    return None if old is None or new is None else new - old


def _folder(dataset: Dataset | None) -> Path:
    assert dataset is not None  # noqa: S101 - a gate has one
    return dataset.folder
