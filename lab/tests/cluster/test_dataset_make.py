"""``langshift dataset make`` on an index of the demo's documents, with a chat server and rerankers on this machine."""

import json
import os
import signal
import subprocess
import time
import uuid
from collections import Counter

import pytest
from anchored_corpus import corpus
from chat_server import chat_server, message
from command_line import LANGSHIFT
from given_data import run
from model_http import reply
from reranking_server import reranking_server
from searched import drop, make_index
from shifted_index import printed
from tiny_model import require_transformers, save_tiny_cross_encoder

from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.convert.snapshot import IndexSnapshot
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.plugin.versions import live
from langshift.retrieval.rerank.api import KEY as RERANKER_KEY
from langshift_lab.generation.generators import KEY

DOCUMENTS = {one["_id"]: one for one in corpus(languages=("de", "en", "th"))}
FILES = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "evidence.tsv", "answers.jsonl")
COUNT = 30
QUESTIONS = {
    "de": "Warum steigt und fällt das Meer zweimal am Tag?",
    "en": "Why does the sea rise and fall twice a day?",
    "th": "ทำไมทะเลจึงขึ้นและลงวันละสองครั้งเพราะดวงจันทร์",
}


def span_of(passage):
    """Some words of a passage: what a good generator copies."""
    return " ".join(passage.split()[1:10])


def answer(prompt):
    """A question in the words of its answer, so that words alone find it; all translations are the same."""
    if "Translate" in prompt:
        (tag,) = (tag for tag in QUESTIONS if f"with the tag {tag}," in prompt)
        return f"Here it is:\n```json\n{json.dumps({'question': QUESTIONS[tag]})}\n```"
    span = span_of(prompt.partition("Passage:\n")[2])
    return json.dumps({"question": f"{span} ?", "answer": span.replace(" ", "\n")})


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    name = f"langshift-test-make-{uuid.uuid4().hex[:8]}"
    make_index(client, tmp_path_factory.mktemp("make") / "corpus.jsonl", name, lines=[*DOCUMENTS.values()])
    yield name
    drop(client, name)


@pytest.fixture
def generator(monkeypatch, cluster_env):  # noqa: ARG001 - commands find the cluster
    monkeypatch.delenv(KEY, raising=False)
    with chat_server(answer) as running:
        yield running


@pytest.fixture
def reranker(monkeypatch):
    monkeypatch.delenv(RERANKER_KEY, raising=False)
    with reranking_server() as running:
        yield running


@pytest.fixture
def make(name, generator, reranker):
    """A function that makes a test set, and returns what the command did."""

    def make(out, *options, rerank=None):
        models = ("--generator", generator.name, "--rerank", rerank or reranker.name)
        return run("dataset", "make", name, out, *models, "--count", COUNT, *options)

    return make


def contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


def test_a_made_set_is_what_the_texts_say_and_can_be_replayed(make, name, generator, tmp_path):
    said = printed(make(tmp_path / "made", "--translate", "de,en", "--json"))
    data = load_dataset(tmp_path / "made")
    assert {one: document.language for one, document in data.documents.items()} == {
        one: document["language"] for one, document in DOCUMENTS.items()
    }
    texts = {
        one["_id"]: one["text"]
        for one in map(json.loads, (tmp_path / "made" / "corpus.jsonl").read_text().splitlines())
    }
    assert texts == {one: document["text"] for one, document in sorted(DOCUMENTS.items())}
    found = said["construction"]
    assert found["prompts"] == COUNT
    assert found["questions"] + sum(found["dropped"].values()) == COUNT
    own = [query for query in data.queries if "-" not in query.id]
    others = [query for query in data.queries if "-" in query.id]
    assert (found["questions"], found["translations"]["questions"]) == (len(own), len(others))
    assert len(own) > COUNT / 2
    assert found["thirds"] == dict.fromkeys(("first", "middle", "last"), pytest.approx(len(own) / 3, abs=4))
    # Every language has its share.
    assert {query.language for query in own} == {"de", "en", "th"}
    for query in own:
        ((document, position),) = data.evidence.positions[query.id].items()
        start, end = data.evidence.spans[query.id][document]
        text = texts[document]
        # The question is the span itself, and the span the answer.
        assert query.text == f"{' '.join(text[start:end].split())} ?"
        assert data.answers[query.id] == (text[start:end],)
        assert position == pytest.approx((start + end) / 2 / len(text), abs=1e-5)
        assert query.language == DOCUMENTS[document]["language"]
        # So do its translations in the index.
        group = DOCUMENTS[document]["group"]
        assert set(data.relevant(query.id)) == {one for one, its in DOCUMENTS.items() if its["group"] == group}
    for query in others:
        assert query.text == QUESTIONS[query.language]
        assert data.qrels[query.id] == data.qrels[query.id.partition("-")[0]]
        assert query.id not in data.answers
    replayed = printed(
        run("evaluate", "replay", tmp_path / "made", "--index", name, "--measures", "nDCG@10 PSI@10 TLR@10", "--json")
    )
    # Index and dataset hold the same documents, and name all languages.
    assert [one for one in replayed["warnings"] if not one.startswith("PSI@10: without any bias")] == []
    assert replayed["queries"]["asked"] == len(data.queries)
    assert replayed["measures"]["nDCG@10"] > 0.3
    assert replayed["measures"]["TLR@10"] is not None
    # Whoever makes it again with the same answers sends nothing.
    before = len(generator.prompts)
    (tmp_path / "made").rename(tmp_path / "first")
    printed(make(tmp_path / "made", "--translate", "de,en", "--json"))
    assert len(generator.prompts) == before
    assert contents(tmp_path / "made") == contents(tmp_path / "first")
    assert (tmp_path / "made.answers.sqlite").stat().st_mode & 0o777 == 0o600


