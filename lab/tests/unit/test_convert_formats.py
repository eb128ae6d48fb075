"""Each collection from small made-up files in the layout in which it is published."""

from __future__ import annotations

import csv

import pytest
from click.testing import CliRunner
from convert_sources import (
    SPEECHES,
    write_belebele,
    write_miracl,
    write_mlqa,
    write_multieup,
    write_neuclir,
    write_posir,
)
from converted import convert, ids, lines

from langshift.commands.dataset import dataset as command
from langshift.evaluate.datasets.dataset import load_dataset

# MLQA: q1 in en, de and zh; q2 in en and zh, in the same English passage as q1; q3 in en and de.


def test_mlqa_takes_what_exists_of_each_question(tmp_path):
    made = convert("mlqa", write_mlqa(tmp_path / "MLQA_V1"), tmp_path / "out")
    assert (made["languages"], made["documents"], made["queries"]) == (["de", "en", "zh"], 6, 3)
    dataset = load_dataset(tmp_path / "out")
    assert dataset.qrels == {
        "q1": {"q1-de": 1, "q1-en": 1, "q1-zh": 1},
        "q2": {"q1-en": 1, "q2-zh": 1},
        "q3": {"q3-de": 1, "q3-en": 1},
    }
    # q1 and q2 hang together through the English passage.
    assert {name: one.group for name, one in dataset.documents.items()} == {
        "q1-de": "q1", "q3-de": "q3", "q1-en": "q1", "q3-en": "q3", "q1-zh": "q1", "q2-zh": "q1",
    }  # fmt: skip
    assert [(query.language, query.group, query.article) for query in dataset.queries] == [
        ("en", "q1", "Tides"), ("en", "q1", "Tides"), ("en", "q3", "Bread"),
    ]  # fmt: skip


def test_mlqa_of_another_source_language_holds_its_groups_only(tmp_path):
    source = write_mlqa(tmp_path / "MLQA_V1")
    made = convert("mlqa", source, tmp_path / "zh", "--pivot", "zh")
    assert (made["pivot"], made["queries"]) == ("zh", 2)
    assert sorted(ids(tmp_path / "zh/corpus.jsonl")) == ["q1-de", "q1-en", "q1-zh", "q2-zh"]
    every = convert("mlqa", source, tmp_path / "every", "--multilingual-queries")
    assert (every["pivot"], every["queries"]) == (None, 7)
    assert ids(tmp_path / "every/queries.jsonl") == ["q1-de", "q3-de", "q1-en", "q2-en", "q3-en", "q1-zh", "q2-zh"]
    assert (tmp_path / "every/qrels/test.tsv").read_text().splitlines()[1:4] == [
        "q1-de\tq1-de\t1", "q1-de\tq1-en\t1", "q1-de\tq1-zh\t1",
    ]  # fmt: skip
    assert load_dataset(tmp_path / "every").answers == dict.fromkeys(ids(tmp_path / "every/queries.jsonl"), ("x",))
    dev = convert("mlqa", source, tmp_path / "dev", "--split", "dev")
    assert dev["queries"] == 1


def test_belebele_pools_the_variants_named(tmp_path):
    source = write_belebele(tmp_path / "belebele")
    made = convert("belebele", source, tmp_path / "out", "--languages", "zh,en,zho_Hant", "--pivot", "zh")
    assert made == {
        "folder": str(tmp_path / "out"), "languages": ["zh", "en", "zh-TW"], "pivot": "zh",
        "documents": 6, "queries": 3, "judgements": 9,
    }  # fmt: skip
    corpus, queries = lines(tmp_path / "out/corpus.jsonl"), lines(tmp_path / "out/queries.jsonl")
    group = corpus[0]["group"]
    assert corpus[:3] == [
        {"_id": f"{group}-{code}", "title": "", "text": f"{code} passage 0", "language": tag, "group": group,
         "article": "https://en.wikinews.org/wiki/0"}
        for code, tag in (("zho_Hans", "zh"), ("eng_Latn", "en"), ("zho_Hant", "zh-TW"))
    ]  # fmt: skip
    assert {query["text"] for query in queries} == {
        "zho_Hans question 0.1",
        "zho_Hans question 0.2",
        "zho_Hans question 1.1",
    }
    assert {query["_id"] for query in queries if query["group"] == group} == {f"{group}-q1", f"{group}-q2"}
    assert set(load_dataset(tmp_path / "out").answers.values()) == {("a",)}
    # The order of lines differs between variants, and nothing depends on it.
    other = convert("belebele", source, tmp_path / "other", "--languages", "en,zh,zho_Hant", "--pivot", "zho_Hans")
    assert other["queries"] == 3
    assert {line["_id"]: line for line in lines(tmp_path / "other/corpus.jsonl")} == {
        line["_id"]: line for line in corpus
    }


