"""``langshift evaluate rag`` on a real index and with a chat server whose answers follow from the prompt, by hand."""

import json
import math
import uuid

import pytest
from chat_server import chat_server, message
from click.testing import CliRunner
from data_folder import write_dataset
from given_data import write_lines
from model_http import reply

from langshift.commands.evaluate import evaluate
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import VectorSpec
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.plugin.inventory import drop_all
from langshift_lab.generation.generators import KEY

pytestmark = pytest.mark.usefixtures("cluster_env")

DOCUMENTS = {
    "g1-en": ("en", "g1", "The tower in Paris was finished in 1889."),
    "g1-de": ("de", "g1", "Der Turm in Paris wurde 1889 fertig."),
    "g1-es": ("es", "g1", "La torre de París se terminó en 1889."),
    "g2-en": ("en", "g2", "Mount Everest in Nepal is the highest mountain."),
    "g2-de": ("de", "g2", "Der Mount Everest in Nepal ist der höchste Berg."),
}
QUERIES = {
    "q1-de": ("de", "g1", "A", "Wann wurde der Turm in Paris fertig?"),
    "q1-es": ("es", "g1", "A", "¿Cuándo se terminó la torre de París?"),
    "q2-de": ("de", "g2", "B", "Welcher Berg ist der höchste?"),
    "q2-es": ("es", "g2", "B", "¿Qué montaña es la más alta?"),
    "q3-en": ("en", "g1", "A", "Who built the tower?"),
}
REFERENCES = {"q1-de": ["1889"], "q1-es": ["1889"], "q2-de": ["Mount Everest"], "q2-es": ["monte Everest"]}
# Cosine with questions on the tower, and on the mountain: the former find g1-en, g1-de, g1-es, g2-en, g2-de, the latter
# g2-de, g2-en, g1-es, g1-de, g1-en.
COSINES = {"g1-en": (0.9, 0.0), "g1-de": (0.8, 0.1), "g1-es": (0.7, 0.2), "g2-en": (0.2, 0.6), "g2-de": (0.1, 0.9)}
SENTENCES = {
    ("q1", "en"): "The tower was finished in the year 1889 in Paris.",
    ("q1", "de"): "Der Turm wurde im Jahr 1889 in Paris fertig.",
    ("q1", "es"): "La torre se terminó en el año 1889 en la ciudad de París.",
    ("q2", "en"): "The highest mountain on Earth is Mount Everest in Nepal.",
    ("q2", "de"): "Der höchste Berg der Erde ist der Mount Everest in Nepal.",
}
NOTHING = "I cannot say anything at all of that."


