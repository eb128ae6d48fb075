"""The encoder ``http:``, against a real HTTP server on this machine."""

import json
import signal
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import trustme
from command_line import LANGSHIFT, langshift, refusal
from embeddings_server import DIMENSION, MODEL, embeddings_server, vector
from model_http import changed, cut, reply

from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.embeddings_api import EMBEDDING_SERVER, KEY, batches
from langshift.debias.vectors import LanguageVectors
from langshift.errors import FingerprintError, LangshiftError, UsageError
from langshift.model_server import FIRST, PATIENT, parse_address

TEXTS = [f"text {number}" for number in range(500)]
BUSY = reply(503, {"error": "loading"})


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv(KEY, raising=False)


@pytest.fixture
def server():
    with embeddings_server() as server:
        yield server


@pytest.fixture
def encoder(server):
    opened = open_encoder(server.name)
    server.asked.clear()
    return opened


def expected(texts, **how):
    return np.stack([vector(text, **how) for text in texts])


def message(error, work):
    with pytest.raises(error) as caught:
        work()
    assert type(caught.value) is error
    return str(caught.value)


def test_vectors_come_in_the_order_of_the_texts_in_batches_side_by_side(server, encoder):
    server.pause = 0.02
    vectors = encoder.encode_documents(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((500, DIMENSION), np.float32)
    # The server gives each answer's vectors in reverse.
    assert np.array_equal(vectors, expected(TEXTS))
    assert sorted(map(len, server.asked)) == [52, *[64] * 7]
    assert 1 < server.most_at_once <= 4
    assert np.array_equal(encoder.encode_queries(TEXTS[:3]), vectors[:3])
    assert encoder.encode_queries([]).shape == (0, DIMENSION)


def test_what_the_encoder_is(server, encoder):
    assert (encoder.id, encoder.revision) == (f"http:{server.url}#{MODEL}", MODEL)
    assert (encoder.dimension, encoder.normalised, encoder.longest) == (DIMENSION, True, None)
    server.normalised = False
    assert open_encoder(server.name).normalised is False


def test_a_batch_is_bounded_in_bytes_too():
    long, short = "é" * 200_000, "a"
    assert list(batches([short, long, short, long, short], 64)) == [[short, long, short], [long, short]]
    assert list(batches(["x" * (1 << 20)] * 2, 64)) == [["x" * (1 << 20)]] * 2
    assert list(batches(["a"] * 5, 2)) == [["a", "a"], ["a", "a"], ["a"]]


@pytest.mark.parametrize(
    ("written", "root", "model"),
    [
        ("http:http://localhost:8080#m", "http://localhost:8080", "m"),
        ("http://localhost:8080/#m", "http://localhost:8080", "m"),
        ("http:HTTP://LocalHost:8080/v1#m", "http://localhost:8080", "m"),
        ("http://localhost:80/v1/embeddings#m", "http://localhost", "m"),
        ("http:https://host:443/team/v1/#org/m", "https://host/team", "org/m"),
        ("https://host/team", "https://host/team", None),
        ("http:http://[::1]:8080#qwen3-embedding:0.6b", "http://[::1]:8080", "qwen3-embedding:0.6b"),
    ],
)
def test_the_same_server_and_model_have_one_name(written, root, model):
    assert parse_address(written, EMBEDDING_SERVER) == (root, model)


@pytest.mark.parametrize("written", ["http:localhost:8080#m", "http:ftp://host#m", "http:http://#m", "http://a b#m"])
def test_what_names_no_server(written):
    assert message(UsageError, lambda: open_encoder(written)) == (
        f"{written!r} is not the address of an embedding server: write http:URL#MODEL, such as "
        "http:http://localhost:8080#BAAI/bge-m3."
    )


@pytest.mark.parametrize("written", ["http://me:secret@host#m", "https://host/v1?key=secret#m", "http://a:se cret@b"])
def test_an_address_with_a_secret_is_refused_and_not_shown(written):
    assert message(UsageError, lambda: open_encoder(written)) == (
        "The address of an embedding server is stored with every index and must not contain a password or a query "
        f"string: set {KEY} to the key, and write http:URL#MODEL, such as http:http://localhost:8080#BAAI/bge-m3."
    )


@pytest.mark.parametrize("name", ["m3", "http:", "st:", "use-m:2", "e5-small:2", "givens"])
def test_there_is_no_such_encoder(name):
    assert message(UsageError, lambda: open_encoder(name)) == (
        f"Unknown encoder {name!r}; choose e5-small, use-m, st:NAME_OR_PATH (sentence-transformers), "
        "http:URL#MODEL (an embedding server), or given or given:NAME (vectors that come with the data)."
    )


def test_the_only_model_is_found(server):
    assert open_encoder(f"http:{server.url}/v1").id == server.name
    server.models.append({"id": "other"})
    place = f"The embedding server at {server.url}"
    assert message(UsageError, lambda: open_encoder(server.url)) == (
        f"{place} needs the name of a model; it has {MODEL}, other: write http:{server.url}#MODEL."
    )
    server.models.clear()
    assert message(UsageError, lambda: open_encoder(server.url)) == (
        f"{place} needs the name of a model; it does not list its models: write http:{server.url}#MODEL."
    )
    # A server that lists nothing may still have it.
    assert open_encoder(server.name).revision == MODEL


def revision(server, name=None):
    return open_encoder(name or server.name).revision


def test_the_revision_is_the_same_after_a_restart_and_another_for_other_weights(server):
    # vLLM tells what it has loaded under a name,
    server.models[0] |= {"owned_by": "vllm", "root": "intfloat/multilingual-e5-large", "created": 17}
    found = open_encoder(server.name)
    assert (found.revision, found.query_prefix, found.document_prefix) == (
        "intfloat/multilingual-e5-large",
        "query: ",
        "passage: ",
    )
    server.models[0]["created"] = 18
    assert revision(server) == "intfloat/multilingual-e5-large"
    # TEI the commit,
    server.models.clear()
    server.pages["/info"] = {"model_id": MODEL, "model_sha": "8fc2", "max_client_batch_size": 32}
    found = open_encoder(server.url)
    assert (found.id, found.revision) == (server.name, "8fc2")
    server.asked.clear()
    server.most = 32
    found.encode_documents(TEXTS[:70])
    assert sorted(map(len, server.asked)) == [6, 32, 32]
    assert message(UsageError, lambda: open_encoder(f"http:{server.url}#BAAI/bge-m3")) == (
        f"The embedding server at {server.url} has the model {MODEL}, not BAAI/bge-m3: write http:{server.url}#MODEL."
    )
    # and Ollama a digest.
    del server.pages["/info"]
    server.models.append({"id": "embeddinggemma:300m", "owned_by": "library"})
    server.models.append({"id": "bge-m3:latest", "owned_by": "library"})
    server.pages["/api/tags"] = {
        "models": [{"name": "embeddinggemma:300m", "digest": "85"}, {"name": "bge-m3:latest", "digest": "79"}]
    }
    assert revision(server, f"http:{server.url}#bge-m3") == "79"
    found = open_encoder(f"http:{server.url}#embeddinggemma:300m")
    assert (found.revision, found.document_prefix) == ("85", "title: none | text: ")


def test_prefixes_are_put_before_queries_and_documents(server):
    server.models[0]["id"] = "intfloat/multilingual-e5-large"
    encoder = open_encoder(server.url)
    encoder.encode_documents(["a"])
    encoder.encode_queries(["a"])
    assert server.asked[-2:] == [["passage: a"], ["query: a"]]


def test_what_passes_is_asked_again(server, encoder):
    begun = time.monotonic()
    server.faults = [BUSY, cut, reply(500, b"<html>"), reply(429, {}, Retry_After=0)]
    assert np.array_equal(encoder.encode_documents(TEXTS[:3]), expected(TEXTS[:3]))
    assert server.asked == [TEXTS[:3]] * 5
    assert time.monotonic() - begun < 3
    server.faults = [BUSY]
    assert open_encoder(server.name).dimension == DIMENSION


def test_a_server_says_when_to_ask_again_but_not_for_ever(server, encoder):
    server.faults = [reply(429, {}, Retry_After=1)]
    begun = time.monotonic()
    encoder.encode_documents(TEXTS[:3])
    assert 1 <= time.monotonic() - begun < 2
    assert [PATIENT.parse_retry_after(told) for told in ("7", "3600", "soon")] == [7, 30, 0]


def test_what_does_not_pass_is_told_in_the_end(server, encoder, monkeypatch):
    monkeypatch.setattr("langshift.debias.encoders.embeddings_api.PATIENT", PATIENT.new(total=2))
    place = f"The embedding server at {server.url}"
    for fault, told in {
        BUSY: "failed (503: loading): see its log.",
        reply(502, b"<html>nginx</html>"): "failed (502: Bad Gateway): see its log.",
        reply(429, {"error": {"message": "quota\n used up."}}): (
            "failed (429: quota used up): it is too busy, or your quota is used up; try again later."
        ),
        cut: "interrupted the connection: see its log.",
    }.items():
        server.asked.clear()
        server.always = fault
        assert message(LangshiftError, lambda: encoder.encode_documents(["a"])) == f"{place} {told}"
        assert server.asked == [["a"]] * 3
    server.always = reply(301, b"", Location="http://127.0.0.1:9/v1/embeddings")
    assert message(LangshiftError, lambda: encoder.encode_documents(["a"])) == (
        f"{place} failed (301: Moved Permanently): check its address."
    )


def test_a_server_that_cannot_be_reached_is_not_asked_again_at_first():
    with embeddings_server() as server:
        pass
    begun = time.monotonic()
    assert message(LangshiftError, lambda: open_encoder(server.name)) == (
        f"The embedding server at {server.url} cannot be reached: "
        "check that it is running and that this is its address."
    )
    assert time.monotonic() - begun < 1


def test_a_server_that_starts_again_is_waited_for():
    with embeddings_server() as server:
        encoder = open_encoder(server.name)
    with ThreadPoolExecutor() as aside:
        vectors = aside.submit(encoder.encode_documents, TEXTS[:3])
        time.sleep(0.3)
        with embeddings_server(server.server_port):
            assert np.array_equal(vectors.result(60), expected(TEXTS[:3]))


def test_a_server_that_is_too_slow(server, monkeypatch):
    monkeypatch.setattr("langshift.model_server._SECONDS", 0.1)
    monkeypatch.setattr("langshift.debias.encoders.embeddings_api.FIRST", FIRST.new(total=1))
    server.pause = 0.3
    assert message(LangshiftError, lambda: open_encoder(server.name)) == (
        f"The embedding server at {server.url} did not answer within 0.1 seconds: check whether it is overloaded."
    )


def test_tls_where_there_is_none(server):
    url = server.url.replace("http:", "https:")
    assert message(LangshiftError, lambda: open_encoder(f"{url}#m")) == (
        f"The embedding server at {url} does not use TLS: check whether its address should begin with http://."
    )


def test_a_certificate_that_is_not_known_until_it_is_named(tmp_path, monkeypatch):
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with embeddings_server(tls=tls) as server:
        assert message(LangshiftError, lambda: open_encoder(f"{server.url}#{MODEL}")) == (
            f"The embedding server at {server.url} presents a certificate that cannot be verified: check the address, "
            "or set SSL_CERT_FILE to the certificate of its authority."
        )
        authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        assert open_encoder(f"{server.url}#{MODEL}").id == f"http:{server.url}#{MODEL}"


def test_the_key_is_sent_and_never_shown(server, monkeypatch):
    server.key = "sk-wonder"
    place = f"The embedding server at {server.url}"
    for name in (server.name, server.url):
        assert message(LangshiftError, lambda name=name: open_encoder(name)) == (
            f"{place} requires a key (401: Incorrect API key provided: none): set {KEY}."
        )
    monkeypatch.setenv(KEY, "sk-wrong")
    assert message(LangshiftError, lambda: open_encoder(server.name)) == (
        f"{place} rejects the key in {KEY} (401: Incorrect API key provided: ***): "
        "check that the key is correct and allows this."
    )
    monkeypatch.setenv(KEY, " sk-wonder\n")
    encoder = open_encoder(server.name)
    assert server.keys[-1] == "Bearer sk-wonder"
    assert "sk-wonder" not in repr([encoder.id, encoder.revision])
    # A key may open the embeddings alone.
    server.pages["/v1/models"] = lambda handler: handler.send(403, {"error": {"message": "Missing scopes."}})
    assert open_encoder(server.name).id == server.name
    assert message(LangshiftError, lambda: open_encoder(server.url)) == (
        f"{place} rejects the key in {KEY} (403: Missing scopes): check that the key is correct and allows this."
    )
    monkeypatch.setenv(KEY, "sk\nwonder")
    assert message(UsageError, lambda: open_encoder(server.name)) == (
        f"{KEY} contains characters that are not allowed in a key: set it to the key only, on one line."
    )


def test_a_model_that_is_not_there(server):
    place, name = f"The embedding server at {server.url}", f"http:{server.url}#nothing"
    assert message(LangshiftError, lambda: open_encoder(name)) == (
        f"{place} has no model 'nothing' at /v1/embeddings (404: The model `nothing` does not exist): "
        f"check the address, or name one of its models after the #: {MODEL}."
    )
    server.pages["/v1/models"] = lambda handler: handler.send(404, {"detail": "Not Found"})
    assert message(LangshiftError, lambda: open_encoder(name)) == (
        f"{place} has no model 'nothing' at /v1/embeddings (404: The model `nothing` does not exist): "
        "check the address and the model."
    )
    server.faults = [reply(400, {"object": "error", "message": "The model does not support Embeddings API"})]
    assert message(LangshiftError, lambda: open_encoder(server.name)) == (
        f"{place} cannot create embeddings with the model {MODEL!r} (400: The model does not support Embeddings API): "
        "name another model after the #."
    )


def test_too_many_texts_at_once_are_sent_in_halves(server, encoder):
    server.most = 20
    assert np.array_equal(encoder.encode_documents(TEXTS[:100]), expected(TEXTS[:100]))
    assert sorted(map(len, server.asked)) == [16, 16, 16, 16, 18, 18, 32, 32, 36, 64]


def test_a_text_that_is_too_long_is_named(server, encoder):
    server.longest = 50
    texts = [*TEXTS[:40], "The long story of the sea and of the Moon that pulls at it.", *TEXTS[40:]]
    assert message(LangshiftError, lambda: encoder.encode_documents(texts)) == (
        f"The embedding server at {server.url} rejects the text of 59 characters that begins with 'The long story of "
        "the sea and of the Moon that pulls at it.' (413: inputs must have less than 50 tokens): shorten it, or "
        "configure the server to truncate long texts (--auto-truncate in TEI)."
    )


def first_vector(value):
    return changed(lambda usual: usual["data"][-1].update(embedding=value))


NO_NUMBERS = (
    "returned a vector with invalid numbers for the text that begins with 'first': run its model with 32-bit floats, "
    "or leave the text out."
)
NO_SERVER = "it does not follow OpenAI's API."
WRONG = {
    "too few": (changed(lambda usual: usual["data"].pop()), f"returned 1 vectors for 2 texts: {NO_SERVER}"),
    "twice": (
        changed(lambda usual: usual["data"][0].update(index=0)),
        f"did not report which vector belongs to which text: {NO_SERVER}",
    ),
    "no index": (
        changed(lambda usual: usual["data"][0].pop("index")),
        f"did not report which vector belongs to which text: {NO_SERVER}",
    ),
    "NaN": (first_vector([float("nan")] * DIMENSION), NO_NUMBERS),
    "null": (first_vector([None] + [1.0] * (DIMENSION - 1)), NO_NUMBERS),
    "too large": (first_vector([1e99] * DIMENSION), NO_NUMBERS),
    "base64": (first_vector("AACAPwAAgD8="), NO_NUMBERS),
    "tokens": (first_vector([[1.0] * DIMENSION]), NO_NUMBERS),
    "nothing": (first_vector(None), NO_NUMBERS),
    "shorter": (first_vector([1.0, 2.0]), "returned vectors of different lengths: see its log."),
    "all shorter": (
        changed(lambda usual: [one.update(embedding=[1.0, 2.0]) for one in usual["data"]]),
        f"returned vectors with 2 dimensions, but with {DIMENSION} before: its model has been replaced; start again.",
    ),
    "HTML": (
        reply(200, b"<html>\n<p>Welcome.</p>"),
        "answered '<html> <p>Welcome.</p>', which contains no embeddings: check its address.",
    ),
    "other JSON": (
        reply(200, {"data": "none"}),
        """answered '{"data": "none"}', which contains no embeddings: check its address.""",
    ),
    "a list": (reply(200, [[1, 2]]), "answered '[[1, 2]]', which contains no embeddings: check its address."),
    "nothing at all": (reply(200, b""), "answered '', which contains no embeddings: check its address."),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_answer_that_is_wrong(server, encoder, case):
    fault, told = WRONG[case]
    server.faults = [fault]
    assert message(LangshiftError, lambda: encoder.encode_documents(["first", "second"])) == (
        f"The embedding server at {server.url} {told}"
    )


def test_one_wrong_answer_ends_the_others(server, encoder):
    server.always = reply(200, [])
    server.pause = 0.01
    with pytest.raises(LangshiftError):
        encoder.encode_documents(TEXTS * 4)
    assert len(server.asked) < 16
    server.always = None
    assert encoder.encode_documents(TEXTS[:2]).shape == (2, DIMENSION)


def write_pairs(folder):
    folder.mkdir()
    for tag in ("en", "de"):
        (folder / f"{tag}.txt").write_text("".join(f"{tag} line {row}\n" for row in range(40)), encoding="utf-8")
    return folder


def test_fit_from_the_command_line(server, tmp_path):
    pairs, file = write_pairs(tmp_path / "pairs"), tmp_path / "v.safetensors"
    server.key = "sk-wonder"
    fit = ["vectors", "fit", "--pairs", pairs, "--pivot", "en", "--encoder", server.url, "--output", file]
    assert refusal(langshift(*fit, **{KEY: ""})) == (
        f"The embedding server at {server.url} requires a key (401: Incorrect API key provided: none): set {KEY}."
    )
    # Nothing of what passed is told.
    server.faults = [None, BUSY, cut]
    done = langshift(*fit, "--json", **{KEY: "sk-wonder"})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    made = json.loads(done.stdout)
    assert (made["encoder"], made["revision"], made["dimension"]) == (server.name, MODEL, DIMENSION)
    vectors = LanguageVectors.load(file)
    texts = [(f"de line {row}", f"en line {row}") for row in range(40)]
    wanted = np.mean([vector(german) - vector(english) for german, english in texts], axis=0)
    assert np.abs(vectors.vectors["de"] - wanted).max() < 1e-6
    assert b"sk-wonder" not in file.read_bytes()


def test_who_interrupts_does_not_wait_for_a_slow_server(server, tmp_path):
    pairs, file = write_pairs(tmp_path / "pairs"), tmp_path / "v.safetensors"
    # As usual for the two texts of opening, and then not at all for long.
    server.faults, server.always = [None], lambda *_: time.sleep(15)
    fit = ["vectors", "fit", "--pairs", pairs, "--pivot", "en", "--encoder", server.name, "--output", file]
    with subprocess.Popen([LANGSHIFT, *fit], stderr=subprocess.PIPE, text=True) as running:
        while len(server.asked) < 2:
            time.sleep(0.05)
        begun = time.monotonic()
        running.send_signal(signal.SIGINT)
        told = running.communicate(timeout=60)[1]
    # Who waited would have waited for 15 seconds.
    assert time.monotonic() - begun < 12
    assert (running.returncode, told) == (130, "\nInterrupted.\n")


def test_vectors_fitted_on_what_is_not_normalised_are_refused(server, encoder, tmp_path):
    path = tmp_path / "v.safetensors"
    made = LanguageVectors(
        "en", {"de": np.ones(DIMENSION, np.float32)}, {"de": 9}, server.name, MODEL, "", DIMENSION, False, "made up"
    )
    made.save(path)
    assert message(FingerprintError, lambda: LanguageVectors.load(path).require_encoder(encoder, str(path))) == (
        f"{path}: these language vectors were fitted on embeddings that are not normalised, but {server.name} returns "
        "embeddings of norm 1: fit vectors for this encoder with `langshift vectors fit`."
    )
