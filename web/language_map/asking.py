"""Questions that are cut out of drawn documents, as vectors before and after the index moves them."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.retrieval.standing import Opened
from langshift.web.language_map.sampling import Drawn

Matrix = NDArray[np.float32]
Tell = Callable[[str], None]

QUESTIONS: Final = 16
# So many of each language are encoded before the next ones, so that searches come in between.
_ROUND: Final = 4
# Seconds after which no further round begins: a large model asks fewer questions.
_LONGEST: Final = 30.0


class Asked(NamedTuple):
    """Questions with their vectors.

    Attributes:
        documents: what each was cut out of.
        raw: as the encoder makes them, shape (questions, dimension), float32.
        moved: as the index is searched with them, of the same shape.
        all: whether no question was left out because encoding takes long.
    """

    documents: Sequence[Drawn]
    raw: Matrix
    moved: Matrix
    all: bool


def ask(documents: Sequence[Drawn], opening: Callable[[], Opened], tell: Tell) -> Asked | None:
    """Encode the questions of documents; None where no text has a sentence to ask by.

    Args:
        documents: the sample.
        opening: opens the version that the documents are of, with its encoder.
        tell: is told how many are encoded.

    Raises:
        LangshiftError: the encoder is not here, is another one, or makes no vectors of questions.
    """
    rounds = list(in_rounds(documents))
    if not rounds:
        return None
    tell("Opening the encoder")
    opened = opening()
    standing = opened.standing()
    if opened.identity() != standing.identity:
        standing = opened.renewed(standing)
    total, began = sum(map(len, rounds)), time.monotonic()
    asked, vectors = list[Drawn](), list[Matrix]()
    for together in rounds:
        if asked and time.monotonic() - began > _LONGEST:
            break
        tell(f"Encoding questions: {len(asked)} of {total}")
        vectors.append(opened.encoded(standing, [one.words or "" for one in together]))
        asked += together
    raw = np.concatenate(vectors)
    moved = standing.searcher.move(raw, [one.language for one in asked])
    return Asked(asked, raw, moved, len(asked) == total)


def in_rounds(documents: Sequence[Drawn], most: int = QUESTIONS, at_once: int = _ROUND) -> Iterator[list[Drawn]]:
    """The documents whose questions are encoded together: of every language a few, the first drawn first.

    Args:
        documents: the sample, of which those without a question are passed over.
        most: how many of a language at most, all rounds together.
        at_once: how many of a language in a round.
    """
    seen, rounds = Counter[str](), defaultdict[int, list[Drawn]](list)
    for one in documents:
        if one.words is not None and seen[one.language] < most:
            rounds[seen[one.language] // at_once].append(one)
            seen[one.language] += 1
    yield from (rounds[number] for number in sorted(rounds))
