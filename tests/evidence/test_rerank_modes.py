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
from langshift.retrieval.settings import format_settings, read_setting

NAME = "langshift-evidence-rerank"
LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
MODES = ("dense", "anchored", "auto")
SETTINGS = [f"{mode}{more}" for mode in MODES for more in ("", " --rerank features")]
MEASURES = ("nDCG@20", "TLR@20", "SLR@20", "LPR", "Lang_nDCG@20", "JS@20")
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


def compared(done, folder, settings, measures):
    given = [word for setting in settings for word in ("--setting", setting)]
    command = ("evaluate", "modes", folder, "--index", NAME, *given, "--measures", " ".join(measures), "--json")
    return json.loads(done(*command))


def show(rows, measures):
    for row in rows:
        figures = (row["measures"][measure] for measure in measures)
        cells = ("undefined" if one is None else f"{one:.4f}" for one in figures)
        print(f"| {row['name']} | {' | '.join(cells)} |")


def parts_of(found):
    """Part of the questions -> how many, and its rows; all of them where they are not parted."""
    parts = {name: (one["queries"], one["rows"]) for name, one in found["slices"].items()}
    return parts or {"all": (found["dataset"]["queries"], found["rows"])}


@pytest.mark.parametrize("encoder", ["use-m", "e5-small"])
@pytest.mark.parametrize("name", ["XQuAD, all", "XQuAD, two", "XQuAD, one", "captions, all", "captions, one"])
def test_features_lose_nothing(done, folders, index, name, encoder):
    strengths = index(folders[name], encoder)
    found = compared(done, folders[name], SETTINGS, MEASURES)
    print(f"\n{name}, {encoder}, strengths {strengths}\n| all | {' | '.join(MEASURES)} |")
    show(found["rows"], MEASURES)
    for part, one in found["slices"].items():
        print(f"| {part}, {one['queries']:,} | {' | '.join(MEASURES)} |")
        show(one["rows"], MEASURES)
    later = [format_settings(read_setting(setting)) for setting in SETTINGS[1:]]
    tests = {
        (part, row["name"], measure): row["tests"][measure]
        for part, (questions, rows) in parts_of(found).items()
        for row in rows
        for measure in ("nDCG@20", "TLR@20")
        if questions >= QUESTIONS and row["name"] in later and measure in row["tests"]
    }
    chances = holm([test["randomisation"] for test in tests.values()])
    losses = {key: test["difference"] for key, test in tests.items() if test["difference"] < 0}
    print("losses against dense:", {" ".join(key): round(lost, 4) for key, lost in losses.items()} or "none")
    assert not {key: lost for key, lost in losses.items() if lost < -MOST_LOST}
    sure = dict(zip(tests, chances, strict=True))
    assert not {key: sure[key] for key in losses if sure[key] < LEVEL}
    if (name, encoder) == ("XQuAD, all", "use-m"):
        before, after = (row["measures"]["nDCG@20"] for row in found["rows"][:2])
        assert after >= before + 0.10


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
    found = compared(done, tmp_path / "news", SETTINGS, measures)
    print(f"\nNTREX's documents, {encoder}, strengths {strengths}\n| setting | {' | '.join(measures)} |")
    show(found["rows"], measures)
    queries = {row["name"]: row["queries"]["PEER"] for row in found["rows"]}
    print("questions with a PEER:", queries)
    assert all(queries.values())
    dense = found["rows"][0]["measures"]["nDCG@20"]
    assert all(row["measures"]["nDCG@20"] >= dense - MOST_LOST for row in found["rows"])
