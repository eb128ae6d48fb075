"""What a shift would change in an index, from a sample of it: planted offsets are found, and nothing is written."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from advice import advised
from command_line import langshift
from given_data import run, write_lines
from old_index import SENTENCES
from opensearchpy import Transport

from langshift.debias.vectors import LanguageVectors
from langshift.errors import FingerprintError, UsageError
from langshift.evaluate.datasets.logs import FORMS
from langshift.plugin.versions import live

pytestmark = pytest.mark.usefixtures("cluster_env")
COUNTS = {"en": 40, "de": 38, "fr": 36, "th": 34, "it": 5, "und": 3}
DIMENSION = 4 + sum(COUNTS.values())
TEXTS = {**SENTENCES, "it": "Il mare sale e scende due volte al giorno.", "und": "12345"}
OPTIONS = ("--vector-field", "vec", "--text-field", "body")
GIVEN = ("--language-field", "lang", "--encoder", "given")
UNMOVED = "Do not shift it: that would change nothing, because no document of the sample would be shifted ({})."
VERDICT = (
    "No judgements to tell by: the searcher's language has about 16 of the first 20 hits before and about 4 after (81% "
    "to 20%), which is neither good nor bad by itself: it makes room for answers in other languages and takes it from "
    "those in the searcher's own language, whether there are any or not, so adopt the index with --alpha 0 and then "
    "run `langshift retune NAME --alpha A --gate DATASET`, which replays judged queries before and after the "
    "shift (`langshift dataset make NAME DATASET` has titles ask where nobody has judged any)."
)


def axis(number, dimension=DIMENSION):
    return np.eye(dimension, dtype=np.float32)[number]


# Documents of one language have cosine 1/2, those of two languages 0; the vectors towards English leave 1/2 of all.
OFFSETS = {tag: axis(place) for place, tag in enumerate(("en", "de", "fr", "th"))}
FITTING = {tag: OFFSETS[tag] - OFFSETS["en"] for tag in ("de", "fr", "th")}


def planted():
    """Each document has its language's offset and a direction of its own; every other one names its language."""
    own = 4
    for tag, count in COUNTS.items():
        for number in range(count):
            source = {"body": TEXTS[tag], "vec": OFFSETS.get(tag, 0 * axis(0)) + axis(own)}
            if tag == "it" or (number % 2 and tag != "und"):
                source["lang"] = tag
            yield source
            own += 1


def create(client, name, documents, dimension=DIMENSION):
    method = {"name": "hnsw", "engine": "lucene"}
    vec = {"type": "knn_vector", "dimension": dimension, "space_type": "cosinesimil", "method": method}
    body = {
        "settings": {"index": {"knn": True, "number_of_shards": 2, "number_of_replicas": 0}},
        "mappings": {"properties": {"vec": vec, "body": {"type": "text"}, "lang": {"type": "keyword"}}},
    }
    client.indices.create(index=name, body=body)
    lines = []
    for number, source in enumerate(documents):
        vector = {"vec": list(map(float, source["vec"]))} if "vec" in source else {}
        lines += [json.dumps({"index": {"_index": name, "_id": str(number)}}), json.dumps({**source, **vector})]
    if lines:
        answer = client.bulk(body="\n".join(lines) + "\n", params={"refresh": "true"})
        assert not answer["errors"], answer
    return name


@pytest.fixture(scope="module")
def old(client):
    name = f"langshift-test-audit-{uuid.uuid4().hex[:8]}"
    without = [{"body": TEXTS["en"]}] * 2
    told_wrongly = {"body": TEXTS["de"], "lang": "en", "vec": OFFSETS["en"] + axis(4)}
    first, *others = planted()
    assert first["body"] == TEXTS["en"]
    yield create(client, name, [told_wrongly, *others, *without])
    client.indices.delete(index=name)


