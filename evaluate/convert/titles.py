"""Questions that an index's own titles ask, so that two indices or settings can be compared before anybody judges.

A page is a translation group, or a document that names none. In each language of a page its title asks, or the first
sentence where it has no title, and all documents of the page answer, the one whose title it is among them, as in
known-item search. A title that several pages have in one language asks for none of them, and is left out.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

from langshift.errors import UsageError
from langshift.evaluate.convert.pool import JudgedQuestion, PoolSource
from langshift.evaluate.convert.snapshot import IndexedDocument, IndexSnapshot
from langshift.evaluate.datasets.dataset import DatasetFacts
from langshift.retrieval.calibration.questions import shares
from langshift.sentences import sentence_spans, within_bmp

#: What such questions can and cannot say; every command that measures by them says it, too.
NOTE: Final = (
    "The questions are titles of the documents themselves: they tell whether a page and its translations are found "
    "from each of its languages, but nobody has asked them, and they repeat the documents' words, so modes that match "
    "words look better than they are for what people ask."
)


class _TitledPage(NamedTuple):
    """A translation group, or a document without one."""

    grouped: bool
    name: str


class TitleQuestions(NamedTuple):
    """The questions of an index as a collection.

    Attributes:
        source: all documents of the index, the questions, and what answers them.
        shared: how many titles were left out because several pages have them in one language.
    """

    source: PoolSource
    shared: int


def read_titles(index: str, snapshot: IndexSnapshot, count: int, seed: int) -> TitleQuestions:
    """Make questions of the titles of an index; the same pages ask in every language, as far as they have it.

    Args:
        index: its name.
        snapshot: its documents.
        count: how many questions at most; every language gets as even a share as it has pages for, and one of fewer
            than five pages gets none.
        seed: chooses the pages; another one chooses others.

    Raises:
        UsageError: no language has enough pages.
    """
    # Language -> page -> the id of the document whose title asks, and a digest of its words.
    asking: dict[str, dict[_TitledPage, tuple[str, bytes]]] = {}
    tags, owners = set[str](), dict[tuple[str, bytes], set[_TitledPage]]()
    for one in snapshot.documents():
        tags |= {one.language} if one.language else set()
        if one.language and (text := _question(one)):
            page, digest = _page(one), _digest(text.casefold())
            of_language = asking.setdefault(one.language, {})
            if page not in of_language:
                of_language[page] = one.id, digest
                owners.setdefault((one.language, digest), set()).add(page)
    own = {
        tag: {page: name for page, (name, digest) in pages.items() if len(owners[tag, digest]) == 1}
        for tag, pages in asking.items()
    }
    shared = sum(len(pages) > 1 for pages in owners.values())
    drawn = [
        (tag, page, own[tag][page])
        for tag, share in shares(Counter({tag: len(pages) for tag, pages in own.items()}), count).items()
        for page in sorted(own[tag], key=lambda page: _digest(f"{seed}\n{page.grouped}\n{page.name}"))[:share]
    ]
    if not drawn:
        raise UsageError(
            f"{index} has no language with five pages that have a title of their own, or a first sentence, so none can "
            "ask: write questions by hand, or have a model write them with --generator."
        )
    return TitleQuestions(_source(index, snapshot, sorted(tags), drawn), shared)


def _source(
    index: str, snapshot: IndexSnapshot, languages: list[str], drawn: list[tuple[str, _TitledPage, str]]
) -> PoolSource:
    members: dict[_TitledPage, list[str]] = {page: [] for _, page, _ in drawn}
    for one in snapshot.documents():
        if (page := _page(one)) in members:
            members[page].append(one.id)
    questions = [
        JudgedQuestion(
            f"q{number:05}",
            _question(snapshot.document(name)),
            tag,
            dict.fromkeys(members[page], 1),
            page.name if page.grouped else None,
            page.name,
        )
        for number, (tag, page, name) in enumerate(drawn, 1)
    ]
    return PoolSource(Path(index), languages, questions, snapshot.passages, facts=DatasetFacts(note=NOTE))


def _page(document: IndexedDocument) -> _TitledPage:
    return _TitledPage(False, document.id) if document.group is None else _TitledPage(True, document.group)


def _question(document: IndexedDocument) -> str:
    """The title of a document, else its first sentence, on one line; empty where neither has a letter or digit."""
    for text in (document.title, _first_sentence(document)):
        if any(map(str.isalnum, text)):
            return " ".join(text.split())
    return ""


def _first_sentence(document: IndexedDocument) -> str:
    text = document.text.lstrip()
    spans = sentence_spans(within_bmp(text), 0, len(text), document.language or "und") if text else []
    return text[slice(*spans[0])] if spans else ""


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="replace"), digest_size=16).digest()
