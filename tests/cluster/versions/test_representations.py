"""Weights of tokens and vectors of tokens beside the vectors of an index: made by loads, and there ever after."""

import json

import numpy as np
import pytest
from embeddings_server import embeddings_server
from given_data import run
from planted_sparse import DIMENSION, Planted, PlantedSparse, weights
from reencoded_index import Once, vectors_of
from shifted_index import refused, saved
from small_old_index import ADOPTED, old_index
from worker_here import Here

from langshift.commands import ingest as ingest_command
from langshift.debias.encoders.embeddings_api import HttpEncoder
from langshift.debias.encoders.token_vectors import unpack
from langshift.errors import ClusterError, LangshiftError
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import PipelineOptions
from langshift.ingest.reencode import reencode
from langshift.plugin.metadata import read_metadata
from langshift.settings import Settings

pytestmark = pytest.mark.usefixtures("cluster_env", "planted")
CORPUS = [
    {"_id": "tides", "title": "Tides", "text": "The water rises twice each day.", "language": "en"},
    {"_id": "ebbe", "title": "Ebbe", "text": "Das Wasser steigt, das Wasser fällt.", "language": "de", "price": 3},
    {"_id": "short", "text": "an ox", "language": "en"},
]
WHOLE = {one["_id"]: f"{one.get('title', '')} {one['text']}".strip() for one in CORPUS}


@pytest.fixture(scope="module")
def server():
    with embeddings_server() as running:
        yield running


@pytest.fixture
def planted(monkeypatch, server):
    monkeypatch.setenv("LANGSHIFT_TRUSTED_HOSTS", server.url)
    return Planted(monkeypatch)


def ingest(corpus, name, server, *more):
    return run("ingest", corpus, "--index", name, "--encoder", server.name, "--alpha", "0", *more)


def fine(done):
    assert done.exit_code == 0, (done.output, done.exception)
    return done


@pytest.fixture
def loaded(corpus, pipelines, server, planted):  # noqa: ARG001 - what is opened
    """An index with both."""
    fine(ingest(corpus(*CORPUS), pipelines, server, "--sparse", "st:one", "--tokens", "st:one"))
    return pipelines


def sources(client, index):
    client.indices.refresh(index=index)
    hits = client.search(index=index, body={"size": 100, "_source": True})["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def beside(client, index):
    """Id -> weights, and the number of its tokens; None of what it lacks."""
    return {
        name: (one.get("sparse_embedding"), len(unpack(one["token_vectors"])) if "token_vectors" in one else None)
        for name, one in sources(client, index).items()
    }


def made(text, revision="1"):
    return (weights(text, revision), len(weights(text))) if weights(text) else (None, None)


def expected(revision="1", **texts):
    return {name: made(text, revision) for name, text in (WHOLE | texts).items()}


def metadata_of(client, name):
    meta = read_metadata(client, next(iter(client.indices.get_alias(name=name))))
    return {key: meta[f"langshift_{key}"] for key in ("sparse", "tokens") if f"langshift_{key}" in meta}


BOTH = {
    "sparse": {"encoder": "st:one", "revision": "1", "field": "sparse_embedding"},
    "tokens": {"encoder": "st:one", "revision": "1", "dimension": DIMENSION, "field": "token_vectors"},
}


def test_a_load_keeps_what_encoders_make(client, loaded, planted):
    assert beside(client, loaded) == expected()
    assert metadata_of(client, loaded) == BOTH
    mapped = next(iter(client.indices.get_mapping(index=loaded).values()))["mappings"]["properties"]
    assert (mapped["sparse_embedding"], mapped["token_vectors"]) == ({"type": "rank_features"}, {"type": "binary"})
    # Each was opened once.
    assert len(planted.opened) == 2
    kept = unpack(sources(client, loaded)["tides"]["token_vectors"])
    (vectors,) = planted.opened[1].encode_documents([WHOLE["tides"]])
    assert np.abs(kept - vectors).max() < 0.02


def test_weights_are_found_by_them(client, loaded):
    query = {"neural_sparse": {"sparse_embedding": {"query_tokens": {"wasser": 2.0}}}}
    (hit,) = client.search(index=loaded, body={"query": query})["hits"]["hits"]
    # The server keeps nine significant bits of a weight.
    assert hit["_id"] == "ebbe"
    assert hit["_score"] == pytest.approx(2 * weights(WHOLE["ebbe"])["wasser"], rel=1 / 256)


def test_what_is_added_is_made_as_the_index_has_it(client, loaded, corpus, server):
    more = {"_id": "moon", "text": "The moon pulls water.", "language": "en"}
    fine(run("ingest", corpus(more), "--index", loaded, "--if-exists", "append"))
    assert beside(client, loaded) == expected(moon=more["text"])
    # The same model in another place.
    again = {"_id": "sun", "text": "The sun pulls less.", "language": "en"}
    fine(ingest(corpus(again), loaded, server, "--if-exists", "append", "--sparse", "st:moved"))
    assert beside(client, loaded) == expected(moon=more["text"], sun=again["text"])
    fine(run("ingest", corpus(*CORPUS), "--index", loaded, "--if-exists", "new-version", "--alpha", "0"))
    assert beside(client, loaded) == expected()
    fine(run("ingest", corpus(*CORPUS), "--index", loaded, "--if-exists", "replace", "--alpha", "0", "--tokens", "off"))
    assert beside(client, loaded) == {name: (one, None) for name, (one, _) in expected().items()}
    assert metadata_of(client, loaded) == {"sparse": BOTH["sparse"]}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            ("--sparse", "st:two"),
            "keeps weights of tokens by st:one (revision 1), not weights of tokens by st:two (revision 2): leave "
            "--sparse out to add to it, or change them with `langshift reencode {} --sparse st:two`.",
        ),
        (
            ("--tokens", "off"),
            "keeps vectors of tokens by st:one (revision 1), which these documents would not have: leave --tokens out "
            "to add to it, or change them with `langshift reencode {} --tokens off`.",
        ),
    ],
)
def test_another_encoder_is_refused(client, loaded, corpus, server, options, why):
    more = corpus({"_id": "moon", "text": "The moon pulls water.", "language": "en"})
    done = ingest(more, loaded, server, "--if-exists", "append", *options)
    assert refused(done)[::-1] == (1, f"Index {loaded} {why.format(loaded)}")
    assert beside(client, loaded) == expected()


