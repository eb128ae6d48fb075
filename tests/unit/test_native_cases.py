"""The plugin's rules in Java: languages as langshift detects and reads them, and documents as the table has them."""

import json
import random

import numpy as np
import pytest
from native_cases import CLOSE, differences, given, read_table, wanted
from text_forms import FORMS
from written_tags import every_spelling

from langshift.debias.detector import open_detector
from langshift.debias.fingerprint import FORMAT
from langshift.debias.vectors import vector_tag
from langshift.evaluate.demo import FOLDER
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.transform import DocumentLanguage, debias_batch
from langshift.languages import document_language, text_language
from langshift.plugin.metadata import FieldNames, encoded, value_at
from langshift.plugin.stored_shift import StoredShift, expected, of_documents
from langshift.plugin.stored_vector import parse_vector, vector_at

INDICES, CASES = read_table()
HTML = "<p>&lt;Caf&eacute;&notit; &#x41;&#128;&#12ab;&#1114112; &zzz; {}</p><!-- the end"
ODD = [
    "",
    " \u3000",
    "12 34",
    "a",
    "\u0130stanbul'da",
    "İSTANBUL'DA IŞIK VE DENİZ",
    "MY FRIEND IS A BIRD",
    "__label__de das Meer",
    "</s> <the> sea",
    "真的吃一颗花生就会死人吗？",
    "香港的天氣今天很熱，下午可能會下雨，請大家記得帶傘出門。",
    "ｶﾞｯｺｳﾉ ﾊﾟﾝﾊ ｵｲｼｲﾃﾞｽ｡",
    "Danas je lep dan i idemo na more sa decom, a uveče ćemo se vratiti kući.",
    "Данас је леп дан и идемо на море са децом, а увече ћемо се вратити кући.",
    "Hari ini cuaca sangat panas, jangan lupa membawa payung.",
    "<div>" * 1_000 + "Das Meer steigt und fällt zweimal am Tag. " + "<<<@@@&&&" * 10_000,
]