def test_miracl_is_judged_per_language(tmp_path):
    source = write_miracl(tmp_path / "miracl")
    made = convert("miracl", source, tmp_path / "out")
    assert (made["languages"], made["pivot"], made["documents"], made["queries"]) == (["en", "sw"], None, 5, 3)
    dataset = load_dataset(tmp_path / "out")
    assert dataset.judged == "per-language"
    assert dataset.qrels == {
        "0-en": {"39#0-en": 1, "39#1-en": 0}, "1-en": {"40#0-en": 1}, "0-sw": {"39#0-sw": 1},
    }  # fmt: skip
    assert lines(tmp_path / "out/corpus.jsonl")[0] == {
        "_id": "39#0-en", "title": "Albedo", "text": "Albedo means whiteness.", "language": "en", "article": "39-en",
    }  # fmt: skip
    alone = convert("miracl", source, tmp_path / "sw", "--languages", "sw", "--no-language")
    assert (alone["documents"], alone["queries"]) == (2, 1)
    assert (tmp_path / "sw/languages.tsv").read_text() == "corpus-id\tlanguage\n39#0-sw\tsw\n41#0-sw\tsw\n"
    assert load_dataset(tmp_path / "sw").judged == "per-language"


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_posir_keeps_where_the_evidence_stands(tmp_path, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="PosIR's own files are Parquet: pip install 'langshift[parquet]'")
    source = write_posir(tmp_path / "posir", kind)
    made = convert(
        "posir", source, tmp_path / "out", "--languages", "en,de,zh", "--domains", "Law", "--multilingual-queries"
    )
    # d3 was not translated: its judgement for German is left out, and counted.
    assert made["documents"] == 7
    assert made["left_out"]["judgements"] == 1
    dataset = load_dataset(tmp_path / "out")
    assert dataset.qrels == {
        "q1-en": {"d1-en": 1, "d1-de": 1}, "q2-en": {"d3-en": 1}, "q1-de": {"d1-en": 1, "d1-de": 1},
        "cmn-q1-zh": {"cmn-d1-zh": 1},
    }  # fmt: skip
    assert dataset.evidence.positions["q1-en"] == {"d1-en": 0.25, "d1-de": 0.25}
    assert dataset.evidence.positions["q2-en"] == {"d3-en": 1.0}
    assert dataset.evidence.lengths == {"d1-en": 600, "d1-de": 600, "d3-en": 80, "cmn-d1-zh": 10}
    # Of translations only the position is known.
    assert dataset.evidence.spans == {
        "q1-en": {"d1-en": (0, 1000)}, "q1-de": {"d1-en": (0, 1000)}, "q2-en": {"d3-en": (90, 120)},
        "cmn-q1-zh": {"cmn-d1-zh": (5, 10)},
    }  # fmt: skip
    assert dataset.documents["d1-de"].group == dataset.documents["d1-en"].group == "d1"
    assert dataset.documents["cmn-d1-zh"].group == "cmn-d1"
    every = convert("posir", source, tmp_path / "all", "--languages", "en")
    assert (every["documents"], every["queries"]) == (4, 3)
    assert ids(tmp_path / "all/corpus.jsonl") == ["Law-d1-en", "Law-d2-en", "Law-d3-en", "Real_Estate-d1-en"]
    for name in ("corpus", "queries"):
        domains = [line["domain"] for line in lines(tmp_path / f"all/{name}.jsonl")]
        assert domains[-1] == "Real Estate"
        assert set(domains[:-1]) == {"Law"}


def test_questions_of_posir_in_another_language_ask_of_the_documents_that_are_pooled(tmp_path):
    source = write_posir(tmp_path / "posir", "jsonl")
    chosen = ("--languages", "en", "--domains", "Law")
    made = convert("posir", source, tmp_path / "out", *chosen, "--pivot", "de")
    assert (made["languages"], made["pivot"], made["documents"], made["queries"]) == (["en"], "de", 3, 1)
    dataset = load_dataset(tmp_path / "out")
    assert (dataset.queries[0].text, dataset.queries[0].language) == ("Welches Gesetz?", "de")
    assert dataset.qrels == {"q1": {"d1-en": 1}}
    assert dataset.evidence.spans == {"q1": {"d1-en": (0, 1000)}}
    convert("beir", tmp_path / "out", tmp_path / "again")
    assert lines(tmp_path / "again/queries.jsonl") == lines(tmp_path / "out/queries.jsonl")
    # A corpus of its own has no questions in other languages.
    out = tmp_path / "none"
    said = CliRunner().invoke(command, ["convert", "posir", str(source), str(out), *chosen, "--pivot", "zh"])
    assert str(said.exception) == f"{source} has no question with a relevant document for {out}: nothing was written."