def test_an_index_without_is_not_given_some_in_part(client, corpus, pipelines, server):
    fine(ingest(corpus(*CORPUS), pipelines, server))
    done = ingest(corpus(*CORPUS), pipelines, server, "--if-exists", "append", "--sparse", "st:one")
    assert refused(done)[::-1] == (
        1,
        f"Index {pipelines} keeps no weights of tokens: add them to all of its documents with `langshift reencode "
        f"{pipelines} --sparse st:one`, or leave --sparse out.",
    )
    assert metadata_of(client, pipelines) == {}


def test_a_field_of_that_name_is_in_the_way_only_where_it_is_needed(client, loaded, corpus, server, index_name):
    own = {"_id": "own", "text": "Own weights", "language": "en", "sparse_embedding": "heavy"}
    done = run("ingest", corpus(own, CORPUS[0]), "--index", loaded, "--if-exists", "append")
    assert done.exit_code == 3
    assert letters(client, loaded) == ["the field name 'sparse_embedding' is reserved for langshift; rename it."]
    other = f"{index_name}-plain"
    fine(ingest(corpus(own), other, server))
    assert sources(client, other)["own"]["sparse_embedding"] == "heavy"
    done = run("reencode", other, "--sparse", "st:one")
    assert refused(done)[::-1] == (
        2,
        f"Index {other}-v0001 has a field 'sparse_embedding' of its own, where weights of tokens would be kept: rename "
        "it in the corpus, and load that again.",
    )


def test_their_names_are_taken(corpus, pipelines, server, tmp_path):
    path, template = corpus(*CORPUS), tmp_path / "template.json"
    template.write_text('{"mappings": {"properties": {"token_vectors": {"type": "keyword"}}}}')
    both = ("--sparse", "st:one", "--tokens", "st:one")
    assert refused(ingest(path, pipelines, server, *both, "--text-field", "sparse_embedding")) == (
        "--text-field sparse_embedding: with --sparse, langshift uses this name itself; rename the field in the "
        "corpus.",
        2,
    )
    assert refused(ingest(path, pipelines, server, *both, "--template", template)) == (
        f"{template}, mappings.properties.token_vectors: langshift writes this field itself; leave it out.",
        2,
    )
    assert refused(ingest(path, pipelines, server, *both, "--date-field", "sparse_embedding")) == (
        "--date-field 'sparse_embedding' names no field of your own: give one that documents have.",
        2,
    )