@pytest.fixture
def vectors(tmp_path):
    """Writes a file of language vectors towards English, and gives its path."""

    def make(offsets=FITTING, encoder="given", **more):
        path = tmp_path / "planted.safetensors"
        counts = dict.fromkeys(offsets, 1000)
        LanguageVectors("en", offsets, counts, encoder, "", "", DIMENSION, False, "planted", **advised(more)).save(path)
        return path

    return make


def audited(old, *more, given=GIVEN, options=OPTIONS):
    """The audit as JSON."""
    done = run("index", "audit", old, *options, *given, *more, "--json")
    assert done.exit_code == 0, done
    return json.loads(done.stdout)


def similarity(told, when):
    """Mean cosines by the languages of query and document."""
    found = told["similarity"]
    return {
        (query, document): found[when][row][column]
        for row, query in enumerate(found["queries"])
        for column, document in enumerate(found["documents"])
    }


def sentences(told, *kinds):
    return [one["text"] for one in told["findings"] if one["kind"] in kinds]


def test_planted_similarities_before_and_after(old, vectors):
    told = audited(old, "--vectors", vectors())
    before, after = similarity(told, "before"), similarity(told, "after")
    assert told["similarity"]["documents"] == ["en", "de", "fr", "th", "it"]
    for one in OFFSETS:
        for other in OFFSETS:
            assert before[one, other] == pytest.approx(0.5 * (one == other), abs=1e-6)
            # Queries stay as they are.
            assert after[one, other] == pytest.approx(0.5 * (one == "en"), abs=1e-6)
    assert before["en", "it"] == after["en", "it"] == 0


def test_all_that_is_told_as_json(old, vectors):
    told = audited(old, "--vectors", vectors())
    assert list(told) == [
        *(
            "name",
            "index",
            "uuid",
            "documents",
            "with_vector",
            "sample",
            "unusable",
            "fingerprint",
            "vectors",
            "languages",
        ),
        *(
            "disagreements",
            "queries",
            "reference",
            "spread",
            "unread",
            "shift",
            "similarity",
            "nearest",
            "findings",
            "verdict",
        ),
    ]
    assert told["name"] == told["index"] == old
    assert [told[name] for name in ("documents", "with_vector", "sample", "unusable")] == [158, 156, 156, 0]
    assert (told["fingerprint"]["encoder"], told["fingerprint"]["alpha"]) == ("given", 1)
    assert {name: told["vectors"][name] for name in ("pivot", "source")} == {"pivot": "en", "source": "planted"}
    assert {mix["language"]: mix["documents"] for mix in told["languages"]} == COUNTS
    mix = next(mix for mix in told["languages"] if mix["language"] == "de")
    assert (mix["told"], mix["agreed"], mix["unsure"]) == (19, 19, 0)
    assert mix["share"] == pytest.approx(38 / 156)
    assert mix["confidence"] > 0.9
    assert [mix["norm"], mix["low"], mix["high"]] == pytest.approx([2**0.5] * 3)
    assert told["disagreements"] == [{"told": "en", "detected": "de", "documents": 1}]
    assert told["queries"] == {"file": None, "total": 156, "used": 156}
    assert told["reference"] == "en"
    assert [one["language"] for one in told["shift"]] == ["en", "de", "fr", "th", "it"]
    english, german, *_, italian = told["shift"]
    assert (english["vector"], english["share"], english["fit"], english["gap"]) == (None, 0, None, None)
    assert (italian["vector"], italian["share"], italian["fit"], italian["gap"]) == (None, 0, None, None)
    assert (german["vector"], german["documents"]) == ("de", 38)
    # The vector and the embeddings have the same norm.
    assert german["share"] == pytest.approx(1)
    assert german["fit"]["there"]["value"] == pytest.approx(1)
    assert 0.95 < german["fit"]["cosine"] < 1
    assert german["gap"]["before"]["value"] == pytest.approx(0.5)
    assert german["gap"]["after"]["value"] == pytest.approx(0, abs=1e-6)
    assert german["gap"]["change"]["value"] == pytest.approx(0.5)
    pairs = dict(zip(told["similarity"]["documents"], told["similarity"]["pairs"][0], strict=True))
    assert pairs == {"en": 40 * 39, "de": 40 * 38, "fr": 40 * 36, "th": 40 * 34, "it": 40 * 5}
    near = {one["language"]: one for one in told["nearest"]["languages"]}
    assert (told["nearest"]["documents"], set(near)) == (20, set(COUNTS) - {"und"})
    assert near["de"]["even"] == pytest.approx(37 / 152)
    assert near["de"]["before"] == 1
    assert near["de"]["after"] == pytest.approx(37 / 152)