@pytest.mark.parametrize("kind", ["downloaded", "hub"])
def test_neuclir_pools_what_was_judged(tmp_path, kind):
    source = write_neuclir(tmp_path / "neuclir", kind)
    made = convert("neuclir", source, tmp_path / "out")
    assert (made["languages"], made["documents"], made["queries"], made["judgements"]) == (["fa", "ru", "zh"], 4, 1, 4)
    assert made["left_out"] == {"passages": 0, "queries": 1, "judgements": 0}
    assert lines(tmp_path / "out/queries.jsonl") == [
        {"_id": "0", "text": "Asteroids Articles on asteroids that may strike.", "language": "en"}
    ]
    assert load_dataset(tmp_path / "out").qrels == {"0": {"r1": 3, "z1": 1, "z2": 0, "f1": 1}}
    two = convert("neuclir", source, tmp_path / "two", "--languages", "zh,ru", "--multilingual-queries")
    assert (two["documents"], two["queries"], two["left_out"]["judgements"]) == (3, 2, 2)
    # A person's translation comes before a machine's.
    assert [line["text"] for line in lines(tmp_path / "two/queries.jsonl")][1] == "小行星 与小行星相关的文章"


def test_multieup_finds_every_speech_of_a_debate(tmp_path):
    source = write_multieup(tmp_path / "eup")
    made = convert("multieup", source, tmp_path / "out", "--languages", "en,de", "--pivot", "de")
    assert (made["languages"], made["documents"], made["queries"], made["judgements"]) == (["en", "de"], 3, 2, 3)
    assert made["left_out"] == {"passages": 1, "queries": 0, "judgements": 0}
    assert lines(tmp_path / "out/corpus.jsonl")[0] == {
        "_id": "1",
        "title": "",
        "text": SPEECHES[0][1],
        "language": "en",
    }
    assert lines(tmp_path / "out/queries.jsonl") == [
        {"_id": "DE_7", "text": "Medien, Freiheit", "language": "de", "article": "EN_7"},
        {"_id": "DE_8", "text": "Fischerei", "language": "de", "article": "EN_8"},
    ]
    assert load_dataset(tmp_path / "out").qrels == {"DE_7": {"1": 1, "2": 1}, "DE_8": {"3": 1}}
    file = source / "clean_all_with_did_qid.MEP.csv"
    every = convert("multieup", file, tmp_path / "every", "--multilingual-queries", "--split-by-article")
    assert [one["queries"] for one in every["sets"]] == [3, 2]
    # No Irish title for the second debate.
    assert ids(tmp_path / "every/dev/queries.jsonl") == ["EN_7", "DE_7", "GA_7"]


def test_a_converted_folder_can_be_cut_again(tmp_path):
    convert(
        "posir", write_posir(tmp_path / "posir", "jsonl"), tmp_path / "one", "--languages", "en,de", "--domains", "Law"
    )
    convert("beir", tmp_path / "one", tmp_path / "two", "--languages", "de", "--no-language")
    convert("beir", tmp_path / "two", tmp_path / "three", "--languages", "de", "--pivot", "en")
    again = load_dataset(tmp_path / "three")
    assert again.qrels == {"q1": {"d1-de": 1}}
    assert (again.evidence.positions, again.evidence.lengths) == ({"q1": {"d1-de": 0.25}}, {"d1-de": 600})
    assert again.answers == {}
    convert("mlqa", write_mlqa(tmp_path / "MLQA_V1"), tmp_path / "mlqa")
    convert("beir", tmp_path / "mlqa", tmp_path / "mlqa-zh", "--languages", "zh")
    assert load_dataset(tmp_path / "mlqa-zh").answers == {"q1": ("x",), "q2": ("x",)}
    convert("miracl", write_miracl(tmp_path / "miracl"), tmp_path / "four")
    convert("beir", tmp_path / "four", tmp_path / "five", "--pivot", "sw")
    assert load_dataset(tmp_path / "five").judged == "per-language"


def test_what_a_person_is_told(tmp_path):
    arguments = [
        "convert",
        "multieup",
        str(write_multieup(tmp_path / "eup")),
        str(tmp_path / "out"),
        "--languages",
        "de,en",
    ]
    said = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert (said.exit_code, said.stdout) == (0, "")
    assert said.stderr == (
        f"Wrote {tmp_path / 'out'}: 3 passages in 2 languages, 2 questions in en, 3 judgements.\n"
        f"Left out of {tmp_path / 'out'}: 1 passages without text.\n"
    )


def test_a_speech_longer_than_csv_expects(tmp_path):
    source = write_multieup(tmp_path / "eup")
    file = source / "clean_all_with_did_qid.MEP.csv"
    with file.open(newline="") as table:
        rows = list(csv.reader(table))
    rows[1][1] = "word " * 50_000
    with file.open("w", newline="") as table:
        csv.writer(table).writerows(rows)
    assert convert("multieup", file, tmp_path / "out", "--languages", "en")["documents"] == 1


def test_options_that_a_format_does_not_know_are_refused(tmp_path):
    def refused(kind: str, *options: str) -> str:
        source = write_multieup(tmp_path / kind)
        said = CliRunner().invoke(command, ["convert", kind, str(source), str(tmp_path / "out"), *options])
        assert not (tmp_path / "out").exists()
        return str(said.exception)

    assert refused("xquad", "--split", "dev") == "--split is for beir, miracl and mlqa: leave it out with xquad."
    assert refused("beir", "--articles") == "--articles is for xquad: leave it out with beir."
    assert refused("mlqa", "--domains", "Law") == "--domains is for posir: leave it out with mlqa."
