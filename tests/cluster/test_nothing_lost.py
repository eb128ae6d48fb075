"""The check that ends each test of a fault notices what is lost, doubled or changed."""

import json

import pytest
from nothing_lost import assert_nothing_lost, write_corpus


@pytest.fixture
def written(client, index_name, tmp_path):
    """Ten documents, of which the last is a dead letter: index, corpus and dead letters."""
    corpus, letters = write_corpus(tmp_path / "corpus.jsonl", 10, 4), tmp_path / "dead-letters.jsonl"
    lines = corpus.read_text().splitlines()
    embeddings = [json.dumps({"embedding": json.loads(line)["embedding"]}) for line in lines]
    body = "".join(f'{{"index": {{"_id": "d{n}"}}}}\n{embeddings[n]}\n' for n in range(9))
    client.bulk(body=body, index=index_name, refresh=True)
    letters.write_text(json.dumps({"line": 10, "document": lines[9]}) + "\n")
    return index_name, corpus, letters


def test_what_is_there_passes(client, written):
    (letter,) = assert_nothing_lost(client, *written)
    assert letter["line"] == 10


def lose(client, index, _letters):
    client.delete(index=index, id="d3")


def add(client, index, _letters):
    client.index(index=index, id="other", body={"embedding": [1, 2, 3, 4]})


def exchange(client, index, letters):
    lose(client, index, letters)
    add(client, index, letters)


def alter(client, index, _letters):
    embedding = client.get(index=index, id="d3")["_source"]["embedding"]
    client.index(index=index, id="d3", body={"embedding": [*embedding[:3], embedding[3] * 1.0001]})


def bury(_client, _index, letters):
    letters.unlink()


def bury_twice(_client, _index, letters):
    letters.write_text(letters.read_text() * 2)


def forge(_client, _index, letters):
    letters.write_text(json.dumps({"line": 10, "document": "{}"}) + "\n")


@pytest.mark.parametrize("spoil", [lose, add, exchange, alter, bury, bury_twice, forge])
def test_what_is_lost_doubled_or_changed_is_noticed(client, written, spoil):
    index, corpus, letters = written
    spoil(client, index, letters)
    with pytest.raises(AssertionError):
        assert_nothing_lost(client, index, corpus, letters)