def test_the_verdict_on_vectors_that_fit(old, vectors):
    told = audited(old, "--vectors", vectors())
    assert [one["kind"] for one in told["findings"]] == ["fits", "gap", "no_vector", "not_judged"]
    whole, gap, *others = [one["text"] for one in told["findings"]]
    assert told["verdict"] == {"kind": "no judgements", "sentence": VERDICT, "figures": [], "next": []}
    assert whole == "The language vectors fit: most of what the shift removes is present in documents in de, fr, th."
    assert gap.startswith(
        "Documents in de, fr, th lie .500 (.500 to .500) further from queries in en than those in en; "
    )
    assert others == [
        "No language vector for it (5 documents): these documents are not shifted by language.",
        "Fewer than 30 documents, and so not judged: it.",
    ]


def test_what_a_person_sees(old, vectors):
    done = langshift("index", "audit", old, *OPTIONS, *GIVEN, "--vectors", vectors(), url=None, COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert (
        lines[:38]
        == f"""\
{old}: 156 of 156 documents with a vector, drawn at random; 2 more have no vector. Nothing was written.
language  documents  share  certainty  norm   5 % to 95 %  named  agree  unsure
en               40  25.6%        .94  1.41  1.41 to 1.41     21     20       0
de               38  24.4%        .98  1.41  1.41 to 1.41     19     19       0
fr               36  23.1%        .98  1.41  1.41 to 1.41     18     18       0
th               34  21.8%       1.00  1.41  1.41 to 1.41     17     17       0
it                5   3.2%        .96     1        1 to 1      5      5       0
und               3   1.9%        .00     1        1 to 1      0      0       0
The detector disagrees with the languages that documents name: en detected as de (1).

What the shift removes, and how much of it is present, compared with documents in en:
language  vector  share of norm  cosine  present  95 % interval
en        -
de        de             100.0%     .99     1.00   1.00 to 1.00
fr        fr             100.0%     .99     1.00   1.00 to 1.00
th        th             100.0%     .99     1.00   1.00 to 1.00
it        -

Queries: the documents themselves, none compared with itself (give real queries with --queries).
Mean cosine before the shift, queries in rows, documents in columns:
      en    de    fr    th    it
en  .500  .000  .000  .000  .000
de  .000  .500  .000  .000  .000
fr  .000  .000  .500  .000  .000
th  .000  .000  .000  .500  .000
it  .000  .000  .000  .000  .000
Mean cosine after the shift, queries in rows, documents in columns:
      en    de    fr    th    it
en  .500  .500  .500  .500  .000
de  .000  .000  .000  .000  .000
fr  .000  .000  .000  .000  .000
th  .000  .000  .000  .000  .000
it  .000  .000  .000  .000  .000

Of the 20 nearest documents of the sample, the share in the query's language:
queries in  queries  even mix  before  after
en               40     25.7%  100.0%  26.5%
de               38     24.3%  100.0%  24.3%
""".splitlines()
    )
    assert lines[-5:] == [
        "The language vectors fit: most of what the shift removes is present in documents in de, fr, th.",
        "Documents in de, fr, th lie .500 (.500 to .500) further from queries in en than those in en; the shift "
        "removes .500 (.500 to .500) of that.",
        "No language vector for it (5 documents): these documents are not shifted by language.",
        "Fewer than 30 documents, and so not judged: it.",
        VERDICT,
    ]


def test_vectors_that_are_turned_do_not_fit(old, vectors):
    turned = {tag: axis(-1 - place) for place, tag in enumerate(FITTING)}
    told = audited(old, "--vectors", vectors(turned))
    assert told["verdict"] == {
        "kind": "do not shift",
        "sentence": "Do not shift it: the language vectors do not fit the vectors in 'vec', because less than half of "
        "what the shift would remove is present (de .00, fr .00, th .00; 1 would be all of it), so name the encoder "
        "that the vectors were built with, or fit language vectors with it on parallel text, with `langshift vectors "
        "fit`.",
        "figures": [],
        "next": [],
    }
    whole = told["findings"][0]
    assert (whole["kind"], whole["languages"], whole["text"]) == (
        "not_fitting",
        ["de", "fr", "th"],
        told["verdict"]["sentence"],
    )


def test_one_vector_that_points_elsewhere(old, vectors):
    told = audited(old, "--vectors", vectors({**FITTING, "th": -FITTING["th"]}))
    assert told["findings"][0]["languages"] == ["de", "fr"]
    assert sentences(told, "misfit") == [
        "The vector of th does not fit: -1.00 (-1.00 to -1.00) of what the shift removes is present, less than half, "
        "so documents in th and en lie further apart on average after the shift."
    ]


def test_vectors_of_another_encoder(client, index_name):
    numbers = np.random.default_rng(3)
    rows = numbers.standard_normal((120, 512))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    documents = [{"body": TEXTS[tag], "vec": row} for row, tag in zip(rows, ["en", "de", "th"] * 40, strict=True)]
    told = audited(create(client, f"{index_name}-old", documents, 512), given=())
    assert told["findings"][0]["kind"] == "not_fitting"
    assert told["verdict"]["sentence"].startswith(
        "Do not shift it: the vectors in 'vec' were not built with use-m, or the language vectors do not fit, because "
        "less than half of what the shift would remove is present ("
    )


def test_a_file_that_was_fitted_with_another_encoder(old, vectors):
    done = run("index", "audit", old, *OPTIONS, *GIVEN, "--vectors", vectors(encoder="other"))
    assert isinstance(done.exception, FingerprintError)


def test_at_alpha_0_nothing_would_be_moved(old, vectors):
    told = audited(old, "--vectors", vectors(), "--alpha", 0)
    assert sentences(told, "unmoved") == [UNMOVED.format("alpha is 0")]
    assert told["similarity"]["before"] == told["similarity"]["after"]
    told = audited(old, "--alpha", 0)
    assert sentences(told, "unmoved") == [UNMOVED.format("there are no language vectors")]
    assert told["vectors"] is None


def test_languages_that_lie_together_already(client, index_name, vectors):
    numbers = np.random.default_rng(4)
    rows = numbers.standard_normal((400, DIMENSION))
    documents = [{"body": "-", "lang": tag, "vec": row} for row, tag in zip(rows, ["en", "de"] * 200, strict=True)]
    small = {"de": axis(0) * 0.2}
    told = audited(create(client, f"{index_name}-old", documents), "--vectors", vectors(small))
    # What is not there would be taken away, but it is too short for the sample to tell.
    assert [one["kind"] for one in told["findings"]] == ["little_to_gain", "gap", "misfit"]
    assert sentences(told, "little_to_gain")[0].startswith(
        "Do not shift it: there is little to gain, because no language's documents lie much nearer to queries than "
        "another's, compared with how much similarities vary anyway (standard deviation .0"
    )
    assert sentences(told, "gap") == [
        "Documents in de lie about as near to queries in en as those in en, before and after the shift."
    ]


def test_without_the_pivot_others_are_seen_beside_the_most_frequent_language(client, index_name, vectors):
    documents = [one for one in planted() if one["body"] in (TEXTS["de"], TEXTS["fr"])]
    told = audited(create(client, f"{index_name}-old", documents), "--vectors", vectors())
    assert told["reference"] == "de"
    german, french = told["shift"]
    assert (german["vector"], german["fit"], german["gap"]) == ("de", None, None)
    assert french["fit"]["there"]["value"] == pytest.approx(1)
    # After the shift, queries in German lie far from all documents alike.
    assert french["gap"]["before"]["value"] == pytest.approx(0.5)
    assert french["gap"]["after"]["value"] == pytest.approx(0, abs=1e-6)


def test_one_language_only(client, index_name, vectors):
    documents = [{"body": "-", "lang": "de", "vec": 2 * axis(number)} for number in range(120)]
    told = audited(create(client, f"{index_name}-old", documents), "--vectors", vectors())
    assert sentences(told, "too_few") == [
        "Too few documents to tell: this takes at least 30 documents in each of two languages and 10 queries in one "
        "of them; the sample has 120 in de."
    ]
    assert told["nearest"]["languages"] == []


def test_few_documents_and_none_of_a_clear_language(client, index_name, vectors):
    name = create(client, f"{index_name}-old", [{"body": "12345", "lang": "und", "vec": 2 * axis(1)}])
    told = audited(name, "--vectors", vectors())
    assert sentences(told, "unmoved") == [UNMOVED.format("none is in a language that has a vector")]
    assert told["similarity"]["documents"] == []
    done = run("index", "audit", name, *OPTIONS, *GIVEN, "--vectors", vectors())
    assert done.exit_code == 0, done


@pytest.mark.parametrize("documents", [[], [{"body": "The sea."}]])
def test_no_document_has_a_vector(client, index_name, vectors, documents):
    name = create(client, f"{index_name}-old", documents)
    done = run("index", "audit", name, *OPTIONS, *GIVEN[2:], "--vectors", vectors())
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == f"No document of {name} has a vector in 'vec': there is nothing to shift."


def test_queries_of_a_file_bring_their_vectors(old, vectors, tmp_path):
    asked = [
        {
            "_id": f"{tag}{number}",
            "text": SENTENCES[tag],
            "embedding": list(map(float, OFFSETS[tag] + axis(4 + number))),
        }
        for tag, count in {"en": 20, "th": 12}.items()
        for number in range(count)
    ]
    path = write_lines(tmp_path / "queries.jsonl", asked)
    told = audited(old, "--vectors", vectors(), "--queries", path)
    assert told["queries"] == {"file": str(path), "total": 32, "used": 32}
    assert told["similarity"]["queries"] == ["en", "th"]
    before, after = similarity(told, "before"), similarity(told, "after")
    assert before["th", "en"] < 0.02
    assert before["en", "th"] == 0
    assert after["en", "th"] == pytest.approx(0.5)
    done = run("index", "audit", old, *OPTIONS, *GIVEN, "--vectors", vectors(), "--queries", path)
    assert f"Queries: all 32 in {path}." in done.output.splitlines()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"_id": "1"}, "{}, line 1, has no text: name the field with the query by --query-field (fields: _id)."),
        ({"_id": "1", "text": "sea", "embedding": "no"},
         "{}, line 1: the field 'embedding' must be a list of numbers, but is a string that is not base64 "
         "of little-endian 32-bit floats."),
        ({"_id": "1", "text": "sea"},
         "Query '1' has no 'embedding', which the encoder given needs: add one of 160 numbers."),
        (None, f"{{}} is empty: give a log, which is {FORMS}."),
    ],
)  # fmt: skip
def test_queries_that_cannot_be_used(old, vectors, tmp_path, line, told):
    path = write_lines(tmp_path / "queries.jsonl", [line] if line else [])
    done = run("index", "audit", old, *OPTIONS, *GIVEN, "--vectors", vectors(), "--queries", path)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == told.format(path)


