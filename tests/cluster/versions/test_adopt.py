"""An index that anybody has made is adopted: the same documents, the same rankings, and not one write to it."""

from __future__ import annotations

import json
import math
import uuid
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import langshift
from old_index import DIMENSION, SENTENCES, TOPICS, OldIndex, raw_documents, topic_of

from langshift.plugin.metadata import USUAL

OURS = ("language", "language_confidence", "shift")
PIPELINES = ("default_pipeline", "final_pipeline")


@pytest.fixture(scope="module")
def old(cluster_url):
    """The old index; what writes to it would go through pipelines that damage documents."""
    name = f"langshift-test-old-{uuid.uuid4().hex[:8]}"
    made = OldIndex(cluster_url, name, documents=2000)
    for kind in PIPELINES:
        damage = {"processors": [{"set": {"field": "headline", "value": f"damaged by {kind}"}}]}
        made.client.ingest.put_pipeline(id=f"{name}-{kind}", body=damage)
        made.client.indices.put_settings(index=name, body={"index": {kind: f"{name}-{kind}"}})
    yield made
    made.client.indices.delete(index=f"{name}*")
    for kind in PIPELINES:
        made.client.ingest.delete_pipeline(id=f"{name}-{kind}")
    made.close()


def state(client, index):
    """What a write of any kind would change."""
    stats = client.indices.stats(index=index, params={"level": "shards"})["indices"][index]
    copies = [copy for shard in stats["shards"].values() for copy in shard]
    return SimpleNamespace(
        operations=[copy["seq_no"] for copy in copies],
        work=[(copy["indexing"]["index_total"], copy["indexing"]["delete_total"]) for copy in copies],
        settings=client.indices.get_settings(index=index),
        mapping=client.indices.get_mapping(index=index),
    )


@pytest.fixture(scope="module")
def adopted(client, cluster_url, old, tmp_path_factory):
    """The old index adopted at alpha 0 and 1, what was told, and the state of the old one before."""
    vectors = old.language_vectors(tmp_path_factory.mktemp("vectors") / "planted.safetensors")
    before, told = state(client, old.name), {}
    for alpha in (0, 1):
        new = f"{old.name}-alpha{alpha}"
        options = ["--vector-field", "vec", "--text-field", "headline", "--text-field", "body"]
        options += ["--language-field", "meta.lang", "--encoder", "given", "--vectors", vectors]
        told[alpha] = langshift("adopt", old.name, "--name", new, *options, "--alpha", alpha, url=cluster_url)
        assert told[alpha].returncode == 0, told[alpha]
    return SimpleNamespace(told=told, before=before, zero=f"{old.name}-alpha0", one=f"{old.name}-alpha1")


@pytest.fixture(scope="module")
def documents(cluster_url, old, adopted):
    return SimpleNamespace(
        old=raw_documents(cluster_url, old.name, 2),
        zero=raw_documents(cluster_url, adopted.zero, 2),
        one=raw_documents(cluster_url, adopted.one, 2),
    )


def test_what_was_done_is_told(old, adopted):
    name, new = old.name, adopted.one
    done = adopted.told[1]
    *table, first, last = done.stdout.splitlines()
    assert [row.split() for row in table] == [["language", "documents"], *([tag, "500"] for tag in sorted(SENTENCES))]
    assert first == (
        f"Adopted 2,000 documents of {name} into {new} ({new}-v0001), 1,500 of them shifted with alpha 1, "
        f"20 without a vector; {name} was not touched."
    )
    assert last == (
        f"All 2,000 documents that searches of {name} found when reading began are accounted for: "
        f"2,000 documents on the server, checked. Anything written to {name} since is not in {new}."
    )
    assert done.stderr == ""


def test_the_old_index_is_never_written_to(client, old, adopted):
    assert state(client, old.name) == adopted.before


def test_every_document_is_the_same_but_for_the_fields_that_are_added(documents):
    assert len(documents.old) == 2000
    assert documents.zero.keys() == documents.old.keys()
    for name, before in documents.old.items():
        after = documents.zero[name]
        kept = {field: value for field, value in after.source.items() if field not in OURS}
        assert kept == before.source
        assert list(kept) == list(before.source)
        assert (after.routing, after.version) == (before.routing, before.version)
    assert documents.zero["0"].source["exact"]["whole"] == "123456789012345678901234567890"
    assert documents.zero["0"].source["exact"]["decimal"] == "0.1000000000000000000000000000000001"
    assert documents.zero["5"].version == 3
    assert documents.zero["10"].version == 1_700_000_000_010


