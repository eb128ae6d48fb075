"""What a replay found: answers, figures, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from langshift.debias.fingerprint import Fingerprint
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.replay.answer import Answer
from langshift.evaluate.replay.groups import GroupScores
from langshift.evaluate.replay.schedule import Load
from langshift.evaluate.replay.sending import Sending
from langshift.languages import UNDETERMINED
from langshift.plugin.fields import USUAL, Fields
from langshift.retrieval.trust import Trust
from langshift.retrieval.wanted import Setting


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    Attributes:
        index: what was searched, an alias or a version.
        version: the version.
        setting: how it was searched.
        fingerprint: what made the index.
        languages: query id -> language, None where unknown.
        answers: one for each query, in the order of the dataset or log.
        scores: measure -> figures.
        warnings: sentences on what makes the figures less than they seem.
        vectors: what was searched with, shape (queries, dimension), float32; None where
            the setting needs no vector.
        shift_queries: whether queries in other languages than the pivot were shifted.
        load: how the queries were sent.
        sending: how that went.
        group_scores: query id -> every document of its target -> score, None where it has none; empty if not
            asked for.
        dataset: what was replayed.
        documents: document id -> language, None where unknown.
        fields: the index's names of fields.
        trust: what ``anchored`` reckoned with; None in other modes.
    """

    index: str
    version: str
    setting: Setting
    fingerprint: Fingerprint
    languages: Mapping[str, str | None]
    answers: Sequence[Answer]
    scores: Mapping[str, Scores]
    warnings: Sequence[str]
    vectors: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    shift_queries: bool = False
    load: Load = field(default_factory=Load)
    sending: Sending = field(default_factory=Sending)
    group_scores: GroupScores = field(default_factory=dict, repr=False)
    dataset: Dataset | None = field(default=None, repr=False, compare=False)
    documents: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    fields: Fields = USUAL
    trust: Trust | None = None

    @property
    def failed(self) -> Sequence[Answer]:
        """The queries that failed; each counts as an empty answer."""
        return [answer for answer in self.answers if answer.error is not None]

    @property
    def complete(self) -> bool:
        """Whether the cluster was there for every query, be it with an error."""
        return all(answer.reached for answer in self.answers)

    def by_language(self) -> dict[str, dict[str, Scores]]:
        """Query language -> measure -> figures, sorted by language."""
        asked: dict[str, list[str]] = {}
        for query, language in self.languages.items():
            asked.setdefault(language or UNDETERMINED, []).append(query)
        return {
            language: {name: scores.over(asked[language]) for name, scores in self.scores.items()}
            for language in sorted(asked)
        }


def failures(found: Replay, *, resumable: bool = False) -> str:
    """Say how many queries failed, and why the first did.

    Args:
        found: a replay with failed queries.
        resumable: whether the answers are on disk, so that the rest can be sent later.
    """
    first = found.failed[0]
    told = (
        f"{len(found.failed):,} of {len(found.answers):,} queries failed and count as empty answers; "
        f"the first, {first.query}: {first.error}"
    )
    if found.complete or not resumable:
        return told
    missing = sum(not answer.reached for answer in found.answers)
    return (
        f"{told} The result is marked as not complete: the same command with --resume sends the {missing:,} queries "
        "that found no cluster."
    )