def test_a_kill_sends_nothing_twice_and_the_set_is_the_same(make, name, generator, reranker, tmp_path):
    out = tmp_path / "killed"
    models = ["--generator", generator.name, "--rerank", reranker.name]
    command = [LANGSHIFT, "dataset", "make", name, out, *models, "--count", COUNT, "--seed", 3]
    generator.pause = 0.2
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(generator.prompts) < COUNT // 3 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.5)
    assert not out.exists()
    assert COUNT // 3 <= len(generator.prompts) < COUNT
    generator.pause = 0.0
    resumed = printed(run(*command[1:], "--json"))
    twice = [prompt for prompt, times in Counter(generator.prompts).items() if times > 1]
    # What was under way when it was killed, four at a time, was answered to nobody.
    assert len(twice) <= 4
    assert len(generator.prompts) == COUNT + len(twice)
    again = printed(make(tmp_path / "again", "--seed", 3, "--json"))
    assert again["construction"] == resumed["construction"]
    assert contents(tmp_path / "again") == contents(out)


def test_a_cross_encoder_chooses_the_same_questions_each_time(make, generator, tmp_path):
    require_transformers()
    model = f"st:{save_tiny_cross_encoder(tmp_path / 'tiny')}"
    said = printed(make(tmp_path / "made", "--json", rerank=model))["construction"]
    # Random weights prefer at random, and something else to most.
    assert said["dropped"]["not_preferred"] > 0
    assert said["dropped"]["answered_elsewhere"] > 0
    assert said["questions"] == len(load_dataset(tmp_path / "made").queries) > 0
    (tmp_path / "made").rename(tmp_path / "first")
    # The answers are the same, so another set of them is made without a prompt.
    assert printed(make(tmp_path / "made", "--json", rerank=model))["construction"] == said
    assert contents(tmp_path / "made") == contents(tmp_path / "first")
    assert len(generator.prompts) == COUNT