def letters(client, name):
    place = LoadWorkspace.of(Settings.from_env().home, client, name)
    return [letter.reason for letter in DeadLetters(place.dead_letters)]


def test_weights_that_come_with_the_data(client, corpus, pipelines, server):
    many = {f"t{number}": 1 + number / 10_000 for number in range(10_000)}
    given = [
        {**CORPUS[0], "sparse_embedding": {"water": 1.5, "2021": 0.1, "none": 0, "below": -1}},
        {**CORPUS[1], "sparse_embedding": {}},
        {"_id": "many", "text": "Many", "language": "en", "sparse_embedding": many},
        CORPUS[2],
        {"_id": "list", "text": "A list", "sparse_embedding": [1, 2]},
        {"_id": "word", "text": "A word", "sparse_embedding": {"water": "much"}},
    ]
    done = ingest(corpus(*given), pipelines, server, "--sparse", "given:bm42")
    assert done.exit_code == 3
    assert metadata_of(client, pipelines) == {
        "sparse": {"encoder": "given:bm42", "revision": "bm42", "field": "sparse_embedding"}
    }
    found = {name: one.get("sparse_embedding") for name, one in sources(client, pipelines).items()}
    heaviest = dict(sorted(many.items(), key=lambda one: -one[1])[:1000])
    assert found == {"tides": {"water": 1.5, "2021": 0.1}, "ebbe": None, "many": heaviest}
    assert letters(client, pipelines) == [
        "the document has no 'sparse_embedding', which --sparse given needs; add one, or {} for no weights.",
        "the field 'sparse_embedding' must be an object of tokens and their weights, but is [1, 2].",
        "the field 'sparse_embedding' must be an object of tokens and their weights, but has the weight 'much' for "
        "'water'.",
    ]
    updates = [
        {"_op": "update", "_id": "tides", "price": 7},
        {"_op": "update", "_id": "ebbe", "sparse_embedding": {"ebbe": 2}},
        {"_op": "update", "_id": "many", "text": "Few", "sparse_embedding": {"few": 1}},
        {"_op": "update", "_id": "tides", "text": "Another text"},
    ]
    done = run("ingest", corpus(*updates), "--index", pipelines, "--if-exists", "append")
    assert done.exit_code == 3
    found = {name: one.get("sparse_embedding") for name, one in sources(client, pipelines).items()}
    assert found == {"tides": {"water": 1.5, "2021": 0.1}, "ebbe": {"ebbe": 2.0}, "many": {"few": 1.0}}
    assert letters(client, pipelines)[3:] == [
        "its title or text changes, for which --sparse given needs its 'sparse_embedding'; add that"
    ]


def test_given_weights_are_of_whole_documents(corpus, pipelines, server):
    done = ingest(corpus(*CORPUS), pipelines, server, "--sparse", "given", "--chunk", "auto")
    assert refused(done)[::-1] == (
        2,
        "--chunk auto gives each piece of a document weights of its own, but the weights of --sparse given are of "
        "whole documents: use --chunk off, or an encoder that reads texts.",
    )


def test_a_load_in_parts_and_by_workers_makes_the_same(client, corpus, loaded, server, tmp_path, monkeypatch):
    more = ("--sparse", "st:one", "--tokens", "st:one", "--state")
    bad = {"_id": "bad", "text": "Das Wasser", "language": "Water!"}
    assert ingest(corpus(*CORPUS, bad), f"{loaded}-parts", server, *more, tmp_path / "parts").exit_code == 3
    assert beside(client, f"{loaded}-parts") == expected()
    monkeypatch.setattr(ingest_command, "RayEngine", Here)
    runner = ("--runner", "ray", "--workers", "1")
    assert ingest(corpus(*CORPUS, bad), f"{loaded}-ray", server, *more, tmp_path / "ray", *runner).exit_code == 3
    assert beside(client, f"{loaded}-ray") == expected()
    assert metadata_of(client, f"{loaded}-ray") == BOTH


def test_dead_letters_get_them_when_they_are_sent_again(client, corpus, loaded):
    bad = {"_id": "bad", "text": "Das Wasser fällt", "language": "Water!"}
    assert run("ingest", corpus(CORPUS[0], bad), "--index", loaded, "--if-exists", "append").exit_code == 3
    path = LoadWorkspace.of(Settings.from_env().home, client, loaded).dead_letters
    path.write_text(path.read_text(encoding="utf-8").replace("Water!", "de"), encoding="utf-8")
    fine(run("ingest", "--dead-letters", "--index", loaded))
    assert beside(client, loaded) == expected(bad="Das Wasser fällt")


