"""Bad input to the commands that index and search: one sentence, exit code 1 or 2, nothing half-written."""

import json
import socket
from dataclasses import replace

import numpy as np
import pytest
from command_line import langshift, refusal
from safetensors.numpy import save_file

from langshift.ingest.vectors import LanguageVectors, shipped

GOOD = {"_id": "a", "text": "The sea rises and falls twice a day."}


def indices(client, name):
    return sorted(client.indices.get(index=f"{name}*", params={"expand_wildcards": "all"}))


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text(json.dumps(GOOD) + "\n")
    return path


def ingest(cluster_env, corpus, name, *more):
    return langshift("ingest", corpus, "--index", name, *more, url=cluster_env)


BAD_LINES = [
    ('{"text": "broken', "not valid JSON ("),
    (
        '{"text": "t", "language": "xx"}',
        "'xx' is no language: use a BCP 47 tag such as 'th' or 'zh-TW', or leave the field out to have it detected.",
    ),
    ("{}", "has neither a text nor a title."),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_a_bad_line_at_the_end_of_a_corpus(client, cluster_env, index_name, corpus, line, message):
    corpus.write_text((json.dumps({"text": GOOD["text"]}) + "\n") * 600 + line + "\n")
    assert refusal(ingest(cluster_env, corpus, index_name)).startswith(f"{corpus}, line 601: {message}")
    assert indices(client, index_name) == []
    through_a_pipe = langshift("ingest", "-", "--index", index_name, url=cluster_env, stdin=corpus.read_bytes())
    assert refusal(through_a_pipe).startswith(f"standard input, line 601: {message}")
    assert indices(client, index_name) == []


def test_a_bad_line_leaves_an_index_as_it_was(client, cluster_env, index_name, corpus):
    assert ingest(cluster_env, corpus, index_name).returncode == 0
    before = client.get(index=index_name, id="a")
    corpus.write_text('{"_id": "a", "text": "something else"}\n{"_id": "b", "text": 5}\n')
    assert refusal(ingest(cluster_env, corpus, index_name)).endswith("must be a string, but is a number.")
    assert client.get(index=index_name, id="a") == before
    assert client.count(index=index_name)["count"] == 1


def test_missing_and_empty_corpora(client, cluster_env, index_name, tmp_path):
    missing = tmp_path / "missing.jsonl"
    assert refusal(ingest(cluster_env, missing, index_name)) == f"{missing}: there is no such file."
    missing.write_text("\n\n")
    assert refusal(ingest(cluster_env, missing, index_name)) == f"{missing} holds no document."
    assert refusal(ingest(cluster_env, tmp_path, index_name)) == (
        f"{tmp_path} is a folder: name a file, such as {tmp_path / 'corpus.jsonl'}."
    )
    assert indices(client, index_name) == []


def test_vectors_of_another_dimension_or_encoder(client, cluster_env, index_name, corpus, tmp_path):
    path = tmp_path / "v.safetensors"
    use_m = LanguageVectors.load(shipped("use-m"))
    vectors, means = ({tag: vector[:384] for tag, vector in of.items()} for of in (use_m.vectors, use_m.means))
    replace(use_m, vectors=vectors, means=means, dimension=384).save(path)
    assert refusal(ingest(cluster_env, corpus, index_name, "--vectors", path)) == (
        f"{path}: these language vectors were fitted with dimension 384, not 512: "
        "fit some for this encoder with `langshift vectors fit`."
    )
    replace(use_m, encoder="bge-m3").save(path)
    assert "fitted with encoder bge-m3, not use-m: fit" in refusal(
        ingest(cluster_env, corpus, index_name, "--vectors", path)
    )
    save_file({"de": np.zeros(512, np.float32)}, path)
    assert refusal(ingest(cluster_env, corpus, index_name, "--vectors", path)) == (
        f"{path}: is not a file of language vectors, or is damaged; make one with `langshift vectors fit`."
    )
    missing = tmp_path / "none.safetensors"
    assert refusal(ingest(cluster_env, corpus, index_name, "--vectors", missing)).startswith(
        f"{missing}: there is no such file of language vectors; "
    )
    assert indices(client, index_name) == []


def test_another_fingerprint(client, cluster_env, index_name, corpus):
    assert ingest(cluster_env, corpus, index_name, "--alpha", "0.5").returncode == 0
    assert refusal(ingest(cluster_env, corpus, index_name, "--alpha", "0.7")) == (
        f"Index {index_name} was made with alpha 0.5, not 0.7: "
        "give what it was made with, or choose another index name."
    )
    assert indices(client, index_name) == [f"{index_name}-v0001"]


def test_unknown_encoder_and_bad_names(cluster_env, corpus, index_name):
    assert refusal(ingest(cluster_env, corpus, index_name, "--encoder", "bert")) == (
        "There is no encoder 'bert'; there are use-m, st:NAME_OR_PATH (sentence-transformers), http:URL#MODEL "
        "(a server of embeddings), and given or given:NAME (vectors that come with the data)."
    )
    for name in ("News", "a b", "_x", "ä", "x" * 300):
        assert refusal(ingest(cluster_env, corpus, name)) == (
            f"{name!r} cannot be an index's name: use lower-case letters a-z, digits, '-', '_' and '.', "
            "beginning with a letter or digit."
        )


def test_documents_that_the_cluster_refuses_leave_nothing_behind(client, cluster_env, index_name, corpus):
    corpus.write_text('{"_id": "a", "text": "t", "year": 1990}\n{"_id": "b", "text": "t", "year": {"deep": 1}}\n')
    said = refusal(ingest(cluster_env, corpus, index_name))
    assert said.startswith("The cluster refuses 1 of 2 documents of a bulk request, first 'b': ")
    assert "year" in said
    assert indices(client, index_name) == []


def test_documents_that_the_cluster_refuses_in_an_index_that_was_there(client, cluster_env, index_name, corpus):
    assert ingest(cluster_env, corpus, index_name).returncode == 0
    corpus.write_text('{"_id": "b", "text": "t", "year": 1990}\n{"_id": "c", "text": "t", "year": {"deep": 1}}\n')
    said = refusal(ingest(cluster_env, corpus, index_name))
    assert said.endswith(
        f" 1 document had been written to {index_name}-v0001 before; running the same command again doubles nothing."
    )
    assert client.get(index=index_name, id="a")["found"]


def test_a_cluster_that_is_down(corpus):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        done = langshift("ingest", corpus, "--index", "news", OPENSEARCH_URL=url)
    assert done.returncode == 1
    assert refusal(done) == (
        f"The cluster at {url} cannot be reached: check that it runs and that OPENSEARCH_URL is its address "
        "(http or https, host, port)."
    )


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ("language", "--filter takes FIELD=VALUE, such as language=th, not 'language'."),
        ("=th", "--filter takes FIELD=VALUE, such as language=th, not '=th'."),
    ],
)
def test_bad_filters(cluster_env, filters, message):
    assert refusal(langshift("search", "news", "words", "--filter", filters, url=cluster_env)) == message


