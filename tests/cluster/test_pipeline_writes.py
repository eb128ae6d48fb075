"""Which writes of other clients go through the pipeline of an index, and what becomes of their vectors.

Each test runs twice: with the pipeline in Painless, and with the processor of the OpenSearch plugin.
"""

import threading
from dataclasses import replace

import numpy as np
import pytest
from native_plugin import has_plugin, install_processor
from opensearchpy.exceptions import RequestError
from piped_index import made_shift, make_foreign_index, make_index, raw_vector, shifted_by
from stamps import stamp_of

from langshift.plugin.metadata import USUAL, FieldNames
from langshift.plugin.pipelines import PrecedingPipeline, install, name_for
from langshift.plugin.shift_script import reason
from langshift.plugin.stored_shift import StoredShift

SHIFT = made_shift(alpha=0.75, alphas={"th": 0.5})
RAW, OTHER = raw_vector(1), raw_vector(2)
GERMAN = {"vectors": SHIFT.hash, "alpha": 0.75, "language": "de"}
THAI = {"vectors": SHIFT.hash, "alpha": 0.5, "language": "th"}
STILL = {"vectors": SHIFT.hash, "alpha": 0.0}


@pytest.fixture(autouse=True, params=["painless", "java"])
def language(request, client, monkeypatch):
    """The programming language of the pipelines of a test."""
    if request.param == "java":
        if not has_plugin(client):
            pytest.skip("the cluster does not have the plugin langshift")
        monkeypatch.setitem(globals(), "install", install_processor)
    return request.param


@pytest.fixture
def index(client, pipelines):
    made = make_index(client, pipelines, SHIFT)
    install(client, made, SHIFT, USUAL, None)
    return made


def source(client, index, name):
    return client.get(index=index, id=name)["_source"]


def vector(document, field="embedding"):
    return np.array(document[field], np.float32)


def is_shifted(document, raw, tag, stamp, shift=SHIFT):
    largest = np.abs(vector(document).astype(np.float64) - shifted_by(raw, shift, tag)).max()
    return stamp_of(document) == stamp and largest <= 2e-7 * np.linalg.norm(raw)


def german(**more):
    return {"text": "Ebbe und Flut", "language": "de", "embedding": RAW, **more}


def test_a_document_that_is_indexed_created_or_sent_in_bulk_is_shifted_and_gets_its_fields(client, index, index_name):
    client.index(index=index_name, id="index", body=german(group="g"))
    client.create(index=index_name, id="create", body=german(group="g"))
    body = [{"index": {"_id": "bulk"}}, german(group="g"), {"create": {"_id": "made"}}, german(group="g")]
    assert not client.bulk(body=body, index=index_name)["errors"]
    for name in ("index", "create", "bulk", "made"):
        found = source(client, index, name)
        assert is_shifted(found, RAW, "de", GERMAN)
        del found["embedding"], found["shift"]
        assert found == {
            "text": {"de": "Ebbe und Flut"},
            "language": "de",
            "language_confidence": 1.0,
            "group": "g",
        }


@pytest.mark.parametrize(
    ("told", "tag", "stamp", "language"),
    [
        ("de", "de", GERMAN, "de"),
        ("DE_at", "de", {**GERMAN, "tag": "de-AT"}, "de"),
        ("ger", "de", GERMAN, "de"),
        ("zh-TW", "zh-TW", {**GERMAN, "language": "zh-TW", "tag": "zh-TW"}, "zh"),
        ("th", "th", THAI, "th"),
        ("en", None, STILL, "en"),
        ("vi", None, STILL, "vi"),
        ("und", None, STILL, "und"),
        ("Deutsch", None, STILL, "und"),
        (None, None, STILL, "und"),
        (7, None, STILL, "und"),
    ],
)
def test_the_language_that_a_document_names_shifts_it(client, index, told, tag, stamp, language):
    client.index(index=index, id="1", body={"embedding": RAW, **({} if told is None else {"language": told})})
    found = source(client, index, "1")
    assert is_shifted(found, RAW, tag, stamp)
    assert (found["language"], found["language_confidence"]) == (language, 0.0 if language == "und" else 1.0)


