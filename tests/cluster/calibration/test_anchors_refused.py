"""Indices that ``langshift anchors calibrate`` cannot calibrate, or with less, and what it says of them."""

from __future__ import annotations

import json

import pytest
from anchored_corpus import FEW, corpus
from given_data import run
from plain_index import made
from searched import make_index
from shifted_index import Corpus, printed, refused

from langshift.plugin import metadata, versions

TOO_FEW = (
    "Calibration needs 30 documents with a vector and a sentence, in languages with five documents or more; {} has {}. "
    "Anchored search continues with default values."
)


@pytest.fixture(autouse=True)
def _cluster(cluster_env):
    """Commands find it."""


def calibrate(name, *options):
    return run("anchors", "calibrate", name, *options)


def kept(client, name):
    return metadata.read_metadata(client, versions.live(client, name).index).get(metadata.ANCHORS)


def test_one_language_is_not_enough(client, index_name, tmp_path):
    make_index(client, tmp_path / "corpus.jsonl", index_name, lines=corpus(languages=["de"]))
    told = f"{index_name} has documents in one language only (de): anchored search needs two languages or more."
    assert refused(calibrate(index_name)) == (told, 1)
    assert kept(client, index_name) is None


def test_an_index_without_documents(client, index_name):
    made(client, index_name)
    told = f"{index_name} has no documents in a known language: anchored search needs two languages or more."
    assert refused(calibrate(index_name)) == (told, 1)


def test_few_documents_or_documents_without_text_are_not_enough(client, index_name, tmp_path):
    lines = corpus(languages=["de", "th"])
    short = [
        line | {"text": "Zu kurz.", "title": "", "language": "de", "_id": f"short{n}"} for n, line in enumerate(lines)
    ]
    make_index(client, tmp_path / "corpus.jsonl", index_name, lines=[*lines[:10], *short, lines[-1]])
    index = versions.live(client, index_name).index
    client.index(index=index, id="bare", body={"language": "th"}, refresh=True)
    assert refused(calibrate(index_name)) == (TOO_FEW.format(index_name, 11), 1)
    assert kept(client, index_name) is None


def test_vectors_that_were_given_cannot_be_asked_for(index_name, tmp_path):
    Corpus(tmp_path, each=9).ingest(index_name, "--alpha", "0")
    told = (
        f"The encoder given of {index_name} cannot encode queries, since its model is not available, and a "
        "calibration needs queries: anchored search continues with default values."
    )
    assert refused(calibrate(index_name)) == (told, 2)


def test_what_is_no_index_or_not_finished(client, index_name):
    told = f"There is no index {index_name}: create it with `langshift ingest CORPUS --index {index_name}`."
    assert refused(calibrate(index_name)) == (told, 1)
    target = made(client, index_name)
    client.indices.delete_alias(index=target.index, name=index_name)
    metadata.change(client, target.index, {metadata.UNFINISHED: {}})
    told = (
        f"Version {target.index} is not finished: a command is still writing it or was interrupted. Run that command "
        f"again, or remove the version with `langshift index drop {index_name} --version {target.index}`."
    )
    assert refused(calibrate(target.index)) == (told, 1)


@pytest.mark.usefixtures("few_are_calibrated")
def test_an_adopted_index_is_calibrated_by_its_own_fields(client, index_name, tmp_path):
    lines = corpus(languages=["de", "th"], groups=22)
    make_index(client, tmp_path / "corpus.jsonl", f"{index_name}-made", lines=lines, alpha=0.0)
    old = f"{index_name}-old"
    mapping = client.indices.get_mapping(index=f"{index_name}-made-v0001")[f"{index_name}-made-v0001"]["mappings"]
    properties = {
        "vec": mapping["properties"]["embedding"],
        "head": {"type": "text"},
        "body": {"type": "text"},
        "group": {"type": "text"},
    }
    settings = {"knn": True, "max_result_window": 400, "number_of_replicas": 0, "number_of_shards": 2}
    client.indices.create(index=old, body={"settings": {"index": settings}, "mappings": {"properties": properties}})
    lines = []
    found = client.search(index=f"{index_name}-made", body={"size": 1000})["hits"]["hits"]
    for hit in found:
        source = hit["_source"]
        (text,) = source["text"].values()
        body = {
            "vec": source["embedding"],
            "body": [text[:300] + "\ud83d"],
            "group": "all of it",
            "lang": source["language"],
        }
        # One has a title, so that the field is there.
        titled = {} if lines else {"head": "-"}
        lines += [json.dumps({"index": {"_id": hit["_id"]}}), json.dumps(body | titled)]
    assert not client.bulk(index=old, body="\n".join(lines) + "\n", refresh=True)["errors"]
    fields = ("--vector-field", "vec", "--text-field", "head", "--text-field", "body", "--language-field", "lang")
    adopted = run("adopt", old, "--name", index_name, *fields, "--encoder", "use-m")
    assert adopted.exit_code == 0, adopted.output
    told = printed(calibrate(index_name, "--sample", "30", "--json"))
    # Its field of the groups' name is another thing: without groups the nearest in other languages are asked for.
    own, other = ([one for one in told["changes"] if one["answer"] == answer] for answer in ("own", "other"))
    assert [(one["questions"], one["tlr"]) for one in own] == [(3 * FEW, None)] * 3
    # For a document that stands alone nothing in another language is asked.
    assert all(0.8 * FEW <= one["questions"] <= FEW and one["tlr"] is not None for one in other)
    assert len(other) == 3
    assert told["changes"][0]["dense"] > 0.3
    assert kept(client, index_name)["strength"] == told["strength"]
