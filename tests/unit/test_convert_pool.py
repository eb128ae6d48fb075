"""Pools: source languages, thinned groups, and what is said of bad folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from convert_sources import (
    jsonl,
    write_beir,
)
from converted import TAGS, damage, parallel, refusal, require_named_by_its_lines

from langshift.errors import UsageError
from langshift.evaluate.convert.beir import read_beir
from langshift.evaluate.convert.common import pick
from langshift.evaluate.convert.pool import JudgedQuestion, PoolOptions, PoolPassage, PoolSource, build
from langshift.evaluate.datasets.check import check_dataset
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.languages import parse_tag


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


def test_a_document_that_is_there_twice_is_named_by_its_lines(tmp_path):
    folder = write_beir(tmp_path / "beir")
    require_named_by_its_lines(tmp_path, folder, lambda folder: read_beir(folder, None, "test"), "corpus.jsonl", None)


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
    assert pick({code: parse_tag(code) for code in VARIANTS}, wanted) == code