@pytest.fixture(scope="module")
def texts():
    """Of the demo's texts some, each as it is and in another form, and odd ones."""
    lines = (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    draw = random.Random(1)
    chosen = [json.loads(line) for line in draw.sample(lines, 240)]
    plain = [one["text"] for one in chosen] + [one["title"] for one in chosen]
    forms = [*FORMS.values(), HTML.format, lambda text: text[: draw.randrange(1, 30)]]
    return [*ODD, *plain, *(draw.choice(forms)(text) for text in plain)]


def test_texts_are_detected_as_in_python(native_cases, texts):
    detectors = [open_detector(), open_detector().limited(("de", "en", "zh", "sr", "ms"))]
    asked = [(text, one) for one in detectors for text in texts]
    found = native_cases.ask(texts=[{"text": text, "languages": one.languages} for text, one in asked])
    wrong, known = {}, set()
    for (text, detector), (language, confidence) in zip(asked, found, strict=True):
        here = detector.detect(text)
        known.add(language)
        # A label that is as improbable as fastText can say may be among those that count here and not there.
        if here.language != language or abs(here.confidence - confidence) > 1e-4:
            wrong[text] = here, language, confidence
    assert not wrong
    assert len(known) > 20


def test_the_query_alone_is_a_plugin_of_searches_and_nothing_else(native_cases):
    package = "org.langshift.opensearch"
    alone, whole = native_cases.ask(points=[f"{package}.LangshiftSearchPlugin", f"{package}.LangshiftPlugin"])
    assert alone == ["SearchPlugin"]
    assert sorted(whole) == ["IngestPlugin", "SearchPlugin"]


def test_a_query_is_printed_as_it_can_be_read_again(native_cases):
    given = {"vector": [0.1, -3e-7, 1e15]}
    term = {"term": {"year": 2001}}
    more = {
        "text": "Gezeiten \u201eund\u201d Mond",
        "language": "zh-TW",
        "k": 7,
        "one_per_group": True,
        "filter": {"bool": {"must": [term], "must_not": [{"term": {"title": "x"}}], "boost": 2}},
        "boost": 1.5,
        "_name": "mine",
    }
    queries = [
        {"mode": mode, **given, **which} for mode in ("auto", "dense", "balanced", "anchored") for which in ({}, more)
    ]
    queries += [more | given | {name: beta} for name in ("prefer_language", "spread") for beta in (0, 0.1, 2)]
    queries += [given | {name: value} for name, value in more.items()]
    queries += [more | {"vector_query": term}, {"vector_query": term, "k": 10_000}]
    changed = native_cases.ask(queries=[{"langshift": one} for one in queries])
    assert changed == [[]] * len(queries)


@pytest.fixture(scope="module")
def made(native_cases):
    """What Java makes of the documents of the table, without detection."""
    documents = [{"index": case["index"], "document": given(case)} for case in CASES]
    found = native_cases.ask(indices=INDICES, documents=documents)
    for one in found:
        if isinstance(one, dict):
            one.pop("_id", None)
    return found


def test_documents_become_what_the_table_says(made):
    assert differences(CASES, made) == []
    assert {case["index"] for case in CASES} == set(INDICES)


def test_where_nothing_moves_numbers_stay_as_they_came(made):
    still = [one for one, case in zip(made, CASES, strict=True) if case["name"].startswith("a vector of any length")]
    assert [str(one["embedding"]) for one in still] == ["[1, 2]"]


@pytest.mark.parametrize("index", INDICES)
def test_the_table_says_what_numpy_makes_of_documents(index):
    meta = INDICES[index]
    fields, debias, shift = FieldNames.from_meta(meta), of_documents(meta, index), StoredShift.from_meta(meta)
    compared = 0
    for case in CASES:
        after = wanted(case)
        if case["index"] != index or isinstance(after, str) or value_at(after, fields.stamp) is None:
            continue
        if (stored := vector_at(after, fields.vector)) is None:
            continue
        raw, stamp = parse_vector(value_at(case["before"], fields.vector)), value_at(after, fields.stamp)
        if not {*(value_at(case["before"], fields.stamp) or ())} - {"page"}:
            told = [
                value_at(case["before"], name)
                for name in (fields.declared_language, fields.language, "language")
                if name
            ]
            tag = next((tag for tag in map(document_language, told) if tag != "und"), "und")
            vectors, stamps = debias_batch(
                raw[np.newaxis], [DocumentLanguage(tag, 1.0)], EmbeddingPipeline(None, debias, None)
            )
            assert [one | {"page": stamp["page"]} for one in stamps] == [stamp], case["name"]
            assert value_at(after, fields.language) == text_language(tag), case["name"]
            vector = vectors[0]
        else:
            (vector,) = expected(shift, shift, fields)([case["before"]])
        assert np.abs(vector - stored).max() <= CLOSE * np.linalg.norm(raw), case["name"]
        compared += 1
    assert compared


PIVOTS = {
    "en": ("de", "no", "sr", "sr-Latn", "zh", "zh-TW"),
    "zh-TW": ("en", "zh", "uz-Cyrl"),
    "sr": ("sr-Latn", "zh-HK"),
}


def test_every_spelling_is_read_as_in_python(native_cases):
    indices = {}
    for pivot, tags in PIVOTS.items():
        vectors = encoded({tag: np.ones(2, np.float32) for tag in tags})
        fingerprint = {**INDICES["usual"]["langshift"], "pivot": pivot, "alphas": {}, "vectors": "v", "dimension": 2}
        indices[pivot] = {"langshift": fingerprint, "langshift_vectors": {"hash": "v", "vectors": vectors}}
    written = [(pivot, text) for pivot in PIVOTS for text in every_spelling()]
    documents = [{"index": pivot, "document": {"embedding": [1, 2], "language": text}} for pivot, text in written]
    wrong = {}
    for (pivot, text), made in zip(written, native_cases.ask(indices=indices, documents=documents), strict=True):
        tag, stamp = document_language(text), made["shift"]
        read = made["language"], stamp.get("language"), stamp.get("tag", made["language"])
        if read != (here := (text_language(tag), vector_tag(tag, pivot, PIVOTS[pivot]), tag)):
            wrong[pivot, text] = read, here
    assert not wrong


def test_a_language_that_nobody_names_is_detected(native_cases):
    german, short = "Ebbe und Flut sind das Steigen und Fallen des Meeres.", "12 34"
    named = {"text": german, "language": "x-default"}
    sent = [
        {"text": german},
        {"title": german, "text": ""},
        named,
        {**named, "language": "und"},
        {"text": short},
        {"text": {"de": german}, "embedding": [1, 2, 3, 4]},
    ]
    found = native_cases.ask(
        indices=INDICES, documents=[{"index": "usual", "document": one, "detects": True} for one in sent]
    )
    confidence = open_detector().detect(german).confidence
    assert [(one["language"], one["language_confidence"]) for one in found] == [
        *[("de", pytest.approx(confidence, abs=CLOSE))] * 3,
        *[("und", 0.0)] * 3,
    ]
    assert [one.get("text") for one in found[:2]] == [{"de": german}, None]


def test_an_index_that_cannot_say_how_it_is_shifted_is_refused(native_cases):
    known = INDICES["directions"]
    fingerprint, vectors = known["langshift"], known["langshift_vectors"]
    bad = {
        "[langshift] Index 0 has no langshift fingerprint: it was not created by langshift.": {},
        "[langshift] Index 1 was made by a later version of langshift: install its plugin on every node.": {
            "langshift": {**fingerprint, "format": FORMAT + 1},
            "langshift_vectors": vectors,
        },
        "[langshift] Index 2 does not contain its language vectors (known): index the corpus again.": {
            "langshift": fingerprint,
            "langshift_vectors": {**vectors, "hash": "others"},
        },
    }
    indices = dict(zip("012", bad.values(), strict=True))
    documents = [{"index": name, "document": {"embedding": [1]}} for name in indices]
    assert native_cases.ask(indices=indices, documents=documents) == list(bad)