@pytest.mark.parametrize("options", [("--vector-field", "vec"), ("--text-field", "body"), ("--language-field", "lang")])
def test_the_fields_of_an_index_are_named_together(old, options):
    assert str(run("index", "audit", old, *options).exception) == (
        "Give --vector-field and --text-field together, or neither for an index of langshift's."
    )


def test_an_index_that_langshift_did_not_create_needs_its_fields(old):
    assert str(run("index", "audit", old).exception) == (
        f"Index {old} was not created by langshift: name its fields with --vector-field and --text-field."
    )


@pytest.fixture
def own(old, vectors, index_name):
    """The same documents as an index of langshift's."""
    done = run("adopt", old, "--name", index_name, *OPTIONS, *GIVEN, "--vectors", vectors(), "--json")
    assert done.exit_code == 0, done
    return index_name


def test_ones_own_index_is_audited_by_what_it_keeps(own, old, vectors):
    """The vectors before the shift are the same, and after it they are as they are searched."""
    foreign, told = audited(old, "--vectors", vectors()), audited(own, given=(), options=())
    assert (told["name"], told["index"]) == (own, f"{own}-v0001")
    assert told["unusable"] == 0
    assert similarity(told, "before") == pytest.approx(similarity(foreign, "before"), abs=1e-6)
    assert similarity(told, "after") == pytest.approx(similarity(foreign, "after"), abs=1e-6)
    assert {one["language"]: one["documents"] for one in told["languages"]} == COUNTS
    assert told["findings"] == foreign["findings"]
    assert told["verdict"]["sentence"] == VERDICT.replace("adopt the index with --alpha 0 and then ", "")
    still = audited(own, "--alpha", 0, given=(), options=())
    assert still["similarity"]["after"] == still["similarity"]["before"]
    assert still["vectors"]["hash"] == told["vectors"]["hash"]