def test_a_document_without_a_vector_passes(client, index):
    client.index(index=index, id="nothing", body={"group": "g"})
    # It may be a part of one that has a vector.
    assert source(client, index, "nothing") == {"group": "g", "shift": {"page": "g"}}
    client.index(index=index, id="null", body={"group": "g", "embedding": None})
    assert source(client, index, "null") == {"group": "g", "embedding": None, "shift": {"page": "g"}}
    client.index(index=index, id="text", body={"text": "Ebbe", "language": "de"})
    assert source(client, index, "text") == {"text": {"de": "Ebbe"}, "language": "de", "language_confidence": 1.0}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            [1.0, 2.0],
            "Document 1 has a vector of dimension 2 in embedding, not 8: give it one of this index's encoder.",
        ),
        ([], "Document 1 has a vector of dimension 0 in embedding, not 8: give it one of this index's encoder."),
        (
            "A/A=",
            "Document 1 has a string in embedding that is no base64 of little-endian 32-bit floats: give it a vector.",
        ),
        ({"a": 1}, "Document 1 holds no list of numbers in embedding: give it a vector."),
        ([1, 2, 3, 4, 5, 6, 7, "8"], 'Document 1 has "8" in embedding, which is no number: give it a vector.'),
        ([1, 2, 3, 4, 5, 6, 7, None], "Document 1 has null in embedding, which is no number: give it a vector."),
    ],
)
def test_what_is_no_vector_of_the_index_fails_with_a_sentence(client, index, value, told):
    body = [{"index": {"_id": "1"}}, german(embedding=value), {"index": {"_id": "2"}}, german()]
    bad, good = client.bulk(body=body, index=index)["items"]
    assert (bad["index"]["status"], good["index"]["status"]) == (400, 201)
    assert reason(bad["index"]["error"]) == told
    with pytest.raises(RequestError) as refused:
        client.index(index=index, id="1", body=german(embedding=value))
    assert reason(refused.value.info["error"]) == told


def test_a_document_is_never_shifted_twice(client, index):
    """Read, changed and sent back; updated in each way; reindexed; updated by query: the vector stays, bit for bit."""
    client.index(index=index, id="1", body=german())
    before = source(client, index, "1")
    client.index(index=index, id="1", body={**before, "group": "a"})
    client.index(index=index, id="2", body={**before, "group": "copy"})
    client.update(index=index, id="1", body={"doc": {"group": "b"}})
    client.update(index=index, id="1", body={"doc": {"group": "c"}, "doc_as_upsert": True})
    client.update(index=index, id="1", body={"script": {"source": "ctx._source.group = 'd'"}, "upsert": german()})
    for action in (
        {"doc": {"group": "e"}},
        {"doc": {"group": "f"}, "doc_as_upsert": True},
        {"script": {"source": "ctx._source.group = 'g'"}, "upsert": german()},
        {"script": {"source": "ctx._source.group = 'h'"}, "upsert": german(), "scripted_upsert": True},
        {"doc": {"group": "i"}, "upsert": german()},
    ):
        assert not client.bulk(body=[{"update": {"_id": "1"}}, action], index=index)["errors"]
    # A part sent in bulk goes past the pipeline.
    assert source(client, index, "1") == {**before, "group": "i", "shift": {**GERMAN, "page": "f"}}
    assert source(client, index, "2") == {**before, "group": "copy", "shift": {**GERMAN, "page": "copy"}}
    client.indices.refresh(index=index)
    script = {"source": "ctx._source.seen = true", "lang": "painless"}
    for body in ({}, {"script": script}):
        done = client.update_by_query(index=index, body=body, params={"refresh": "true"})
        assert (done["updated"], done["failures"]) == (2, [])
    assert source(client, index, "1") == {**before, "group": "i", "seen": True, "shift": {**GERMAN, "page": "i"}}


