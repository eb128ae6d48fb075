"""Questions made of titles, by rules that need no index: which pages ask, and what asks where there is no title."""

from collections import Counter

import pytest

from langshift.errors import UsageError
from langshift.evaluate.convert.snapshot import IndexedDocument
from langshift.evaluate.convert.titles import NOTE, read_titles


class Snapshot:
    """Documents that no index holds."""

    def __init__(self, documents):
        self._documents = documents

    def documents(self):
        return iter(self._documents)

    def document(self, name):
        return next(one for one in self._documents if one.id == name)

    def passages(self):
        return iter(())


def page(number, tag, title=None, text="A text.", group=True):
    name = f"page{number}"
    title = f"The {number}th title in {tag}" if title is None else title
    return IndexedDocument(f"{name}-{tag}", tag, title, text, name if group else None)


def asked(documents, count=500, seed=0):
    return read_titles("news", Snapshot(documents), count, seed)


def texts(documents):
    """What is asked about documents, beside what else there is."""
    others = [page(number, "en") for number in range(100, 105)]
    found = {one.text for one in asked([*documents, *others]).source.questions}
    return found - {one.title for one in others}


def test_every_document_of_a_page_answers_and_the_first_of_a_language_asks():
    twice = page(0, "de", "Noch ein Titel")._replace(id="page0-de-2")
    alone = page(9, "en", group=False)
    documents = [page(number, tag) for tag in ("de", "en") for number in range(5)] + [twice, alone]
    found = asked(documents)
    assert found.shared == 0
    by_text = {one.text: one for one in found.source.questions}
    assert len(by_text) == 11
    one = by_text["The 0th title in de"]
    assert one.judged == {"page0-de": 1, "page0-de-2": 1, "page0-en": 1}
    assert (one.language, one.group, one.article) == ("de", "page0", "page0")
    assert by_text["The 0th title in en"].judged == one.judged
    one = by_text["The 9th title in en"]
    assert (one.judged, one.group, one.article) == ({"page9-en": 1}, None, "page9-en")
    assert (found.source.languages, found.source.facts.note) == (["de", "en"], NOTE)
    # No query has the id of a document, which would be left out of what is found.
    assert not {one.id for one in found.source.questions} & {one.id for one in documents}


def test_a_group_is_not_a_document_of_the_same_name():
    documents = [page(number, "en", group=False) for number in range(5)]
    documents.append(page(7, "en")._replace(group=documents[0].id))
    judged = {one.text: {*one.judged} for one in asked(documents).source.questions}
    assert judged["The 0th title in en"] == {"page0-en"}
    assert judged["The 7th title in en"] == {"page7-en"}


def test_a_title_of_several_pages_asks_for_none_of_them():
    documents = [page(number, tag) for tag in ("de", "en") for number in range(5)]
    shared = [page(20, "en", "Contact"), page(21, "en", "CONTACT"), page(21, "de", "Contact")]
    found = asked([*documents, *shared])
    assert found.shared == 1
    assert [(one.language, one.text) for one in found.source.questions if one.text.casefold() == "contact"] == [
        ("de", "Contact")
    ]


def test_the_first_sentence_asks_where_there_is_no_title():
    assert texts([page(0, "en", "", "It rains. It pours.")]) == {"It rains."}
    assert texts([page(0, "en", " \n", "\n It  rains.\nIt pours.")]) == {"It rains."}
    assert texts([page(0, "en", "***", "It rains.")]) == {"It rains."}
    # Neither says anything, or nobody knows in which language.
    assert texts([page(0, "en", "", "..."), page(1, "en", "", ""), page(2, None)]) == set()


def test_languages_ask_as_often_about_the_same_pages():
    documents = [
        page(number, tag) for tag, many in (("de", 40), ("en", 60), ("th", 6), ("sw", 4)) for number in range(many)
    ]
    questions = asked(documents, 46).source.questions
    assert Counter(one.language for one in questions) == {"de": 20, "en": 20, "th": 6}
    pages = {tag: {one.group for one in questions if one.language == tag} for tag in ("de", "en")}
    assert len(pages["de"] & pages["en"]) > 10
    assert asked(documents[::-1], 46).source.questions == questions
    assert {one.text for one in asked(documents, 46, 1).source.questions} != {one.text for one in questions}


def test_an_index_without_titles_that_tell_pages_apart_is_refused():
    with pytest.raises(UsageError) as refused:
        asked([page(number, "en", "Help") for number in range(9)])
    assert str(refused.value) == (
        "news has no language with five pages that have a title of their own, or a first sentence, so none can ask: "
        "write questions by hand, or have a model write them with --generator."
    )
