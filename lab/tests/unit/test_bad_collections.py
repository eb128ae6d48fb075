"""What is said of bad collections."""

from __future__ import annotations

import pytest
from convert_sources import (
    jsonl,
    write_belebele,
    write_miracl,
    write_mlqa,
    write_multieup,
    write_neuclir,
    write_posir,
)
from converted import damage, refusal, require_named_by_its_lines

from langshift.evaluate.convert.pool import PoolOptions
from langshift_lab.convert.belebele import read_belebele
from langshift_lab.convert.chosen_languages import tagged
from langshift_lab.convert.miracl import read_miracl
from langshift_lab.convert.multieup import read_multieup
from langshift_lab.convert.neuclir import read_neuclir
from langshift_lab.convert.posir import read_posir
from langshift_lab.convert.squad import read_mlqa


def test_bad_mlqa(tmp_path):
    named = "they are named like test-context-en-question-en.json, one for each language"
    assert refusal(tmp_path, lambda: read_mlqa(tmp_path / "no", None)) == (
        f"There is no folder {tmp_path / 'no'}: name the folder that contains MLQA's files; {named}."
    )
    folder = write_mlqa(tmp_path / "mlqa")
    assert refusal(tmp_path, lambda: read_mlqa(folder, ["fr"])) == (
        f"{folder} has no file for the language 'fr': it has de, en, zh."
    )
    assert refusal(tmp_path, lambda: read_mlqa(folder, ["de"])) == (
        f"{folder} has no questions in the language 'en' among the languages chosen (de): "
        "add it to --languages, or name another --pivot."
    )
    path = folder / "test/test-context-de-question-de.json"
    path.write_text('{"data": [{"paragraphs": [{"context": "x"}]}]}')
    assert refusal(tmp_path, lambda: read_mlqa(folder, None)) == (
        f"{path} is not an MLQA file: MLQA's layout is data[].paragraphs[] with a context and qas[] of id and question."
    )
    assert refusal(tmp_path, lambda: read_mlqa(tmp_path, None)) == (
        f"{tmp_path} contains no MLQA files of the split test: {named}."
    )


def test_bad_belebele(tmp_path):
    folder = write_belebele(tmp_path / "bele")
    path = folder / "data/eng_Latn.jsonl"
    layout = "each line of Belebele has link, question_number, flores_passage and question"
    whole, zero = path.read_text(), "https://en.wikinews.org/wiki/0"
    for old, new, expected in (
        ('"question_number": 2', '"question_number": 1',
         f"line 2, repeats question 1 of {zero}: fetch the file again."),
        ('"question_number": 2', '"question_number": 3', f"line 2, has no question_number of 1 or 2: {layout}."),
        ('"flores_passage": "eng_Latn passage 1"', '"flores_passage": ""', f"line 3, has no flores_passage: {layout}."),
        ("eng_Latn passage 0", "another",
         f"line 2, has a different passage for {zero} from an earlier line: fetch the file again."),
    ):  # fmt: skip
        damage(path, old, new)
        assert refusal(tmp_path, lambda: read_belebele(folder, None)) == f"{path}, {expected}"
        path.write_text(whole)
    path.write_text("".join(whole.splitlines(keepends=True)[:2]))
    assert refusal(tmp_path, lambda: read_belebele(folder, ["zh", "en"])) == (
        f"{path} and zho_Hans.jsonl do not have the same questions (question 1 of https://en.wikinews.org/wiki/1 "
        "is in only one), so they are not translations of each other: take both from the same release."
    )
    path.write_text("")
    assert refusal(tmp_path, lambda: read_belebele(folder, None)) == f"{path} contains no questions: {layout}."


