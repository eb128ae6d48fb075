"""Fields with names of their own: options, lines, and what is said of fields that nobody named."""

import json

import pytest
from command_line import langshift, refusal
from plain_index import PLAIN

from langshift.commands.ingest import chunked_fields, name_fields
from langshift.errors import UsageError
from langshift.ingest.document_encoder import DocumentEncoder
from langshift.ingest.documents import Columns, Delete, Document, InvalidDocument, parse_fields
from langshift.ingest.open_corpus import open_source
from langshift.ingest.parsing import unused_fields
from langshift.ingest.transform import index_entry
from langshift.plugin.index_body import index_body
from langshift.plugin.metadata import USUAL, FieldNames, replaced_at
from langshift.retrieval.result import group_of, title_and_text

LONG = "A sentence that goes on about the sea, the Moon and the bread in the oven. " * 3
CMS = {"id": 7, "headline": "Tides", "body": LONG, "locale": "en_GB"}


def fields(id=None, title=None, texts=(), language=None, group=None):
    return name_fields(id, title, tuple(texts), language, group)


def parsed(line, names):
    return parse_fields(line, columns=Columns(names))


def refused(line, names):
    with pytest.raises(InvalidDocument) as caught:
        parsed(line, names)
    return caught.value.reason


def test_no_option_names_no_fields():
    assert fields() is None
    assert USUAL.as_options() == ""


@pytest.mark.parametrize(
    ("given", "texts", "title", "options"),
    [
        ({"id": "id"}, ("title", "text"), "title", "--id-field id --title-field title --text-field text"),
        ({"texts": ["body"]}, ("title", "body"), "title", "--title-field title --text-field body"),
        ({"title": "headline"}, ("headline", "text"), "headline", "--title-field headline --text-field text"),
        ({"texts": ["body", "title^2"]}, ("body", "title"), None, "--text-field body --text-field title^2"),
        ({"title": "text"}, ("text",), None, "--text-field text"),
        (
            {"id": "_id", "language": "language", "group": "g"},
            ("title", "text"),
            "title",
            "--title-field title --text-field text --group-field g",
        ),
        (
            {"title": "a.b^1.5", "texts": ["c"], "language": "lang", "id": "n"},
            ("a.b", "c"),
            "a.b",
            "--id-field n --title-field a.b^1.5 --text-field c --language-field lang",
        ),
    ],
)
def test_what_is_not_named_keeps_its_usual_name(given, texts, title, options):
    named = fields(**given)
    assert (named.texts, named.title, named.by_language, named.split) == (texts, title, True, True)
    assert named.as_options() == options
    assert FieldNames.from_meta(json.loads(json.dumps({"langshift_fields": named.to_dict()}))) == named


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"texts": ["body^0"]},
            "--text-field body^0: the weight after ^ must be a number above 0, as in body^2.",
        ),
        (
            {"title": "shift"},
            "--title-field shift: langshift uses this name itself; rename the field in the corpus.",
        ),
        ({"id": "a..b"}, "--id-field a..b: OpenSearch does not accept a field named 'a..b'; rename it."),
        (
            {"texts": ["content", "content.body"]},
            "--text-field content and --text-field content.body cannot be used together: a text is stored by language, "
            "so its field can contain nothing else.",
        ),
        (
            {"texts": ["body"], "group": "body"},
            "--text-field body and --group-field body cannot be used together: a text is stored by language, so its "
            "field can contain nothing else.",
        ),
    ],
)
def test_names_that_cannot_be_used_are_refused(given, message):
    with pytest.raises(UsageError) as caught:
        fields(**given)
    assert str(caught.value) == message


NAMES = fields("meta.id", "headline", ["content.body", "summary"], "locale", "of")


