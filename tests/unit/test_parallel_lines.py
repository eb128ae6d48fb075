"""Parallel text as one file a language, aligned by line."""

import pytest
from encoded_files import NOT_UTF8
from parallel_data import read, refusal

from langshift.debias.parallel import open_parallel
from langshift.errors import UsageError


@pytest.fixture
def pairs(tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    (folder / "eng_Latn.txt").write_text("one\ntwo\n\nfour\n")
    (folder / "newstest-ref.tha.txt").write_text("หนึ่ง\n \nสาม\nสี่", encoding="utf-8")
    (folder / "README.txt").write_text("no language")
    return folder


def test_the_same_line_is_one_row_and_a_blank_one_is_missing(pairs):
    assert open_parallel(pairs).total == 4
    assert read(pairs) == (
        ["line 1", "line 2", "line 3", "line 4"],
        {"en": ["one", "two", "", "four"], "th": ["หนึ่ง", "", "สาม", "สี่"]},
    )


def test_places_are_a_sequence(pairs):
    (batch,) = open_parallel(pairs).batches(10)
    assert (len(batch.places), batch.places[0], batch.places[-1]) == (4, "line 1", "line 4")
    assert batch.places[1:3] == ["line 2", "line 3"]
    with pytest.raises(IndexError):
        batch.places[4]


def test_byte_order_marks_and_line_breaks_of_other_systems_are_no_text(tmp_path):
    (tmp_path / "de.txt").write_bytes(b"\xef\xbb\xbfeins\r\nzwei\r\n")
    (tmp_path / "en.txt").write_bytes("one\u2028same line\ntwo".encode())
    assert read(tmp_path)[1] == {"de": ["eins", "zwei"], "en": ["one\u2028same line", "two"]}


def test_regions_stand_for_their_language_where_no_other_file_does(tmp_path):
    for name in ("zho-CN", "newstest-ref.zho-TW", "por", "por-BR", "spa-MX"):
        (tmp_path / f"{name}.txt").write_text("x\n")
    assert open_parallel(tmp_path).languages == ["es-MX", "pt", "pt-BR", "zh", "zh-TW"]


def test_files_of_different_length_are_refused_before_anything_is_read(pairs):
    with (pairs / "newstest-ref.tha.txt").open("a") as file:
        file.write("\nห้า\n")
    with pytest.raises(Exception, match="aligned") as refused:
        open_parallel(pairs)
    assert str(refused.value) == (
        f"{pairs / 'newstest-ref.tha.txt'} has 5 lines, but {pairs / 'eng_Latn.txt'} has 4: "
        "parallel files must be aligned line by line."
    )


def test_files_that_change_between_counting_and_reading_are_refused(pairs):
    source = open_parallel(pairs)
    with (pairs / "eng_Latn.txt").open("a") as file:
        file.write("five\n")
    with pytest.raises(UsageError) as refused:
        list(source.batches(2))
    assert str(refused.value) == f"{pairs}: its files changed while they were read and now differ in length."


def test_bad_bytes_are_named_by_line(pairs):
    (pairs / "eng_Latn.txt").write_bytes(b"one\ntwo\nthr\xffee\nfour\n")
    assert refusal(pairs) == f"{pairs / 'eng_Latn.txt'}, line 3, is {NOT_UTF8}."


def test_empty_files_and_a_single_language_are_refused(tmp_path):
    (tmp_path / "de.txt").touch()
    assert refusal(tmp_path) == f"{tmp_path} contains text in de only; a second language is needed."
    (tmp_path / "en.txt").touch()
    assert refusal(tmp_path) == f"{tmp_path}: its files de.txt, en.txt are empty."
