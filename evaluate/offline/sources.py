"""What says the languages by which documents move: the dataset, or a detector that reads more or less of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.debias import Debias, Posterior
from langshift.debias.detect import Detection
from langshift.debias.vectors import LanguageVectors
from langshift.evaluate.datasets.texts import Text, detected_from, read_texts
from langshift.evaluate.offline.encoding import Encoded
from langshift.ingest.making import Making
from langshift.languages import UNDETERMINED, text_language

Matrix = NDArray[np.float32]


class Source(NamedTuple):
    """Where documents' languages come from, as the command line names it.

    Attributes:
        kind: ``given`` (by the dataset, detected where that names none), ``detected``, or ``soft`` (all the
            languages that the detector holds possible).
        characters: how much of a text is read for it; None for as much as ingest reads.
    """

    kind: str
    characters: int | None = None

    def __str__(self) -> str:
        return self.kind if self.characters is None else f"{self.kind}:{self.characters}"

    @property
    def soft(self) -> bool:
        """Whether documents move by all languages that they may be in."""
        return self.kind == "soft"

    @classmethod
    def parse(cls, text: str) -> Source | None:
        """``detected:20`` as a source; None where it is none."""
        kind, colon, characters = text.partition(":")
        if not colon:
            return cls(kind) if kind in ("given", "detected", "soft") else None
        if kind == "given" or not characters.isdecimal() or int(characters) == 0:
            return None
        return cls(kind, int(characters)) if kind in ("detected", "soft") else None


GIVEN = Source("given")


@dataclass(frozen=True)
class Told:
    """The languages of an encoded dataset's documents, as one source tells them.

    Attributes:
        source: which.
        tags: each document's tag, ``und`` where unknown or not certain enough.
        posteriors: each document's languages and how probable they are, those without a language vector left
            out; None where documents move by their tag.
        accuracy: share of the documents of known language whose likeliest language is that; None where nothing
            was detected, or the dataset names no language.
        judged: how many documents that counts.
    """

    source: Source
    tags: Sequence[str] = field(repr=False)
    posteriors: Sequence[Posterior] | None = field(default=None, repr=False)
    accuracy: float | None = None
    judged: int = 0

    @property
    def unknown(self) -> int | None:
        """How many documents stay for want of a language; None where all that is possible moves them."""
        return sum(tag == UNDETERMINED for tag in self.tags) if self.posteriors is None else None

    def move(self, debias: Debias, vectors: Matrix, rows: slice) -> Matrix:
        """Move documents by their languages.

        Args:
            debias: what moves them.
            vectors: embeddings of the documents ``rows``, shape (n, d), float32.
            rows: which documents these are.

        Returns:
            Shape (n, d), float32, not normalised.

        Raises:
            UsageError: probable languages with a method that cannot take them.
        """
        if self.posteriors is None:
            return debias.documents(vectors, self.tags[rows])
        return debias.soft(vectors, self.posteriors[rows])


def given(encoded: Encoded) -> Told:
    """What the dataset names; detected where it names none."""
    return Told(GIVEN, [encoded.languages.tags[name] for name in encoded.ids])


def tell(encoded: Encoded, sources: Sequence[Source], making: Making) -> dict[Source, Told]:
    """What each source says of a dataset's documents.

    Args:
        encoded: the dataset.
        sources: which to ask.
        making: the detector, and the language vectors: posteriors of languages that these do not move are not
            kept.
    """
    if all(source == GIVEN for source in sources):
        return dict.fromkeys(sources, given(encoded))
    texts = read_texts(encoded.dataset)
    return {
        source: given(encoded) if source == GIVEN else _told(encoded, source, texts, making)
        for source in dict.fromkeys(sources)
    }


def _told(encoded: Encoded, source: Source, texts: dict[str, Text], making: Making) -> Told:
    detector, known = making.detector, making.debias.vectors
    words = [detected_from(texts[name], source.characters) for name in encoded.ids]
    found = [detector.detect(text) for text in words]
    tags = [one.language if one.confidence >= making.least_confidence else UNDETERMINED for one in found]
    right = _right(encoded, found)
    posteriors = [_shiftable(detector.posteriors(text), known) for text in words] if source.soft else None
    return Told(source, tags, posteriors, sum(right) / len(right) if right else None, len(right))


def _right(encoded: Encoded, found: Sequence[Detection]) -> list[bool]:
    named = (encoded.dataset.documents[name].language for name in encoded.ids)
    return [
        text_language(one.language) == text_language(language)
        for one, language in zip(found, named, strict=True)
        if language is not None
    ]


def _shiftable(posterior: Posterior, known: LanguageVectors | None) -> Posterior:
    return {tag: p for tag, p in posterior.items() if known is not None and known.key(tag) is not None}