def test_a_document_that_an_update_makes_is_shifted_once(client, index):
    script = {"source": "ctx._source.group = 'x'"}
    client.update(index=index, id="a", body={"doc": german(), "doc_as_upsert": True})
    client.update(index=index, id="b", body={"script": script, "upsert": german()})
    client.update(index=index, id="c", body={"script": script, "upsert": german(), "scripted_upsert": True})
    body = []
    for name, action in {
        "d": {"doc": german(), "doc_as_upsert": True},
        "e": {"script": script, "upsert": german()},
        "f": {"script": script, "upsert": german(), "scripted_upsert": True},
        "g": {"doc": {"group": "x"}, "upsert": german()},
    }.items():
        body += [{"update": {"_id": name}}, action]
    assert not client.bulk(body=body, index=index)["errors"]
    for name in "abcdefg":
        found = source(client, index, name)
        assert is_shifted(found, RAW, "de", GERMAN), name
        assert found["text"] == {"de": "Ebbe und Flut"}


def test_a_raw_vector_in_a_partial_update_needs_the_stamp_taken_away(client, index):
    """The merged document has the old stamp: the pipeline believes it, or does not see the document at all."""
    new = {"embedding": OTHER, "language": "th"}
    for name in "abcdefg":
        client.index(index=index, id=name, body=german())

    def lies(name):
        found = source(client, index, name)
        return stamp_of(found) == GERMAN and (vector(found) == np.float32(OTHER)).all()

    client.update(index=index, id="a", body={"doc": new})
    client.bulk(body=[{"update": {"_id": "b"}}, {"doc": new}], index=index)
    assert lies("a")
    assert lies("b")
    # With the stamp taken away, a single update is shifted.
    client.update(index=index, id="c", body={"doc": {**new, "shift": None}})
    assert is_shifted(source(client, index, "c"), OTHER, "th", THAI)
    client.update(index=index, id="d", body={"doc": {**new, "shift": None}, "doc_as_upsert": True})
    assert is_shifted(source(client, index, "d"), OTHER, "th", THAI)
    # In bulk, an update with doc alone passes by the pipeline: no stamp is left, which can be found and repaired.
    client.bulk(body=[{"update": {"_id": "e"}}, {"doc": {**new, "shift": None}}], index=index)
    found = source(client, index, "e")
    assert found["shift"] is None
    assert (vector(found) == np.float32(OTHER)).all()
    client.indices.refresh(index=index)
    unstamped = {
        "bool": {"must": [{"exists": {"field": "embedding"}}], "must_not": [{"exists": {"field": "shift.alpha"}}]}
    }
    assert client.update_by_query(index=index, body={"query": unstamped})["updated"] == 1
    assert is_shifted(source(client, index, "e"), OTHER, "th", THAI)
    # With doc_as_upsert the pipeline sees the part by itself.
    client.bulk(body=[{"update": {"_id": "f"}}, {"doc": new, "doc_as_upsert": True}], index=index)
    assert is_shifted(source(client, index, "f"), OTHER, "th", THAI)
    # Also without a language, which it cannot know then.
    part = {"doc": {"embedding": OTHER}, "doc_as_upsert": True}
    client.bulk(body=[{"update": {"_id": "g"}}, part], index=index)
    found = source(client, index, "g")
    assert (found["language"], found["shift"]["alpha"]) == ("und", 0.0)
    assert (vector(found) == np.float32(OTHER)).all()


def test_reindexing_into_a_version_shifts_raw_documents_unless_the_pipeline_is_left_out(client, index, index_name):
    client.indices.create(
        index=f"{index_name}-raw", body={"mappings": {"properties": {"embedding": {"type": "float"}}}}
    )
    client.index(
        index=f"{index_name}-raw", id="1", body={"language": "de", "embedding": RAW}, params={"refresh": "true"}
    )
    body = {"source": {"index": f"{index_name}-raw"}, "dest": {"index": index, "pipeline": "_none"}}
    client.reindex(body=body, params={"refresh": "true"})
    found = source(client, index, "1")
    assert (set(found), (vector(found) == np.float32(RAW)).all()) == ({"language", "embedding"}, True)
    del body["dest"]["pipeline"]
    client.reindex(body=body, params={"refresh": "true"})
    before = source(client, index, "1")
    assert is_shifted(before, RAW, "de", GERMAN)
    # From the index into a version of the same making: stamped documents stay as they are, either way.
    shift = replace(SHIFT)
    second = make_index(client, index_name, shift, if_exists="new-version")
    install(client, second, shift, USUAL, None)
    for more in ({"pipeline": "_none"}, {}):
        client.reindex(body={"source": {"index": index}, "dest": {"index": second, **more}}, params={"refresh": "true"})
        assert source(client, second, "1") == before


