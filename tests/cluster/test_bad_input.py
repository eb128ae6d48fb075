"""Bad input to the commands that index and search: dead letters, or one sentence and nothing half-written."""

import json
import socket
import sys
from dataclasses import replace

import numpy as np
import pytest
from command_line import LANGSHIFT, langshift, refusal
from measured_process import measured
from nothing_lost import read_letters
from safetensors.numpy import save_file

from langshift.debias.vectors import LanguageVectors, shipped
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.settings import Settings

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

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
    ('{"text": "broken', "invalid_json", "not valid JSON (unexpected end of data at character 17)."),
    (
        '{"text": "t", "language": "xx"}',
        "invalid_document",
        "'xx' is not a valid language: use a BCP 47 tag such as 'th' or 'zh-TW', "
        "or leave the field out to have it detected.",
    ),
    ("{}", "invalid_document", "has neither a text nor a title."),
]


def letters(client, name):
    """Where the dead letters are, and what each says: line, type, sentence, document."""
    path = LoadWorkspace.of(Settings.from_env().home, client, name).dead_letters
    return path, [
        tuple(letter[field] for field in ("line", "_id", "type", "reason", "stage", "document", "corpus"))
        for letter in read_letters(path)
    ]


def told(lines, corpus, present, dead, name):
    """The last line of a load that had dead letters."""
    return (
        f"All {lines} of {corpus} are accounted for: {present} on the server, checked, {dead} "
        f"(langshift dead-letters list --index {name} shows why)."
    )


def test_bad_lines_at_the_end_of_a_corpus(client, cluster_env, index_name, corpus):
    good = "".join(json.dumps({"_id": str(number), "text": GOOD["text"]}) + "\n" for number in range(600))
    corpus.write_text(good + "".join(f"{line}\n" for line, _, _ in BAD_LINES))
    piped = f"{index_name}-piped"
    for name, shown, done in (
        (index_name, str(corpus), ingest(cluster_env, corpus, index_name, "--json")),
        (
            piped,
            "standard input",
            langshift("ingest", "-", "--index", piped, "--json", url=cluster_env, stdin=corpus.read_bytes()),
        ),
    ):
        assert done.returncode == 3, done
        summary = json.loads(done.stdout)
        assert {key: summary[key] for key in ("lines", "documents", "present", "dead")} == {
            "lines": 603, "documents": 600, "present": 600, "dead": 3
        }  # fmt: skip
        path, found = letters(client, name)
        assert summary["dead_letters"] == str(path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert found == [
            (601 + row, None, kind, message, "read", line, shown) for row, (line, kind, message) in enumerate(BAD_LINES)
        ]
        assert done.stderr.splitlines()[-1] == told("603 lines", shown, "600 documents", "3 dead letters", name)
        assert client.count(index=name)["count"] == 600


@pytest.mark.parametrize(("line", "message"), [(line, message) for line, _, message in BAD_LINES])
def test_a_file_that_holds_no_documents_is_refused_before_anything_is_written(
    client, cluster_env, index_name, corpus, line, message
):
    corpus.write_text(f"{line}\n" * 1000 + json.dumps(GOOD) + "\n")
    assert refusal(ingest(cluster_env, corpus, index_name)) == f"{corpus}, line 1: {message}"
    through_a_pipe = langshift("ingest", "-", "--index", index_name, url=cluster_env, stdin=corpus.read_bytes())
    assert refusal(through_a_pipe) == f"standard input, line 1: {message}"
    assert indices(client, index_name) == []
    assert letters(client, index_name)[1] == []


def test_one_document_among_the_first_lines_is_enough(client, cluster_env, index_name, corpus):
    corpus.write_text("{}\n" * 999 + json.dumps(GOOD) + "\n")
    done = ingest(cluster_env, corpus, index_name)
    _, found = letters(client, index_name)
    assert [line for line, *_ in found] == list(range(1, 1000))
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines()[-1] == told("1,000 lines", corpus, "1 document", "999 dead letters", index_name)


def test_an_index_that_is_there_is_left_alone(client, cluster_env, index_name, corpus):
    assert ingest(cluster_env, corpus, index_name).returncode == 0
    before = client.get(index=index_name, id="a")
    corpus.write_text('{"_id": "a", "text": "something else"}\n')
    again = ingest(cluster_env, corpus, index_name)
    assert (again.returncode, refusal(again)) == (
        2,
        f"Index {index_name} already exists ({index_name}-v0001, 1 document): add to it with --if-exists append, "
        "replace it with --if-exists replace, or create a new version of it with --if-exists new-version.",
    )
    assert client.get(index=index_name, id="a") == before


def test_a_bad_line_among_what_is_added(client, cluster_env, index_name, corpus):
    assert ingest(cluster_env, corpus, index_name).returncode == 0
    bad = '{"_id": "b", "text": 5}'
    corpus.write_text(f'{{"_id": "a", "text": "something else"}}\n{bad}\n')
    done = ingest(cluster_env, corpus, index_name, "--if-exists", "append")
    _, found = letters(client, index_name)
    message = "the field 'text' must be a string, but is a number."
    assert found == [(2, None, "invalid_document", message, "read", bad, str(corpus))]
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1] == told(
        "2 lines", corpus, "1 document", "1 replaced an earlier one with the same _id, 1 dead letter", index_name
    )
    assert client.get(index=index_name, id="a")["_source"]["text"] == {"en": "something else"}
    assert client.count(index=index_name)["count"] == 1