def test_bad_miracl(tmp_path):
    folder = write_miracl(tmp_path / "miracl")
    assert refusal(tmp_path, lambda: read_miracl(folder, ["te"], "dev")) == (
        f"{folder} has no topics in the language 'te': it has en, sw."
    )
    train = folder / "miracl-v1.0-en/topics/topics.miracl-v1.0-en-train.tsv"
    qrels = folder / "miracl-v1.0-en/qrels/qrels.miracl-v1.0-en-train.tsv"
    assert refusal(tmp_path, lambda: read_miracl(folder, ["en"], "train")) in (
        f"There is no file {train}: fetch it, or name another --split.",
        f"There is no file {qrels}: fetch it, or name another --split.",
    )
    docs = folder / "miracl-corpus-v1.0-sw/docs-0.jsonl.gz"
    packed = docs.read_bytes()
    docs.write_bytes(packed[: len(packed) // 2])
    assert refusal(tmp_path, lambda: read_miracl(folder, None, "dev"), PoolOptions(pivots=None)).startswith(
        f"{docs} is truncated or damaged after line "
    )
    docs.write_text(jsonl([{"docid": "a b", "text": "x"}]))
    assert refusal(tmp_path, lambda: read_miracl(folder, None, "dev"), PoolOptions(pivots=None)) == (
        f"{docs}, line 1, has the docid 'a b', but an id in a TREC run must not contain white space: "
        "remove the white space."
    )
    docs.write_text(jsonl([{"docid": "41#0", "text": "x"}]))
    judged = folder / "miracl-v1.0-sw/qrels/qrels.miracl-v1.0-sw-dev.tsv"
    assert refusal(tmp_path, lambda: read_miracl(folder, None, "dev"), PoolOptions(pivots=None)) == (
        f"{judged}, line 1, judges the document '39#0-sw', which is not in the corpus: "
        "fetch the whole corpus, or remove the line."
    )
    docs.unlink()
    assert refusal(tmp_path, lambda: read_miracl(folder, None, "dev"), PoolOptions(pivots=None)) == (
        f"{folder} contains no corpus in the language 'sw': MIRACL has miracl-v1.0-<language>/topics and /qrels, "
        "and miracl-corpus-v1.0-<language>/docs-0.jsonl.gz."
    )
    topics = folder / "miracl-v1.0-en/topics/topics.miracl-v1.0-en-dev.tsv"
    topics.write_text("0 What is albedo?\n")
    assert refusal(tmp_path, lambda: read_miracl(folder, ["en"], "dev"), PoolOptions(pivots=None)) == (
        f"{topics}, line 1, cannot be read: give an id and a question, separated by a tab."
    )


def test_bad_posir(tmp_path):
    folder = write_posir(tmp_path / "posir", "jsonl")
    assert refusal(tmp_path, lambda: read_posir(folder, ["en"], ["Lawn"])) == (
        f"{folder / 'eng-Latn'} has no domain 'Lawn': it has Law, Real Estate."
    )
    assert refusal(tmp_path, lambda: read_posir(folder, ["fr"])) == (
        f"{folder} has no folder for the language 'fr': it has cmn-Hans, deu-Latn, eng-Latn."
    )
    queries = folder / "eng-Latn/Law/queries.jsonl"
    damage(queries, "[0, 1000]", "[0]")
    assert refusal(tmp_path, lambda: read_posir(folder, ["en"], ["Law"])) == (
        f"{queries}, line 1, has no valid evidence position: "
        "give pos_char_span (first and last character) and pos_char_length."
    )
    (folder / "eng-Latn/Law/corpus.jsonl").unlink()
    queries.unlink()
    assert refusal(tmp_path, lambda: read_posir(folder, ["en"], ["Law"])) == (
        f"{folder / 'eng-Latn/Law'} has no queries.parquet: "
        "PosIR has <language>/<domain>/corpus.parquet, queries.parquet and qrels/test.parquet."
    )


SOURCES = {
    "miracl": (
        write_miracl,
        lambda folder: read_miracl(folder, ["sw"], "dev"),
        "miracl-corpus-v1.0-sw/docs-0.jsonl.gz",
        None,
    ),
    "posir": (
        lambda folder: write_posir(folder, "jsonl"),
        lambda folder: read_posir(folder, ["en"], ["Law"]),
        "eng-Latn/Law/corpus.jsonl",
        None,
    ),
    "neuclir": (
        lambda folder: write_neuclir(folder, "downloaded"),
        lambda folder: read_neuclir(folder, None),
        "zho/docs.jsonl",
        None,
    ),
    "multieup": (
        write_multieup,
        lambda folder: read_multieup(folder, ["en", "de"]),
        "clean_all_with_did_qid.MEP.csv",
        3,
    ),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_document_that_is_there_twice_is_named_by_its_lines(tmp_path, kind):
    write, read, name, first = SOURCES[kind]
    require_named_by_its_lines(tmp_path, write(tmp_path / kind), read, name, first)


def test_ids_with_white_space_are_refused_by_every_format(tmp_path):
    folder = write_mlqa(tmp_path / "mlqa")
    for path in folder.glob("test/*-en.json"):
        path.write_text(path.read_text().replace('"q3"', '"q 3"'))
    told = refusal(tmp_path, lambda: read_mlqa(folder, ["en"]))
    assert "missing id, or id with white space in queries.jsonl (line 3: 'q 3')" in told


def test_a_damaged_parquet_file(tmp_path):
    pytest.importorskip("pyarrow", reason="PosIR's own files are Parquet: pip install 'langshift[parquet]'")
    folder = write_posir(tmp_path / "posir", "parquet")
    path = folder / "eng-Latn/Law/corpus.parquet"
    path.write_bytes(b"PAR1 and no more")
    assert refusal(tmp_path, lambda: read_posir(folder, ["en"], ["Law"])) == (
        f"{path} is damaged or not a Parquet file: download it again."
    )


def test_bad_neuclir(tmp_path):
    folder = write_neuclir(tmp_path / "neuclir", "downloaded")
    qrels = folder / "neuclir-2023-qrels.final/qrels.mlir"
    damage(qrels, "0 0 f1 1", "0 0 f9 1")
    assert refusal(tmp_path, lambda: read_neuclir(folder, None)) == (
        f"{qrels}, line 4, judges the document 'f9', which is not in the corpus: "
        "fetch the whole corpus, or remove the line."
    )
    damage(qrels, "0 0 z1 1", "0 0 z1 3")
    assert refusal(tmp_path, lambda: read_neuclir(folder, None)) == (
        f"{qrels.with_name('qrels.zho')}, line 1, grades '0' and 'z1' differently from an earlier line: "
        "keep only one of the two."
    )
    damage(qrels, "0 0 z1 3", "0 0 z1")
    assert refusal(tmp_path, lambda: read_neuclir(folder, None)) == (
        f"{qrels}, line 2, cannot be read: give three columns separated by tabs "
        "(query-id, corpus-id, score) or TREC's four (query, 0, document, grade)."
    )
    layout = "NeuCLIR has <language>/docs.jsonl for zho, fas and rus, topics in *topics*.jsonl, and TREC qrels"
    (folder / "neuclir-2023-topics.0605.jsonl").unlink()
    assert refusal(tmp_path, lambda: read_neuclir(folder, None)) == f"{folder} contains no topics: {layout}."
    assert refusal(tmp_path, lambda: read_neuclir(tmp_path, None)) == f"{tmp_path} contains no documents: {layout}."


def test_bad_multieup(tmp_path):
    folder = write_multieup(tmp_path / "eup")
    path = folder / "clean_all_with_did_qid.MEP.csv"
    damage(path, "\n3,", "\n3,too,many,fields,")
    assert refusal(tmp_path, lambda: read_multieup(folder, None)).startswith(f"{path}, line 5, ends a row with ")
    path.write_text("did,TEXT\n1,x\n")
    assert refusal(tmp_path, lambda: read_multieup(folder, None)) == (
        f"{path} is not a MultiEuP file: MultiEuP has did, TEXT, LANGUAGE, and title_EN and qid_EN for each language."
    )
    path.unlink()
    assert refusal(tmp_path, lambda: read_multieup(folder, None)) == (
        f"There is no file {path}: name MultiEuP's clean_all_with_did_qid.MEP.csv, or the folder that contains it."
    )


def test_codes_that_name_a_language_get_its_tag():
    codes = ["zho_Hant", "zho_Hans", "nob_Latn", "arb_Arab", "arb_Latn", "README"]
    assert [*tagged(codes).values()] == ["zh-TW", "zh", "nb", "ar", "ar-Latn"]