def test_a_line_is_a_document_with_its_own_fields():
    line = {
        "meta": {"id": 7, "by": "Ines"},
        "headline": "Tides",
        "content": {"body": ["The sea rises.", "It falls."], "length": 2},
        "summary": "",
        "locale": "en_GB",
        "language": "de",
        "of": 3,
    }
    document = parsed(line, NAMES)
    assert (document.id, document.title, document.text) == ("7", "Tides", "The sea rises. It falls.")
    assert (document.language, document.no_tag) == ("en-GB", None)
    entry = index_entry(document, "en", 1.0, [1.0], {})
    assert entry == {
        "meta": line["meta"],
        "headline": {"en": "Tides"},
        "content": {"body": {"en": "The sea rises. It falls."}, "length": 2},
        "locale": "en_GB",
        "of": 3,
        "language": "en",
        "language_confidence": 1.0,
        "embedding": [1.0],
        "shift": {},
    }
    assert line["content"]["body"] == ["The sea rises.", "It falls."]


def test_a_name_with_dots_may_be_that_of_one_field():
    document = parsed({"content.body": "words", "content": {"length": 2}}, NAMES)
    entry = index_entry(document, "en", 1.0, [1.0], {})
    assert (entry["content.body"], entry["content"]) == ({"en": "words"}, {"length": 2})


def test_an_empty_text_leaves_no_field_behind():
    assert replaced_at({"a": {"b": "", "c": 1}, "d": 2}, "a.b", None) == {"a": {"c": 1}, "d": 2}
    assert replaced_at({"a": 1}, "a.b", {"en": "x"}) == {"a": 1}


@pytest.mark.parametrize(
    ("line", "language", "no_tag"),
    [
        ({"locale": "de_AT", "language": "en"}, "de-AT", None),
        ({"locale": ["fr"]}, "fr", None),
        ({"locale": "German", "language": "de"}, "de", "'German' in locale"),
        ({"locale": "German"}, None, "'German' in locale"),
        ({"locale": 7, "language": "what?"}, None, "a number in locale"),
        ({"language": "what?"}, None, "'what?' in language"),
        ({"locale": "und", "language": "th"}, "th", None),
        ({"locale": "und"}, "und", None),
        ({"locale": " ", "language": None}, None, None),
    ],
)
def test_the_declared_language_counts_then_the_usual_field_and_detection_serves_where_neither_is_one(
    line, language, no_tag
):
    document = parsed({"headline": "x", **line}, NAMES)
    assert (document.language, document.no_tag) == (language, no_tag)


def test_ids():
    assert parsed({"_id": "a", "headline": "x"}, NAMES).id == "a"
    assert parsed({"_id": "a", "meta": {"id": "b"}, "headline": "x"}, NAMES).id == "b"
    assert len(parsed({"headline": "x"}, NAMES).id) == 32
    assert parsed({"_op": "delete", "meta": {"id": 5}}, NAMES) == Delete("5")
    assert refused({"_op": "delete"}, NAMES) == "a line with '_op': 'delete' needs the 'meta.id' of the document."
    for value, shown in ((1.5, "1.5"), (["a"], "a list"), (True, "true or false")):
        reason = refused({"meta": {"id": value}, "headline": "x"}, NAMES)
        assert reason == f"the field 'meta.id' must be a string or an integer, but is {shown}."


def test_lines_that_cannot_be_used():
    assert refused({"text": "x"}, NAMES) == "has no text in headline, content.body or summary."
    assert refused({"headline": {"en": "x"}}, NAMES) == "the field 'headline' must be a string, but is an object."
    assert refused({"summary": ["x", 1]}, NAMES) == "the field 'summary' must be a string, but is a list."
    assert refused({"headline": "x", "of": [1]}, NAMES) == "the field 'of' must be a string, but is a list."
    assert refused({"headline": "x", "headline.en": "y"}, NAMES) == (
        "the field name 'headline.en' is reserved for langshift; rename it."
    )
    assert isinstance(parsed({"headline": "x", "title.de": "mine", "group": ["a"]}, NAMES), Document)