def test_a_load_that_was_cut_off_goes_on_only_with_the_same(client, corpus, pipelines, server, monkeypatch):
    path, usual = corpus(*CORPUS), PlantedSparse.encode_documents

    def fail(self, texts):
        if "an ox" in texts:
            # Else nothing is there to go on with.
            while not client.count(index=f"{pipelines}-v0001")["count"]:
                client.indices.refresh(index=f"{pipelines}-v0001")
            raise LangshiftError("The encoder is tired.")
        return usual(self, texts)

    with monkeypatch.context() as patch:
        patch.setattr(PlantedSparse, "encode_documents", fail)
        patch.setattr(HttpEncoder, "batch", 1)
        done = ingest(path, pipelines, server, "--sparse", "st:one")
        assert refused(done)[0].endswith("continue with --resume.")
    done = ingest(path, pipelines, server, "--resume", "--sparse", "st:two")
    assert "the weights of tokens (weights of tokens by st:one (revision 1), not" in refused(done)[0]
    fine(ingest(path, pipelines, server, "--resume", "--sparse", "st:one"))
    assert {name: one for name, (one, _) in beside(client, pipelines).items()} == {
        name: one for name, (one, _) in expected().items()
    }


def test_an_update_makes_them_anew_where_the_text_changes(client, loaded, corpus, planted):
    lines = [
        {"_op": "update", "_id": "ebbe", "price": 4},
        {"_op": "update", "_id": "tides", "title": "Flood"},
        {"_op": "update", "_id": "short", "text": "Another animal"},
    ]
    planted.opened.clear()
    fine(run("ingest", corpus(*lines), "--index", loaded, "--if-exists", "append"))
    texts = {"tides": "Flood The water rises twice each day.", "short": "Another animal"}
    assert beside(client, loaded) == expected(**texts)
    assert sorted(planted.asked) == sorted([*texts.values()] * 2)
    # Nothing is left of them where a text has none.
    fine(
        run(
            "ingest",
            corpus({"_op": "update", "_id": "short", "text": "an ox"}),
            "--index",
            loaded,
            "--if-exists",
            "append",
        )
    )
    assert beside(client, loaded)["short"] == (None, None)


def test_each_chunk_has_its_own(client, corpus, pipelines, server):
    document = {"_id": "a", "title": "Tides", "text": "Water rises.\n\nWater falls.\n\nan ox", "language": "en"}
    more = ("--chunk", "paragraphs", "--sparse", "st:one", "--tokens", "st:one")
    fine(ingest(corpus(document), pipelines, server, *more))
    pieces = {f"a#{number:04d}": made(f"Tides {text}") for number, text in enumerate(document["text"].split("\n\n"))}
    assert beside(client, pipelines) == pieces
    line = {"_op": "update", "_id": "a", "text": "Rivers flow.\n\nWater falls."}
    fine(run("ingest", corpus(line), "--index", pipelines, "--if-exists", "append"))
    assert beside(client, pipelines) == {"a#0000": made("Tides Rivers flow."), "a#0001": made("Tides Water falls.")}
    fine(
        run(
            "ingest",
            corpus({"_op": "update", "_id": "a", "title": "Flood"}),
            "--index",
            pipelines,
            "--if-exists",
            "append",
        )
    )
    assert beside(client, pipelines) == {"a#0000": made("Flood Rivers flow."), "a#0001": made("Flood Water falls.")}


def reencoded(name, *options):
    # Of one of few documents no encoder here makes anything.
    return fine(run("reencode", name, "--max-refused", "0.5", *options)).stdout


