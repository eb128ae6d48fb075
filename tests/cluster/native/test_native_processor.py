"""The ingest processor ``langshift`` of the plugin: one pipeline for all indices, beside Painless and NumPy."""

import base64
import json
import random

import numpy as np
import pytest
from documents import DOCS, blocks
from native_cases import CLOSE, differences, read_table
from native_plugin import has_plugin
from opensearchpy.exceptions import RequestError, TransportError
from piped_index import DIMENSION, made_shift, make_index, raw_vector, shifted_by
from stamps import stamp_of

from langshift.debias.detector import open_detector
from langshift.evaluate.demo import FOLDER
from langshift.languages import text_language
from langshift.plugin import metadata, pipelines, shift_script
from langshift.plugin.metadata import FieldNames
from langshift.plugin.stored_shift import StoredShift

NOT_FINITE = base64.b64encode(np.full(DIMENSION, np.nan, "<f4").tobytes()).decode()
SHIFT = made_shift(alpha=0.75, alphas={"th": 0.5}, gamma=0.9)
INDICES, CASES = read_table()
# Over HTTP each document has an id.
SENT = [case for case in CASES if case.get("id", "a") == "a"]


@pytest.fixture(scope="module", autouse=True)
def _plugin(client):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")


@pytest.fixture
def pipeline(client, pipelines):
    """The one pipeline for all indices."""
    client.ingest.put_pipeline(id=pipelines, body={"processors": [{"langshift": {}}]})
    return pipelines


@pytest.fixture
def index(client, index_name, pipeline):
    """A version behind an alias, which everybody's writes go through the pipeline to."""
    made = make_index(client, index_name, SHIFT)
    client.indices.put_settings(index=made, body={"index": {"default_pipeline": pipeline}})
    return made


def simulated(client, body, documents):
    """What a pipeline makes of documents; the sentence where it refuses one."""
    answer = client.ingest.simulate(body={"pipeline": body, "docs": documents})["docs"]
    return [doc["doc"]["_source"] if "doc" in doc else shift_script.reason(doc["error"]) for doc in answer]


def test_documents_become_what_the_table_says(client, index_name):
    names = {name: f"{index_name}-{name}" for name in INDICES}
    for name, meta in INDICES.items():
        mappings = {"_meta": meta, "dynamic": False}
        page = FieldNames.from_meta(meta).page.replace(".", ".properties.")
        metadata.put_at(mappings, f"properties.{page}", {"type": "keyword"})
        client.indices.create(index=names[name], body={"mappings": mappings})
    documents = [{"_index": names[case["index"]], "_id": "a", "_source": case["before"]} for case in SENT]
    found = simulated(client, {"processors": [{"langshift": {}}]}, documents)
    assert differences(SENT, found) == []


@pytest.mark.parametrize("name", INDICES)
def test_painless_makes_the_same_of_them(client, name):
    shift_script.install(client)
    meta, cases = INDICES[name], [case for case in SENT if case["index"] == name]
    shift, fields = StoredShift.from_meta(meta), FieldNames.from_meta(meta)
    documents = [{"_index": name, "_id": "a", "_source": case["before"]} for case in cases]
    body = json.loads(json.dumps(pipelines.body(name, shift, fields, None)))
    assert differences(cases, simulated(client, body, documents)) == []


# What documents hold, right and wrong, in all combinations that are drawn.
TOLD = ("de", "DE", "zh_Hant", ["th"], "nn", "und", "English", 7, None, "zh-HK", "no", "en")
STAMPS = (
    *[
        {"vectors": "known", "alpha": alpha, "language": key}
        for alpha in (0.75, 1, 0.0)
        for key in ("de", "zh-TW", "xx")
    ],
    {"vectors": "known", "alpha": 0.5, "gamma": 0.97, "language": "th", "tag": "th-TH"},
    {"vectors": "known", "alpha": 0.0, "gamma": 0.97, "tag": "zh-HK"},
    {"vectors": "others", "alpha": 0.5, "language": "de"},
    {"vectors": "others", "alpha": 0, "tag": 7},
    {"vectors": None},
    {"page": "g7"},
    {"alpha": "1"},
    "yes",
)
VECTORS = (
    *[[0.25, -1, 3, number] for number in range(4)],
    *(
        "AACAPwAAAEAAAEBAAACAQA",
        "AACAPwAAAEAAAEBAAADAfw==",
        "x",
        [1, 2],
        [1, "2", 3, 4],
        [1e100, 0, 0, 1],
        {"a": 1},
        None,
    ),
)
GROUPS = ("g7", "", 7, 7.5, True, [], ["g8", "g9"], ["", "g9"], [["g7"]], {"id": "g7"}, None)
TEXTS = ("x", "", "é\u00adﬁ", {"de": "y"}, ["e\u0301"], None)


