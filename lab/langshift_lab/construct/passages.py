"""Which documents a test set is made of, and which third of each: even over languages, lengths and thirds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, NamedTuple

from langshift.evaluate.convert.snapshot import IndexedDocument
from langshift.evaluate.datasets.dataset import gather
from langshift.languages import UNSPACED_WORD_LENGTHS
from langshift.retrieval.calibration.questions import shares
from langshift.sentences import Span, sentence_spans, within_bmp

#: The thirds of a document, in order.
THIRDS: Final = ("first", "middle", "last")
# Three thirds of a sentence or two each; scripts without spaces say as much in a third of the characters.
_LEAST, _LEAST_UNSPACED = 300, 100
# Of a longer third a part goes to the model: a question is on a sentence or two.
_MOST = 6000
_LENGTHS = 3


class Candidate(NamedTuple):
    """A document that may be drawn.

    Attributes:
        id: its id.
        language: its primary tag.
        length: of its text, in characters.
    """

    id: str
    language: str
    length: int


class PassageChoice(NamedTuple):
    """A document that was drawn.

    Attributes:
        id: its id.
        third: which third of it a question is on, 0 to 2.
    """

    id: str
    third: int


class DrawnPassage(NamedTuple):
    """The part of a document that a question is on.

    Attributes:
        document: the document.
        start: the part's first character in the document's text.
        end: the one after its last.
    """

    document: IndexedDocument
    start: int
    end: int

    @property
    def text(self) -> str:
        """Its text."""
        return self.document.text[self.start : self.end]


def candidates(documents: Iterable[IndexedDocument]) -> list[Candidate]:
    """The documents that may be drawn: of a known language, and long enough to have thirds of a sentence or more."""
    return [
        Candidate(one.id, one.language, len(one.text))
        for one in documents
        if one.language is not None
        and len(one.text) >= (_LEAST_UNSPACED if one.language in UNSPACED_WORD_LENGTHS else _LEAST)
    ]


def draw(found: Iterable[Candidate], count: int, seed: int) -> list[PassageChoice]:
    """Draw documents, by nothing but their ids, languages, lengths and the seed.

    Every language gets as even a share as it has documents for, and within a language its short, medium and long
    documents, a third of the language's documents each, do likewise. The thirds of the text are dealt out in turn.

    Args:
        found: the documents to draw from, in any order.
        count: how many at most; languages with fewer than five documents are left out.
        seed: another one draws others.
    """
    by_language = gather((one.language, one) for one in found)
    drawn: list[PassageChoice] = []
    for language, share in shares(Counter({tag: len(those) for tag, those in by_language.items()}), count).items():
        ordered = sorted(by_language[language], key=lambda one: (one.length, _chance(one.id, seed)))
        start = 0
        for size, wanted in zip(_parts(len(ordered)), _parts(share), strict=True):
            alike = sorted(ordered[start : start + size], key=lambda one: _chance(one.id, seed))
            drawn += [PassageChoice(one.id, (len(drawn) + at) % len(THIRDS)) for at, one in enumerate(alike[:wanted])]
            start += size
    return drawn


def passage(document: IndexedDocument, third: int, seed: int) -> DrawnPassage:
    """The sentences of a document whose middle is in one third of it; where there are none, the third itself.

    Of a passage of more than 6,000 characters, as many in a row.

    Args:
        document: with a text.
        third: 0 to 2.
        seed: chooses the part of a long passage.
    """
    text, length = document.text, len(document.text)
    sentences = sentence_spans(within_bmp(text), 0, length, document.language or "und")
    inside = [one for one in sentences if (one[0] + one[1]) * len(THIRDS) // (2 * length) == third]
    cut: Span = (length * third // len(THIRDS), length * (third + 1) // len(THIRDS))
    start, end = (inside[0][0], inside[-1][1]) if inside else cut
    if end - start > _MOST:
        start += int.from_bytes(_chance(document.id, seed), "big") % (end - start - _MOST)
        end = start + _MOST
    piece = text[start:end]
    return DrawnPassage(document, start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip()))


def _parts(count: int) -> list[int]:
    """A number in three parts that differ by one at most, the greater ones first."""
    return [count // _LENGTHS + (at < count % _LENGTHS) for at in range(_LENGTHS)]


def _chance(name: str, seed: int) -> bytes:
    return blake2b(f"{seed}\n{name}".encode(errors="replace"), digest_size=8).digest()