def test_they_are_added_to_an_index_that_stands(client, corpus, pipelines, server, planted):
    name = pipelines
    fine(ingest(corpus(*CORPUS), name, server))
    before, asked = sources(client, name), len(server.asked)
    assert refused(run("reencode", name, "--sparse", "st:one")) == (
        "1 of 3 documents would be left without weights of tokens, because they have no text or st:one makes none of "
        f"it, so {name} still points to {name}-v0001: that is more than the share of 0.1 that --max-refused allows.",
        1,
    )
    said = reencoded(name, "--sparse", "st:one", "--tokens", "st:one")
    assert said.startswith(
        f"{name} now points to {name}-v0002, with weights of tokens by st:one (revision 1) and vectors of tokens by "
        "st:one (revision 1): 3 documents, 0 caught up, checked."
    )
    assert beside(client, name) == expected()
    assert metadata_of(client, name) == BOTH
    after = sources(client, name)
    for one in after.values():
        one.pop("sparse_embedding", None)
        one.pop("token_vectors", None)
    # Vectors, and all else, are as they were, and nothing was encoded for them.
    assert after == before
    assert len(server.asked) == asked
    planted.opened.clear()
    client.index(index=name, id="moon", body={"text": {"en": "The moon pulls water."}, "language": "en"})
    client.update(index=name, id="ebbe", body={"doc": {"price": 5}})
    client.delete(index=name, id="tides")
    fine(run("rollback", name))
    assert sources(client, name) == {
        "short": before["short"],
        "ebbe": {**before["ebbe"], "price": 5},
        "moon": {"text": {"en": "The moon pulls water."}, "language": "en"},
    }
    assert metadata_of(client, name) == {}
    assert planted.opened == []
    client.index(index=name, id="sun", body={"text": {"en": "The sun pulls less."}, "language": "en"})
    fine(run("rollback", name, "--to", "2"))
    assert beside(client, name) == {
        "ebbe": made(WHOLE["ebbe"]),
        "short": (None, None),
        "moon": made("The moon pulls water."),
        "sun": made("The sun pulls less."),
    }
    # What the version had of a text that is the same is not made anew.
    assert sorted(planted.asked) == sorted(2 * ["The moon pulls water.", "The sun pulls less.", "an ox"])


def test_what_is_written_meanwhile_gets_them_too(client, corpus, pipelines, server):
    name = pipelines
    fine(ingest(corpus(*CORPUS), name, server))

    def write():
        client.index(index=name, id="moon", body={"text": {"en": "The moon pulls water."}, "language": "en"})
        client.update(index=name, id="ebbe", body={"doc": {"text": {"de": "Es steigt wieder."}}})
        client.delete(index=name, id="tides")

    request = PipelineOptions("", sparse="st:one")
    done = reencode(client, name, request, max_refused=0.5, watch=Once("checking", write)).done
    assert (done.caught_up, done.deleted) == (2, 1)
    assert {name: one for name, (one, _) in beside(client, name).items()} == {
        "moon": weights("The moon pulls water."),
        "ebbe": weights("Ebbe Es steigt wieder."),
        "short": None,
    }


def test_whoever_is_cut_off_goes_on(client, corpus, pipelines, server, planted):
    name, request = pipelines, PipelineOptions("", sparse="st:one")
    many = [{"_id": f"d{number}", "text": f"Water of the {number}th river", "language": "en"} for number in range(600)]
    fine(ingest(corpus(*many), name, server))

    def stop():
        raise LangshiftError("Enough.")

    with pytest.raises(LangshiftError, match="Enough"):
        reencode(client, name, request, watch=Once("catching up", stop))
    assert metadata_of(client, name) == {}
    assert len(planted.asked) == len(many)
    assert reencode(client, name, request).done.index == f"{name}-v0002"
    # But for the sample.
    assert len(planted.asked) == len(many) + 16
    assert all(one["sparse_embedding"] == weights(one["text"]["en"]) for one in sources(client, name).values())


def test_a_version_in_which_they_are_others_never_becomes_live(client, corpus, pipelines, server):
    name = pipelines
    fine(ingest(corpus(*CORPUS), name, server))

    def change():
        for id_ in WHOLE:
            body = {"doc": {"sparse_embedding": {"other": 1.0}}}
            client.update(index=f"{name}-v0002", id=id_, body=body, refresh=True)

    with pytest.raises(
        ClusterError, match=r"The value in 'sparse_embedding' of document .* is not the one that st:one"
    ):
        reencode(client, name, PipelineOptions("", sparse="st:one"), max_refused=0.5, watch=Once("checking", change))
    assert metadata_of(client, name) == {}


def test_they_stay_where_vectors_are_made_anew_or_moved(client, loaded, server, planted):
    planted.opened.clear()
    with embeddings_server() as other, pytest.MonkeyPatch.context() as patch:
        other.dimension = 20
        patch.setenv("LANGSHIFT_TRUSTED_HOSTS", f"{server.url},{other.url}")
        said = reencoded(loaded, "--encoder", other.name, "--alpha", "0")
        assert f", encoded with {other.name} and alpha 0: 3 documents" in said
        assert len(sources(client, loaded)["tides"]["embedding"]) == 20
        assert beside(client, loaded) == expected()
        assert metadata_of(client, loaded) == BOTH
        fine(run("rollback", loaded))
    assert beside(client, loaded) == expected()
    assert planted.opened == []