def drawn(draw, fields, gamma):
    """A document of fields of an index with this gamma, some of them missing."""
    # Where an index never had a gamma, no stamp of its vectors has one.
    stamps = [one for one in STAMPS if gamma or "gamma" not in one]
    parts = {
        fields.vector: VECTORS[:4] if draw.random() < 0.7 else VECTORS,
        fields.language: TOLD,
        fields.stamp: stamps,
        fields.group: GROUPS,
    }
    parts |= dict.fromkeys(fields.text_fields, TEXTS) | {"language": TOLD}
    parts |= {name: ("a", "", [], ["b"], None) for name in (fields.parent,) if name}
    made = {}
    for name, values in parts.items():
        if draw.random() < (0.9 if name == fields.vector else 0.5):
            place = made
            *outer, last = name.split(".") if draw.random() < 0.8 else [name]
            for one in outer:
                place = place.setdefault(one, {})
            place[last] = draw.choice(values)
    return made


@pytest.mark.parametrize("name", INDICES)
def test_painless_and_java_make_the_same_of_whatever_documents_hold(client, native_cases, name):
    shift_script.install(client)
    meta, draw = INDICES[name], random.Random(name)
    shift, fields = StoredShift.from_meta(meta), FieldNames.from_meta(meta)
    sources = [drawn(draw, fields, shift.gamma) for _ in range(350)]
    body = json.loads(json.dumps(pipelines.body(name, shift, fields, None)))
    painless = simulated(client, body, [{"_index": name, "_id": "a", "_source": one} for one in sources])
    java = native_cases.ask(
        indices={name: meta}, documents=[{"index": name, "document": {**one, "_id": "a"}} for one in sources]
    )
    for one in java:
        if isinstance(one, dict):
            del one["_id"]
    cases = [
        {"name": json.dumps(one), "index": name, "after": made} for one, made in zip(sources, painless, strict=True)
    ]
    assert differences(cases, java) == []
    refused = sum(isinstance(one, str) for one in java)
    assert 20 < refused < len(sources) - 100


def source(client, index, name):
    return client.get(index=index, id=name)["_source"]


def write(client, index, sources):
    lines = []
    for name, one in sources.items():
        lines += [{"index": {"_id": name}}, one]
    return client.bulk(index=index, body=lines, params={"refresh": "true"})


def require_as_numpy(found, sources, shift):
    """Each document is as NumPy makes it; its language, where it names none, is as langshift detects it."""
    detector, far = open_detector(), {}
    for name, sent in sources.items():
        tag, confidence = (sent["language"], 1.0) if "language" in sent else detector.detect(sent["text"])
        made, language = found[name], text_language(tag)
        key = shift.key(tag)
        wanted = shifted_by(sent["embedding"], shift, key)
        distance = np.abs(np.array(made["embedding"], np.float32).astype(np.float64) - wanted).max()
        far[name] = float(distance / np.linalg.norm(sent["embedding"]))
        assert (made["language"], made["text"]) == (language, {language: sent["text"]}), name
        assert made["language_confidence"] == pytest.approx(confidence, abs=1e-5)
        stamp = {"vectors": shift.hash, "alpha": 0.0 if key is None else shift.scale(key), "gamma": shift.gamma}
        stamp |= ({} if key is None else {"language": key}) | ({} if tag == language else {"tag": tag})
        assert stamp_of(made) == stamp, name
    assert max(far.values()) <= CLOSE