def test_missing_and_empty_corpora(client, cluster_env, index_name, tmp_path):
    missing = tmp_path / "missing.jsonl"
    assert refusal(ingest(cluster_env, missing, index_name)) == f"{missing}: there is no such file."
    missing.write_text("\n\n")
    assert refusal(ingest(cluster_env, missing, index_name)) == f"{missing} contains no documents."
    folder = tmp_path / "in"
    folder.mkdir()
    assert refusal(ingest(cluster_env, folder, index_name)) == (
        f"{folder} is a folder without files that end in .jsonl, .json, .parquet or the like."
    )
    assert indices(client, index_name) == []


# Runs a program that ends with exit code 3, as `measured` runs only those that end well.
ENDS_WITH_3 = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode - 3)"


def test_a_line_without_end_takes_no_more_memory_than_a_long_one(client, cluster_env, index_name, corpus):
    sound = [json.dumps({**GOOD, "_id": name, "embedding": [1, 2]}).encode() + b"\n" for name in "abc"]
    block = b"x" * (1 << 20)
    peaks = []
    for blocks in (1, 300):
        with zstd.open(corpus, "wb") as file:
            file.write(sound[0])
            for _ in range(blocks):
                file.write(block)
            file.write(b"\n" + sound[1] + sound[2])
        options = (
            "--encoder",
            "given",
            "--alpha",
            "0",
            "--index",
            index_name,
            "--if-exists",
            "replace",
            "--max-refused",
            "0.25",
        )
        printed, figures = measured(sys.executable, "-c", ENDS_WITH_3, LANGSHIFT, "ingest", corpus, *options)
        assert told("4 lines", corpus, "3 documents", "1 dead letter", index_name) in printed
        peaks.append(figures["megabytes"])
    assert corpus.stat().st_size < 100_000
    _, ((number, _, kind, why, stage, document, _),) = letters(client, index_name)
    assert (number, kind, stage, len(document) < 11_000) == (2, "invalid_document", "read", True)
    assert why == "is longer than 64 MiB, the most that a line may have; only its beginning is kept."
    assert document.startswith("xxx")
    assert document.endswith("... (cut: the line is longer than 64 MiB, the most that a line may have)")
    assert peaks[1] < peaks[0] + 200, peaks
    again = langshift("ingest", "--dead-letters", "--index", index_name, url=cluster_env)
    assert again.returncode == 3
    assert "0 indexed" in again.stdout


@pytest.mark.parametrize("field", ["text", "language", "embedding", "deep"])
def test_nesting_without_end_is_a_dead_letter(client, cluster_env, index_name, corpus, field):
    sound = {"text": "t", "embedding": [1, 2]}
    bad = ["[" * depth + "1" + "]" * depth for depth in (25, 254, 300, 1100, 100_000)]
    lines = [json.dumps({**sound, field: 1}).replace(f'"{field}": 1', f'"{field}": {one}') for one in bad]
    corpus.write_text("\n".join([json.dumps({**sound, "_id": "a"}), *lines, json.dumps({**sound, "_id": "b"})]))
    done = ingest(cluster_env, corpus, index_name, "--encoder", "given", "--alpha", "0")
    assert done.returncode == 3, done
    # Lists of lists of a number are a field of numbers.
    dead = [3, 4, 5, 6] if field == "deep" else [2, 3, 4, 5, 6]
    assert sorted(letter[0] for letter in letters(client, index_name)[1])[-len(dead) :] == dead
    assert {"a", "b"} <= {hit["_id"] for hit in client.search(index=index_name)["hits"]["hits"]}


