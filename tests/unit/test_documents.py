"""Reading a corpus, and what is said of a line that cannot be used."""

import gzip
import io
import os
import sys
import threading

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langshift.errors import UsageError
from langshift.ingest.documents import open_corpus, parse_document, read_corpus

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LINES = b'{"_id": "a", "title": "A", "text": "first", "year": 1990, "tags": ["x", "y"]}\n\n{"text": "second"}\n'


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
    with pytest.raises(UsageError, match=r"the compressed data break off or are damaged after line \d+ \("):
        list(read_corpus(path, str(path)))


def texts(corpus):
    return [document.text for document in read_corpus(corpus.path, corpus.shown)]


def test_standard_input_can_be_read_again(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINES)))
    with open_corpus("-") as corpus:
        assert (corpus.documents, corpus.shown) == (2, "standard input")
        assert texts(corpus) == texts(corpus) == ["first", "second"]
    assert not corpus.path.exists()


def test_a_pipe_can_be_read_again(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(LINES,))
    writer.start()
    with open_corpus(str(pipe)) as corpus:
        assert texts(corpus) == ["first", "second"]
    writer.join()


def test_a_corpus_is_read_through_before_it_is_open(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'{"text": "t"}\n' * 2500)
    told = []
    with open_corpus(str(path), told.append) as corpus:
        assert (corpus.documents, told) == (2500, [1000, 2000])
    path.write_bytes(LINES + b"oops\n")
    with pytest.raises(UsageError, match=r"corpus\.jsonl, line 4: not valid JSON \("), open_corpus(str(path)):
        pytest.fail("a corpus with a bad line was opened")


def test_what_is_no_corpus(tmp_path):
    with pytest.raises(UsageError, match=r"^nowhere\.jsonl: there is no such file\.$"), open_corpus("nowhere.jsonl"):
        pass
    with (
        pytest.raises(UsageError, match=r" is a folder: name a file, such as .*corpus\.jsonl\.$"),
        open_corpus(str(tmp_path)),
    ):
        pass
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match=r"empty holds no document\.$"), open_corpus(str(tmp_path / "empty")):
        pass


def test_a_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n"))
    with open_corpus(str(path)) as corpus:
        assert texts(corpus) == ["first", "second"]


def test_the_same_content_gets_the_same_id():
    one = parse_document(b'{"text": "t", "year": 1}', "x")
    two = parse_document(b'{"year":1,"text":"t"}', "x")
    other = parse_document(b'{"text": "t", "year": 2}', "x")
    assert one.id == two.id != other.id
    assert len(one.id) == 32


@pytest.mark.parametrize(
    ("given", "language"),
    [('"de"', "de"), ('"deu_Latn"', "de"), ('"zh-TW"', "zh-TW"), ('"und"', "und"), ("null", None), ('""', None)],
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
        "f, line 7: 'klingonese' is no language: use a BCP 47 tag such as 'th' or 'zh-TW', "
        "or leave the field out to have it detected.",
    ),
    ('{"text": "t", "_source": 1}', "f, line 7: OpenSearch takes no field of the name '_source'; rename it."),
    ('{"text": "t", "a..b": 1}', "f, line 7: OpenSearch takes no field of the name 'a..b'; rename it."),
    ('{"text": "t", "": 1}', "f, line 7: OpenSearch takes no field of the name ''; rename it."),
    (
        '{"text": "t", "title.en": "T"}',
        "f, line 7: the field 'title.en' is one that langshift writes itself; rename it.",
    ),
    ('{"text": "t", "group": {}}', "f, line 7: the field 'group' must be a string, but is an object."),
    (
        '{"text": "t", "shift": {}}',
        "f, line 7: the field 'shift' is one that langshift writes itself; rename it.",
    ),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_bad_lines_are_refused_with_their_place(line, message):
    with pytest.raises(UsageError) as refused:
        parse_document(line.encode(), "f, line 7")
    assert str(refused.value) == message


@pytest.mark.parametrize("line", [b'{"text": "\xff"}', b'{"text": "\\ud800"}'], ids=["not UTF-8", "lone surrogate"])
def test_bad_characters_are_refused(line):
    with pytest.raises(UsageError, match=r"^f, line 7: not valid JSON \("):
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
        assert set(document.other) == set(fields) - {"_id", "title", "text", "language"}
    else:
        assert refusal.startswith("place: ")
        assert refusal.endswith(".")
