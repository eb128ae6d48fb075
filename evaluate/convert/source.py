"""What every format yields: passages, questions with their judgements, and how they belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from langshift.evaluate.datasets.dataset import POOLED


class Passage(NamedTuple):
    """One document of a collection; ``more`` holds fields that are kept as they came."""

    id: str
    text: str
    language: str | None
    group: str | None = None
    article: str | None = None
    title: str = ""
    more: Mapping[str, Any] | None = None


class Question(NamedTuple):
    """One query, with the grades of the passages that were judged for it.

    ``evidence`` gives the relative position of the evidence (0 to 1) and the passage's length in
    tokens, by passage.
    """

    id: str
    text: str
    language: str | None
    judged: Mapping[str, int]
    group: str | None = None
    article: str | None = None
    evidence: Mapping[str, tuple[float, int | None]] | None = None


@dataclass(frozen=True)
class Source:
    """A collection, as its format reads it.

    Attributes:
        where: the folder or file, for messages.
        languages: tags of its passages, in the order in which they are to be named.
        questions: all questions in the chosen languages.
        passages: starts a new pass over the passages; they are never held together.
        partly_parallel: whether some groups lack some languages, so that the pool depends on the pivot.
        whole: whether ``passages`` has all that the judgements name; if not, others are left out.
        judged: how it was judged, see ``Dataset.judged``.
        place: file and line that judge a passage, for messages; None where judgements have no file.
    """

    where: Path
    languages: Sequence[str]
    questions: Sequence[Question]
    passages: Callable[[], Iterator[Passage]]
    partly_parallel: bool = False
    whole: bool = True
    judged: str = POOLED
    place: Callable[[str], str] | None = None