def test_what_clients_wrote_without_them_can_be_made_up_for(client, loaded, planted):
    client.index(
        index=loaded, id="moon", body={"text": {"en": "The moon pulls"}, "language": "en", "embedding": [1] * 12}
    )
    client.indices.refresh(index=loaded)
    remark = "2 of a sample of 4 documents with a vector have no weights of tokens: `langshift reencode"
    assert remark in fine(run("index", "describe", loaded)).stderr
    planted.opened.clear()
    assert "now points to" in reencoded(loaded, "--sparse", "st:one")
    assert beside(client, loaded) == {**expected(), "moon": (weights("The moon pulls"), None)}
    assert sorted(planted.asked) == ["The moon pulls", "an ox"]
    # What a client has left of a former text stays, as its vector does.
    client.update(index=loaded, id="ebbe", body={"doc": {"text": {"de": "Ganz anders."}}})
    client.index(index=loaded, id="sun", body={"text": {"en": "The warm sun"}, "language": "en", "embedding": [1] * 12})
    reencoded(loaded, "--sparse", "st:one")
    assert sources(client, loaded)["sun"]["sparse_embedding"] == weights("The warm sun")
    assert sources(client, loaded)["ebbe"]["sparse_embedding"] == weights(WHOLE["ebbe"])


def test_another_encoder_takes_the_place_of_theirs_and_they_can_go(client, loaded):
    reencoded(loaded, "--sparse", "st:two")
    assert beside(client, loaded) == expected("2")
    assert reencoded(loaded, "--sparse", "off").startswith(
        f"{loaded} now points to {loaded}-v0003, with no weights of tokens:"
    )
    assert beside(client, loaded) == {name: (None, count) for name, (_, count) in expected().items()}
    assert metadata_of(client, loaded) == {"tokens": BOTH["tokens"]}
    mapped = next(iter(client.indices.get_mapping(index=loaded).values()))["mappings"]["properties"]
    assert "sparse_embedding" not in mapped
    assert reencoded(loaded, "--sparse", "off") == (
        f"{loaded} ({loaded}-v0003) already keeps no weights of tokens: nothing was changed.\n"
    )
    fine(run("rollback", loaded))
    assert beside(client, loaded) == expected("2")


def test_a_pipeline_goes_over_to_the_new_version(client, loaded):
    fine(run("pipeline", "install", loaded))
    done = fine(run("reencode", loaded, "--sparse", "st:two", "--max-refused", "0.5"))
    # Clients send the same vectors as before.
    assert "Clients that write vectors" not in done.stderr
    fine(run("pipeline", "verify", loaded))
    body = {"text": {"en": "The warm sun"}, "language": "en", "embedding": [1] * 12}
    client.index(index=loaded, id="sun", body=body)
    assert sources(client, loaded)["sun"]["shift"]["alpha"] == 0
    assert beside(client, loaded) == {**expected("2"), "sun": (None, None)}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "There is nothing to encode: give --encoder, --sparse or --tokens."),
        (
            ["--sparse", "st:one", "--alpha", "1"],
            "Without --encoder, vectors stay as they are: name it to have them made otherwise, or change their shift "
            "alone with `langshift retune`.",
        ),
        (
            ["--sparse", "given"],
            "The encoder given encodes no texts: name the one that the new version is to have, such as e5-small, "
            "st:NAME_OR_PATH or http:URL#MODEL.",
        ),
    ],
)
def test_what_cannot_be_reencoded(client, loaded, options, why):
    assert refused(run("reencode", loaded, *options)) == (why, 2)
    assert beside(client, loaded) == expected()


def test_a_retune_copies_them(client, corpus, pipelines, server, planted, tmp_path):
    vectors = saved(tmp_path, vectors_of(server))
    more = ("--vectors", vectors, "--sparse", "st:one", "--tokens", "st:one")
    fine(run("ingest", corpus(*CORPUS), "--index", pipelines, "--encoder", server.name, *more))
    planted.opened.clear()
    fine(run("retune", pipelines, "--alpha", "0.5"))
    assert beside(client, pipelines) == expected()
    assert metadata_of(client, pipelines) == BOTH
    client.update(index=pipelines, id="ebbe", body={"doc": {"price": 5}})
    fine(run("rollback", pipelines))
    assert beside(client, pipelines) == expected()
    assert planted.opened == []