def test_an_index_maps_the_fields_that_were_named():
    body = index_body(PLAIN, fields=NAMES)["mappings"]
    properties = body["properties"]
    assert properties["headline"]["properties"]["de"] == {"type": "text", "analyzer": "german"}
    assert properties["content"]["properties"]["body"]["properties"]["th"]["analyzer"] == "thai"
    assert (properties["of"]["type"], properties["locale"]["type"]) == ("keyword", "keyword")
    assert properties["meta"]["properties"]["id"]["type"] == "keyword"
    assert not {"title", "text", "group"} & set(properties)
    paths = [next(iter(one.values())).get("path_match") for one in body["dynamic_templates"]]
    assert paths == ["headline.*", "content.body.*", "summary.*", None, None, None]
    assert FieldNames.from_meta(body["_meta"]) == NAMES


def test_a_document_is_read_and_encoded_again_by_its_own_fields():
    source = {
        "headline": {"de": "Gezeiten", "en": "Tides"},
        "content": {"body": {"de": "Das Meer steigt."}},
        "summary": {"de": "Der Mond zieht."},
        "language": "de",
        "of": 3,
    }
    assert title_and_text(source, NAMES) == ("Gezeiten", "Das Meer steigt. Der Mond zieht.")
    assert group_of(source, NAMES) == "3"
    assert DocumentEncoder(NAMES, None, None).text(source) == "Gezeiten Das Meer steigt. Der Mond zieht."


def test_a_hit_of_an_adopted_index_shows_the_title_that_was_named():
    source = {"headline": "Gezeiten", "body": "Das Meer steigt."}
    named = FieldNames(texts=("headline", "body"), title="headline")
    assert title_and_text(source, named) == ("Gezeiten", "Das Meer steigt.")
    assert title_and_text(source, FieldNames(texts=("body",))) == ("", "Das Meer steigt.")


def note(*lines, names=USUAL):
    found = unused_fields([json.dumps(line).encode() for line in lines], names)
    return None if found is None else found.note


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"_id": "a", "title": "Tides", "text": "x", "year": 3, "url": "https://x.example/" + "y" * 200}, None),
        (
            {"_id": "a", "text": "", "headline": "Tides", "body": "words"},
            "The fields headline and body are stored but neither encoded nor searched by words: give "
            "--title-field headline --text-field text --text-field body if they are the title and another text.",
        ),
        (
            {"_id": "a", "title": "Tides", "headline": "Tides", "body": "words"},
            "The field body is stored but neither encoded nor searched by words: give --text-field body if it is the "
            "text.",
        ),
        (
            {"title": "Tides", **CMS},
            "The field body is stored but neither encoded nor searched by words, and the fields id and locale are "
            "stored but not used: give --id-field id --text-field body --language-field locale if they are the id, the "
            "text and the language.",
        ),
        (
            {"_id": "a", "title": "T", "text": "x", "remarks": LONG},
            "The field remarks is stored but neither encoded nor searched by words: give --text-field text "
            "--text-field remarks if it is another text.",
        ),
        (
            {"_id": "a", "title": "T", "question": LONG, "content": {"abstract": "x"}, "group_id": 3},
            "The fields question and content.abstract are stored but neither encoded nor searched by words, and the "
            "field group_id is stored but not used: give --text-field question --text-field content.abstract "
            "--group-field group_id if they are the texts and the group.",
        ),
        ({"_id": "a", "title": "T", "text": "x", "lang": "the green one"}, None),
        ({"_op": "delete", "id": "a"}, None),
    ],
)
def test_fields_that_look_like_one_that_is_missing_are_named_with_the_options_for_them(line, said):
    assert note(line) == said


def test_who_named_the_fields_is_told_nothing_of_others():
    names = fields("id", "headline", ["body"], "locale")
    assert note({**CMS, "summary": LONG, "uuid": "x", "lang": "de"}, names=names) is None


