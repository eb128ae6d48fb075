"""What parallel text is to those who use it, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Rows:
    """A batch of n rows; what stands in one row says the same in every language.

    Attributes:
        places: names each row for a person: ``line 12``, ``id 7067032``, ``row 3``.
        texts: n texts by language tag, ``""`` where a row has none in that language; empty for given vectors.
        vectors: given vectors by language tag, (n, d) float32, perhaps not writable, a row of NaN where there is
            none in that language; empty for texts.
    """

    places: Sequence[str]
    texts: Mapping[str, Sequence[str]]
    vectors: Mapping[str, NDArray[np.float32]]


class ParallelText(Protocol):
    """Parallel text of any format: texts, or vectors that were made elsewhere."""

    @property
    def shown(self) -> str:
        """How messages name it."""

    @property
    def languages(self) -> Sequence[str]:
        """The tags of its languages, sorted, at least two."""

    @property
    def total(self) -> int | None:
        """How many rows it has, where that is known before reading."""

    @property
    def dimension(self) -> int | None:
        """The dimension of given vectors; None for texts."""

    def batches(self, size: int) -> Iterator[Rows]:
        """Read the rows anew, in order, at most ``size`` at a time.

        Raises:
            UsageError: what cannot be used, named by file and place.
        """


class Places(Sequence[str]):
    """``line 5``, ``line 6``, … made when they are asked for: a million rows of vectors need hardly one."""

    def __init__(self, word: str, first: int, count: int) -> None:
        self._word, self._numbers = word, range(first, first + count)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [f"{self._word} {number}" for number in self._numbers[index]]
        return f"{self._word} {self._numbers[index]}"