def test_reindexing_into_a_version_of_another_scale_shifts_by_the_difference(client, index, index_name):
    client.index(index=index, id="1", body=german(), params={"refresh": "true"})
    other = made_shift(alpha=0.25)
    second = make_index(client, index_name, other, if_exists="new-version")
    install(client, second, other, USUAL, None)
    client.reindex(body={"source": {"index": index}, "dest": {"index": second}}, params={"refresh": "true"})
    assert is_shifted(source(client, second, "1"), RAW, "de", {**GERMAN, "alpha": 0.25}, other)


def test_a_document_of_other_language_vectors_is_refused(client, index):
    body = german(shift={"vectors": "ffffffffffffffff", "alpha": 1.0, "language": "de"})
    with pytest.raises(RequestError) as refused:
        client.index(index=index, id="1", body=body)
    assert reason(refused.value.info["error"]) == (
        f"Document 1 was shifted by the language vectors ffffffffffffffff, and this index holds {SHIFT.hash}: give the "
        "document its encoder's vector again, without the stamp shift."
    )


def test_the_pipeline_of_another_version_leaves_stamps_that_the_next_write_puts_right(
    client, index, index_name, language
):
    """A client that names a version's pipeline goes on with that when the alias has moved to the next version.

    The plugin's processor asks the version that the document is written to.
    """
    other = made_shift(alpha=0.25)
    second = make_index(client, index_name, other, if_exists="new-version")
    install(client, second, other, USUAL, None)
    client.index(index=index_name, id="1", body=german(), params={"pipeline": name_for(index)})
    if language == "painless":
        assert is_shifted(source(client, second, "1"), RAW, "de", GERMAN)
        client.update(index=index_name, id="1", body={"doc": {"group": "g"}})
    assert is_shifted(source(client, second, "1"), RAW, "de", {**GERMAN, "alpha": 0.25}, other)


