"""``langshift dataset check``: everything that is wrong is found, and nothing where nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import langshift
from convert_sources import jsonl

from langshift.commands.dataset import dataset as command
from langshift.debias.detector import open_detector
from langshift.errors import UsageError
from langshift.evaluate.datasets.check import DuplicateFinder, check_dataset
from langshift.evaluate.demo import FOLDER

TEXTS = {
    "en": "The sea rises and falls twice a day because the Moon pulls at it.",
    "de": "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht.",
    "th": "ทะเลขึ้นและลงวันละสองครั้งเพราะดวงจันทร์ดึงดูดน้ำ",
    "nb": "Havet stiger og synker to ganger om dagen fordi månen trekker i det.",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = [
        {"_id": f"tides-{tag}", "title": "", "text": text, "language": tag, "group": "tides"}
        for tag, text in TEXTS.items()
    ]
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(jsonl(documents))
    (tmp_path / "queries.jsonl").write_text(
        jsonl([{"_id": "q1", "text": "Why does the beach vanish?", "language": "en"}])
    )
    (tmp_path / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ttides-en\t1\nq1\ttides-th\t0\n")
    return tmp_path


def add(path: Path, *rows: str | dict) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(row if isinstance(row, str) else jsonl([row]) for row in rows)


def problems(folder: Path) -> dict:
    found = check_dataset(folder, open_detector()).problems
    return {(one.problem, one.file, one.language): (one.count, one.examples) for one in found}


def test_a_clean_dataset(folder):
    checked = check_dataset(folder, open_detector())
    assert (checked.clean, checked.documents, checked.queries, checked.judgements) == (True, 4, 1, 2)
    assert {one.language: (one.documents, one.queries, one.heard) for one in checked.languages} == {
        "en": (1, 1, 1), "de": (1, 0, 1), "th": (1, 0, 1), "nb": (1, 0, 1),
    }  # fmt: skip


def test_the_bundled_corpus_is_clean():
    assert problems(FOLDER) == {}


def test_every_problem_is_found_at_once(folder):
    add(
        folder / "corpus.jsonl",
        {"_id": "tides-en", "text": "Again, under an id that is taken.", "language": "en", "group": "bread"},
        {"_id": "tides-too", "text": "Tides, once more.", "language": "en-GB", "group": "tides"},
        {"_id": "empty", "title": " ", "text": "", "language": "en"},
        {"_id": "liar", "text": TEXTS["de"], "language": "en"},
        {"_id": "odd", "text": "x", "language": "klingonese"},
        {"_id": "a b", "text": "x"},
        {"text": "x"},
        "[1]\n",
        '{"_id": \n',
    )
    add(
        folder / "queries.jsonl",
        {"_id": "q1", "text": "Again?"},
        {"_id": "q2", "text": ""},
        {"_id": "q3", "text": "x?"},
    )
    add(
        folder / "qrels/test.tsv",
        "q1\tsnow\t1\n", "q9\ttides-de\t1\n", "q1\ttides-en\t1\n", "q1\ttides-en\tyes\n", "q2\ttides-th\t0\n",
    )  # fmt: skip
    (folder / "languages.tsv").write_text("corpus-id\tlanguage\nrain\ten\nempty\n")
    (folder / "evidence.tsv").write_text("query-id\tcorpus-id\tposition\nq1\ttides-en\t2\nq8\train\t.5\n")
    add(
        folder / "answers.jsonl",
        {"query": "q1", "answers": ["x"]}, {"query": "q1", "answers": ["y"]}, {"query": "q8", "answers": ["x"]}, "[]\n",
    )  # fmt: skip
    (folder / "dataset.json").write_text("{}{")
    told = 'it must be {"judged": "pooled"} or {"judged": "per-language"}.'
    assert problems(folder) == {
        ("cannot be read", "dataset.json", None): (1, [f"{folder / 'dataset.json'} cannot be read: {told}"]),
        ("duplicate id", "queries.jsonl", None): (1, ["line 2: 'q1'"]),
        ("empty text", "queries.jsonl", None): (1, ["line 3: 'q2'"]),
        ("query not in queries.jsonl", "qrels/test.tsv", None): (1, ["line 5: 'q9'"]),
        ("pair judged twice", "qrels/test.tsv", None): (1, ["line 6: 'q1' and 'tides-en'"]),
        ("line that cannot be read", "qrels/test.tsv", None): (1, ["line 7"]),
        ("line that cannot be read", "languages.tsv", None): (1, ["line 3"]),
        ("line that cannot be read", "evidence.tsv", None): (1, ["line 2"]),
        ("query not in queries.jsonl", "evidence.tsv", None): (1, ["line 3: 'q8'"]),
        ("query answered twice", "answers.jsonl", None): (1, ["line 2: 'q1'"]),
        ("query not in queries.jsonl", "answers.jsonl", None): (1, ["line 3: 'q8'"]),
        ("line that cannot be read", "answers.jsonl", None): (1, ["line 4"]),
        ("empty text", "corpus.jsonl", None): (1, ["line 7: 'empty'"]),
        ("text in another language", "corpus.jsonl", "en"): (1, ["line 8: 'liar' detected as de (0.98)"]),
        ("invalid language tag", "corpus.jsonl", None): (1, ["line 9: 'klingonese'"]),
        ("missing id, or id with white space", "corpus.jsonl", None): (2, ["line 10: 'a b'", "line 11: None"]),
        ("line that is not a JSON object", "corpus.jsonl", None): (2, ["line 12", "line 13"]),
        ("duplicate id", "corpus.jsonl", None): (1, ["line 5: 'tides-en', first on line 1"]),
        ("group with several documents in one language", "corpus.jsonl", None): (
            1, ["'tides' in en: line 1: 'tides-en' and line 6: 'tides-too'"],
        ),
        ("document not in corpus.jsonl", "qrels/test.tsv", None): (1, ["line 4: 'snow'"]),
        ("document not in corpus.jsonl", "languages.tsv", None): (1, ["line 2: 'rain'"]),
        ("document not in corpus.jsonl", "evidence.tsv", None): (1, ["line 3: 'rain'"]),
        ("query without a relevant document", "queries.jsonl", None): (2, ["'q2'", "'q3'"]),
    }  # fmt: skip


def test_what_evaluations_refuse_is_a_problem(folder):
    """Whatever a command stumbles over later is found now."""
    add(folder / "queries.jsonl", {"_id": "q2", "text": "word " * 501}, {"_id": "q3", "text": "ทะเล" * 130})
    add(
        folder / "qrels/test.tsv",
        "q2\ttides-en\t1_0\n",
        "q2\ttides-th\t1\n",
        "q3\ttides-th\t1234567\n",
        "q3\ttides-en\t1\n",
    )
    add(
        folder / "corpus.jsonl",
        {"_id": "number", "title": 7, "text": "It has a title."},
        {"_id": "gone", "_op": "update", "text": "Changes nothing here."},
        {"_id": "x" * 600, "text": "Its id is too long for a server."},
    )
    found = problems(folder)
    assert found.pop(("line that is no document", "corpus.jsonl", None))[0] == 3
    assert found == {
        ("query with too many words for a lexical search", "queries.jsonl", None): (
            2,
            ["line 2: 'q2'", "line 3: 'q3'"],
        ),
        ("line that cannot be read", "qrels/test.tsv", None): (2, ["line 4", "line 6"]),
    }


def test_what_is_missing_is_a_problem_and_the_rest_is_checked(folder):
    (folder / "corpus.jsonl").unlink()
    add(folder / "queries.jsonl", {"_id": "q2", "text": "Judged by nobody?"})
    holds = "a dataset folder contains corpus.jsonl, queries.jsonl and qrels/test.tsv"
    assert problems(folder) == {
        ("file missing", "corpus.jsonl", None): (1, [holds]),
        ("query without a relevant document", "queries.jsonl", None): (1, ["'q2'"]),
    }
    with pytest.raises(UsageError) as caught:
        check_dataset(folder / "none", open_detector())
    assert str(caught.value) == f"There is no dataset folder {folder / 'none'}: {holds}."


def test_languages_may_stand_in_a_file_of_their_own(folder):
    silent = [
        {"_id": f"d{n}", "text": text, "group": "tides"}
        for n, text in enumerate([TEXTS["th"], TEXTS["de"], TEXTS["en"]])
    ]
    (folder / "corpus.jsonl").write_text(jsonl(silent))
    (folder / "qrels/test.tsv").write_text("q1\td2\t1\n")
    (folder / "languages.tsv").write_text("corpus-id\tlanguage\nd0\tth\nd1\ten\nd2\ten\n")
    assert problems(folder) == {
        ("text in another language", "corpus.jsonl", "en"): (1, ["line 2: 'd1' detected as de (0.98)"]),
        ("group with several documents in one language", "corpus.jsonl", None): (
            1, ["'tides' in en: line 2: 'd1' and line 3: 'd2'"],
        ),
    }  # fmt: skip


def test_many_of_a_kind_are_counted_and_some_shown(folder):
    add(folder / "corpus.jsonl", *({"_id": "again", "text": "x"} for _ in range(20)))
    assert problems(folder)["duplicate id", "corpus.jsonl", None] == (
        19, [f"line {n}: 'again', first on line 5" for n in range(6, 11)],
    )  # fmt: skip


def test_the_command(folder):
    said = CliRunner().invoke(command, ["check", str(folder)], catch_exceptions=False)
    assert said.exit_code == 0
    assert said.stdout.splitlines()[-1] == "Clean: 4 documents, 1 queries, 2 judgements."
    add(folder / "queries.jsonl", {"_id": "q2", "text": "Judged by nobody?"})
    said = CliRunner().invoke(command, ["check", str(folder)], catch_exceptions=False)
    assert said.exit_code == 1
    assert "query without a relevant document  queries.jsonl      1  'q2'" in said.stdout
    assert said.stdout.splitlines()[-1] == f"1 problem in {folder}: 4 documents, 2 queries, 2 judgements."
    done = langshift("dataset", "check", folder, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    assert (document["clean"], document["queries"]) == (False, 2)
    assert document["problems"] == [
        {
            "problem": "query without a relevant document",
            "file": "queries.jsonl",
            "count": 1,
            "language": None,
            "examples": ["'q2'"],
        }
    ]
    assert document["languages"][0] == {
        "language": "en", "documents": 1, "queries": 1, "heard": 1, "out_of_step": 0, "detected": {},
    }  # fmt: skip


def test_repeats_are_found_among_many():
    keys = [f"k{n}" for n in range(5000)] + ["k7", "k4999", "k7"]
    noted = DuplicateFinder()
    for key in keys:
        noted.add(key)
    places = ((key, f"{number}") for number, key in enumerate(keys))
    assert list(noted.again(places)) == [
        ("k7", "7", "5000"),
        ("k4999", "4999", "5001"),
        ("k7", "7", "5002"),
    ]
    # Where no key comes twice there is no second pass.
    once = DuplicateFinder()
    assert list(once.again(pytest.fail("was read") for _ in range(1))) == []
    once.add("k7")
    assert list(once.again(pytest.fail("was read") for _ in range(1))) == []
