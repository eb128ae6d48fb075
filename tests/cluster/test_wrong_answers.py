"""Answers that OpenSearch does not give, from something between it and langshift: nothing is believed that they say."""

import json
from itertools import product, repeat

import pytest
from command_line import langshift
from given_data import write_lines
from shifted_index import Corpus, language_vectors, saved
from tenacity import wait_fixed
from wrong_answers import FORMS, Wrong

from langshift import retry
from langshift.plugin.inventory import drop_all

NAMES = list(FORMS)
VECTORS = language_vectors(alpha=0.75)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Without pauses between two tries."""
    monkeypatch.setattr(retry, "BACKOFF", wait_fixed(0.01))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A corpus, and the file of its language vectors."""
    folder = tmp_path_factory.mktemp("corpus")
    return Corpus(folder, each=1), saved(folder, VECTORS)


@pytest.fixture(scope="module")
def read_only(client, cluster_url, made, tmp_path_factory):
    """An index that commands only read."""
    name = "langshift-test-wrong-answers"
    drop_all(client, name)
    done = load(made, name, OPENSEARCH_URL=cluster_url, LANGSHIFT_HOME=tmp_path_factory.mktemp("home"))
    assert done.returncode == 0, done
    yield name
    drop_all(client, name)


@pytest.fixture
def index(client, cluster_url, made, index_name, tmp_path):
    """An index of its own."""
    assert load(made, index_name, OPENSEARCH_URL=cluster_url, LANGSHIFT_HOME=tmp_path / "before").returncode == 0
    return index_name


def load(made, name, *options, **environment):
    corpus, vectors = made
    return langshift(
        "ingest", corpus.path, "--index", name, "--encoder", "given", "--vectors", vectors, *options, **environment
    )


def state(client, name):
    """What the alias stands for, and every document with its vector."""
    (live,) = client.indices.get_alias(name=name)
    client.indices.refresh(index=name)
    hits = client.search(index=name, body={"size": 1000})["hits"]["hits"]
    return live, {hit["_id"]: hit["_source"]["embedding"] for hit in hits}


def require_told(done, url, asked, form):
    """One sentence, which names the address and the path."""
    assert (done.returncode, done.stdout) == (1, ""), (done, asked, form)
    assert done.stderr.startswith("Error: "), (done, asked)
    sentence = done.stderr.splitlines()[-1]
    assert sentence.isprintable()
    if asked == "GET /":
        assert f"The server at {url} is not an OpenSearch" in sentence
    else:
        assert f"The server at {url} answered {asked.partition('/')[0]}/" in sentence, (done, asked)
        assert "check what stands between langshift and OpenSearch, such as a proxy." in sentence


def replaced_by(proxy, **how):
    wrong = Wrong(**how)
    proxy.clear()
    proxy.inject("/", repeat(wrong.answer))
    return wrong


READING = {
    "search": ("search", "{}", "words", "--mode", "lexical"),
    "describe": ("index", "describe", "{}"),
    "list": ("index", "list"),
    "pipeline status": ("pipeline", "verify", "{}"),
}


#: What OpenSearch does answer: a server without any plugin, and where what is empty is left out.
POSSIBLE = {("GET /_cat/plugins", "[]"), ("GET /*/_stats/store", "{}")}


@pytest.mark.parametrize("command", READING)
def test_whoever_reads_is_told_what_was_asked_and_what_came_back(client, proxy, read_only, tmp_path, command):
    """Each endpoint that a command asks answers in each form."""
    arguments = [part.format(read_only) for part in READING[command]]
    environment = {"OPENSEARCH_URL": proxy.url, "LANGSHIFT_HOME": tmp_path}
    seen = replaced_by(proxy)
    langshift(*arguments, **environment)
    before = state(client, read_only)
    for asked, form in product(set(seen.asked) - {"GET /*"}, NAMES):
        wrong = replaced_by(proxy, forms=[form], only=asked)
        done = langshift(*arguments, **environment)
        assert wrong.given, (asked, form)
        assert "There is no index" not in done.stderr, (asked, form)
        if (asked, form) not in POSSIBLE:
            require_told(done, proxy.url, asked, form)
    assert state(client, read_only) == before


def run_of(command, name, made, environment):
    corpus, vectors = made
    if command == "ingest":
        return load(made, f"{name}-new", **environment)
    if command in ("append", "replace", "new-version"):
        return load(made, name, "--if-exists", command, **environment)
    if command == "adopt":
        fields = ("--vector-field", "embedding", "--text-field", "text.en", "--language-field", "language")
        options = ("--encoder", "given", "--alpha", 0)
        return langshift("adopt", "old-" + name, "--name", f"{name}-new", *fields, *options, **environment)
    if command == "rollback":
        return langshift("rollback", name, **environment)
    return langshift("retune", name, "--alpha", 0.5, **environment)


WRITING = ("ingest", "append", "replace", "new-version", "retune", "rollback")


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("shift", range(0, len(NAMES), 4))
def test_a_wrong_answer_to_each_request_once_is_asked_for_again(client, proxy, index, made, tmp_path, command, shift):
    environment = {"OPENSEARCH_URL": proxy.url, "LANGSHIFT_HOME": tmp_path}
    if command == "rollback":
        assert run_of("retune", index, made, environment).returncode == 0
    _, documents = state(client, index)
    wrong = replaced_by(proxy, forms=NAMES[shift:] + NAMES[:shift], after=shift % 8 == 0)
    done = run_of(command, index, made, environment)
    assert done.returncode == 0, (done, wrong.given)
    assert len(wrong.given) >= 8, wrong.given
    live, now = state(client, f"{index}-new" if command == "ingest" else index)
    assert now.keys() == documents.keys()
    expected = {"ingest": 1, "append": 1, "replace": 2, "new-version": 2, "retune": 2, "rollback": 1}[command]
    assert live.endswith(f"-v{expected:04}")
    if command == "append":
        assert done.stdout.splitlines()[-1].endswith("9 replaced an earlier one with the same _id."), done


DANGEROUS = (
    "GET /name", "GET /name/_settings", "GET /name/_mapping", "PUT /name", "PUT /name/_settings", "POST /name/_refresh",
    "POST /name/_count", "POST /name/_search", "POST /_aliases", "POST /_mget", "GET /_alias/name",
    "GET /name/_stats/docs", "POST /_reindex", "GET /_tasks", "GET /_tasks/name", "PUT /name/_block/write",
    "PUT /name/_mapping", "POST /name/_mget",
)  # fmt: skip


@pytest.mark.parametrize("command", ["replace", "retune"])
def test_a_request_that_is_always_answered_wrongly_ends_the_command_and_nothing_is_published(
    client, proxy, index, made, tmp_path, command
):
    before = state(client, index)
    seen = replaced_by(proxy)
    forms = iter(NAMES * 10)
    met = 0
    for asked in DANGEROUS:
        environment = {"OPENSEARCH_URL": proxy.url, "LANGSHIFT_HOME": tmp_path / str(met)}
        wrong = replaced_by(proxy, forms=[next(forms)], only=asked)
        done = run_of(command, index, made, environment)
        if not wrong.given:
            break
        met += 1
        assert "There is no index" not in done.stderr
        if done.returncode == 0:
            break
        require_told(done, proxy.url, asked.split(" "))
        live, documents = state(client, index)
        assert (live, documents) == before or len(documents) == len(before[1])
        proxy.clear()
    assert met
    assert seen is not None