def test_two_clients_at_once_leave_what_one_of_them_wrote(client, index):
    """The stamp is never of one write and the vector of another."""

    def write(raw, language):
        for _ in range(25):
            client.index(index=index, id="1", body={"embedding": raw, "language": language})
            client.update(index=index, id="1", body={"doc": {"seen": language}}, params={"retry_on_conflict": 50})

    threads = [threading.Thread(target=write, args=one) for one in ((RAW, "de"), (OTHER, "th"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = source(client, index, "1")
    assert is_shifted(found, RAW, "de", GERMAN) or is_shifted(found, OTHER, "th", THAI)


def test_an_index_without_language_vectors_stamps_and_moves_nothing(client, pipelines):
    index = make_index(client, pipelines, StoredShift())
    install(client, index, StoredShift(), USUAL, None)
    client.index(index=index, id="1", body=german())
    found = source(client, index, "1")
    assert stamp_of(found) == {"vectors": None, "alpha": 0.0}
    assert (vector(found) == np.float32(RAW)).all()


def test_an_index_with_fields_of_its_own(client, pipelines):
    fields = FieldNames("vectors.body", "detected", "sure", "ls", ("body",), "meta.lang")
    properties = {
        "vectors": {
            "properties": {
                "body": {
                    "type": "knn_vector",
                    "dimension": 8,
                    "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
                }
            }
        },
        "detected": {"type": "keyword"},
        "body": {"type": "text"},
    }
    index = make_foreign_index(client, pipelines, SHIFT, fields, properties)
    install(client, index, SHIFT, fields, None)
    sent = {"body": "Ebbe und Flut", "text": "left", "meta": {"lang": "deu"}, "vectors": {"body": RAW, "title": [1]}}
    for name in ("1", "1"):
        client.index(index=pipelines, id=name, body=sent)
        found = source(client, index, name)
        assert is_shifted({"embedding": found["vectors"]["body"], "shift": found["ls"]}, RAW, "de", GERMAN)
        assert (found["detected"], found["sure"], found["vectors"]["title"]) == ("de", 1.0, [1])
        assert (found["body"], found["text"], found["meta"]) == ("Ebbe und Flut", "left", {"lang": "deu"})
    # A name may have its dots in the key, too.
    sent = {"vectors.body": RAW, "meta.lang": "th"}
    client.index(index=pipelines, id="2", body=sent)
    found = source(client, index, "2")
    assert is_shifted({"embedding": found["vectors.body"], "shift": found["ls"]}, RAW, "th", THAI)


@pytest.fixture
def embedding(client, pipelines):
    """A pipeline in the place of neural-search's: it makes a vector of the field ``passage`` each time it sees one."""
    name = f"{pipelines}-embedding"
    source = "if (ctx.passage != null) { ctx.embedding = new ArrayList(params[ctx.passage]) }"
    step = {"script": {"source": source, "params": {"Ebbe": RAW, "Flut": OTHER}}}
    client.ingest.put_pipeline(id=name, body={"processors": [step]})
    return PrecedingPipeline(name, was_default=False)


def test_a_vector_that_a_pipeline_makes_first_is_shifted_however_often_it_is_made(client, index, embedding):
    install(client, index, SHIFT, USUAL, embedding)
    sent = {"passage": "Ebbe", "language": "de"}
    client.index(index=index, id="1", body=sent)
    before = source(client, index, "1")
    assert is_shifted(before, RAW, "de", GERMAN)
    assert set(before) == {"passage", "language", "language_confidence", "embedding", "shift"}
    # The document has a stamp each time, and a vector that was made anew.
    client.update(index=index, id="1", body={"doc": {"group": "g"}})
    client.indices.refresh(index=index)
    assert client.update_by_query(index=index, params={"refresh": "true"})["updated"] == 1
    client.index(index=index, id="1", body={**before, "group": "g"})
    client.index(index=index, id="2", body={name: before[name] for name in before if name != "embedding"})
    assert source(client, index, "1") == {**before, "group": "g", "shift": {**GERMAN, "page": "g"}}
    assert source(client, index, "2") == {**before, "shift": {**GERMAN, "page": "2"}}
    client.update(index=index, id="1", body={"doc": {"passage": "Flut", "language": "th"}})
    assert is_shifted(source(client, index, "1"), OTHER, "th", THAI)
    # One that it leaves alone keeps its stamp.
    kept = {name: before[name] for name in before if name != "passage"}
    client.index(index=index, id="3", body=kept)
    assert source(client, index, "3") == {**kept, "shift": {**GERMAN, "page": "3"}}
    client.index(index=index, id="4", body={"language": "de"})
    assert source(client, index, "4") == {"language": "de"}


def test_a_vector_made_first_in_an_index_with_fields_of_its_own(client, pipelines):
    fields = FieldNames("vectors.body", "detected", "sure", "own.ls", ("passage",), "lang")
    made = "if (ctx.passage != null) { ctx.vectors = ['body': new ArrayList(params.v)] }"
    step = {"script": {"source": made, "params": {"v": RAW}}}
    client.ingest.put_pipeline(id=f"{pipelines}-embedding", body={"processors": [step]})
    index = make_foreign_index(client, pipelines, SHIFT, fields, {"detected": {"type": "keyword"}})
    install(client, index, SHIFT, fields, PrecedingPipeline(f"{pipelines}-embedding", was_default=False))
    client.index(index=index, id="1", body={"passage": "Ebbe", "lang": "de"})
    client.update(index=index, id="1", body={"doc": {"group": "g"}})
    found = source(client, index, "1")
    assert is_shifted({"embedding": found["vectors"]["body"], "shift": found["own"]["ls"]}, RAW, "de", GERMAN)


def test_an_update_of_a_text_needs_its_vector_or_the_word_that_the_old_one_stays(client, index, index_name):
    client.index(index=index_name, id="a", body=german(group="g", price=1))
    before = source(client, index, "a")
    for part in ({"text": "Springflut"}, {"text": "Springflut", "embedding": OTHER}):
        with pytest.raises(RequestError) as refused:
            client.update(index=index_name, id="a", body={"doc": part})
        assert reason(refused.value.info["error"]) == (
            "Document a has a new text, but the vector and the stamp of the one before: send embedding too, with shift "
            'null; or, to keep the vector, text as {"de": "..."}.'
        )
    # In bulk the pipeline does not run, but the index itself takes no text without its language.
    body = [{"update": {"_id": "a"}}, {"doc": {"text": "Springflut"}}]
    (refused,) = client.bulk(body=body, index=index_name)["items"]
    assert (refused["update"]["status"], refused["update"]["error"]["type"]) == (400, "mapper_parsing_exception")
    assert source(client, index, "a") == before
    client.update(index=index_name, id="a", body={"doc": {"text": {"de": "Springtide"}}})
    assert source(client, index, "a") == {**before, "text": {"de": "Springtide"}}
    new = {"text": "Springflut", "title": "Flut", "embedding": OTHER, "shift": None}
    client.update(index=index_name, id="a", body={"doc": new})
    found = source(client, index, "a")
    assert (found["text"], found["title"], found["group"]) == ({"de": "Springflut"}, {"de": "Flut"}, "g")
    assert is_shifted(found, OTHER, "de", GERMAN)
    # By words alone, until somebody sends the vector.
    client.update(index=index_name, id="a", body={"doc": {"text": "Nippflut", "embedding": None, "shift": None}})
    found = source(client, index, "a")
    assert (found["text"], found["embedding"]) == ({"de": "Nippflut"}, None)
    client.index(index=index_name, id="b", body={"text": "Ebbe", "language": "DEU", "shift": STILL})
    assert source(client, index, "b")["text"] == {"de": "Ebbe"}


def test_a_stamp_whose_scale_is_no_number_is_refused_and_not_taken_for_a_raw_vector(client, index):
    with pytest.raises(RequestError) as refused:
        client.index(index=index, id="a", body=german(shift={**GERMAN, "alpha": "0.75"}))
    told = "Document a has a stamp in shift that is not langshift's: remove it."
    assert told in str(refused.value.info)


@pytest.mark.parametrize("gamma", [0.0, 0.97])
def test_a_new_vector_beside_the_stamp_of_the_one_before_is_refused_where_its_norm_tells(client, pipelines, gamma):
    shift = made_shift(alpha=0.75, alphas={"th": 0.5}, gamma=gamma)
    index = make_index(client, pipelines, shift, normalised=True)
    install(client, index, shift, USUAL, None)
    first, second = raw_vector(1, 1), raw_vector(2, 1)
    client.index(index=index, id="1", body={"language": "de", "embedding": first})
    before = source(client, index, "1")
    for part in ({"embedding": second}, {"embedding": second, "language": "de"}, {"embedding": first, "price": 5}):
        with pytest.raises(RequestError) as refused:
            client.update(index=index, id="1", body={"doc": part})
        assert reason(refused.value.info["error"]) == (
            "Document 1 has a new vector in embedding, but the stamp of the one before in shift: send shift null with "
            "the vector."
        )
    assert source(client, index, "1") == before
    # What is shifted stays, and may be written again.
    client.update(index=index, id="1", body={"doc": {"price": 5}})
    client.index(index=index, id="1", body=source(client, index, "1"))
    assert source(client, index, "1") == before | {"price": 5}
    client.update(index=index, id="1", body={"doc": {"embedding": second, "shift": None}})
    assert np.abs(vector(source(client, index, "1")) - shifted_by(second, shift, "de")).max() < 1e-6
