"""What is shown of a hit: its document's own fields, and a part of its text; without a cluster."""

import numpy as np
import pytest

from langshift.ingest.documents import Document
from langshift.ingest.transform import index_entry
from langshift.plugin.metadata import USUAL, FieldNames
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.result import own_source
from langshift.retrieval.snippets import ShownText, Snippet, highlight_body, make_snippets, marks_of

MOON = np.float32([1, 0])
QUERY = SearchQuery("why moon", "en", MOON)
LONG = "Sailors mend their nets on the sand. " * 5 + "The tide follows the Moon. " + "Nobody knows why they wait. " * 5


def encode(texts):
    """Near to the query are texts with the Moon in them."""
    return np.float32([[1, 0] if "Moon" in text else [0, 1] for text in texts])


def made(question, texts, fields=USUAL, encode=encode, **highlights):
    """The snippets; ``highlights`` are what the server marks, by entry and field."""
    plan = make_snippets(question, texts, fields, encode)
    hits = [{"_id": name, "highlight": highlights.get(name, {})} for name in texts]
    try:
        next(plan)
        plan.send([{"hits": {"hits": hits}}])
    except StopIteration as end:
        return end.value


def test_places_of_words_are_those_of_the_text_and_what_touches_is_one():
    assert marks_of("🌊 the <mark>Moon</mark> and a <mark>tide</mark> \n") == Snippet(
        "🌊 the Moon and a tide", ((6, 10), (17, 21)), "words"
    )
    assert marks_of("เพราะ<mark>ดวง</mark><mark>จันทร์</mark>ดึง").marks == ((5, 14),)
    assert marks_of("nothing").marks == ()


def test_the_words_are_marked_where_they_stand_else_the_nearest_sentence_is_shown():
    texts = {
        "a": ShownText("en", "Moon."),
        "b": ShownText("de", LONG),
        "c": ShownText("th", "short"),
        "d": ShownText("en", " "),
    }
    found = made(QUERY, texts, a={"text.en": ["<mark>Moon</mark>."]})
    assert found["a"] == Snippet("Moon.", ((0, 4),), "words")
    assert found["b"].by == "meaning"
    assert "Moon" in found["b"].text
    assert found["b"].text in LONG
    assert len(found["b"].text) <= 160
    assert found["c"] == Snippet("short")
    assert "d" not in found


def test_a_mark_that_a_document_brought_itself_misleads_nobody():
    text = "a <mark>b</mark> <mark> c"
    (found,) = made(QUERY, {"a": ShownText("en", text)}, a={"text.en": [text]}).values()
    assert found == Snippet(text)


def test_little_is_encoded_however_long_the_texts_are():
    encoded = []

    def counted(texts):
        encoded.extend(texts)
        return encode(texts)

    # Of a thousand texts each has so little room that no sentence ends there.
    for many in (1, 10, 1000):
        found = made(QUERY, {str(n): ShownText("en", LONG * 100) for n in range(many)}, encode=counted)
        assert sum(map(len, encoded)) <= 3000
        assert len(found) == many
        assert found["0"].by == ("beginning" if many == 1000 else "meaning")
        encoded.clear()


def test_where_no_query_can_be_encoded_it_is_the_beginning_to_the_end_of_a_word():
    for question, how in ((QUERY._replace(vector=None), encode), (QUERY, None)):
        (found,) = made(question, {"a": ShownText("en", LONG)}, encode=how).values()
        assert found == Snippet(LONG[: len(found.text)])
        assert 120 < len(found.text) <= 160
        assert LONG[len(found.text)] == " "


def test_a_query_of_too_many_words_marks_none():
    (found,) = made(QUERY._replace(words="tide " * 600), {"a": ShownText("en", "tide")}).values()
    assert found == Snippet("tide")


def test_each_text_is_marked_by_the_analyzer_of_its_language():
    texts = {"a": ShownText("en", "x"), "b": ShownText("de", "x")}
    assert list(highlight_body(QUERY, texts, USUAL)["highlight"]["fields"]) == ["text.en", "text.de"]
    own = FieldNames(texts=("head", "body"), title="head", analyzed=("de", "th"))
    assert list(highlight_body(QUERY, texts, own)["highlight"]["fields"]) == ["body", "body.de"]


OTHER = {"group": "g", "url": "https://a.example", "meta": {"author": ["x", "y"], "n": None}, "tags": []}


@pytest.mark.parametrize(
    ("fields", "document"),
    [
        (USUAL, Document("1", "Tides", "The sea", "en", OTHER)),
        (USUAL, Document("1", "", "The sea", "en", OTHER)),
        (
            FieldNames(by_language=True, texts=("head", "meta.body"), title="head"),
            Document(
                "1", "T", "b", "en", {**OTHER, "meta": {"body": "b", "n": 1}}, texts={"head": "T", "meta.body": "b"}
            ),
        ),
    ],
)
def test_a_documents_own_fields_are_as_they_came(fields, document):
    entry = index_entry(document, "en", 1.0, np.zeros(2, np.float32), {"alpha": 1.0})
    texts = document.texts or {"title": document.title, "text": document.text}
    own = {**document.other, "language": "en"} | {
        name: text for name, text in texts.items() if text and "." not in name
    }
    assert own_source(entry, fields) == own
    assert entry["language_confidence"] == 1.0


def test_what_langshift_adds_to_chunks_and_adopted_indices_is_no_field_of_a_document():
    chunk = {"parent": "1", "chunk": {"ordinal": 0}, "text": {"en": "a"}, "language": "en", "shift": {}, "n": 1}
    assert own_source(chunk, USUAL.chunked("paragraphs")) == {"text": "a", "language": "en", "n": 1}
    adopted = FieldNames("vec", "langshift_language", texts=("body",), parent="doc")
    entry = {"vec": [1.0], "langshift_language": "en", "language": "Fortran", "shift": {}, "body": ["a"], "doc": "1"}
    assert own_source(entry, adopted) == {"language": "Fortran", "body": ["a"], "doc": "1"}


def test_fields_that_were_not_asked_for_are_left_out():
    entry = {"title": {"en": "T"}, "text": {"en": "x"}, "group": "g", "meta": {"n": 1}}
    assert own_source(entry, USUAL, ["meta", "title"]) == {"title": "T", "meta": {"n": 1}}
    nested = FieldNames(by_language=True, texts=("meta.head", "meta.body"))
    entry = {"meta": {"head": {"en": "T"}, "body": {"en": "x"}}, "n": 1}
    assert own_source(entry, nested, ["n"]) == {"n": 1}
    assert own_source(entry, nested, ["meta"]) == {"meta": {"head": "T", "body": "x"}, "n": 1}