def test_languages_come_from_the_field_or_are_detected(old, documents):
    for name, after in documents.zero.items():
        assert after.source["language"] == old.tags[name]
        named = "lang" in after.source["meta"]
        assert (after.source["language_confidence"] == "1.0") == named


def test_at_alpha_1_every_vector_is_numpys_and_stamped(old, documents):
    for name, after in documents.one.items():
        tag = old.tags[name]
        if name not in old.vectors:
            assert "vec" not in after.source
            assert "shift" not in after.source
            continue
        offset = np.float32(old.offsets[tag] - old.offsets["en"]) if tag != "en" else np.zeros(DIMENSION, np.float32)
        expected = (old.vectors[name].astype(np.float64) - offset.astype(np.float64)).astype(np.float32)
        np.testing.assert_array_equal(np.array(after.source["vec"], np.float32), expected)
        stamp = after.source["shift"]
        assert (stamp["alpha"], stamp.get("language")) == (("0.0", None) if tag == "en" else ("1.0", tag))


def test_mapping_and_settings_are_the_old_ones(client, old, adopted):
    new = client.indices.get(index=adopted.zero)[f"{adopted.zero}-v0001"]
    there = client.indices.get(index=old.name)[old.name]
    properties, meta = new["mappings"].pop("properties"), new["mappings"].pop("_meta")
    theirs = there["mappings"].pop("properties")
    # What a newer server takes where nothing is said may be another thing.
    theirs["vec"]["compression_level"] = "1x"
    assert {name: properties[name] for name in properties if name not in OURS} == theirs
    assert {name: properties[name]["type"] for name in OURS[:2]} == {
        "language": "keyword",
        "language_confidence": "float",
    }
    assert there["mappings"].pop("_meta") == {"owner": "press"}
    assert new["mappings"] == there["mappings"]
    assert meta["owner"] == "press"
    assert set(meta) == {
        "owner", "langshift", "langshift_fields", "langshift_origin", "langshift_vectors",
    }  # fmt: skip
    origin = meta["langshift_origin"]
    uuid_of_old = there["settings"]["index"]["uuid"]
    assert (origin["kind"], origin["from"], origin["uuid"]) == ("adopt", old.name, uuid_of_old)
    assert meta["langshift_fields"] == {
        **USUAL.to_dict(),
        "vector": "vec",
        "language": "language",
        "confidence": "language_confidence",
        "stamp": "shift",
        "texts": ["headline", "body"],
        "told": "meta.lang",
        "analyzed": [],
    }
    own = ("uuid", "creation_date", "provided_name", "version")
    before, after = (
        {name: value for name, value in found["settings"]["index"].items() if name not in own} for found in (there, new)
    )
    assert after == before


def knn(vector, k):
    return {"knn": {"vec": {"vector": vector.tolist(), "k": k}}}


def exact(vector):
    params = {"field": "vec", "query_value": vector.tolist(), "space_type": "cosinesimil"}
    script = {"lang": "knn", "source": "knn_score", "params": params}
    return {"script_score": {"query": {"exists": {"field": "vec"}}, "script": script}}


def ranked(client, index, query, size=20):
    """``_id`` and score, best first; of equal scores the lower number: each shard breaks ties its own way."""
    hits = client.search(index=index, body={"query": query, "size": size, "_source": False})["hits"]["hits"]
    return sorted(((hit["_id"], hit["_score"]) for hit in hits), key=lambda hit: (-hit[1], int(hit[0])))


def ndcg(ranking, relevant):
    gains = [1 / math.log2(rank + 2) for rank, (name, _) in enumerate(ranking[:20]) if name in relevant]
    return sum(gains) / sum(1 / math.log2(rank + 2) for rank in range(min(20, len(relevant))))


@pytest.fixture(scope="module")
def questions(old):
    """A vector of each topic as an English text would have it, and the documents of the topic."""
    numbers = np.random.default_rng(3)
    vectors = old.topics + old.offsets["en"] + 0.5 * numbers.standard_normal((TOPICS, DIMENSION))
    judged = [{name for name in old.vectors if topic_of(int(name)) == topic} for topic in range(TOPICS)]
    return list(zip(vectors.astype(np.float32), judged, strict=True))


