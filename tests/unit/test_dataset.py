"""Dataset folders: what is read from them, and what is said of bad ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from encoded_files import NOT_UTF8

from langshift.errors import UsageError
from langshift.evaluate.datasets.check import check_dataset
from langshift.evaluate.datasets.dataset import Dataset, DatasetDocument, DatasetQuery, load_dataset
from langshift.evaluate.datasets.texts import read_texts

CORPUS = """\
{"_id": "tides-en", "title": "Tides", "text": "The sea rises.", "language": "en", "group": "tides"}
{"_id": "tides-zh", "title": "", "text": "海水上涨。", "language": "zh-TW", "group": "tides"}

{"_id": "rain", "title": "Rain", "text": "It falls.", "author": {"name": "x"}}
"""
QUERIES = """\
{"_id": "q1", "text": "Why does the beach vanish?", "language": "eng", "group": "tides"}
{"_id": 2, "text": "What falls?"}
"""
QRELS = "query-id\tcorpus-id\tscore\nq1\ttides-en\t2\nq1\ttides-zh\t1\n2\train\t1\n2\ttides-en\t0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels").mkdir()
    write(tmp_path, "corpus.jsonl", CORPUS)
    write(tmp_path, "queries.jsonl", QUERIES)
    write(tmp_path, "qrels/test.tsv", QRELS)
    return tmp_path


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def refusal(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_dataset(folder)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_dataset_is_read_without_texts(folder):
    dataset = load_dataset(folder)
    assert dataset.folder == folder
    assert dataset.documents == {
        "tides-en": DatasetDocument("en", "tides"),
        "tides-zh": DatasetDocument("zh", "tides"),
        "rain": DatasetDocument(None, None),
    }
    assert dataset.queries == (
        DatasetQuery("q1", "Why does the beach vanish?", "en", "tides", fields={"group": "tides"}),
        DatasetQuery("2", "What falls?", None, None),
    )
    assert dataset.qrels == {"q1": {"tides-en": 2, "tides-zh": 1}, "2": {"rain": 1, "tides-en": 0}}


@pytest.mark.parametrize(
    "qrels",
    [
        "q1 0 tides-en 2\nq1\t0\ttides-zh\t1\n2  0  rain  1\n2 0 tides-en 0\n",
        QRELS.partition("\n")[2],
        "\ufeff" + QRELS.replace("\n", "\r\n"),
    ],
    ids=["TREC", "no header", "byte order mark and CRLF"],
)
def test_other_forms_of_qrels_say_the_same(folder, qrels):
    expected = load_dataset(folder).qrels
    write(folder, "qrels/test.tsv", qrels)
    assert load_dataset(folder).qrels == expected


def test_languages_tsv_speaks_only_where_the_corpus_is_silent(folder):
    write(folder, "languages.tsv", "corpus-id\tlanguage\nrain\tpt-BR\ntides-en\tde\n")
    documents = load_dataset(folder).documents
    assert documents["rain"].language == "pt"
    assert documents["tides-en"].language == "en"


@pytest.mark.parametrize("language", ["null", '""', '"und"'])
def test_an_undetermined_language_is_none(folder, language):
    write(folder, "corpus.jsonl", CORPUS.replace('"zh-TW"', language))
    assert load_dataset(folder).documents["tides-zh"] == DatasetDocument(None, "tides")


def test_no_folder(tmp_path):
    assert refusal(tmp_path / "none") == (
        f"There is no dataset folder {tmp_path / 'none'}: "
        "a dataset folder contains corpus.jsonl, queries.jsonl and qrels/test.tsv."
    )


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file(folder, name):
    (folder / name).unlink()
    assert refusal(folder) == (
        f"{folder} has no {name}: a dataset folder contains corpus.jsonl, queries.jsonl and qrels/test.tsv."
    )


BAD_LINES = {
    "corpus.jsonl": {
        CORPUS + '{"_id": "x", \n': (
            "line 5, is not valid JSON (unexpected end of data at character 13): correct or remove the line."
        ),
        CORPUS + "[1]\n": "line 5, is not a JSON object: correct or remove the line.",
        CORPUS + '{"text": "x"}\n': "line 5, has no _id: give it one that is unique in corpus.jsonl.",
        CORPUS + '{"_id": true}\n': "line 5, has no _id: give it one that is unique in corpus.jsonl.",
        CORPUS + '{"_id": "rain"}\n': ("line 5, repeats the _id 'rain' of an earlier line: every _id must be unique."),
        CORPUS + '{"_id": "a b"}\n': (
            "line 5, has the _id 'a b', but an id in a TREC run must not contain white space: remove the white space."
        ),
        CORPUS + '{"_id": "x", "language": "klingonese"}\n': (
            "line 5, has the language 'klingonese', which is not a valid tag: use a tag such as en or zh."
        ),
        CORPUS + '{"_id": "x", "language": ["en"]}\n': (
            "line 5, has the language ['en'], which is not a valid tag: use a tag such as en or zh."
        ),
    },
    "queries.jsonl": {
        QUERIES + '{"_id": "q1", "text": "Again?"}\n': (
            "line 3, repeats the _id 'q1' of an earlier line: every _id must be unique."
        ),
        QUERIES + '{"_id": "q3", "text": " "}\n': ("line 3, has no text: give the query one, or remove the line."),
        QUERIES + '{"_id": "q3"}\n': "line 3, has no text: give the query one, or remove the line.",
    },
    "qrels/test.tsv": {
        QRELS + "q9\train\t1\n": (
            "line 6, names the query 'q9', which is not in queries.jsonl: remove the line or add the query."
        ),
        QRELS + "q1\tsnow\t1\n": (
            "line 6, names the document 'snow', which is not in corpus.jsonl: remove the line or add the document."
        ),
        QRELS + "q1\ttides-en\t1\n": ("line 6, judges 'q1' and 'tides-en' a second time: keep one of the two lines."),
        QRELS + "q1\train\n": (
            "line 6, cannot be read: give three columns separated by tabs (query-id, corpus-id, score) "
            "or TREC's four (query, 0, document, grade)."
        ),
        QRELS + "q1\train\tyes\n": (
            "line 6, has the score 'yes': give a whole number, 0 for not relevant, 1 or more for relevant."
        ),
    },
    "languages.tsv": {
        "rain\n": "line 1, has 1 columns: it must have two, corpus-id and language, separated by a tab.",
        "rain\ten\nsnow\ten\n": (
            "line 2, names the document 'snow', which is not in corpus.jsonl: remove the line or add the document."
        ),
    },
}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [(name, text, expected) for name, cases in BAD_LINES.items() for text, expected in cases.items()],
)
def test_a_bad_line_is_named_with_its_remedy(folder, name, text, expected):
    path = write(folder, name, text)
    assert refusal(folder) == f"{path}, {expected}"


def test_bytes_that_are_not_utf_8(folder):
    path = folder / "qrels/test.tsv"
    path.write_bytes(b"query-id\tcorpus-id\tscore\nq1\tr\xe4in\t1\n")
    assert refusal(folder) == f"{path}, line 2, is {NOT_UTF8}."


EMPTY = {
    "corpus.jsonl": "is empty: write one JSON object with _id, title and text on each line.",
    "queries.jsonl": "is empty: write one JSON object with _id and text on each line.",
    "qrels/test.tsv": (
        "judges no document as relevant, so there is nothing to measure: give three columns separated by tabs "
        "(query-id, corpus-id, score) or TREC's four (query, 0, document, grade)."
    ),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file(folder, name, text):
    path = write(folder, name, text)
    assert refusal(folder) == f"{path} {EMPTY[name]}"


def test_judgements_without_a_relevant_document(folder):
    path = write(folder, "qrels/test.tsv", "q1\ttides-en\t0\n")
    assert refusal(folder) == f"{path} {EMPTY['qrels/test.tsv']}"


def test_article_judged_and_evidence_are_read_where_they_are_given(folder):
    dataset = load_dataset(folder)
    assert (dataset.judged, dataset.evidence.positions, dataset.evidence.lengths) == ("pooled", {}, {})
    write(folder, "queries.jsonl", QUERIES.replace('"group": "tides"', '"article": "The sea"'))
    write(folder, "dataset.json", '{"judged": "per-language"}')
    write(folder, "evidence.tsv", "query-id\tcorpus-id\tposition\tlength\nq1\ttides-en\t.25\t512\nq1\ttides-zh\t1\n")
    dataset = load_dataset(folder)
    assert [query.article for query in dataset.queries] == ["The sea", None]
    assert dataset.judged == "per-language"
    assert dataset.evidence.positions == {"q1": {"tides-en": 0.25, "tides-zh": 1.0}}
    assert (dataset.evidence.lengths, dataset.evidence.spans) == ({"tides-en": 512}, {})
    rows = "q1\ttides-en\t.25\t\t3\t9\nq1\ttides-zh\t1\t7\t\t\n"
    write(folder, "evidence.tsv", f"query-id\tcorpus-id\tposition\tlength\tstart\tend\n{rows}")
    found = load_dataset(folder).evidence
    assert (found.lengths, found.spans) == ({"tides-zh": 7}, {"q1": {"tides-en": (3, 9)}})


def test_bad_evidence_is_met_only_by_who_asks_for_it(folder):
    forms = (
        "give query-id, corpus-id, the position from 0 to 1 and, where known, the length in tokens, and the evidence's "
        "first character and the one after its last, separated by tabs."
    )
    for row, expected in {
        "q1\ttides-en\t1.5": f"cannot be read: {forms}",
        "q1\ttides-en": f"cannot be read: {forms}",
        "q1\ttides-en\t.5\t20\t7": f"cannot be read: {forms}",
        "q1\ttides-en\t.5\t20\t7\t7": f"cannot be read: {forms}",
        "q1\ttides-en\t.5\t20\t-1\t7": f"cannot be read: {forms}",
        "q9\ttides-en\t.5": "names the query 'q9', which is not in queries.jsonl: remove the line or add the query.",
        "q1\tsnow\t.5": "names the document 'snow', which is not in corpus.jsonl: remove the line or add the document.",
    }.items():
        path = write(folder, "evidence.tsv", f"q1\ttides-zh\t.5\n{row}\n")
        dataset = load_dataset(folder)
        with pytest.raises(UsageError) as caught:
            dataset.evidence  # noqa: B018 - read on first use
        assert str(caught.value) == f"{path}, line 2, {expected}"


def test_reference_answers_are_read_where_they_are_given(folder):
    assert load_dataset(folder).answers == {}
    write(folder, "answers.jsonl", '{"query": "2", "answers": ["Snow", "snow in May"]}\n')
    assert load_dataset(folder).answers == {"2": ("Snow", "snow in May")}


def test_bad_answers_are_met_only_by_who_asks_for_them(folder):
    form = 'cannot be read: it must be {"query": "ID", "answers": ["TEXT", ...]}.'
    for line, expected in {
        '{"query": "2", "answers": []}': form,
        '{"query": "2", "answers": ["one", " "]}': form,
        '{"query": "2", "answers": "one"}': form,
        '{"query": 2, "answers": ["one"]}': form,
        '{"answers": ["one"]}': form,
        '{"query": "q9", "answers": ["one"]}': (
            "names the query 'q9', which is not in queries.jsonl: remove the line or add the query."
        ),
        '{"query": "q1", "answers": ["one"]}': "has answers to 'q1' a second time: keep one of the two lines.",
    }.items():
        path = write(folder, "answers.jsonl", f'{{"query": "q1", "answers": ["the moon"]}}\n{line}\n')
        dataset = load_dataset(folder)
        with pytest.raises(UsageError) as caught:
            dataset.answers  # noqa: B018 - read on first use
        assert str(caught.value) == f"{path}, line 2, {expected}"


@pytest.mark.parametrize("text", ['{"judged": "mono"}', "[]", "{"])
def test_another_kind_of_judging_is_refused(folder, text):
    path = write(folder, "dataset.json", text)
    assert refusal(folder) == (
        f'{path} cannot be read: it must be {{"judged": "pooled"}} or {{"judged": "per-language"}}.'
    )


def test_texts_are_kept_without_the_other_fields_of_their_lines(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x", "pages": [1, 2]}\n')
    (document,) = read_texts(Dataset(tmp_path, {}, (), {})).values()
    assert (document.id, document.text, document.other) == ("a", "x", {})


ARGUMENT = "We should ban plastic bags because they harm the sea."


@pytest.mark.parametrize(
    ("query", "document", "grade", "own"),
    [
        (ARGUMENT, {"text": ARGUMENT}, None, True),
        (ARGUMENT, {"title": "Bags", "text": ARGUMENT}, None, True),
        (f"Ban bags. {ARGUMENT}", {"title": "Ban bags.", "text": ARGUMENT}, None, True),
        ("Ban bags", {"title": "Ban bags", "text": "A paper of many other words."}, None, True),
        (ARGUMENT.upper(), {"text": "Ｗｅ" + ARGUMENT[2:]}, None, True),  # in capitals, and full-width
        (ARGUMENT[:40], {"text": ARGUMENT}, None, True),
        (ARGUMENT, {"text": ARGUMENT}, 0, True),
        ("我们应该禁止塑料袋。", {"text": "我们应该禁止塑料袋。"}, None, True),
        ("ab", {"text": "ab"}, None, True),
        # Numbered alike by chance.
        ("What is bread?", {"text": ARGUMENT}, None, False),
        ("the sea", {"text": ARGUMENT}, None, False),
        ("...", {"title": None, "text": ARGUMENT}, None, False),
        # Somebody says that it is an answer.
        (ARGUMENT, {"text": ARGUMENT}, 1, False),
    ],
)
def test_a_query_is_the_document_of_its_id_where_it_has_its_text(folder, query, document, grade, own):
    write(folder, "corpus.jsonl", CORPUS + json.dumps({"_id": "1", **document}) + "\n")
    write(folder, "queries.jsonl", QUERIES + json.dumps({"_id": 1, "text": query}) + "\n")
    write(folder, "qrels/test.tsv", QRELS + "1\train\t1\n" + ("" if grade is None else f"1\t1\t{grade}\n"))
    dataset = load_dataset(folder)
    assert dataset.own_documents == ({"1"} if own else set())
    checked = check_dataset(folder, None)
    assert (checked.clean, checked.own_documents, checked.same_ids) == (True, own, not own)
    hits = {"1": {"1": 0.9, "rain": 0.5}, "2": {"1": 0.9, "rain": 0.5}}
    assert dataset.others(hits) == hits | ({"1": {"rain": 0.5}} if own else {})
