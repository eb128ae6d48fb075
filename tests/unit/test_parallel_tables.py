"""Parallel text as a table with tabs, and as one JSON object a line."""

import json

import pytest
from encoded_files import NOT_UTF8
from parallel_data import read, refusal


@pytest.fixture
def tsv(tmp_path):
    path = tmp_path / "pairs.tsv"

    def write(*lines):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def jsonl(tmp_path):
    path = tmp_path / "pairs.jsonl"

    def write(*rows):
        lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


def test_columns_of_a_table_are_named_in_its_first_line(tsv):
    path = tsv("\ufeff_id\tdeu\tscore\teng_Latn\r", 'a1\t"eins\t.5\tone\r', "\t\t.6\t two \r")
    assert read(path) == (["id a1", "line 3"], {"de": ['"eins', ""], "en": ["one", "two"]})


def test_a_row_with_too_few_or_too_many_columns_is_refused_by_line(tsv):
    path = tsv("de\ten", "eins\tone", "zwei")
    assert refusal(path) == f"{path}, line 3, has 0 tabs, but the header has 1."
    tsv("de\ten", "eins\tone", "zwei\ttwo\t2")
    assert refusal(path) == f"{path}, line 3, has 2 tabs, but the header has 1."
    tsv("de\ten", "eins\tone", "")
    assert refusal(path) == f"{path}, line 3, has 0 tabs, but the header has 1."


def test_a_table_without_what_is_needed_is_refused(tsv):
    path = tsv()
    assert refusal(path) == f"{path} is empty; its first line must name the columns."
    tsv("de\ten")
    assert refusal(path) == f"{path} has no lines after its header."
    tsv("0\tThe presence of communication", "1\tThe Manhattan Project")
    assert refusal(path) == (
        f"{path}, line 1: none of '0', 'The presence of communication' is named after a language, such as 'th'."
    )
    tsv("de\ten\tdeu", "eins\tone\teins")
    assert refusal(path) == f"{path}, line 1: de and deu are both de; remove one of them."
    tsv("de\tscore", "eins\t1")
    assert refusal(path) == f"{path} contains text in de only; a second language is needed."
    path.write_bytes(b"de\ten\neins\tone\nzw\xffei\ttwo\n")
    assert refusal(path) == f"{path}, line 3, is {NOT_UTF8}."


def test_columns_named_like_a_rare_language_are_none_unless_that_is_meant(tsv):
    path = tsv("url\tde\ten\tlus_Latn", "http://x\teins\tone\tpakhat")
    assert read(path)[1] == {"de": ["eins"], "en": ["one"], "lus": ["pakhat"]}
    assert read(path, ["url", "en"])[1] == {"en": ["one"], "url": ["http://x"]}


@pytest.mark.parametrize("ids", [["7", "8"], ["doc-7", "doc-8"], ["7", ""]])
def test_numbers_and_names_under_id_name_the_rows(tsv, ids):
    path = tsv("ID\tde\ten", *(f"{id}\teins\tone" for id in ids))
    assert read(path) == (
        [f"id {id}" if id else "line 3" for id in ids],
        {"de": ["eins", "eins"], "en": ["one", "one"]},
    )


def test_texts_under_id_are_indonesian(tsv, jsonl):
    table = tsv("id\ten", "satu ekor\ta cat", "kucing\tcat", "dua ekor\ttwo cats")
    assert read(table) == (
        ["line 2", "line 3", "line 4"],
        {"en": ["a cat", "cat", "two cats"], "id": ["satu ekor", "kucing", "dua ekor"]},
    )
    rows = [{"_id": 4, "id": "satu ekor", "en": "a cat"}, {"_id": "x y", "id": None, "en": "cat"}]
    assert read(jsonl(*rows)) == (["id 4", "id x y"], {"en": ["a cat", "cat"], "id": ["satu ekor", ""]})


def test_an_id_that_may_be_either_is_refused_or_told_by_the_rest(tsv, jsonl):
    path = tsv("id\tde\ten", "kucing\tKatze\tcat", "anjing\tHund\tdog")
    assert refusal(path) == f"{path}, line 1: 'id' may be Indonesian or the rows' ids: rename it to 'ind' or to '_id'."
    assert read(path, ["id", "en"])[1] == {"en": ["cat", "dog"], "id": ["kucing", "anjing"]}
    assert read(path, ["de", "en"]) == (["line 2", "line 3"], {"de": ["Katze", "Hund"], "en": ["cat", "dog"]})
    assert read(tsv("id\tind\ten", "x\tkucing\tcat"))[1] == {"en": ["cat"], "id": ["kucing"]}
    path = jsonl({"id": None, "de": "Katze", "en": "cat"})
    assert refusal(path) == f"{path}: 'id' may be Indonesian or the rows' ids: rename it to 'ind' or to '_id'."


def test_what_an_object_lacks_is_missing(jsonl):
    path = jsonl({"id": 1, "de": "eins", "no": 5}, "", {"en": " one ", "de": None, "id": 2}, {"de": "", "url": "x"})
    assert read(path) == (["id 1", "id 2", "line 4"], {"de": ["eins", "", ""], "en": ["", "one", ""]})


def test_a_byte_order_mark_is_no_json(jsonl):
    assert read(jsonl('\ufeff{"de": "eins", "en": "one"}'))[1] == {"de": ["eins"], "en": ["one"]}


def test_objects_that_cannot_be_used_are_refused_by_line(jsonl):
    pair = {"de": "eins", "en": "one"}
    path = jsonl(pair, '{"de": "zwei"')
    assert refusal(path) == f"{path}, line 2, is not valid JSON (unexpected end of data at character 14)."
    jsonl(pair, ["zwei", "two"])
    assert refusal(path) == f"{path}, line 2, must be a JSON object with a text in each language."
    jsonl(pair, {"de": 2, "en": "two"})
    assert refusal(path) == f"{path}, line 2: 'de' must be a text or null."
    path.write_bytes(b'{"de": "\xff", "en": "one"}')
    assert refusal(path) == f"{path}, line 1, is {NOT_UTF8}."


def test_a_file_of_objects_without_what_is_needed_is_refused(jsonl):
    path = jsonl()
    assert refusal(path) == f"{path} is empty."
    jsonl({}, {})
    assert refusal(path) == f"{path} is empty."
    jsonl({"title": "x", "text": "y", "rank": 5})
    assert refusal(path) == f"{path}: none of 'title', 'text' is named after a language, such as 'th'."
    jsonl({"de": None, "en": ""})
    assert refusal(path) == f"{path} has no text in its first 1,000 rows."
    jsonl({"de": "eins", "deu": "eins", "en": "one"})
    assert refusal(path) == f"{path}: de and deu are both de; remove one of them."
    jsonl({"de": "eins", "en": [1.0]})
    assert refusal(path) == f"{path}: 'de' contains text, but 'en' contains vectors; use one kind per file."


def test_a_language_that_comes_late_is_refused_not_passed_over(jsonl):
    rows = [{"de": "eins", "en": "one"}] * 1000
    path = jsonl(*rows, {"de": "zwei", "score": 1, "note": "x"}, {"de": "drei", "th": "สาม"})
    assert refusal(path) == (
        f"{path}, line 1002: 'th' is a language that none of the first 1,000 rows has: "
        "add it to the first row, as null if it has none, or select the languages to read."
    )
    assert len(read(path, ["de", "en"])[0]) == 1002
    rows[0] = {"de": "eins", "en": "one", "th": None}
    assert read(jsonl(*rows, {"th": "สาม"}))[1]["th"] == [*[""] * 1000, "สาม"]