def test_bad_query_language(cluster_env):
    assert refusal(langshift("search", "news", "words", "--language", "klingon", url=cluster_env)) == (
        "'klingon' is no language: use a BCP 47 tag such as th or zh-TW."
    )


def test_wrong_use_is_exit_code_2(cluster_env, corpus):
    for arguments in (
        ["ingest"],
        ["ingest", corpus],
        ["search", "x"],
        ["nonsense"],
        ["search", "x", "y", "--mode", "z"],
    ):
        done = langshift(*arguments, url=cluster_env)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert "Error: " in done.stderr


def test_fitting_writes_nothing_where_it_fails(tmp_path):
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    (pairs / "en.txt").write_text("one\ntwo\n")
    (pairs / "de.txt").write_text("eins\n")
    output = tmp_path / "v.safetensors"
    done = langshift("vectors", "fit", "--pairs", pairs, "--output", output)
    assert refusal(done) == (
        f"{pairs / 'en.txt'} has 2 lines but {pairs / 'de.txt'} has 1: parallel files must be aligned line by line."
    )
    assert refusal(langshift("vectors", "fit", "--pairs", pairs, "--output", tmp_path)) == (
        f"{tmp_path} is a folder: --output takes the name of a file, such as mine.safetensors."
    )
    assert (
        refusal(langshift("vectors", "fit", "--pairs", pairs, "--documents", "ids", "--output", output))
        == "--documents says where joined passages end: give --join-lines too."
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pairs"]