def test_vectors_of_another_dimension_or_encoder(client, cluster_env, index_name, corpus, tmp_path):
    path = tmp_path / "v.safetensors"
    use_m = LanguageVectors.load(shipped("use-m"))
    vectors = {tag: vector[:384] for tag, vector in use_m.vectors.items()}
    replace(use_m, vectors=vectors, common={}, query_directions=None, own_vectors={}, dimension=384).save(path)
    assert refusal(ingest(cluster_env, corpus, index_name, "--vectors", path)) == (
        f"{path}: these language vectors were fitted with dimension 384, not 512: "
        "fit vectors for this encoder with `langshift vectors fit`."
    )
    replace(use_m, encoder="bge-m3").save(path)
    assert "fitted with encoder bge-m3, not use-m: fit" in refusal(
        ingest(cluster_env, corpus, index_name, "--vectors", path)
    )
    save_file({"de": np.zeros(512, np.float32)}, path)
    assert refusal(ingest(cluster_env, corpus, index_name, "--vectors", path)) == (
        f"{path} is not a file of language vectors, or is damaged; create one with `langshift vectors fit`."
    )
    missing = tmp_path / "none.safetensors"
    assert refusal(ingest(cluster_env, corpus, index_name, "--vectors", missing)).startswith(
        f"The language-vector file {missing} does not exist; "
    )
    assert indices(client, index_name) == []


def test_another_fingerprint(client, cluster_env, index_name, corpus):
    assert ingest(cluster_env, corpus, index_name, "--alpha", "0.5").returncode == 0
    assert refusal(ingest(cluster_env, corpus, index_name, "--alpha", "0.7", "--if-exists", "append")) == (
        f"Index {index_name} was built with alpha 0.5, not 0.7: "
        "use the settings it was built with, or choose another index name."
    )
    assert indices(client, index_name) == [f"{index_name}-v0001"]


def test_unknown_encoder_and_bad_names(cluster_env, corpus, index_name):
    assert refusal(ingest(cluster_env, corpus, index_name, "--encoder", "bert")) == (
        "Unknown encoder 'bert'; choose e5-small, use-m, st:NAME_OR_PATH (sentence-transformers), "
        "http:URL#MODEL (an embedding server), or given or given:NAME (vectors that come with the data)."
    )
    for name in ("News", "a b", "_x", "ä", "x" * 300):
        assert refusal(ingest(cluster_env, corpus, name)) == (
            f"{name!r} is not a valid index name: use lower-case letters a-z, digits, '-', '_' and '.', "
            "starting with a letter or digit."
        )


def test_documents_that_the_cluster_refuses(client, cluster_env, index_name, corpus):
    bad = '{"_id": "b", "text": "t", "year": {"deep": 1}}'
    corpus.write_text(f'{{"_id": "a", "text": "t", "year": 1990}}\n{bad}\n')
    done = ingest(cluster_env, corpus, index_name)
    assert done.returncode == 3, done
    _, found = letters(client, index_name)
    reason = (
        "failed to parse field [year] of type [long] in document with id 'b'. Preview of field's value: '{deep=1}' "
        "(Current token (START_OBJECT) not numeric, can not use numeric value accessors"
    )
    ((line, name, kind, why, stage, document, shown),) = found
    assert (line, name, kind, stage, document, shown) == (2, "b", "mapper_parsing_exception", "write", bad, str(corpus))
    # Where the server's parser was comes after it.
    assert why.startswith(reason)
    assert done.stdout.splitlines()[-1] == told("2 lines", corpus, "1 document", "1 dead letter", index_name)
    # What is added later meets the same mapping.
    corpus.write_text(f'{{"_id": "c", "text": "t", "year": 1991}}\n{bad}\n')
    assert ingest(cluster_env, corpus, index_name, "--if-exists", "append").returncode == 3
    assert len(letters(client, index_name)[1]) == 2
    assert client.count(index=index_name)["count"] == 2
    for name in ("a", "c"):
        assert client.get(index=index_name, id=name)["found"]


def test_a_cluster_that_is_down(corpus):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        done = langshift("ingest", corpus, "--index", "news", OPENSEARCH_URL=url)
    assert done.returncode == 1
    assert refusal(done) == (
        f"The cluster at {url} cannot be reached: check that it is running and that OPENSEARCH_URL is its address "
        "(http or https, host, port)."
    )


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ("language", "A filter is FIELD=VALUE, such as language=th, also with !=, <, <=, > or >=, not 'language'."),
        ("=th", "A filter is FIELD=VALUE, such as language=th, also with !=, <, <=, > or >=, not '=th'."),
    ],
)
def test_bad_filters(cluster_env, filters, message):
    assert refusal(langshift("search", "news", "words", "--filter", filters, url=cluster_env)) == message


def test_bad_query_language(cluster_env):
    assert refusal(langshift("search", "news", "words", "--language", "klingon", url=cluster_env)) == (
        "'klingon' is not a valid language: use a BCP 47 tag such as th or zh-TW."
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
        f"{pairs / 'en.txt'} has 2 lines, but {pairs / 'de.txt'} has 1: parallel files must be aligned line by line."
    )
    assert refusal(langshift("vectors", "fit", "--pairs", pairs, "--output", tmp_path)) == (
        f"{tmp_path} is a folder: --output takes the name of a file, such as mine.safetensors."
    )
    assert (
        refusal(langshift("vectors", "fit", "--pairs", pairs, "--documents", "ids", "--output", output))
        == "--documents marks where joined passages end: add --join-lines."
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pairs"]
