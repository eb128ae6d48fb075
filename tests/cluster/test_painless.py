"""The cluster's script against NumPy, by `_reindex` and in an ingest pipeline: numbers, stamps, rules and refusals."""

import os
from dataclasses import replace

import numpy as np
import orjson
import pytest
from opensearchpy.exceptions import RequestError, TransportError
from stamps import stamp_of
from written_tags import every_spelling

from langshift.debias.debiaser import Debiaser
from langshift.debias.fitting.directions import principal_directions
from langshift.debias.vectors import LanguageVectors, vector_tag
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.transform import DocumentLanguage, debias_batch
from langshift.languages import document_language, text_language
from langshift.plugin import shift_script
from langshift.plugin.metadata import USUAL, FieldNames, value_at
from langshift.plugin.stored_shift import StoredShift, expected, of_debias

# Dimension -> how many documents: 1,000 in all, and 10,000 where `make evidence` says so.
TIMES = 10 if os.environ.get("LANGSHIFT_EVIDENCE") else 1
DOCUMENTS = {1: 150, 2: 150, 3: 100, 8: 150, 64: 150, 384: 100, 512: 100, 1024: 50, 1536: 50}
TAGS = ("ar", "de", "no", "pt", "th", "zh", "zh-TW")
# Languages that have a preference vector, the pivot among them; documents in the others are given nothing.
PREFERRED = ("ar", "de", "en", "no", "th", "zh")
NAMES = ("de", "th", "TH", "zh-Hant", "zh_HK", "ara", "nn", "pt_BR", "en-GB", "vi", "English", None)
NEAR, BACK = 2e-7, 1e-6
# From this dimension on with directions: of fewer these would be half of the space.
LEAST = 8
OWN = FieldNames(
    vector="a.vector",
    language="langshift.language",
    confidence="langshift.sure",
    stamp="langshift.shift",
    texts=("words",),
    declared_language="meta.lang",
)


