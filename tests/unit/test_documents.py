"""Reading a corpus, and what is said of a line that cannot be used."""

import gzip
import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langshift.errors import UsageError
from langshift.evaluate.datasets.texts import parse_document, read_corpus
from langshift.plugin.index_body import FieldTypes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LINES = b'{"_id": "a", "title": "A", "text": "first", "year": 1990, "tags": ["x", "y"]}\n\n{"text": "second"}\n'

KEYWORD = {"type": "keyword", "ignore_above": 8191}
DATES = {
    **KEYWORD,
    "fields": {
        "date": {
            "type": "date",
            "format": "strict_date_optional_time||yyyy-MM-dd HH:mm[:ss][.SSS]",
            "ignore_malformed": True,
        }
    },
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress], ids=["plain", "gzip", "zstd"])
def test_reads_plain_and_compressed_files_whatever_their_name(tmp_path, pack):
    path = tmp_path / "corpus"
    path.write_bytes(pack(LINES))
    first, second = read_corpus(path, str(path))
    assert (first.id, first.title, first.text, first.language) == ("a", "A", "first", None)
    assert first.other == {"year": 1990, "tags": ["x", "y"]}
    assert (second.title, second.text) == ("", "second")


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_compressed_data_that_break_off_are_refused(tmp_path, pack):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(pack(LINES * 1000)[:-10])
    with pytest.raises(UsageError, match=r"the compressed data is truncated or damaged after line \d+ \("):
        list(read_corpus(path, str(path)))


