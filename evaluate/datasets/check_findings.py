"""What a check of a dataset found, collected in bounded space."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

_SHOWN = 5  # examples kept of each kind of problem


@dataclass
class Problem:
    """One kind of problem in one file.

    Attributes:
        problem: what is wrong.
        file: where, within the dataset folder.
        count: how often.
        language: of the texts, where the problem is one of a language.
        examples: the first of them, each with its line where it has one.
    """

    problem: str
    file: str
    count: int = 0
    language: str | None = None
    examples: list[str] = field(default_factory=list)


class Findings:
    """Problems by kind, in the order in which the kinds were first met."""

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str, str | None], Problem] = {}

    def add(self, problem: str, file: str, example: str, language: str | None = None) -> None:
        """Count one more; its example is kept where there are few."""
        found = self._problems.setdefault((problem, file, language), Problem(problem, file, 0, language))
        found.count += 1
        if len(found.examples) < _SHOWN:
            found.examples.append(example)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._problems.values())


@dataclass
class LanguageCount:
    """What a dataset holds in one language.

    Attributes:
        language: the primary tag; None where lines name none.
        documents: in it.
        queries: in it.
        heard: texts long enough for the detector to be sure of.
        out_of_step: those of them that it is sure are in another language.
        detected: these languages, and how many texts each.
    """

    language: str | None
    documents: int = 0
    queries: int = 0
    heard: int = 0
    out_of_step: int = 0
    detected: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Checked:
    """The outcome of a check.

    Attributes:
        folder: the dataset.
        documents: how many its corpus has.
        queries: how many it asks.
        judgements: how many it holds.
        languages: counted one by one, most documents first.
        problems: all that was found.
    """

    folder: str
    documents: int
    queries: int
    judgements: int
    languages: list[LanguageCount]
    problems: list[Problem]

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object."""
        return {"clean": self.clean, **asdict(self)}


class Repeats:
    """Finds keys that come twice, in 8 bytes a key: a corpus can have 30 million."""

    def __init__(self) -> None:
        self._hashes = array("Q")

    def add(self, key: str) -> None:
        """Take note of a key."""
        self._hashes.append(_hash(key))

    def suspects(self) -> frozenset[int]:
        """Hashes that came more than once."""
        hashes = np.sort(np.frombuffer(self._hashes, dtype=np.uint64)) if self._hashes else np.empty(0, np.uint64)
        return frozenset(int(one) for one in np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))


def repeated(keys: Iterable[tuple[str, str]], suspects: frozenset[int]) -> Iterator[tuple[str, str, str]]:
    """Key, its first place and its place, for every key that is there again.

    Args:
        keys: every key with its place, in a second pass.
        suspects: hashes of keys that can come twice.
    """
    first: dict[str, str] = {}
    for key, place in keys:
        if _hash(key) in suspects:
            if key in first:
                yield key, first[key], place
            first.setdefault(key, place)


def _hash(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")