def language_vectors(dimension, seed=0):
    *made, mean = vectors_of(dimension, len(TAGS) + 1, seed, (0.5, 5))
    rows = vectors_of(dimension, min(16, dimension // 2), seed + 2) if dimension >= LEAST else None
    preferred = (
        {}
        if rows is None
        else dict(zip(PREFERRED, vectors_of(dimension, len(PREFERRED), seed + 3, (1, 5)), strict=True))
    )
    return LanguageVectors(
        *("en", dict(zip(TAGS, made, strict=True)), {}, f"toy-{seed}", "1", "", dimension, False, "made up"),
        common={"documents": mean, "queries": -mean},
        query_directions=None if rows is None else principal_directions(rows.astype(np.float64), len(rows)),
        own_vectors=preferred,
        scatter=[100.0, *[1.0] * 16],
    )


def shift_of(dimension=3, alpha=0.5, seed=0, gamma=0.0, own=0.0, **alphas):
    own = own if dimension >= LEAST else 0.0
    return of_debias(Debiaser(language_vectors(dimension, seed), alpha, alphas, gamma, own))


def vectors_of(dimension, count, seed=2, norms=(1, 50)):
    random = np.random.default_rng([dimension, seed])
    made = random.standard_normal((count, dimension))
    norms = random.uniform(*norms, (count, 1))
    return (norms * made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def pipelines(client, index_name):
    """Makes pipelines of the script; removed at the end."""
    made = []

    def make(shift, fields=USUAL):
        name, script = f"{index_name}-{len(made)}", shift_script.install(client)
        step = {"script": {"id": script, "params": shift_script.params(shift, shift, fields, pipeline=True)}}
        client.ingest.put_pipeline(id=name, body={"processors": [step]})
        made.append(name)
        return name

    yield make
    for name in made:
        client.ingest.delete_pipeline(id=name)


@pytest.fixture
def index(client, index_name):
    """Makes indices; those of a dimension are real ones, others hold anything."""
    made = []

    def make(dimension=0, pipeline="_none"):
        made.append(f"{index_name}-{len(made)}")
        knn = {"type": "knn_vector", "dimension": dimension}
        knn["method"] = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
        settings = {"knn": bool(dimension), "default_pipeline": pipeline, "number_of_replicas": 0}
        mappings = {"dynamic": False, "properties": {"embedding": knn} if dimension else {}}
        client.indices.create(index=made[-1], body={"settings": {"index": settings}, "mappings": mappings})
        return made[-1]

    return make


def row_of(source):
    return np.array(source["embedding"], np.float32)


def write(client, index, sources):
    for start in range(0, len(sources), 500):
        lines = []
        for place, source in enumerate(sources[start : start + 500], start):
            lines += [{"index": {"_id": str(place)}}, source]
        answer = client.bulk(index=index, body=b"".join(orjson.dumps(line) + b"\n" for line in lines))
        assert not answer["errors"], answer["items"][0]
    client.indices.refresh(index=index)


def sources_of(client, index):
    found, after = {}, None
    while True:
        body = {"size": 500, "sort": ["_doc"], **({"search_after": after} if after else {})}
        hits = client.search(index=index, body=body)["hits"]["hits"]
        if not hits:
            return [found[str(place)] for place in range(len(found))]
        found.update({hit["_id"]: hit["_source"] for hit in hits})
        after = hits[-1]["sort"]


def retune(client, one, other, old, new, fields=USUAL):
    script = {"id": shift_script.install(client), "params": shift_script.params(old, new, fields, pipeline=False)}
    body = {"source": {"index": one}, "dest": {"index": other, "pipeline": "_none"}, "script": script}
    client.reindex(body=body, params={"refresh": "true", "request_timeout": 300})


def far(found, wanted, raw):
    """The largest difference of two documents' vectors, relative to the norm of the encoder's."""
    found, wanted, raw = (np.asarray(some, np.float32).astype(np.float64) for some in (found, wanted, raw))
    return float((np.abs(found - wanted).max(axis=1) / np.linalg.norm(raw, axis=1)).max())


def debias_of(shift):
    size = len(shift.vectors["de"]) if shift.vectors else 1
    known = next((known for seed in (0, 1) if (known := language_vectors(size, seed)).hash == shift.hash), None)
    return Debiaser(known, shift.alpha, shift.alphas, shift.gamma, shift.own)


def loaded(raw, told, shift):
    """Vectors and stamps as a load writes them."""
    return debias_batch(raw, told, EmbeddingPipeline(None, debias_of(shift), None))


def stamps(raw, tags, shift):
    return loaded(raw, [DocumentLanguage(tag, 1.0) for tag in tags], shift)[1]


@pytest.mark.parametrize("dimension", DOCUMENTS)
def test_documents_as_numpy_shifts_them_there_and_back(client, pipelines, index, dimension):
    # Every other dimension begins without a gamma, and gets one on the way.
    gammas = (0.97, 0.0) if list(DOCUMENTS).index(dimension) % 2 else (0.0, 0.97)
    gamma, other_gamma = gammas if dimension >= LEAST else (0.0, 0.0)
    raw = vectors_of(dimension, TIMES * DOCUMENTS[dimension])
    names = [NAMES[place % len(NAMES)] for place in range(len(raw))]
    tags = [document_language(name) for name in names]
    first = shift_of(dimension, 0.75, gamma=gamma, own=0.02 if gamma else 0.0, th=0.5, zh=0.0)
    one = index(dimension, pipelines(first))
    write(client, one, [{"embedding": row.tolist(), "language": name} for row, name in zip(raw, names, strict=True)])
    before = sources_of(client, one)
    found = {"pipeline": far([s["embedding"] for s in before], debias_of(first).documents(raw, tags), raw)}
    assert [stamp_of(source) for source in before] == stamps(raw, tags, first)

    shifts = {
        "alpha": shift_of(dimension, 0.3, gamma=gamma, de=1.0, zh=0.9),
        "own": shift_of(dimension, 0.3, gamma=gamma, own=0.1, de=1.0, zh=0.9),
        "gamma": shift_of(dimension, 0.3, gamma=other_gamma, own=0.1, de=1.0),
        "both": shift_of(dimension, 0.0, gamma=0.9 if other_gamma else 0.0, own=0.01, th=1.0),
        "own alone": shift_of(dimension, 0.0, own=0.02),
        "vectors": shift_of(dimension, 1.0, seed=1, gamma=max(gamma, other_gamma), own=0.02),
    }
    there, now = one, first
    for name, shift in {**shifts, "none": StoredShift(), "back": first}.items():
        other = index(dimension)
        retune(client, there, other, now, shift)
        wanted = expected(now, shift, USUAL)(sources_of(client, there))
        after = sources_of(client, other)
        found[name] = far([source["embedding"] for source in after], wanted, raw)
        assert [stamp_of(source) for source in after] == stamps(raw, tags, shift)
        unmoved = [
            place for place, source in enumerate(after) if not {"language", "gamma", "own"} & source["shift"].keys()
        ]
        assert name != "alpha" or all((row_of(after[place]) == raw[place]).all() for place in unmoved)
        there, now = other, shift
    back = far([source["embedding"] for source in after], [source["embedding"] for source in before], raw)
    print(dimension, "dimensions:", {name: f"{value:.1e}" for name, value in found.items()}, f"and back {back:.1e}")
    # With a gamma, what is rounded in the rows of B counts as often as taking it back multiplies it.
    assert max(found.values()) <= (BACK if dimension >= LEAST else NEAR)
    assert back <= BACK


def simulated(client, shift, sources, fields=USUAL):
    """What the pipeline makes of documents; the sentence where it refuses one."""
    params = shift_script.params(shift, shift, fields, pipeline=True)
    steps = [{"script": {"id": shift_script.install(client), "params": params}}]
    docs = [{"_index": "i", "_id": str(place), "_source": source} for place, source in enumerate(sources)]
    answer = client.ingest.simulate(body={"pipeline": {"processors": steps}, "docs": docs})["docs"]
    return [doc["doc"]["_source"] if "doc" in doc else shift_script.reason(doc["error"]) for doc in answer]


@pytest.mark.parametrize(
    ("told", "language", "key", "tag"),
    [
        ("de", "de", "de", None),
        (" DE ", "de", "de", None),
        ("de_AT", "de", "de", "de-AT"),
        ("de-1996", "de", "de", None),
        ("de-u-co-phonebk", "de", "de", None),
        ("deu_Latn", "de", "de", None),
        (["zho_Hant"], "zh", "zh-TW", "zh-TW"),
        ("ger", "de", "de", None),
        ("zh-TW", "zh", "zh-TW", "zh-TW"),
        ("zh-Hant", "zh", "zh-TW", "zh-TW"),
        ("zho_Hant", "zh", "zh-TW", "zh-TW"),
        ("zh-Hant-HK", "zh", "zh-TW", "zh-HK"),
        ("cmn", "zh", "zh", None),
        ("zh-yue", "zh", "zh-TW", "yue"),
        ("ara", "ar", "ar", None),
        ("arz", "ar", "ar", "arz"),
        ("nn", "no", "no", "nn"),
        ("nno", "no", "no", "nn"),
        ("pt_BR", "pt", "pt", "pt-BR"),
        ("es-419", "es", None, "es-419"),
        ("en", "en", None, None),
        ("en-gb", "en", None, "en-GB"),
        ("vi", "vi", None, None),
        *[
            (told, "und", None, None)
            for told in ("und", "English", "xx", "", "-", "de--AT", "de-", 7, [], ["de", "th"], [["de"]], None)
        ],
    ],
)
def test_how_a_pipeline_reads_a_language(client, told, language, key, tag):
    shift = shift_of()
    (raw,) = vectors = np.array([[1, 2, 3]], np.float32)
    (made,) = simulated(client, shift, [{"embedding": [1, 2, 3], "language": told, "title": "", "text": "x"}])
    stamp = {"vectors": shift.hash, "alpha": 0.5 if key else 0.0}
    stamp |= ({"language": key} if key else {}) | ({"tag": tag} if tag else {})
    assert made == {
        "embedding": made["embedding"],
        "language": language,
        "language_confidence": 0.0 if language == "und" else 1.0,
        "text": {language: "x"},
        "shift": stamp | {"page": "0"},
    }
    wanted = debias_of(shift).documents(vectors, [document_language(told)])
    assert far([made["embedding"]], wanted, [raw]) <= NEAR
    # Where nothing moves, nothing is touched: whole numbers stay whole.
    assert key or str(made["embedding"]) == "[1, 2, 3]"
    assert stamps(vectors, [document_language(told)], shift) == [stamp]


@pytest.mark.parametrize(
    ("pivot", "tags"),
    [
        ("en", ("de", "no", "sr", "sr-Latn", "zh", "zh-TW")),
        ("zh-TW", ("en", "zh", "uz-Cyrl")),
        ("sr", ("sr-Latn", "zh-HK")),
    ],
)
def test_a_pipeline_reads_every_spelling_as_a_load_does(client, pivot, tags):
    made = {tag: np.array([number, 1, 2], np.float32) for number, tag in enumerate(tags)}
    shift = of_debias(Debiaser(LanguageVectors(pivot, made, {}, "toy", "1", "", 3, False, "made up")))
    written = every_spelling()
    found = simulated(client, shift, [{"embedding": [1, 2, 3], "language": text} for text in written])
    wrong = {}
    for text, source in zip(written, found, strict=True):
        tag, stamp = document_language(text), source["shift"]
        read = source["language"], stamp.get("language"), stamp.get("tag", source["language"])
        if read != (wanted := (text_language(tag), vector_tag(tag, pivot, made), tag)):
            wrong[text] = read, wanted
    assert not wrong


def test_what_passes_a_pipeline_as_it_is(client):
    shift = shift_of()
    partial = [{}, {"views": 3}, {"language": "de"}, {"embedding": None, "views": 3}, {"text": {"de": "x"}}]
    assert simulated(client, shift, partial) == partial
    # A text alone goes to the field of its language.
    assert simulated(client, shift, [{"text": "x", "language": "DE"}, {"title": "x"}]) == [
        {"text": {"de": "x"}, "language": "de", "language_confidence": 1.0},
        {"title": {"und": "x"}, "language": "und", "language_confidence": 0.0},
    ]
    assert simulated(client, shift, [{"text": "x", "views": 3}], OWN) == [{"text": "x", "views": 3}]


def test_what_a_pipeline_refuses(client):
    shift = shift_of()
    bad = [[1, 2], [1, 2, 3, 4], [], "text", {"0": 1}, 7, ["NaN", 1, 2], [None, 1, 2], [1, [2], 3], [1, 1e300, 3]]
    dimensions = {0: 2, 1: 4, 2: 0}
    told = {
        place: f"Document {place} has a vector of dimension {size} in embedding, not 3: give it one of this index's "
        "encoder."
        for place, size in dimensions.items()
    }
    told[3] = "Document 3 has a string in embedding that is no base64 of little-endian 32-bit floats: give it a vector."
    told |= {place: f"Document {place} holds no list of numbers in embedding: give it a vector." for place in (4, 5)}
    strange = {6: '"NaN"', 7: "null", 8: '"[2]"'}
    told |= {
        place: f"Document {place} has {what} in embedding, which is no number: give it a vector."
        for place, what in strange.items()
    }
    told[9] = "Document 9 has numbers in embedding that are too large for float32."
    assert simulated(client, shift, [{"embedding": vector, "language": "de"} for vector in bad]) == list(told.values())
    # Also where nothing would move; only the index itself knows how large a float may be.
    assert simulated(client, shift, [{"embedding": vector} for vector in bad[:9]]) == list(told.values())[:9]


def test_a_refusal_reaches_a_client_as_the_reason_of_a_400(client, pipelines, index):
    name = index(3, pipelines(shift_of()))
    with pytest.raises(RequestError) as refused:
        client.index(index=name, id="a", body={"embedding": [1, 2], "language": "de"})
    assert refused.value.status_code == 400
    said = "Document a has a vector of dimension 2 in embedding, not 3: give it one of this index's encoder."
    assert shift_script.reason(refused.value.info["error"]) == said
    with pytest.raises(RequestError) as refused:
        client.index(index=name, body={"embedding": [1, 2], "language": "de"})
    assert shift_script.reason(refused.value.info["error"]) == said.replace("Document a", "The document")
    assert client.count(index=name)["count"] == 0


def test_a_document_is_never_shifted_twice(client, pipelines, index):
    shift, raw = shift_of(de=0.25), [[1.0, 2.0, 3.0], [-1.5, 0.25, 30.0]]
    one, other = (index(3, pipelines(shift)) for _ in range(2))
    write(client, one, [{"embedding": row, "language": tag} for row, tag in zip(raw, ("de", "zh-TW"), strict=True)])
    once = sources_of(client, one)
    assert once[0]["embedding"] != raw[0]
    # Written again as it was read, by reindex through the pipeline, by an update, and by bulk updates of a part.
    write(client, one, once)
    client.reindex(body={"source": {"index": one}, "dest": {"index": other}}, params={"refresh": "true"})
    assert sources_of(client, one) == sources_of(client, other) == once
    client.update(index=one, id="0", body={"doc": {"views": 3}})
    lines = [{"update": {"_id": "1"}}, {"doc": {"views": 3}, "doc_as_upsert": True}]
    client.bulk(index=one, body=b"".join(orjson.dumps(line) + b"\n" for line in lines), params={"refresh": "true"})
    assert sources_of(client, one) == [{**source, "views": 3} for source in once]


def test_a_stamped_document_gets_this_indexs_scale_exactly(client):
    old, new, other = shift_of(alpha=1.0), shift_of(alpha=0.5, de=0.0), shift_of(seed=1)
    raws, tags = vectors_of(3, 4), ["th", "de", "vi", "de"]
    moved = debias_of(old).documents(raws, tags)
    docs = [
        {"embedding": vector.tolist(), "language": tag, "language_confidence": 0.9, "shift": stamp, "text": {tag: "x"}}
        for vector, tag, stamp in zip(moved, tags, stamps(raws, tags, old), strict=True)
    ]
    # What was not moved may name any vectors, or none: it is as the encoder made it.
    docs[2]["shift"] = {"vectors": None, "alpha": 0.0}
    docs[3] |= {"embedding": raws[3].tolist(), "shift": {"vectors": other.hash, "alpha": 0.0, "language": "de"}}
    wanted = debias_of(new).documents(raws, tags)
    made = simulated(client, new, docs)
    assert far([source["embedding"] for source in made], wanted, raws) <= NEAR
    assert made == [
        {**doc, "embedding": source["embedding"], "shift": stamp | {"page": str(number)}}
        for number, (doc, source, stamp) in enumerate(zip(docs, made, stamps(raws, tags, new), strict=True))
    ]
    assert far(expected(old, new, USUAL)(docs), wanted, raws) <= NEAR
    # A document that is told to be in a language only later is moved then.
    unknown = {"embedding": [1, 2, 3], "language": "th", "shift": {"vectors": new.hash, "alpha": 0.0}}
    assert stamp_of(simulated(client, new, [unknown])[0]) == {"vectors": new.hash, "alpha": 0.5, "language": "th"}


def test_stamps_that_are_refused(client, index):
    old, new = shift_of(), shift_of(alpha=1.0)
    stamp = {"vectors": old.hash, "alpha": 0.5, "language": "de"}
    bad = {
        "Document 0 was shifted by the language vectors abc, and this index holds "
        f"{old.hash}: give the document its encoder's vector again, without the stamp shift.": {
            "shift": {**stamp, "vectors": "abc"}
        },
        "Document 0 was shifted by a vector for xx, which its index does not hold: index the corpus again.": {
            "shift": {**stamp, "language": "xx"}
        },
        "Document 0 has a stamp in shift that is not langshift's: remove it.": {"shift": "yes"},
        "Document 0 has a vector of dimension 2 in embedding, not 3: give it one of this index's encoder.": {
            "shift": {**stamp, "alpha": 1.0, "language": "th"},
            "embedding": [1, 2],
        },
    }
    for said, fields in bad.items():
        source = {"embedding": [1, 2, 3], "language": "de", **fields}
        assert simulated(client, old, [source]) == [said]
        one, done = index(), index()
        write(client, one, [source])
        with pytest.raises(TransportError) as refused:
            retune(client, one, done, old, replace(new, alpha=0.75))
        assert (refused.value.status_code, shift_script.reason(refused.value.info["error"])) == (400, said)
    alone = {
        "Document 0 has a vector but no stamp in shift, so that nobody knows whether it is shifted: write it again "
        "with `langshift ingest`, or through the pipeline of its index.": ({}, new),
    }
    for said, (fields, shift) in alone.items():
        one, done = index(), index()
        write(client, one, [{"embedding": [1, 2, 3], "language": "de", **fields}])
        with pytest.raises(TransportError) as refused:
            retune(client, one, done, old, shift)
        assert shift_script.reason(refused.value.info["error"]) == said


def test_a_retune_leaves_alone_what_has_no_vector_and_what_stays(client, index):
    old, new = shift_of(alpha=0.5), shift_of(alpha=0.25, de=0.5)
    stamp = {"vectors": old.hash, "alpha": 0.5, "language": "de"}
    sources = [
        {"text": {"de": "x"}},
        {"embedding": [1, 2, 3], "language": "de", "shift": stamp},
        {"embedding": [1, 2, 3], "language": "vi", "shift": {"vectors": old.hash, "alpha": 0.0}},
    ]
    one, other = index(), index()
    write(client, one, sources)
    retune(client, one, other, old, new)
    made = sources_of(client, other)
    assert [source | ({"shift": stamp_of(source)} if "shift" in source else {}) for source in made] == sources
    assert [str(source["embedding"]) for source in made[1:]] == ["[1, 2, 3]"] * 2


def test_stamps_of_earlier_versions_have_no_tag(client, index):
    old, new, other = shift_of(alpha=0.5), shift_of(alpha=1.0), shift_of(alpha=1.0, seed=1)
    stamp = {"vectors": old.hash, "alpha": 0.5, "language": "zh-TW"}
    one, hosts = index(), [index(), index()]
    write(client, one, [{"embedding": [1, 2, 3], "language": "zh", "shift": stamp}])
    for host, shift in zip(hosts, (new, other), strict=True):
        retune(client, one, host, old, shift)
        (made,) = sources_of(client, host)
        assert stamp_of(made) == {"vectors": shift.hash, "alpha": 1.0, "language": "zh-TW", "tag": "zh-TW"}
        assert far([made["embedding"]], expected(old, shift, USUAL)(sources_of(client, one)), [[1, 2, 3]]) <= NEAR


def test_fields_of_an_adopted_index(client, index):
    old, new = shift_of(alpha=0.5), shift_of(alpha=1.0)
    document = {"a": {"vector": [1, 2, 3], "b": 1}, "meta.lang": "zh_TW", "words": "x", "text": "y"}
    nested = {"a.vector": [1, 2, 3], "meta": {"lang": "zh_TW"}, "langshift": {"kept": 1}}
    made = simulated(client, old, [document, nested], OWN)
    stamp = {"vectors": old.hash, "alpha": 0.5, "language": "zh-TW", "tag": "zh-TW"}
    added = {"language": "zh", "sure": 1.0, "shift": stamp}
    vector = made[0]["a"]["vector"]
    added, other = ({**added, "shift": {**stamp, "page": str(number)}} for number in range(2))
    assert made == [
        {**document, "a": {"vector": vector, "b": 1}, "langshift": added},
        {**nested, "a.vector": vector, "langshift": {"kept": 1, **other}},
    ]
    one, other = index(), index()
    write(client, one, made)
    retune(client, one, other, old, new, OWN)
    after = sources_of(client, other)
    raw = np.array([[1, 2, 3]], np.float32)
    for source in after:
        found = [value_at(source, OWN.vector)]
        assert far(found, debias_of(new).documents(raw, ["zh-TW"]), raw) <= NEAR
        assert far(found, expected(old, new, OWN)(made)[:1], raw) <= NEAR
        assert stamp_of(source["langshift"]) == {**stamp, "alpha": 1.0}
    assert expected(old, new, OWN)([{"words": "x"}]) == [None]


@pytest.mark.usefixtures("script_of_its_own")
def test_the_script_is_stored_once_and_put_right(client):
    name = shift_script.install(client)
    assert name == shift_script.install(client) == shift_script.script_id()
    assert client.get_script(id=name)["script"]["source"] == shift_script.source()
    client.put_script(id=name, body={"script": {"lang": "painless", "source": "ctx.x = 1"}})
    shift_script.install(client)
    assert client.get_script(id=name)["script"]["source"] == shift_script.source()