def answer(prompt):
    """In the question's language where a passage in it is there, else in English; nothing where no passage tells."""
    query = next(name for name, (*_, text) in QUERIES.items() if text in prompt)
    topic, language = query.split("-")
    given = [name for name, (*_, text) in DOCUMENTS.items() if text in prompt]
    if not given:
        return "" if topic == "q1" else message(None, refusal="I cannot help with that.")
    if not any(name.startswith(topic.replace("q", "g")) for name in given):
        return NOTHING
    own = any(name.endswith(language) for name in given)
    return SENTENCES[topic, language if own else "en"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    qrels = {query: {name: 1 for name in DOCUMENTS if name[:2] == group} for query, (_, group, *_) in QUERIES.items()}
    folder = write_dataset(tmp_path_factory.mktemp("rag") / "data", DOCUMENTS, QUERIES, qrels)
    vectors = {name: [a, b, math.sqrt(1 - a * a - b * b)] for name, (a, b) in COSINES.items()}
    vectors |= {name: [1, 0, 0] if "q1" in name or "q3" in name else [0, 1, 0] for name in QUERIES}
    for file in ("corpus.jsonl", "queries.jsonl"):
        rows = map(json.loads, (folder / file).read_text(encoding="utf-8").splitlines())
        write_lines(folder / file, [row | {"embedding": vectors[row["_id"]]} for row in rows])
    write_lines(folder / "answers.jsonl", [{"query": name, "answers": known} for name, known in REFERENCES.items()])
    return folder


@pytest.fixture(scope="module")
def index(client, data):
    name = f"langshift-test-rag-{uuid.uuid4().hex[:8]}"
    pipeline = build_pipeline(open_encoder("given", vector_spec=VectorSpec(3, False)), open_detector(), None, 0.0)
    load(client, str(data / "corpus.jsonl"), name, pipeline)
    yield name
    drop_all(client, name)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv(KEY, raising=False)
    with chat_server(answer) as running:
        yield running


def run(*arguments):
    return CliRunner().invoke(evaluate, ["rag", *map(str, arguments)])


def done(*arguments):
    ran = run(*arguments, "--json")
    assert ran.exit_code == 0, (ran.output, ran.exception)
    return json.loads(ran.stdout)


def contexts(*names):
    return [word for name in names for word in ("--context", name)]


def measures(condition):
    names = ("queries", "left_out", "3-gram recall", "containment", "exact match", "F1", "language coherence")
    return [condition[name] for name in (*names, "undecided")]


PRESENT = "answer string present in what was found"
# "mount everest" and "monte everest" share " ev", "eve", "ver", "ere", "res" and "est" of eleven 3-grams.
SHARED = 6 / 11


def test_every_figure_is_as_worked_out_by_hand(data, index, server, tmp_path):
    names = ("gold-en", "gold-own", "retrieved:2", "language-wise:1", "none")
    out = tmp_path / "out"
    found = done(data, "--index", index, *contexts(*names), "--generator", server.name, "--output", out)
    conditions = found["conditions"]
    assert list(conditions) == list(names)
    assert found["queries"] == {"asked": 4, "without_answers": 1}
    approx = pytest.approx
    # All answers are English. F1: one token of ten in common with "1889", two with "mount everest", one with "monte".
    f1 = (2 / 11 + 2 / 11 + 4 / 12 + 2 / 12) / 4
    assert measures(conditions["gold-en"]) == [4, 0, approx((3 + SHARED) / 4), 0.75, 0, approx(f1), 0, 0]
    # There is no Spanish passage on the mountain. Articles count as in MLQA: 8, 10 and 8 tokens are left.
    f1 = (2 / 9 + 2 / 11 + 4 / 10) / 3
    assert measures(conditions["gold-own"]) == [3, 1, 1, 1, 0, approx(f1), 1, 0]
    # English and German passages: German questions are answered in German, Spanish ones in English.
    f1 = (2 / 9 + 2 / 11 + 4 / 10 + 2 / 12) / 4
    assert measures(conditions["retrieved:2"]) == [4, 0, approx((3 + SHARED) / 4), 0.75, 0, approx(f1), 0.5, 0]
    german = conditions["retrieved:2"]["by_language"]["de"]
    assert (german["queries"], german["3-gram recall"], german["language coherence"]) == (2, 1, 1)
    # The first of the best answers counts: that from g1-en, and that from g2-de.
    f1 = (2 / 11 + 2 / 11 + 4 / 10 + 2 / 12) / 4
    assert measures(conditions["language-wise:1"]) == [4, 0, approx((3 + SHARED) / 4), 0.75, 0, approx(f1), 0.25, 0]
    assert measures(conditions["none"]) == [4, 0, 0, 0, 0, 0, None, 1]
    assert conditions["none"]["answers"] == {"asked": 4, "empty": 4, "cut_off": 0, "refused": 2}
    assert conditions["language-wise:1"]["answers"] == {"asked": 12, "empty": 0, "cut_off": 0, "refused": 0}
    assert [conditions[name].get(PRESENT) for name in names] == [0.75, 1, 0.75, 0.75, None]
    check_correlation_and_oracle(conditions)
    check_tests(found)
    check_files(out, names, found)
    # What was answered once is not asked again, neither then nor now.
    assert len(server.prompts) == len(set(server.prompts))
    asked = len(server.prompts)
    again = done(data, "--index", index, *contexts(*names), "--generator", server.name, "--output", out)
    assert (again["conditions"], len(server.prompts)) == (conditions, asked)


def check_correlation_and_oracle(conditions):
    # Mean scores (1 + cos) / 2 of .925 and .875, recalls of 1, 1, 1 and 6/11: r = 1/√3, and t = 1 with 2 degrees of
    # freedom, p = 1 - 1/√3.
    correlation = {"pearson": pytest.approx(3**-0.5, abs=1e-5), "p": pytest.approx(1 - 3**-0.5, abs=1e-5), "queries": 4}
    assert conditions["retrieved:2"]["correlation"] == correlation
    assert conditions["language-wise:1"]["correlation"] is None
    # On the tower all three languages answer; on the mountain German and English do, each half.
    oracle, shares = conditions["language-wise:1"]["oracle"], {"de": 5 / 12, "en": 5 / 12, "es": 1 / 6}
    js = math.sqrt((math.log(12 / 11) + 5 / 6 * math.log(10 / 11) + math.log(2) / 6) / 2)
    entropy = -5 / 6 * math.log(5 / 12) - math.log(1 / 6) / 6
    row = {
        "queries": 2,
        "retrieved": {"de": 0.5, "en": 0.5},
        "oracle": pytest.approx(shares),
        "JS": pytest.approx(js),
        "KL": pytest.approx(math.log(6 / 5), abs=1e-4),
        "entropy_retrieved": pytest.approx(math.log(2)),
        "entropy_oracle": pytest.approx(entropy),
    }
    assert oracle["by_language"] == {"de": row, "es": row}
    assert (oracle["JS"], oracle["entropy_oracle"], oracle["all_zero"]) == (
        pytest.approx(js),
        pytest.approx(entropy),
        0,
    )
    assert conditions["gold-en"]["oracle"] is None


def check_tests(found):
    assert (found["test"]["clustered_by"], found["test"]["clusters"], found["test"]["correction"]) == (
        "article",
        2,
        "Holm",
    )
    tests = {(one["before"], one["after"], one["measure"]): one for one in found["differences"]}
    coherence = tests["gold-en", "gold-own", "language coherence"]
    # Differences of 1: two questions of article A and one of B; of four ways to flip signs two are as extreme.
    figures = (coherence["difference"], coherence["queries"], coherence["randomisation"], coherence["corrected"])
    assert figures == (1, 3, 0.5, 1)
    assert tests["retrieved:2", "none", "3-gram recall"]["difference"] == pytest.approx(-(3 + SHARED) / 4)
    # Undecided answers are in no test.
    assert ("retrieved:2", "none", "language coherence") not in tests


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def check_files(out, names, found):
    folders = [name.replace(":", "-") for name in names]
    assert {path.name for path in out.iterdir()} == {*folders, "rag.json", "answers.sqlite"}
    assert json.loads((out / "rag.json").read_text(encoding="utf-8")) == found
    rows = lines_of(out / "language-wise-1" / "answers.jsonl")
    assert [(row["query"], row["documents_in"], row["documents"]) for row in rows[:3]] == [
        ("q1-de", "en", ["g1-en"]),
        ("q1-de", "de", ["g1-de"]),
        ("q1-de", "es", ["g1-es"]),
    ]
    first = rows[0]
    assert (first["language"], first["answer"], first["finish"]) == ("de", SENTENCES["q1", "en"], "stop")
    assert (first["measures"]["3-gram recall"], first["measures"]["language coherence"]) == (1, 0)
    refused = lines_of(out / "none" / "answers.jsonl")[2]
    assert (refused["query"], refused["answer"], refused["finish"], refused["documents"]) == (
        "q2-de",
        "",
        "refusal",
        [],
    )


def test_without_a_generator_only_what_was_found_is_looked_at(data, index, tmp_path):
    ran = run(data, "--index", index, *contexts("gold-en", "retrieved:2", "language-wise:1"), "--output", tmp_path)
    assert ran.exit_code == 0, (ran.output, ran.exception)
    assert "Answer string present in what was found\n" in ran.stdout
    assert "accuracy" not in ran.stdout
    assert "so it rewards the overlap of words" in ran.stderr
    found = json.loads((tmp_path / "rag.json").read_text(encoding="utf-8"))
    for condition in found["conditions"].values():
        assert (condition[PRESENT], condition["answers"]["asked"]) == (0.75, 0)
        assert not condition.keys() & {"3-gram recall", "containment", "exact match", "F1", "language coherence"}
        assert (condition["correlation"], condition["oracle"]) == (None, None)
    assert found["generator"] is None
    assert {one["measure"] for one in found["differences"]} == {PRESENT}
    assert not (tmp_path / "answers.sqlite").exists()


def test_gold_passages_need_no_index(data, server):
    found = done(data, *contexts("gold-own"), "--generator", server.name)
    assert (found["index"], found["conditions"]["gold-own"]["containment"]) == (None, 1)


def test_tables_show_what_json_has(data, index, server):
    ran = run(data, "--index", index, *contexts("retrieved:2", "language-wise:1"), "--generator", server.name)
    assert ran.exit_code == 0, (ran.output, ran.exception)
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert ["context", "all", "de", "es"] in lines
    assert ["retrieved:2", ".8864", "1.0000", ".7727"] in lines
    assert ["retrieved:2", "4", "0", "4", "0", "0", "0", ".000"] in lines
    assert "retrieved:2: mean score and 3-gram recall correlate by +.577 (Pearson; p .4226, 4 queries)." in ran.stdout
    assert "language-wise:1: languages of the documents retrieved, and the oracle's" in ran.stdout


def refused(kind, *arguments):
    ran = run(*arguments)
    assert type(ran.exception) is kind, (ran.output, ran.exception)
    assert ran.stdout == ""
    return str(ran.exception)


def test_what_cannot_be_evaluated_is_refused_in_one_sentence(data, server, folder, tmp_path):
    assert refused(UsageError, data, *contexts("retrieved:2")) == (
        "--context retrieved:2 needs a search: name the index with --index."
    )
    assert refused(UsageError, data, *contexts("none")) == (
        "--context none needs a generator: name one with --generator, or leave the context out."
    )
    wrong = ("--index", "any", "--setting", "hybrid --prefer-language much")
    assert refused(UsageError, data, *contexts("retrieved:2"), *wrong).startswith(
        "The setting 'hybrid --prefer-language much' cannot be used: "
    )
    forms = "gold-en, gold-own, retrieved:K, language-wise:K or none, where K is a number of documents from 1 to 50"
    for wrong in ("gold", "retrieved:many"):
        assert refused(UsageError, data, *contexts(wrong)) == (
            f"--context {wrong}: there is no such context; give {forms}."
        )
    assert refused(UsageError, folder, *contexts("gold-en")) == (
        f"{folder} has no reference answers (answers.jsonl), which answers are compared with: convert the dataset anew "
        "with langshift dataset convert, or write the file."
    )
    gold = [data, *contexts("gold-en"), "--generator"]
    assert refused(LangshiftError, *gold, "http:http://127.0.0.1:9#m") == (
        "The generation server at http://127.0.0.1:9 cannot be reached: check that it is running and that this is its "
        "address."
    )
    server.faults = [reply(413, {"error": "prompt too long"})] * 4
    out = tmp_path / "out"
    assert refused(LangshiftError, *gold, server.name, "--output", out).endswith(
        "(413: prompt too long): give it fewer passages, or run the model with a longer context."
    )
    # Nothing but the answers so far is there.
    assert {path.suffix.partition("-")[0] for path in out.iterdir()} == {".sqlite"}
