"""Answers that OpenSearch does not give, from something between it and langshift: nothing is believed that they say."""

from itertools import cycle, product, repeat

import pytest
from command_line import langshift
from faults import cut_after, cut_before, page, whole
from server_words import not_recovered, pressed
from shifted_index import Corpus, language_vectors, saved
from tenacity import wait_fixed
from wrong_answers import FORMS, Troubled, Wrong

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
def index(cluster_url, made, index_name, tmp_path):
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
    """The last line is one sentence, which names the address and the path."""
    assert (done.returncode, done.stdout) == (1, ""), (done, asked, form)
    sentence = done.stderr.splitlines()[-1]
    assert sentence.isprintable()
    if asked == "GET /":
        assert sentence.startswith(f"Error: The server at {url} is not an OpenSearch")
    else:
        assert sentence.startswith(f"Error: The server at {url} answered {asked.partition('/')[0]}/"), (done, asked)
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
    if command == "ingest":
        return load(made, f"{name}-new", **environment)
    if command in ("append", "replace", "new-version"):
        return load(made, name, "--if-exists", command, **environment)
    if command == "rollback":
        return langshift("rollback", name, **environment)
    return langshift("retune", name, "--alpha", 0.5, **environment)


WRITING = ("ingest", "append", "replace", "new-version", "retune", "rollback")


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("shift", range(0, len(NAMES), 8))
def test_a_wrong_answer_to_each_request_once_is_asked_for_again(client, proxy, index, made, tmp_path, command, shift):
    wrong = Wrong(NAMES[shift:] + NAMES[:shift], after=shift % 16 == 0)
    require_done_through(client, proxy, index, made, tmp_path, command, wrong)


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("shift", [0, 1])
def test_trouble_with_each_request_once_is_waited_out(client, proxy, index, made, tmp_path, command, shift):
    """Before a load or retune begins, between its requests and after them."""
    troubles = [whole(pressed()), page(502), cut_after, whole(not_recovered()), cut_before, page(503)]
    trouble = Troubled(troubles[shift * 3 :] + troubles[: shift * 3])
    require_done_through(client, proxy, index, made, tmp_path, command, trouble)


def test_where_nobody_waits_trouble_ends_a_load_at_once(proxy, made, index_name, tmp_path):
    proxy.inject("/", repeat(page(503)))
    done = load(made, index_name, "--patience", 0, OPENSEARCH_URL=proxy.url, LANGSHIFT_HOME=tmp_path)
    sentence = f"Error: The cluster at {proxy.url} answered 503: Service Unavailable.\n"
    assert done == (1, "", sentence)


def require_done_through(client, proxy, index, made, tmp_path, command, wrong):
    environment = {"OPENSEARCH_URL": proxy.url, "LANGSHIFT_HOME": tmp_path}
    if command == "rollback":
        assert run_of("retune", index, made, environment).returncode == 0
    _, documents = state(client, index)
    proxy.inject("/", repeat(wrong.answer))
    done = run_of(command, index, made, environment)
    assert done.returncode == 0, (done, wrong.given)
    assert len(wrong.given) >= 8, wrong.given
    live, now = state(client, f"{index}-new" if command == "ingest" else index)
    assert now.keys() == documents.keys()
    expected = {"ingest": 1, "append": 1, "replace": 2, "new-version": 2, "retune": 2, "rollback": 1}[command]
    assert live.endswith(f"-v{expected:04}")
    if command == "append":
        assert done.stdout.splitlines()[-1].endswith("8 replaced an earlier one with the same _id."), done


#: What a command believes of these decides what it publishes, removes or writes.
DANGEROUS = {
    "replace": (
        "GET /*",
        "PUT /name",
        "POST /name/_count",
        "POST /name/_mget",
        "POST /name/_refresh",
        "POST /_aliases",
    ),
    "retune": ("GET /_tasks", "GET /_tasks/name", "POST /_reindex", "GET /name/_stats/docs", "POST /_aliases"),
}


@pytest.mark.parametrize("command", DANGEROUS)
def test_a_request_that_is_always_answered_wrongly_leaves_the_old_or_the_new_version_live_and_whole(
    client, proxy, index, made, tmp_path, command
):
    before, forms = state(client, index), cycle(NAMES[::-1])
    for number, asked in enumerate(DANGEROUS[command]):
        environment = {"OPENSEARCH_URL": proxy.url, "LANGSHIFT_HOME": tmp_path / str(number)}
        # A pattern may find nothing.
        form = "HTML" if asked == "GET /*" else next(forms)
        wrong = replaced_by(proxy, forms=[form], only=asked)
        done = run_of(command, index, made, environment)
        assert wrong.given, (asked, wrong.asked)
        live, documents = state(client, index)
        if asked == "POST /_aliases":
            # It was done, which the next look shows.
            assert (done.returncode, live != before[0]) == (0, True), (done, form)
            assert documents.keys() == before[1].keys()
        else:
            require_told(done, proxy.url, asked, form)
            assert (live, documents) == before, asked