def test_what_the_sample_cannot_reverse_is_left_aside(client, own):
    fields = live(client, own).fields
    body = {"vec": list(map(float, axis(1))), fields.language: "de"}
    body[fields.stamp] = {"alpha": 1.0, "language": "de", "vectors": "0" * 16}
    client.index(index=own, id="forged", body=body, refresh=True)
    done = run("index", "audit", own)
    assert "1 of those drawn could not be used" in done.output
    assert audited(own, given=(), options=())["unusable"] == 1


def test_fields_of_ones_own_index_are_not_named(own):
    assert str(run("index", "audit", own, *OPTIONS).exception) == (
        f"Index {own}-v0001 knows its fields itself: leave --vector-field and the like out."
    )


def test_a_smaller_sample_is_drawn_at_random_and_the_same_each_time(old, vectors):
    first, second = (audited(old, "--vectors", vectors(), "--sample", 100) for _ in range(2))
    assert first == second
    assert (first["sample"], first["with_vector"]) == (100, 156)
    assert len(first["languages"]) > 4


def state(client, old):
    stats = client.indices.stats(index=old, params={"level": "shards"})["indices"][old]
    copies = [copy for shard in stats["shards"].values() for copy in shard]
    return SimpleNamespace(
        operations=[copy["seq_no"] for copy in copies],
        work=[(copy["indexing"]["index_total"], copy["refresh"]["total"]) for copy in copies],
        settings=client.indices.get_settings(index=old),
        mapping=client.indices.get_mapping(index=old),
        indices=sorted(index for index in client.indices.get(index="langshift-test-audit-*")),
        aliases=client.indices.get_alias(index=old),
        home=sorted(str(path) for path in Path(os.environ["LANGSHIFT_HOME"]).rglob("*")),
    )


def test_nothing_is_written_anywhere(client, old, vectors, monkeypatch):
    path = vectors()
    before = state(client, old)
    sent = set()
    perform = Transport.perform_request

    def noted(self, method, url, *arguments, **more):
        sent.add((method, url.replace(old, "OLD")))
        return perform(self, method, url, *arguments, **more)

    monkeypatch.setattr(Transport, "perform_request", noted)
    done = langshift("index", "audit", old, *OPTIONS, *GIVEN, "--vectors", path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert state(client, old) == before
    # What belongs to the whole cluster, such as its scripts, other tests may change in the meantime.
    assert {one for one in sent if one[0] not in ("GET", "HEAD")} == {
        ("POST", "/OLD/_search/point_in_time"),
        ("POST", "/_search"),
        ("DELETE", "/_search/point_in_time"),
    }