def test_those_of_an_index_that_is_adopted(client, index_name, planted):
    properties = {"body": {"type": "text"}, "codes": {"type": "rank_features"}, "plain": {"type": "keyword"}}
    documents = {name: {"body": text, "codes": weights(text)} for name, text in WHOLE.items() if weights(text)}
    documents["none"] = {"body": "No codes"}
    new = f"{index_name}-new"
    with old_index(client, f"{index_name}-old", properties, documents) as old:
        arguments = ("adopt", old, "--name", new, *ADOPTED, "--text-field", "body", "--sparse-field")
        fields = {
            "nowhere": f"Index {old} has no field 'nowhere': give --sparse-field a field that its documents have."
        }
        fields["plain"] = (
            f"The field 'plain' of {old} is of type keyword: give --sparse-field a field of type rank_features."
        )
        for field, why in fields.items():
            assert refused(run(*arguments, field, "--sparse", "st:one")) == (why, 2)
        assert refused(run(*arguments, "codes"))[0].startswith("--sparse-field names the field with weights of tokens")
        assert refused(run(*arguments, "codes", "--sparse", "e5-small")) == (
            f"e5-small makes none of the tokens that {old} has in 'codes': name the encoder that made them with "
            "--sparse, or --sparse given if it is not available here.",
            2,
        )
        fine(run(*arguments, "codes", "--sparse", "st:one"))
    assert {name: one.get("codes") for name, one in sources(client, new).items()} == {
        name: one.get("codes") for name, one in documents.items()
    }
    assert metadata_of(client, new) == {"sparse": {"encoder": "st:one", "revision": "1", "field": "codes"}}
    planted.opened.clear()
    reencoded(new, "--sparse", "st:one")
    assert sources(client, new)["none"]["codes"] == weights("No codes")
    assert planted.asked == ["No codes"]
    reencoded(new, "--tokens", "st:one")
    found = sources(client, new)
    assert {name: len(unpack(one["token_vectors"])) for name, one in found.items()} == {
        name: len(weights(one["body"])) for name, one in documents.items()
    }
    assert found["none"]["codes"] == weights("No codes")


def test_they_are_said(loaded):
    said = fine(run("index", "describe", loaded)).stdout
    assert "\nWeights of tokens by st:one (revision 1) are in sparse_embedding.\n" in said
    assert "\nVectors of tokens by st:one (revision 1) are in token_vectors.\n" in said
    found = json.loads(fine(run("index", "describe", loaded, "--json")).stdout)
    assert {key: found[key] for key in BOTH} == BOTH
    lacking = {"sampled": 3, "entries": 1}
    assert found["lacking"] == {"sparse_embedding": lacking, "token_vectors": lacking}
    (version,) = [
        one for one in json.loads(fine(run("index", "list", "--json")).stdout)["versions"] if one["name"] == loaded
    ]
    assert {key: version[key] for key in BOTH} == BOTH


def test_weights_in_parquet(client, pipelines, server, planted, tmp_path):  # noqa: ARG001 - what is opened
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    kind = pa.map_(pa.string(), pa.float64())
    rows = {"_id": ["a", "b"], "text": ["One", "Two"], "sparse_embedding": [[("one", 1.5)], []]}
    table = pa.table(
        {name: pa.array(values, kind if name == "sparse_embedding" else None) for name, values in rows.items()}
    )
    parquet.write_table(table, tmp_path / "corpus.parquet")
    fine(ingest(tmp_path / "corpus.parquet", pipelines, server, "--sparse", "given"))
    assert {name: one.get("sparse_embedding") for name, one in sources(client, pipelines).items()} == {
        "a": {"one": 1.5},
        "b": None,
    }


def test_an_encoder_of_another_family_is_refused(corpus, pipelines, server):
    done = ingest(corpus(*CORPUS), pipelines, server, "--sparse", "use-m")
    assert refused(done)[1] == 2
    assert "Unknown sparse encoder 'use-m'" in refused(done)[0]
    done = ingest(corpus(*CORPUS), pipelines, server, "--tokens", "e5-small")
    assert "Unknown late-interaction model 'e5-small'" in refused(done)[0]