def test_reading_stops_at_a_bad_line(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(LINES + b"oops\n" + LINES)
    documents = read_corpus(path, "c")
    assert [next(documents).text, next(documents).text] == ["first", "second"]
    with pytest.raises(UsageError, match=r"^c, line 4: not valid JSON \("):
        next(documents)


def test_a_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n"))
    assert [document.text for document in read_corpus(path, "c")] == ["first", "second"]


def test_the_same_content_gets_the_same_id():
    one = parse_document(b'{"text": "t", "year": 1}', "x")
    two = parse_document(b'{"year":1,"text":"t"}', "x")
    other = parse_document(b'{"text": "t", "year": 2}', "x")
    assert one.id == two.id != other.id
    assert len(one.id) == 32


@pytest.mark.parametrize(
    ("given", "language"),
    [('"de"', "de"), ('"deu_Latn"', "de"), ('"zh-TW"', "zh-TW"), ('"und"', "und"), ("null", None), ('""', None)]
    + [(f'"{tag}"', None) for tag in ("x-default", "X_unknown", "mul", "zxx", "qaa")],
)
def test_a_documents_own_language(given, language):
    assert parse_document(b'{"text": "t", "language": %s}' % given.encode(), "x").language == language


BAD_LINES = [
    ('{"text": "t"', "f, line 7: not valid JSON (unexpected end of data at character 13)."),
    ('"a text"', "f, line 7: must be a JSON object with a text, but is a string."),
    ("[1]", "f, line 7: must be a JSON object with a text, but is a list."),
    ('{"text": 5}', "f, line 7: the field 'text' must be a string, but is a number."),
    ('{"text": "t", "title": {}}', "f, line 7: the field 'title' must be a string, but is an object."),
    ('{"_id": "a"}', "f, line 7: has neither a text nor a title."),
    ('{"text": " \\n "}', "f, line 7: has neither a text nor a title."),
    ('{"text": "t", "_id": true}', "f, line 7: the field '_id' must be a string, but is true or false."),
    ('{"text": "t", "_id": 1.5}', "f, line 7: the field '_id' must be a string, but is a number."),
    ('{"text": "t", "_id": "' + "é" * 257 + '"}', "f, line 7: the '_id' is longer than 512 bytes."),
    (
        '{"text": "t", "language": "klingonese"}',
        "f, line 7: 'klingonese' is not a valid language: use a BCP 47 tag such as 'th' or 'zh-TW', "
        "or leave the field out to have it detected.",
    ),
    ('{"text": "t", "_source": 1}', "f, line 7: OpenSearch does not accept a field named '_source'; rename it."),
    ('{"text": "t", "a..b": 1}', "f, line 7: OpenSearch does not accept a field named 'a..b'; rename it."),
    ('{"text": "t", "": 1}', "f, line 7: OpenSearch does not accept a field named ''; rename it."),
    (
        '{"text": "t", "title.en": "T"}',
        "f, line 7: the field name 'title.en' is reserved for langshift; rename it.",
    ),
    ('{"text": "t", "group": {}}', "f, line 7: the field 'group' must be a string, but is an object."),
    (
        '{"_op": "delete", "_id": "a"}',
        "f, line 7: deletes a document from an index, which only `langshift ingest` does; leave the line out.",
    ),
    (
        '{"_op": "update", "_id": "a", "text": "t"}',
        "f, line 7: updates a document of an index, which only `langshift ingest` does; leave the line out.",
    ),
    (
        '{"text": "t", "language": "' + "x" * 1000 + '"}',
        f"f, line 7: '{'x' * 60}…' is not a valid language: use a BCP 47 tag such as 'th' or 'zh-TW', "
        "or leave the field out to have it detected.",
    ),
    (
        '{"text": "t", "' + "x" * 1000 + '..": 1}',
        f"f, line 7: OpenSearch does not accept a field named '{'x' * 60}…'; rename it.",
    ),
    (
        '{"text": "t", "shift": {}}',
        "f, line 7: the field name 'shift' is reserved for langshift; rename it.",
    ),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_bad_lines_are_refused_with_their_place(line, message):
    with pytest.raises(UsageError) as refused:
        parse_document(line.encode(), "f, line 7")
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("line", "said"),
    [(b'{"text": "\xff"}', r"UTF-8: save the file as UTF-8, for "), (b'{"text": "\\ud800"}', r"valid JSON \(")],
    ids=["not UTF-8", "lone surrogate"],
)
def test_bad_characters_are_refused(line, said):
    with pytest.raises(UsageError, match=f"^f, line 7: not {said}"):
        parse_document(line, "f, line 7")


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers())))
def test_any_json_object_is_a_document_or_one_clear_sentence(fields):
    try:
        line = orjson.dumps(fields)
    except TypeError:  # integers beyond 64 bits and lone surrogates are no JSON to begin with
        return
    refusal = None
    try:
        document = parse_document(line, "place")
    except UsageError as refused:
        refusal = str(refused)
    if refusal is None:
        assert document.id
        assert set(document.other) == set(fields) - {"_id", "_op", "title", "text", "language"}
    else:
        assert refusal.startswith("place: ")
        assert refusal.endswith(".")


@pytest.mark.parametrize(
    ("values", "mapped"),
    [
        ([1, 2], None),
        ([1.5, 2.5], {"type": "double"}),
        ([1, 2.5], {"type": "double"}),
        ([1, "", "2"], {"type": "double"}),
        ([1, "n/a"], {"type": "long", "coerce": False}),
        ([1.5, "n/a"], {"type": "double"}),
        (["n/a", 1], {"type": "keyword", "ignore_above": 8191}),
        ([1, "2", "n/a"], {"type": "double"}),
        ([1, "007"], {"type": "long", "coerce": False}),
        (["01234", ""], None),
        (["2024-05-01", "", "2024-05-01T10:00:00.5+02:00", "2024-05-01 10:00"], DATES),
        (["2024-05-01", "soon"], None),
        (["2024"], None),
        ([["2024-05-01"], None], DATES),
        ([True, 1], {"type": "boolean"}),
        ([{"w": 1}, 1], {"type": "object"}),
        ([{"w": 1}, {}, None], None),
        ([True, [False]], None),
    ],
)
def test_the_first_values_of_a_field_tell_its_type(values, mapped):
    types = FieldTypes()
    for value in values:
        types.add({"a": {"b": value}, "language": "2024-05-01", "group": 1.5})
    assert types.mappings() == ({} if mapped is None else {"a.b": mapped})