def test_what_a_bad_generator_writes_is_counted_and_left_out(make, generator, reranker, tmp_path):
    faults = {}

    def bad(prompt):
        if "Passage:" not in prompt:
            return answer(prompt)
        good = json.loads(answer(prompt))
        number = faults.setdefault(prompt, len(faults))
        return {
            0: "I think that this passage is about many things.",
            1: json.dumps({"question": "!?", "answer": good["answer"]}),
            2: json.dumps(good | {"answer": 7}),
            3: message("", refusal="I cannot help with that."),
            4: '{"question": null}',
            5: json.dumps(good | {"answer": f"not {good['answer']}"}),
            6: json.dumps(good | {"question": "De quoi parle le texte que voici, et pourquoi est-il si long ?"}),
            7: json.dumps(good | {"question": "12 dies und das 34"}),
            8: json.dumps(good | {"question": "12 dies und das 34"}),
        }.get(number, json.dumps(good))

    generator.answer = bad
    said = printed(make(tmp_path / "made", "--json"))["construction"]
    assert {why: said["dropped"][why] for why in ("unreadable", "refused", "span_not_found", "wrong_language")} == {
        "unreadable": 3,
        "refused": 2,
        "span_not_found": 1,
        "wrong_language": 1,
    }
    assert said["dropped"]["repeated"] == 2
    texts = [query.text for query in load_dataset(tmp_path / "made").queries]
    assert not [text for text in texts if text.startswith(("De quoi", "12 dies", "!"))]
    # The same for a person, and translations that are none.
    generator.answer = lambda prompt: bad(prompt) if "Passage:" in prompt else json.dumps({"question": QUESTIONS["th"]})
    shown = make(tmp_path / "again", "--translate", "en")
    assert shown.exit_code == 0, (shown.output, shown.exception)
    assert f"{COUNT} documents drawn, a question on each: up to {2 * COUNT} prompts, and about {20 * COUNT} texts " in (
        " ".join(shown.stderr.split())
    )
    words = " ".join(shown.stdout.split())
    assert "the answer has no question that can be used 3 10.0%" in words
    assert "it is in another language" in words
    # A reranker that prefers nothing, and one to which all texts are as good.
    reranker.score = lambda *_: 1.0
    none = make(tmp_path / "none")
    assert isinstance(none.exception, LangshiftError)
    assert str(none.exception).startswith("None of the 30 questions can be used, and nothing was written: the reranker")
    assert not (tmp_path / "none").exists()
    # To this one, every text is as good from which nothing was taken.
    whole = {f"{one['title']}. {one['text']}" for one in DOCUMENTS.values()}
    reranker.score = lambda _, text: float(text in whole)
    assert "another document answers as well (" in str(make(tmp_path / "none").exception)


def test_what_cannot_be_made(make, generator, tmp_path):
    def refused(kind, *arguments, **how):
        done = make(*arguments, **how)
        assert type(done.exception) is kind, (done.output, done.exception)
        return str(done.exception)

    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "corpus.jsonl").write_text("{}")
    assert refused(UsageError, taken) == (
        f"{taken} is not empty: name a folder that does not exist yet, or empty this one."
    )
    out = tmp_path / "out"
    assert refused(UsageError, out, "--translate", "de,tlh") == (
        "--translate tlh: the detector does not know the language, so no translation could be checked. Leave it out."
    )
    assert refused(UsageError, out, rerank="features").startswith("--rerank features reads no texts:")
    # Whatever the server does, the answers so far stay, and nothing else does.
    generator.faults = [None] * 3 + [reply(401, {"error": "who are you"})] * 20
    assert "401" in refused(LangshiftError, out)
    assert not out.exists()
    assert {path.name for path in tmp_path.iterdir()} <= {
        "taken",
        *(f"out.answers.sqlite{end}" for end in ("", "-wal", "-shm")),
    }
    generator.faults = []
    before = len(generator.prompts)
    printed(make(out, "--json"))
    assert len(generator.prompts) - before < COUNT


def test_of_an_index_of_chunks_whole_documents_are_drawn(client, generator, reranker, tmp_path):
    chunked = f"langshift-test-make-{uuid.uuid4().hex[:8]}"
    path, out = tmp_path / "corpus.jsonl", tmp_path / "made"
    lines = [DOCUMENTS[name] for name in sorted(DOCUMENTS)[:24]]
    lines[0] = lines[0] | {"text": f"{lines[0]['text']}\n\n{lines[1]['text']}"}
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    done = run("ingest", path, "--index", chunked, "--encoder", "use-m", "--chunk", "sentences:1")
    assert done.exit_code == 0, (done.output, done.exception)
    try:
        index = live(client, chunked)
        assert index.documents > len(lines)
        whole = list(IndexSnapshot.of(client, index).documents())
        assert [tuple(one) for one in whole] == [
            (one["_id"], one["language"], one["title"], one["text"], one["group"]) for one in lines
        ]
        models = ("--generator", generator.name, "--rerank", reranker.name)
        made = printed(run("dataset", "make", chunked, out, *models, "--count", 12, "--json"))
        assert made["documents"] == len(lines)
        replayed = printed(
            run("evaluate", "replay", out, "--index", chunked, "--measures", "nDCG@10 EvidenceHit@10", "--json")
        )
        assert replayed["warnings"] == []
        # The passage that is found is the one with the words of the question.
        assert replayed["measures"]["EvidenceHit@10"] > 0.3
    finally:
        drop(client, chunked)
