"""Long documents as chunks: whole sentences, each chunk an entry of the index with a vector of its own."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from langshift.errors import UsageError
from langshift.languages import UNSPACED_WORD_LENGTHS, primary
from langshift.plugin.metadata import CHUNK, PARENT, ChunkPlace, chunk_id
from langshift.sentences import SPACE, Span, breaks, joined, sentence_spans, within_bmp

if TYPE_CHECKING:
    from langshift.debias.encoders.base import Encoder
    from langshift.ingest.documents import Document

Method = Literal["auto", "paragraphs", "sentences", "words", "fixed"]
_METHODS: Final[tuple[Method, ...]] = get_args(Method)
_SIZED: Final = ("sentences", "words", "fixed")


class Chunking(NamedTuple):
    """How documents are cut into chunks.

    Attributes:
        method: ``auto`` and ``paragraphs`` go by the text alone.
        size: how many ``sentences`` or ``words`` a chunk has at most, or how many words or characters every chunk but
            the last has by ``fixed``; None for the other methods.
    """

    method: Method
    size: int | None = None

    @classmethod
    def parse(cls, text: str) -> Chunking:
        """Read ``auto``, ``paragraphs``, ``sentences:5``, ``words:120`` or ``fixed:100``.

        Raises:
            UsageError: it is none of these.
        """
        method, colon, size = text.partition(":")
        if method in _METHODS and bool(colon) == (method in _SIZED):
            if not colon:
                return cls(method)
            if size.isdecimal() and int(size) > 0:
                return cls(method, int(size))
        raise UsageError(f"--chunk {text!r} is not auto, paragraphs, sentences:N, words:N, fixed:N or off.")

    def __str__(self) -> str:
        return self.method if self.size is None else f"{self.method}:{self.size}"


def chunks_of(document: Document, language: str, chunking: Chunking, encoder: Encoder) -> list[Document]:
    """The chunks of a document, each as a document of its own with the fields ``parent`` and ``chunk``.

    Args:
        document: the document, at least one chunk, also where it has nothing but a title.
        language: its language, which tells abbreviations from ends of sentences.
        chunking: how it is cut.
        encoder: what a chunk must fit into one window of.
    """
    window = _Window(encoder, document.title)
    fields = {"": document.text}
    if document.texts is not None:
        texts = list(document.texts.items())
        fields = dict(texts[1:] if document.title and texts[0][1] == document.title else texts)
    if len(fields) > 1 and chunking.method == "auto" and window.fits(document.text):
        return [_chunk(document, ChunkPlace(0, 0, len(document.text), 1), "", document.text)]
    places = [(name, start, end) for name in fields for start, end in spans(fields[name], language, chunking, window)]
    if not places:
        return [_chunk(document, ChunkPlace(0, 0, 0, 1), "", "")]
    made = []
    for ordinal, (name, start, end) in enumerate(places):
        place = ChunkPlace(ordinal, start, end, len(places), name if len(fields) > 1 else None)
        made.append(_chunk(document, place, name, fields[name][start:end]))
    return made


def _chunk(document: Document, place: ChunkPlace, field: str, text: str) -> Document:
    """One chunk; without a field it has all texts of its document."""
    texts = document.texts
    if texts is not None and field:
        # The title is repeated, the texts beside it are not.
        texts = {name: whole if whole == document.title else "" for name, whole in texts.items()} | {field: text}
    other = {**document.other, PARENT: document.id, CHUNK: place.to_dict()}
    return replace(document, id=chunk_id(document.id, place.ordinal), text=text, texts=texts, other=other)


#: What counts as a window of an encoder that has none, in characters.
CHARACTERS: Final = 1000


class _Window:
    """What one vector is to be made of: how much text fits beside the title.

    Args:
        encoder: makes the vectors.
        title: stands before each chunk; where it is long, half a window is left for the text nevertheless.
    """

    def __init__(self, encoder: Encoder, title: str) -> None:
        whole = CHARACTERS
        self._count: Callable[[Sequence[str]], Sequence[int]] = lambda texts: list(map(len, texts))
        self._empty, taken = 0, len(title) + bool(title)
        if encoder.window is not None:
            whole, self._count = encoder.window, encoder.count_tokens
            self._empty, taken = self._count(["", title])
        self.limit = max(whole - taken, whole // 2)

    def sizes(self, texts: Sequence[str]) -> list[int]:
        """The sizes of some texts, to be added up, in characters or tokens."""
        return [count - self._empty for count in self._count(texts)]

    def fits(self, text: str) -> bool:
        """Whether a text is none too long."""
        # No token is less than a byte. Of a long text the beginning already tells.
        if len(text) <= self.limit and len(text.encode(errors="replace")) <= self.limit:
            return True
        begins = [text[: 16 * self.limit], text] if len(text) > 16 * self.limit else [text]
        return all(self.sizes([begin])[0] <= self.limit for begin in begins)


def spans(text: str, language: str, chunking: Chunking, window: _Window) -> Iterator[Span]:
    """Where the chunks of a text begin and end, in code points.

    They are in order, neither begin nor end with white space, and leave out nothing else.

    Args:
        text: the text.
        language: its language.
        chunking: how it is cut.
        window: what a chunk must fit into.
    """
    if chunking.method == "auto" and window.fits(text):
        yield from _stripped(text, 0, len(text))
        return
    shown, fixed = within_bmp(text), chunking.method == "fixed"
    for start, end in _fixed(text, shown, language, chunking.size or 1) if fixed else _paragraphs(text):
        found = [(start, end)]
        if chunking.size is not None and not fixed:
            sentences = sentence_spans(shown, start, end, language)
            counted = chunking.method == "words"
            sizes = [_words(shown[begin:stop]) if counted else 1 for begin, stop in sentences]
            found = joined(sentences, sizes, chunking.size)
        for begin, stop in found:
            if window.fits(text[begin:stop]):
                yield from _stripped(text, begin, stop)
                continue
            # A sentence that is too long by itself is cut, and what remains of it joins those around it.
            sentences = sentence_spans(shown, begin, stop, language)
            pieces = [piece for sentence in sentences for piece in _pieces(text, shown, *sentence, window)]
            sizes = window.sizes([text[first:last] for first, last in pieces])
            for first, last in joined(pieces, sizes, _evenly(sizes, window.limit)):
                yield from _stripped(text, first, last)


_GAP = re.compile(r"[\n\r\x85\u2028\u2029]\s*")
_LINE_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028]")


def _paragraphs(text: str) -> Iterator[Span]:
    """What lies between lines of nothing but white space."""
    begin = 0
    for gap in _GAP.finditer(text):
        if "\u2029" in gap[0] or len(_LINE_BREAK.findall(gap[0])) > 1:
            yield from _stripped(text, begin, gap.start())
            begin = gap.end()
    yield from _stripped(text, begin, len(text))


def _fixed(text: str, shown: str, language: str, size: int) -> Iterator[Span]:
    """Every so many words, wherever sentences end, as LAURA cuts articles (section 2.2).

    Words are parted by white space. Of a language without spaces between words it is so many code points, or as many
    less as leave a character whole that is made of several.
    """
    bounds = [0]
    if primary(language) in UNSPACED_WORD_LENGTHS:
        from icu4py.breakers import CharacterBreaker

        ends = breaks(CharacterBreaker, shown) if text else []
        while bounds[-1] < len(text):
            whole = bisect_right(ends, bounds[-1])
            bounds.append(ends[max(whole, bisect_right(ends, bounds[-1] + size) - 1)])
    else:
        bounds += [word.start() for word in re.finditer(r"\S+", text)][size::size]
        bounds.append(len(text))
    for begin, stop in pairwise(bounds):
        yield from _stripped(text, begin, stop)


def _stripped(text: str, start: int, end: int) -> Iterator[Span]:
    """A place without the white space around it; nothing where there is nothing else."""
    piece = text[start:end]
    if length := len(piece.rstrip()):
        yield start + len(piece) - len(piece.lstrip()), start + length


def _words(sentence: str) -> int:
    from icu4py.breakers import WordBreaker

    return sum(sentence[begin].isalnum() for begin in [0, *breaks(WordBreaker, sentence)[:-1]])


def _evenly(sizes: list[int], most: int) -> int:
    """The least size by which ``joined`` makes no more of some pieces than by ``most``: all are then about as long."""
    blank = [(0, 0)] * len(sizes)

    def count(size: int) -> int:
        return len(joined(blank, sizes, size))

    fewest = count(most)
    return bisect_left(range(most), True, lo=min(max(sizes), most), key=lambda size: count(size) <= fewest)


def _pieces(text: str, shown: str, start: int, end: int, window: _Window) -> Iterator[Span]:
    """A sentence in pieces that fit: as it is, or cut at spaces, else between words, else between characters."""
    if window.fits(text[start:end].strip()) or end - start == 1:
        yield start, end
        return
    # Some more than are needed: they are not all equally long.
    count = max(2, window.sizes([text[start:end]])[0] // max(1, window.limit * 9 // 10) + 1)
    bounds = [start]
    for ideal in [start + (end - start) * one // count for one in range(1, count)]:
        cut = ideal
        for reach in ((end - start) // (4 * count), _FAR):
            low = max(start, ideal - reach)
            if ends := _possible_cuts(shown[low : min(end, ideal + reach)]):
                cut = low + min(ends, key=lambda place: abs(low + place - ideal))
                break
        if cut > bounds[-1]:
            bounds.append(cut)
    for begin, stop in pairwise([*bounds, end]):
        yield from _pieces(text, shown, begin, stop, window)


_FAR = 1000  # characters; no character with its marks is longer, unless for fun


def _possible_cuts(text: str) -> list[int]:
    """Where a part of a sentence can be cut best: behind its spaces, else between words, else between characters."""
    from icu4py.breakers import CharacterBreaker, WordBreaker

    if spaces := [gap.end() for gap in SPACE.finditer(text) if not _is_attached(text[gap.end()])]:
        return spaces
    # What follows a word without a space, such as a comma, belongs to it.
    words = [end for end in breaks(WordBreaker, text)[:-1] if text[end].isalnum()]
    return words or breaks(CharacterBreaker, text)[:-1]


def _is_attached(character: str) -> bool:
    """Whether it is one with the character before it, even with a space."""
    return unicodedata.category(character)[0] == "M" or character == "\u200d"