def test_at_alpha_0_exact_rankings_scores_and_ndcg_are_the_old_indexs(client, old, adopted, questions):
    for vector, relevant in questions:
        before, after = (ranked(client, index, exact(vector)) for index in (old.name, adopted.zero))
        assert after == before
        assert ndcg(after, relevant) == ndcg(before, relevant)


def test_at_alpha_0_approximate_rankings_and_ndcg_are_the_old_indexs(client, old, adopted, questions):
    # Each index has a graph of its own: only a search that looks at many candidates finds the same in both.
    for vector, relevant in questions:
        before, after = (ranked(client, index, knn(vector, 400)) for index in (old.name, adopted.zero))
        assert after == before
        assert ndcg(after, relevant) == ndcg(before, relevant)


@pytest.mark.parametrize("words", ["topic 7 ocean", "an automobile", "cars numbered 411", "Meer und Strand"])
def test_word_searches_rank_and_score_as_in_the_old_index(client, old, adopted, words):
    query = {"multi_match": {"query": words, "fields": ["headline", "body"], "type": "most_fields"}}
    nested = {"nested": {"path": "comments", "query": {"match": {"comments.who": "reader4"}}}}
    both = {"bool": {"must": [query], "filter": [nested]}}
    before, after = (ranked(client, index, both, 400) for index in (old.name, adopted.zero))
    assert before
    assert [score for _, score in after] == [score for _, score in before]
    # Beyond the last place there may be more documents with the last one's score.
    assert {hit for hit in after if hit[1] > after[-1][1]} == {hit for hit in before if hit[1] > before[-1][1]}


def test_at_alpha_1_other_languages_are_found_better(client, adopted, questions):
    means = [
        np.mean([ndcg(ranked(client, index, exact(vector)), relevant) for vector, relevant in questions])
        for index in (adopted.zero, adopted.one)
    ]
    assert means[1] >= means[0]
    first = {name for name, _ in ranked(client, adopted.one, exact(questions[0][0]))}
    assert {int(name) % len(SENTENCES) for name in first} != {0}


def test_clients_with_internal_versions_go_on_writing(client, adopted):
    shown = client.get(index=adopted.one, id="5", params={"_source": "false"})
    changed = client.update(index=adopted.one, id="5", body={"doc": {"meta": {"topic": 99}}})
    assert changed["_version"] == shown["_version"] + 1 == 4


def dataset(folder, old, questions):
    """The same questions as a dataset with the vectors of its queries."""
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": name, "text": SENTENCES[tag], "language": tag} for name, tag in old.tags.items()]
    queries = [
        {"_id": f"q{number}", "text": "sea", "language": "en", "embedding": vector.tolist()}
        for number, (vector, _) in enumerate(questions)
    ]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    judged = [f"q{number}\t{name}\t1\n" for number, (_, names) in enumerate(questions) for name in sorted(names)]
    (folder / "qrels" / "test.tsv").write_text("".join(["query-id\tcorpus-id\tscore\n", *judged]))
    return folder


def test_the_replay_of_the_adopted_index_gives_the_old_indexs_figures(
    client, cluster_url, old, adopted, questions, tmp_path
):
    folder = dataset(tmp_path / "data", old, questions)
    done = langshift("evaluate", "replay", folder, "--index", adopted.zero, "--json", url=cluster_url)
    assert done.returncode == 0, done
    found = json.loads(done.stdout)["measures"]["nDCG@20"]
    expected = np.mean([ndcg(ranked(client, old.name, knn(vector, 100)), relevant) for vector, relevant in questions])
    assert found == pytest.approx(expected, abs=1e-9)


def test_words_are_searched_in_the_adopted_index(cluster_url, adopted):
    done = langshift(
        "search", adopted.zero, "Automobile number 411", "--mode", "lexical", "--filter", "language=th", "--json",
        url=cluster_url,
    )  # fmt: skip
    assert done.returncode == 0, done
    hits = json.loads(done.stdout)["hits"]
    assert hits[0]["id"] == "411"
    assert {hit["language"] for hit in hits} == {"th"}