UPDATE = {"_op": "update", "id": 7, "price": 5}


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (
            ("id", "headline", ("body", "meta.teaser"), "locale", "topc"),
            "meta.teaser or topc|--text-field and --group-field name",
        ),
        (("id", "headline", ("body",), "lcale", None), "lcale|--language-field names"),
        (("ident", "headline", ("body",), "locale", None), "ident|--id-field names"),
        (("id", "hedline", ("body",), "locale", None), "hedline|--title-field names"),
        # Of texts that none has, too.
        (("id", "hedline", ("bodi",), "locale", None), "hedline or bodi|--title-field and --text-field name"),
    ],
)
def test_a_field_that_was_named_and_that_no_document_has_is_refused(tmp_path, named, expected):
    path, (absent, options) = tmp_path / "export.jsonl", expected.split("|")
    path.write_text("\n".join(map(json.dumps, (CMS, UPDATE))))
    sentence = (
        f"None of the first documents of {path} has {absent}, which {options}: they have id, headline, body, "
        "locale and price."
    )
    names = name_fields(*named)
    with pytest.raises(UsageError) as refused, open_source(str(path), fields=names):
        pass
    assert str(refused.value) == sentence
    # Updates need not have them, and a document may have them later.
    for lines in ([UPDATE | {"ident": 7}], [CMS] * 300 + [CMS | dict.fromkeys(absent.split(" or "), "x")]):
        path.write_text("\n".join(map(json.dumps, lines)))
        with open_source(str(path), fields=names) as source:
            assert source.total == len(lines)


def test_usual_fields_that_were_named_are_looked_for_too(tmp_path):
    path = tmp_path / "export.jsonl"
    path.write_text(json.dumps({"_id": "1", "body": "x"}))
    load = ("ingest", path, "--index", "never-made", "--encoder", "use-m", "--text-field", "body")
    for option, name in (("--title-field", "title^2"), ("--language-field", "language"), ("--date-field", "day")):
        done = langshift(*load, option, name)
        assert refusal(done) == (
            f"None of the first documents of {path} has {name.removesuffix('^2')}, which {option} names: they have "
            "_id and body."
        )


def test_a_corpus_without_the_usual_fields_is_refused_with_the_options_for_its_own(tmp_path):
    path = tmp_path / "export.jsonl"
    path.write_text(json.dumps(CMS))
    with pytest.raises(UsageError) as caught, open_source(str(path)):
        pass
    assert str(caught.value) == (
        f"{path}, line 1: has neither a text nor a title. If the fields id, headline, body and locale are the id, the "
        "title, the text and the language, give --id-field id --title-field headline --text-field body "
        "--language-field locale."
    )
    with open_source(str(path), fields=fields("id", "headline", ["body"], "locale")) as source:
        assert source.hint is None
        (row,) = source.read(())
    assert (row.content.id, row.content.title, row.content.text) == ("7", "Tides", LONG)


def test_fields_of_chunks_say_how_documents_are_cut():
    cut = USUAL.chunked("words:120")
    assert (cut.parent, cut.split, cut.as_options()) == ("parent", True, "--chunk words:120")
    assert FieldNames.from_meta({"langshift_fields": cut.to_dict()}) == cut
    assert cut.chunked(None) == USUAL
    assert fields(texts=["body"]).chunked("auto").as_options() == "--title-field title --text-field body --chunk auto"


def test_chunks_have_fields_that_no_document_may_bring():
    cut = USUAL.chunked("auto")
    for name in ("parent", "chunk", "chunk.start"):
        assert refused({"_id": "1", "text": "x", name: 3}, cut) == (
            f"the field name {name!r} is reserved for langshift; rename it."
        )
        assert parsed({"_id": "1", "text": "x", name: 3}, USUAL).other == {name: 3}
    with pytest.raises(UsageError) as caught:
        chunked_fields(fields(id="parent"), "auto")
    assert str(caught.value) == (
        "--id-field parent: with --chunk, langshift uses this name itself; rename the field in the corpus."
    )


def test_the_id_of_a_document_leaves_room_for_the_numbers_of_its_chunks():
    cut = USUAL.chunked("auto")
    assert parsed({"_id": "x" * 504, "text": "x"}, cut).id == "x" * 504
    assert refused({"_id": "x" * 505, "text": "x"}, cut) == (
        "the '_id' is longer than 504 bytes, which leaves no room for the numbers of its chunks."
    )
