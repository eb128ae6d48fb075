"""A load into several shards becomes what a load into one becomes; how many a new index has."""

import json

import pytest
from command_line import langshift
from several_files import TEXTS, made_lines, require_same, written

from langshift.plugin import metadata, sizing

QUESTION = "Why does the water level change?"


@pytest.fixture
def template(tmp_path):
    path = tmp_path / "own.json"
    path.write_text('{"settings": {"number_of_shards": 3}}')
    return path


def shards(client, name):
    return int(metadata.read_settings(client, f"{name}-v0001")["number_of_shards"])


def test_a_load_into_three_shards_becomes_what_one_into_one_becomes(
    became, client, cluster_url, index_name, template, tmp_path
):
    _, corpus = written(tmp_path / "in", made_lines(0))
    one, three = f"{index_name}-one", f"{index_name}-three"
    expected, documents, refused, made = became(corpus, name=one)
    said, *found = became(corpus, name=three, options=("--template", template))
    assert (shards(client, one), shards(client, three)) == (1, 3)
    require_same(found[0], documents)
    lines = [sorted((letter.line, letter.id, letter.type) for letter in letters) for letters in (found[1], refused)]
    assert lines[0] == lines[1]
    assert found[2] == made
    # What the final check has counted, among others.
    counted = ("lines", "present", "repaired")
    assert [said[name] for name in counted] == [expected[name] for name in counted]
    for mode in ("dense", "balanced"):
        search = ("--size", 10, "--mode", mode, "--json")
        hits = []
        for name in (one, three):
            answer = json.loads(langshift("search", name, QUESTION, *search, url=cluster_url).stdout)
            hits.append({hit["id"]: hit["score"] for hit in answer["hits"]})
        assert len(hits[0]) == 10
        assert hits[1] == pytest.approx(hits[0], abs=1e-5)


def test_a_large_corpus_gets_several_shards_unless_a_template_says_how_many(
    client, cluster_url, index_name, template, tmp_path, monkeypatch
):
    corpus = tmp_path / "corpus.jsonl"
    text = TEXTS["en"] * 10
    lines = [json.dumps({"_id": str(number), "text": f"{text}{number:04}"}) for number in range(500)]
    corpus.write_text("\n".join(lines))
    # A document takes 4 * 512 + 200 and a text of 364 bytes with what makes it JSON, so that 500 take 1.3 MB.
    monkeypatch.setattr(sizing, "SHARD", 7e5)
    load = ("ingest", corpus, "--encoder", "use-m", "--json", "--index")
    done = langshift(*load, index_name, url=cluster_url)
    assert (done.returncode, shards(client, index_name)) == (0, 2), done.stderr
    note = (
        f"{index_name}-v0001 has 2 shards, by the size of the corpus (as `langshift doctor --size` says); "
        "number_of_shards in a --template sets another number.\n"
    )
    assert note in done.stderr
    assert json.loads(done.stdout)["present"] == 500
    own = f"{index_name}-own"
    done = langshift(*load, own, "--template", template, url=cluster_url)
    assert (done.returncode, shards(client, own), "shards" in done.stderr) == (0, 3, False), done.stderr
