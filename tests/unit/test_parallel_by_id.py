"""Parallel text in mMARCO's layout: one table a language, aligned by id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parallel_data import read, refusal

from langshift.debias.parallel import open_parallel

MMARCO = {
    "arabic": "ar", "chinese": "zh", "dutch": "nl", "english": "en", "french": "fr", "german": "de", "hindi": "hi",
    "indonesian": "id", "italian": "it", "japanese": "ja", "portuguese": "pt", "russian": "ru", "spanish": "es",
    "vietnamese": "vi",
}  # fmt: skip


def write(folder, **texts):
    for name, rows in texts.items():
        lines = [f"{id}\t{text}\n" for id, text in rows]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def test_all_names_of_mmarco_are_known(tmp_path):
    write(tmp_path, **{f"{name}_collection": [(0, tag)] for name, tag in MMARCO.items()})
    places, texts = read(tmp_path)
    assert places == ["id 0"]
    assert texts == {tag: [tag] for tag in MMARCO.values()}


def test_queries_of_mmarco_and_plain_tags_are_known(tmp_path):
    write(tmp_path, **{"english_queries.dev": [(3, "one")], "deu": [(3, '"eins')], "notes": [(3, "x")]})
    assert read(tmp_path)[1] == {"de": ['"eins'], "en": ["one"]}


def test_an_id_that_a_language_lacks_is_a_missing_pair(tmp_path):
    write(tmp_path, en=[(2, "two"), (9, "nine"), (10, "ten")], de=[(1, "eins"), (2, " "), (10, "zehn")], th=[(11, "x")])
    assert open_parallel(tmp_path).total is None
    assert read(tmp_path) == (
        ["id 1", "id 2", "id 9", "id 10", "id 11"],
        {"de": ["eins", "", "", "zehn", ""], "en": ["", "two", "nine", "ten", ""], "th": ["", "", "", "", "x"]},
    )


IDS = st.one_of(
    st.sets(st.integers(0, 10**6).map(str), min_size=1), st.sets(st.text("ab01279", min_size=1, max_size=4), min_size=1)
)


@given(IDS, st.data())
def test_merging_by_id_is_joining_by_id(tmp_path_factory, ids, data):
    numbers = all(id.isdigit() and str(int(id)) == id for id in ids)
    order = sorted(ids, key=int) if numbers and data.draw(st.booleans()) else sorted(ids)
    tables = {}
    for tag in ("de", "en", "th"):
        kept = data.draw(st.sets(st.sampled_from(order), min_size=1))
        tables[tag] = {id: f"{tag} {id}" for id in order if id in kept}
    folder = write(tmp_path_factory.mktemp("ids"), **{tag: table.items() for tag, table in tables.items()})
    places, texts = read(folder, size=data.draw(st.integers(1, 7)))
    found = {place: {tag: texts[tag][i] for tag in tables} for i, place in enumerate(places)}
    assert len(found) == len(places)
    assert found == {
        f"id {id}": {tag: table.get(id, "") for tag, table in tables.items()} for id in set().union(*tables.values())
    }


def test_ids_out_of_order_are_refused_with_how_to_sort(tmp_path):
    write(tmp_path, en=[(1, "x"), (3, "x"), (2, "x")], de=[(1, "x"), (10, "x")])
    assert refusal(tmp_path) == (
        f"{tmp_path / 'en.tsv'}, line 3: the id '2' comes after '3'; sort every file of the folder (sort -n)."
    )
    write(tmp_path, en=[("a", "x"), ("c", "x"), ("b", "x")])
    assert refusal(tmp_path) == (
        f"{tmp_path / 'en.tsv'}, line 3: the id 'b' comes after 'c'; sort every file of the folder (LC_ALL=C sort)."
    )


def test_numbers_may_be_in_the_order_of_texts(tmp_path):
    write(tmp_path, en=[(1, "x"), (10, "x"), (2, "x")], de=[(10, "y"), (2, "y")])
    assert read(tmp_path)[0] == ["id 1", "id 10", "id 2"]


def test_an_id_twice_is_refused_by_line(tmp_path):
    write(tmp_path, en=[(1, "x"), (2, "x"), (2, "y")], de=[(1, "x")])
    assert refusal(tmp_path) == (
        f"{tmp_path / 'en.tsv'}, line 3: the id '2' is also that of the previous line; remove one of the two."
    )


def test_a_name_after_a_thousand_numbers_is_refused(tmp_path):
    write(tmp_path, en=[*((i, "x") for i in range(1000)), ("a1", "x")], de=[(1, "x")])
    assert refusal(tmp_path) == (
        f"{tmp_path / 'en.tsv'}, line 1001: the id 'a1' is not a number, although the first ids are: "
        "make all ids numbers, or begin each with a letter."
    )


@pytest.mark.parametrize(
    ("line", "there"), [("2", "has 0 tabs"), ("2\tx\ty", "has 2 tabs"), (" \tx", "has no id"), ("", "has no id")]
)
def test_a_line_that_is_no_row_is_refused(tmp_path, line, there):
    write(tmp_path, en=[(1, "x")], de=[(1, "x")])
    (tmp_path / "en.tsv").write_text(f"1\tx\n{line}\n")
    assert refusal(tmp_path) == f"{tmp_path / 'en.tsv'}, line 2, {there}; it must have an id, one tab and a text."


def test_an_empty_file_is_refused(tmp_path):
    write(tmp_path, en=[], de=[(1, "x")])
    assert refusal(tmp_path) == f"{tmp_path / 'en.tsv'} is empty."


def test_two_files_of_one_language_are_refused(tmp_path):
    write(tmp_path, en=[(1, "x")], english_collection=[(1, "x")])
    assert refusal(tmp_path) == f"{tmp_path}: en.tsv and english_collection.tsv are both en; remove one of them."
