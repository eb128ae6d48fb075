"""The reranker ``features`` on dense, anchored and auto, where it must lose nothing: docs/search.md has the figures.

XQuAD's odd articles with all translations of each passage, two and one, and captions that are asked for in other words,
by both encoders, each index calibrated; PEER of NTREX's documents, where a question has several answers a language.
"""

import json
from itertools import islice

import orjson
import pytest
from documents import DATA
from searched import drop

from langshift.evaluate.compare.significance import holm
from langshift.evaluate.replay.plan import run_names
from langshift.retrieval.request import read_setting

NAME = "langshift-evidence-rerank"
LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
MODES = ("dense", "anchored", "auto")
SETTINGS = [f"{mode}{more}" for mode in MODES for more in ("", " --rerank features")]
MEASURES = ("nDCG@20", "TLR@20", "SLR@20", "own@3", "LPR", "Lang_nDCG@20", "JS@20")
# What no part of the questions may lose, and how many make a part.
MOST_LOST, LEVEL, QUESTIONS = 0.005, 0.05, 300

pytestmark = pytest.mark.skipif(
    not (DATA / "xquad").is_dir(), reason=f"no XQuAD in {DATA}; LANGSHIFT_DATA names another place"
)


@pytest.fixture(scope="module")
def folders(done, tmp_path_factory):
    """Name -> folder of a dataset."""
    made = {f"captions, {kept}": DATA / "multi30k" / kept for kept in ("all", "one")}
    for name, keep in (("all", 8), ("two", 2), ("one", 1)):
        folder = tmp_path_factory.mktemp("xquad") / name
        options = ["--languages", LANGUAGES, "--multilingual-queries", "--split-by-article", "--keep", keep]
        done("dataset", "convert", "xquad", DATA / "xquad", folder, *options)
        made[f"XQuAD, {name}"] = folder / "test"
    return made


@pytest.fixture
def index(client, done):
    """Makes a calibrated index of a dataset; gives how far words and features may go in it."""
    drop(client, NAME)

    def make(folder, encoder):
        done("ingest", folder / "corpus.jsonl", "--index", NAME, "--encoder", encoder)
        found = json.loads(done("anchors", "calibrate", NAME, "--json"))
        return {"anchored": found["strength"], **{f"features on {mode}": far for mode, far in found["rerank"].items()}}

    yield make
    drop(client, NAME)


def compared(done, folder, output, measures):
    """What ``evaluate compare`` says of the settings, in order; the first run is dense."""
    given = [word for setting in SETTINGS for word in ("--setting", setting)]
    done("evaluate", "replay", folder, "--index", NAME, *given, "--output", output)
    names = run_names([NAME], [read_setting(setting) for setting in SETTINGS])
    options = ("--measures", " ".join(measures), "--json")
    return json.loads(done("evaluate", "compare", *(output / name for name in names), *options))


def figures_of(sections, measures):
    """Measure -> what is said of it over all relevant documents, of recall in one's own and other languages there."""
    found = {name: one for section in reversed(sections.values()) for name, one in section.items()}
    return {measure: found[measure] for measure in measures if measure in found}


def show(title, figures):
    print(f"| {title} | {' | '.join(figures)} |")
    for letter, setting in zip("abcdef", SETTINGS, strict=True):
        means = (one["means"][letter] for one in figures.values())
        cells = ("undefined" if mean is None else f"{mean:.4f}" for mean in means)
        print(f"| {setting} | {' | '.join(cells)} |")


@pytest.mark.parametrize("encoder", ["use-m", "e5-small"])
@pytest.mark.parametrize("name", ["XQuAD, all", "XQuAD, two", "XQuAD, one", "captions, all", "captions, one"])
def test_features_lose_nothing(done, folders, index, tmp_path, name, encoder):
    strengths = index(folders[name], encoder)
    found = compared(done, folders[name], tmp_path / "out", MEASURES)
    whole = figures_of(found["sections"], MEASURES)
    print(f"\n{name}, {encoder}, strengths {strengths}")
    show("all", whole)
    parts = {part: (one["queries"], figures_of(one["sections"], MEASURES)) for part, one in found["slices"].items()}
    for part, (questions, figures) in parts.items():
        show(f"{part}, {questions:,}", figures)
    # All of the questions where they are not parted.
    parts = parts or {"all": (found["dataset"]["queries"], whole)}
    tests = {
        (part, SETTINGS["abcdef".index(test["after"])], measure): test
        for part, (questions, figures) in parts.items()
        for measure in ("nDCG@20", "TLR@20", "own@3")
        for test in figures[measure]["tests"]
        if questions >= QUESTIONS and test["before"] == "a"
    }
    chances = holm([test["randomisation"] for test in tests.values()])
    losses = {key: test["difference"] for key, test in tests.items() if test["difference"] < 0}
    print("losses against dense:", {" ".join(key): round(lost, 4) for key, lost in losses.items()} or "none")
    assert not {key: lost for key, lost in losses.items() if lost < -MOST_LOST}
    sure = dict(zip(tests, chances, strict=True))
    assert not {key: sure[key] for key in losses if sure[key] < LEVEL}
    if (name, encoder) == ("XQuAD, all", "use-m"):
        means = whole["nDCG@20"]["means"]
        assert means["b"] >= means["a"] + 0.10


def write_news(folder):
    """NTREX's documents in passages of three sentences; each first sentence asks for the others of its document."""
    documents = (DATA / "ntrex" / "DOCUMENT_IDS.tsv").read_text(encoding="utf-8").split()
    tags = {"ar": "arb", "de": "deu", "en": "eng", "es": "spa", "ru": "rus", "th": "tha", "tr": "tur", "zh": "zho-CN"}
    corpus, queries, qrels = [], [], ["query-id\tcorpus-id\tscore"]
    for tag, file in tags.items():
        lines = (DATA / "ntrex" / f"{file}.txt").read_text(encoding="utf-8").splitlines()
        of = {}
        for document, line in zip(documents, lines, strict=True):
            of.setdefault(document, []).append(line)
        for document, sentences in of.items():
            query = f"{document}-{tag}"
            queries.append({"_id": query, "text": sentences[0], "language": tag, "group": document})
            rest = iter(sentences[1:])
            for number, passage in enumerate(iter(lambda: list(islice(rest, 3)), [])):  # noqa: B023 - used at once
                name, group = f"{document}-{number}-{tag}", f"{document}-{number}"
                corpus.append({"_id": name, "text": " ".join(passage), "language": tag, "group": group})
    names = {}
    for one in corpus:
        names.setdefault(one["group"].rpartition("-")[0], []).append(one["_id"])
    qrels += [f"{one['_id']}\t{name}\t1" for one in queries for name in names.get(one["group"], ())]
    (folder / "qrels").mkdir(parents=True)
    for file, lines in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (folder / file).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    (folder / "qrels" / "test.tsv").write_text("\n".join(qrels) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("encoder", ["use-m", "e5-small"])
def test_peer_where_a_language_has_several_answers(done, index, tmp_path, encoder):
    strengths = index(write_news(tmp_path / "news"), encoder)
    measures = ("nDCG@20", "TLR@20", "SLR@20", "PEER", "JS@20")
    found = compared(done, tmp_path / "news", tmp_path / "out", measures)
    figures = figures_of(found["sections"], measures)
    print(f"\nNTREX's documents, {encoder}, strengths {strengths}")
    show("setting", figures)
    print("questions with a PEER:", figures["PEER"]["queries"])
    assert all(figures["PEER"]["queries"].values())
    means = figures["nDCG@20"]["means"]
    assert all(mean >= means["a"] - MOST_LOST for mean in means.values())
