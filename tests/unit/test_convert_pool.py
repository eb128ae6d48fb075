"""Pools: source languages, thinned groups, halves by article, and what is said of bad collections."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from convert_sources import (
    jsonl,
    write_beir,
    write_belebele,
    write_miracl,
    write_mlqa,
    write_multieup,
    write_neuclir,
    write_posir,
)

from langshift.errors import UsageError
from langshift.evaluate.convert.beir import read_beir
from langshift.evaluate.convert.common import pick, tagged
from langshift.evaluate.convert.pool import JudgedQuestion, PoolOptions, PoolPassage, PoolSource, build
from langshift.evaluate.datasets.check import check_dataset
from langshift.evaluate.datasets.dataset import load_dataset
from langshift_lab.convert.belebele import read_belebele
from langshift_lab.convert.miracl import read_miracl
from langshift_lab.convert.multieup import read_multieup
from langshift_lab.convert.neuclir import read_neuclir
from langshift_lab.convert.posir import read_posir
from langshift_lab.convert.squad import read_mlqa

TAGS = ["ar", "de", "en", "zh"]


def parallel(groups: int = 40, tags=TAGS, backwards: bool = False) -> PoolSource:
    """Groups of one passage a language, two groups an article, one question in each language."""
    numbers = list(range(groups))

    def passages():
        for n in reversed(numbers) if backwards else numbers:
            for tag in reversed(tags) if backwards else tags:
                yield PoolPassage(f"g{n}-{tag}", f"{tag} text {n}", tag, f"g{n}", f"article {n // 2}")

    questions = [
        JudgedQuestion(f"q{n}", f"{tag} {n}?", tag, {f"g{n}-{one}": 1 for one in tags}, f"g{n}", f"article {n // 2}")
        for tag in tags
        for n in numbers
    ]
    return PoolSource(Path("made-up"), tags, questions, passages)


def refusal(tmp_path: Path, source, choice: PoolOptions = PoolOptions()) -> str:  # noqa: B008 - frozen
    out = tmp_path / "taken-by-nobody"
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError) as caught:
        build(out, source if callable(source) else lambda: source, choice)
    assert sorted(tmp_path.rglob("*")) == before
    return str(caught.value)


def kept(folder: Path) -> set[str]:
    return set(load_dataset(folder).documents)


def test_each_source_language_makes_a_set_of_its_own(tmp_path):
    made = build(tmp_path / "out", parallel, PoolOptions(pivots=["zh", "de"]))
    assert [(one.folder, one.pivot, one.queries) for one in made] == [
        (str(tmp_path / "out/zh"), "zh", 40),
        (str(tmp_path / "out/de"), "de", 40),
    ]
    assert {query.language for query in load_dataset(tmp_path / "out/zh").queries} == {"zh"}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["de", "zh"]


def test_thinned_pools_depend_on_nothing_but_group_and_languages(tmp_path):
    sets = {
        "once": (parallel(), PoolOptions(keep=2)),
        "again": (parallel(backwards=True), PoolOptions(keep=2)),
        "pivot": (parallel(), PoolOptions(pivots=["zh"], keep=2)),
        "every": (parallel(), PoolOptions(pivots=None, keep=2)),
        "more": (parallel(), PoolOptions(keep=3)),
        "all": (parallel(), PoolOptions(keep=9)),
    }
    for name, (source, choice) in sets.items():
        build(tmp_path / name, lambda source=source: source, choice)
    two = kept(tmp_path / "once")
    assert len(two) == 80
    assert two == kept(tmp_path / "again") == kept(tmp_path / "pivot") == kept(tmp_path / "every")
    assert two < kept(tmp_path / "more")
    assert kept(tmp_path / "all") == {f"g{n}-{tag}" for n in range(40) for tag in TAGS}
    for query, judged in load_dataset(tmp_path / "once").qrels.items():
        assert set(judged) == {name for name in two if name.startswith(f"g{query[1:]}-")}
        assert len(judged) == 2
    # Which stay differs from group to group, and the question's language is now among them, now not.
    assert (
        len({tuple(sorted(name.partition("-")[2] for name in two if name.startswith(f"g{n}-"))) for n in range(40)}) > 3
    )
    assert 0 < sum(name.endswith("-en") for name in two) < 40


def test_halves_share_the_corpus_and_no_article(tmp_path):
    made = build(tmp_path / "out", parallel, PoolOptions(by_article=True, with_language=False))
    assert [(one.folder, one.documents, one.queries) for one in made] == [
        (str(tmp_path / "out/dev"), 160, 20),
        (str(tmp_path / "out/test"), 160, 20),
    ]
    dev, test = (load_dataset(tmp_path / "out" / name) for name in ("dev", "test"))
    assert dev.documents == test.documents
    assert dev.documents["g0-zh"].language == "zh"
    assert {query.article for query in dev.queries} == {f"article {n}" for n in range(0, 20, 2)}
    assert {query.article for query in test.queries} == {f"article {n}" for n in range(1, 20, 2)}
    # Halves are the same in every language, and what is done to one corpus is not done to the other.
    build(tmp_path / "zh", lambda: parallel(backwards=True), PoolOptions(pivots=["zh"], by_article=True))
    assert {query.article for query in load_dataset(tmp_path / "zh/dev").queries} == {q.article for q in dev.queries}


def test_passages_are_read_one_by_one_and_counted(tmp_path):
    steps = []
    build(tmp_path / "out", lambda: parallel(700), PoolOptions(), steps.append)
    assert sum(steps) == 2800
    assert max(steps) == 1000


def test_pools_that_cannot_be_made(tmp_path):
    assert refusal(tmp_path, parallel(), PoolOptions(pivots=["en", "th"])) == (
        "made-up has no questions in the language 'th' among the languages chosen (ar, de, en, zh): "
        "add it to --languages, or name another --pivot."
    )
    alone = PoolSource(
        Path("made-up"),
        ["en"],
        [JudgedQuestion("q", "?", "en", {"d": 1})],
        lambda: iter([PoolPassage("d", "text", "en")]),
    )
    assert refusal(tmp_path, alone, PoolOptions(keep=1)) == (
        "made-up has no translation groups, so translations cannot be selected: leave --keep out."
    )
    assert refusal(tmp_path, alone, PoolOptions(by_article=True)) == (
        "made-up has questions without an article, so they cannot be split: leave --split-by-article out."
    )
    assert refusal(tmp_path, parallel(2), PoolOptions(by_article=True)) == (
        "made-up has questions on only one article, so they cannot be split in two."
    )
    empty = PoolSource(Path("made-up"), ["en"], alone.questions, lambda: iter(()))
    assert refusal(tmp_path, empty) == "made-up contains no documents: nothing was written."
    twice = PoolSource(Path("made-up"), ["en"], [*alone.questions, *alone.questions], alone.passages)
    assert (
        refusal(tmp_path, twice)
        == "made-up has the query 'q' twice: every id must be unique, so remove one of the two."
    )
    unjudged = PoolSource(Path("made-up"), ["en"], [JudgedQuestion("q", "?", "en", {"d": 0})], alone.passages)
    assert refusal(tmp_path, unjudged) == (
        f"made-up has no question with a relevant document for {tmp_path / 'taken-by-nobody'}: nothing was written."
    )
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("mine")
    with pytest.raises(UsageError) as caught:
        build(tmp_path / "full", parallel, PoolOptions())
    assert (
        str(caught.value)
        == f"{tmp_path / 'full'} is not empty: name a folder that does not exist yet, or empty this one."
    )


def damage(path: Path, old: str, new: str) -> Path:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


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
    "beir": (write_beir, lambda folder: read_beir(folder, None, "test"), "corpus.jsonl", None),
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
    folder = write(tmp_path / kind)
    path = folder / name
    read_bytes, write_bytes = (gzip.open, gzip.open) if path.suffix == ".gz" else (open, open)
    with read_bytes(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    again = lines[first or 0]
    with write_bytes(path, "wb") as file:
        file.writelines([*lines, again])
    told = refusal(tmp_path, lambda: read(folder), PoolOptions(pivots=None))
    match = re.fullmatch(
        r"(.*), line (\d+), repeats the document '(.*)' of (.*), line (\d+): every id must be unique, "
        r"so remove one of the two\.",
        told,
    )
    assert match, told
    assert (match[1], match[4]) == (str(path), str(path))
    assert (int(match[2]), int(match[5])) == (len(lines) + 1, (first or 0) + 1)


def test_a_query_that_is_there_twice_is_named_by_its_lines(tmp_path):
    folder = write_beir(tmp_path / "beir")
    queries = folder / "queries.jsonl"
    queries.write_text(queries.read_text() + jsonl([{"_id": "q1", "text": "Again?"}]))
    assert refusal(tmp_path, lambda: read_beir(folder, None, "test"), PoolOptions(pivots=None)) == (
        f"{queries}, line 3, repeats the query 'q1' of {queries}, line 1: every id must be unique, so remove one of "
        "the two."
    )


def test_a_query_that_cannot_be_asked_by_its_words_is_left_out_and_named(tmp_path):
    folder = write_beir(tmp_path / "beir")
    damage(folder / "queries.jsonl", "sea?", "sea " * 501)
    (made,) = build(tmp_path / "out", lambda: read_beir(folder, None, "test"), PoolOptions(pivots=None))
    assert (made.queries, made.too_long, made.left_out["queries"]) == (1, ["q1"], 0)
    assert check_dataset(tmp_path / "out", None).clean


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        (
            "corpus.jsonl",
            '"text": "Bread is baked."',
            '"text": "Bread is baked.", "_op": "update"',
            "line that is no document in corpus.jsonl (line 2: ",
        ),
        ("corpus.jsonl", '"_id": "d2"', f'"_id": "{"d" * 513}"', "which is not in the corpus"),
        ("qrels/test.tsv", "q2\td2\t1", "q2\td2\t1.0", "line 3, has the score '1.0'"),
        ("qrels/test.tsv", "q2\td2\t1", "q2\td2\t12345678", "line 3, has the score '12345678'"),
        ("languages.tsv", "d2\ten", "d2\tno tongue", "invalid language tag in corpus.jsonl (line 2: 'no tongue')"),
    ],
)
def test_nothing_is_written_that_dataset_check_would_not_accept(tmp_path, name, old, new, told):
    folder = write_beir(tmp_path / "beir")
    damage(folder / name, old, new)
    assert told in refusal(tmp_path, lambda: read_beir(folder, None, "test"), PoolOptions(pivots=None))


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


def test_bad_beir(tmp_path):
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "1", "text": "x"}\n{"_id": "2", "text": \n')
    (folder / "queries.jsonl").write_text('{"_id": "a", "text": "x?"}\n')
    (folder / "qrels/dev.tsv").write_text("query-id\tcorpus-id\tscore\na\t1\t1\na\t3\t1\n")
    every = PoolOptions(pivots=None)
    assert refusal(tmp_path, lambda: read_beir(folder, None, "test"), every) == (
        f"{folder} has no qrels/test.tsv: name another --split (available: dev)."
    )
    assert refusal(tmp_path, lambda: read_beir(folder, None, "dev"), every) == (
        f"{folder / 'corpus.jsonl'}, line 2, is not valid JSON (unexpected end of data at character 21): "
        "correct or remove the line."
    )
    (folder / "corpus.jsonl").write_text('{"_id": "1", "text": "x"}\n')
    assert refusal(tmp_path, lambda: read_beir(folder, None, "dev"), every) == (
        f"{folder / 'qrels/dev.tsv'}, line 3, judges the document '3', which is not in the corpus: "
        "fetch the whole corpus, or remove the line."
    )
    assert refusal(tmp_path, lambda: read_beir(folder, ["en"], "dev"), every) == (
        f"{folder / 'corpus.jsonl'}, line 1, names no language, so languages cannot be selected: leave --languages out."
    )
    assert refusal(tmp_path, lambda: read_beir(folder, ["klingonese"], "dev"), every) == (
        "'klingonese' is not a valid language: use a BCP 47 tag such as th or zh-TW."
    )
    assert refusal(tmp_path, lambda: read_beir(folder, None, "dev"), PoolOptions()) == (
        f"{folder} has no questions in the language 'en' among the languages chosen (none is known): "
        "add it to --languages, or name another --pivot."
    )
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "1", "text": "x", "language": "de"}))
    assert refusal(tmp_path, lambda: read_beir(folder, ["en"], "dev"), every) == (
        f"{folder / 'corpus.jsonl'} has no document in the language 'en': it has de."
    )
    (folder / "queries.jsonl").write_text('{"_id": "b", "text": "x?"}\n')
    assert refusal(tmp_path, lambda: read_beir(folder, None, "dev"), every) == (
        f"{folder / 'queries.jsonl'} has no query 'a', which has judgements: fetch the file again."
    )


VARIANTS = {
    "zho_Hant": "zh-TW",
    "zho_Hans": "zh",
    "eng_Latn": "en",
    "nob_Latn": "nb",
    "arb_Arab": "ar",
    "arb_Latn": "ar-EG",
}


@pytest.mark.parametrize(
    ("wanted", "code"),
    [("zh", "zho_Hans"), ("zho_Hant", "zho_Hant"), ("zh-TW", "zho_Hant"), ("eng", "eng_Latn"), ("no", "nob_Latn"),
     ("ar", "arb_Arab"), ("arb_Latn", "arb_Latn"), ("fr", None), ("klingonese", None)],
)  # fmt: skip
def test_a_language_is_named_by_code_or_by_tag(wanted, code):
    assert pick(VARIANTS, wanted) == code
    assert pick(tagged(VARIANTS), wanted) == code