def demo_sources(count):
    """Documents of the demo, every fifth with its language told, with made-up vectors."""
    lines = [json.loads(line) for line in (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    made = {}
    for place, line in enumerate(lines[:: max(1, len(lines) // count)][:count]):
        told = {} if place % 5 else {"language": line["_id"].rsplit("-", 1)[1]}
        made[line["_id"]] = {"text": line["text"], "embedding": raw_vector(place), **told}
    return made


def test_hundreds_of_documents_are_as_python_makes_them_also_after_a_change_of_the_shift(client, index, index_name):
    sources = demo_sources(300)
    assert len(sources) == 300
    # By the alias, of which the index is the one that is written to.
    assert not write(client, index_name, sources)["errors"]
    found = {name: source(client, index, name) for name in sources}
    require_as_numpy(found, sources, SHIFT)
    assert len({one["language"] for one in found.values()}) == 12
    # The mapping says at once how the next ones are shifted; those that are sent back are put right.
    other = made_shift(alpha=0.5, gamma=0.5)
    changed = {
        "langshift": {**metadata.read_metadata(client, index)["langshift"], "alpha": 0.5, "gamma": 0.5, "alphas": {}}
    }
    meta = {**metadata.read_metadata(client, index), **changed}
    client.indices.put_mapping(index=index, body={"_meta": meta})
    assert not write(client, index_name, found)["errors"]
    require_as_numpy({name: source(client, index, name) for name in sources}, sources, other)


def test_one_pipeline_serves_all_indices(client, index, index_name, pipeline):
    other = make_index(client, f"{index_name}-other", made_shift(alpha=1.0, seed=8, hash_="of another"))
    sent = {"embedding": raw_vector(), "language": "de"}
    for name in (index, other):
        client.index(index=name, id="1", body=sent, params={"pipeline": pipeline})
    hashes = [source(client, name, "1")["shift"]["vectors"] for name in (index, other)]
    assert hashes == [SHIFT.hash, "of another"]


def test_what_cannot_be_shifted_is_refused_alone(client, index, index_name, pipeline):
    body = [{"index": {"_id": "1"}}, {"embedding": [1, 2]}, {"index": {"_id": "2"}}, {"embedding": raw_vector()}]
    bad, good = client.bulk(index=index, body=body)["items"]
    assert (bad["index"]["status"], good["index"]["status"]) == (400, 201)
    assert bad["index"]["error"]["reason"] == (
        f"Document 1 has a vector of dimension 2 in embedding, not {DIMENSION}: give it one of this index's encoder."
    )
    client.indices.create(index=f"{index_name}-plain")
    plain, none = f"{index_name}-plain", f"{index_name}-none"
    told = {
        plain: f"[langshift] Index {plain} has no langshift fingerprint: it was not created by langshift.",
        none: f"[langshift] There is no index {none}: create it first, say with `langshift ingest`.",
    }
    for name, sentence in told.items():
        with pytest.raises(RequestError) as refused:
            client.index(index=name, id="1", body={"text": "x"}, params={"pipeline": pipeline})
        assert refused.value.status_code == 400
        assert shift_script.reason(refused.value.info["error"]) == sentence


def with_value(meta, path, value):
    """A copy of a ``_meta`` with another value at a path."""
    head, _, rest = path.partition(".")
    return {**meta, head: with_value(meta.get(head, {}), rest, value) if rest else value}


NO_ROWS = f"expected base64 of {DIMENSION} finite 32-bit floats, or of several times as many"
TWO_ROWS = base64.b64encode(bytes(8 * DIMENSION)).decode()
# Values that are wrong at a path of ``_meta``, with what is said of them; None where it is said of what is within.
WRONG = [
    ("langshift.dimension", "8", "expected a number"),
    ("langshift.gamma", None, "expected a number"),
    ("langshift.alpha", "NaN", "expected a number"),
    ("langshift.alphas", ["th"], "expected an object"),
    ("langshift.pivot", 5, "expected text"),
    ("langshift.languages", "de", "expected a list"),
    ("langshift_vectors", [], "expected an object"),
    ("langshift_vectors", None, "expected an object"),
    ("langshift_vectors.hash", {}, "expected text"),
    ("langshift_vectors.vectors", ["AAAA"], "expected an object"),
    *[
        (
            f"langshift_vectors.{name}",
            value,
            f"expected base64 of {DIMENSION} finite 32-bit floats, or of several times as many",
        )
        for name in ("directions", "common", "vectors.de")
        for value in (None, {"0": [1.0]}, [[1.0]], "no base64!", "AAAAAA==", "", NOT_FINITE)
    ],
    (
        "langshift_vectors.common",
        base64.b64encode(bytes(8 * DIMENSION)).decode(),
        f"{2 * DIMENSION} numbers, not {DIMENSION}",
    ),
    ("langshift_vectors.own", "x", "expected an object"),
    ("langshift_vectors.own", {"hash": "h", "weight": [1], "vectors": {}}, None),
    ("langshift_fields", "embedding", "expected an object"),
    ("langshift_fields.vector", 3, "expected text"),
    ("langshift_fields.stamp", "", "it is empty"),
    ("langshift_fields.texts", "text", "expected a list"),
    ("langshift_fields.texts", [5], "expected text"),
    ("langshift_fields", {"texts": ["text"], "split": "yes"}, None),
    *[
        (f"langshift_fields.{name}", field, f"{field} is one of OpenSearch's own fields")
        for name, field in [
            ("language", "_id"),
            ("language", "_index.x"),
            ("stamp", "_routing"),
            ("confidence", "_version"),
            ("vector", "_if_seq_no"),
            ("told", "_id"),
            ("parent", "_index"),
            ("group", "_id"),
        ]
    ],
    ("langshift_fields.language", "text.de", "text.de is not a keyword in the mapping"),
    ("langshift_fields.texts", ["text", "_id"], "_id is one of OpenSearch's own fields"),
    *[
        ("langshift_fields", fields, None)
        for fields in ({"language": "shift.language"}, {"stamp": "language"}, {"confidence": "text"})
    ],
]


def test_metadata_that_somebody_has_changed_is_refused_with_the_place_and_nothing_is_written(client, index, index_name):
    meta = metadata.read_metadata(client, index)
    document = {"embedding": raw_vector(), "language": "de", "text": "x"}
    query = {"vector": raw_vector(), "text": "x", "mode": "anchored"}
    queried = 0
    for path, value, why in WRONG:
        client.indices.put_mapping(index=index, body={"_meta": with_value(meta, path, value)})
        requests = {
            "write": lambda: client.index(index=index_name, id="1", body=document),
            "query": lambda: client.search(
                index=index_name, body={"query": {"langshift": {**query, "mode": "anchored"}}}
            ),
        }
        for kind, request in requests.items():
            try:
                request()
            except RequestError as refused:
                said = shift_script.reason(refused.info["error"])
                assert said.startswith(f"[langshift] Index {index} cannot be read: _meta.{path}"), (path, value, said)
                assert why is None or f" is wrong ({why}). Correct it with PUT /{index}/_mapping, or" in said, (
                    path,
                    said,
                )
                assert said.endswith(f"remove the index with `langshift index drop {index_name}`.")
                queried += kind == "query"
            else:
                # A query needs neither the scales of languages nor the places that are only written to.
                assert kind == "query", (path, value)
    assert queried > len(WRONG) / 2
    client.indices.refresh(index=index)
    assert client.count(index=f"{index_name}*")["count"] == 0
    client.indices.put_mapping(index=index, body={"_meta": meta})
    client.index(index=index_name, id="1", body=document)


def test_what_runs_first_is_there_and_runs_in_no_circle(client, index, pipeline):
    for first, told in (
        ("missing", "[langshift] There is no ingest pipeline missing, which is to run first: create it."),
        (pipeline, f"Cycle detected for pipeline: {pipeline}"),
    ):
        client.ingest.put_pipeline(id=pipeline, body={"processors": [{"langshift": {"pipeline": first}}]})
        with pytest.raises(TransportError) as refused:
            client.index(index=index, id="1", body={"text": "x"})
        assert shift_script.reason(refused.value.info["error"]) == told
    with pytest.raises(RequestError) as refused:
        client.ingest.put_pipeline(id=pipeline, body={"processors": [{"langshift": {"first": "x"}}]})
    assert "doesn't support one or more provided configuration parameters [first]" in str(refused.value.info)


def test_the_page_of_the_plugin_shows_a_pipeline_for_all_indices(client, index, pipeline):
    shown = [one.text for one in blocks(DOCS / "plugin.md") if one.text.startswith("PUT ")]
    for request in shown:
        target, _, body = request.removeprefix("PUT ").partition("\n")
        assert target in ("/_ingest/pipeline/langshift", "/news-v0001/_settings")
        # Each test has names of its own.
        own = target.replace("pipeline/langshift", f"pipeline/{pipeline}").replace("news-v0001", index)
        asked = json.loads(body.replace('"default_pipeline": "langshift"', f'"default_pipeline": "{pipeline}"'))
        client.transport.perform_request("PUT", own, body=asked)
    client.index(index=index, id="1", body={"text": "Ebbe und Flut kommen zweimal am Tag.", "embedding": raw_vector()})
    assert source(client, index, "1")["shift"]["language"] == "de"
    assert len(shown) == 2
