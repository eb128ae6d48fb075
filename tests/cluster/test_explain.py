"""What explaining says of a hit is what NumPy says of the vectors; requests that are shown can be sent again."""

import json
import re
import shutil
import subprocess
from dataclasses import asdict

import numpy as np
import pytest
from command_line import langshift
from searched import TEXTS, a_name, drop, make_index

from langshift.debias.encoders import open_encoder
from langshift.plugin import metadata
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

QUESTION = "Why does the sea level change twice a day?"
ENCODERS = {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explain")


@pytest.fixture(scope="module")
def make(client, folder):
    """Makes an index that is removed at the end; gives its name."""
    names = []

    def made(**how):
        names.append(a_name())
        make_index(client, folder / f"{names[-1]}.jsonl", names[-1], **how)
        return names[-1]

    yield made
    for name in names:
        drop(client, name)


@pytest.fixture(scope="module")
def name(make):
    return make()


def opened(client, name, **options):
    return Searcher(client, name, SearchOptions(**options), ENCODERS)


def cosines(vector, texts):
    """Cosine of a query's vector and each text's, by text's id."""
    matrix = open_encoder("use-m").encode_documents(list(texts.values())).astype(np.float64)
    found = matrix @ vector / np.linalg.norm(matrix, axis=1) / np.linalg.norm(vector)
    return dict(zip(texts, found, strict=True))


def ranks(similarities):
    ordered = sorted(similarities, key=lambda key: -similarities[key])
    return {key: place for place, key in enumerate(ordered, start=1)}


@pytest.mark.parametrize("how", [{}, {"alpha": 0.5}, {"alpha": 0.0}, {"alpha": 1.0, "gamma": 0.95}])
def test_before_the_shift_is_as_the_encoder_made_it(client, make, how):
    searcher = opened(client, make(**how))
    before = cosines(searcher.encode([QUESTION])[0], TEXTS)
    for mode in ("dense", "lexical", "hybrid", "anchored"):
        result = searcher.search(QUESTION, SearchSettings(mode), language="en", explain=True)
        assert result.hits
        assert result.compared == len(TEXTS)
        for hit in result.hits:
            # The title is encoded, too.
            if hit.id != "tides-en":
                assert hit.shift.similarity_before == pytest.approx(before[hit.id], abs=2e-6)
            if mode == "dense":
                assert (1 + hit.shift.similarity_after) / 2 == pytest.approx(hit.score, abs=1e-5)
            unmoved = hit.language == "en" or how.get("alpha") == 0
            scales = (None, 0.0) if unmoved else (hit.language, how.get("alpha", 1.0))
            assert (hit.shift.language, hit.shift.alpha, hit.shift.gamma) == (*scales, how.get("gamma", 0.0))
            if unmoved and "gamma" not in how:
                assert hit.shift.similarity_before == hit.shift.similarity_after
    shifts = {hit.id: hit.shift for hit in searcher.search(QUESTION, language="en", explain=True).hits}
    for side in ("before", "after"):
        similarities = {key: getattr(shift, f"similarity_{side}") for key, shift in shifts.items()}
        assert {key: getattr(shift, f"rank_{side}") for key, shift in shifts.items()} == ranks(similarities)


def test_vectors_are_fetched_for_explaining_only(client, name):
    searcher = opened(client, name)
    assert [request.path for request in searcher.search(QUESTION).requests] == [f"/{name}-v0001/_search"]
    explained = searcher.search(QUESTION, explain=True)
    assert [request.path for request in explained.requests] == [f"/{name}-v0001/_search", f"/{name}-v0001/_msearch"]
    assert b'"embedding"' in explained.requests[1].content
    assert all("embedding" not in hit.source for hit in explained.hits)


def test_what_cannot_be_known_is_left_out_and_said(client, make):
    name = make()
    # Any client may write; the first stamp is of vectors that this index never had.
    changes = {
        "tides-de": "ctx._source.shift.vectors = '0123456789abcdef'",
        "bread-de": "ctx._source.remove('shift')",
        "bread-th": "ctx._source.remove('embedding')",
    }
    for key, script in changes.items():
        client.update(index=name, id=key, body={"script": script}, params={"refresh": "true"})
    searcher = opened(client, name)
    result = searcher.search(QUESTION, language="en", explain=True)
    found = {hit.id: hit.shift for hit in result.hits}
    assert (found["tides-de"].language, found["tides-de"].similarity_before) == ("de", None)
    assert (found["bread-de"].language, found["bread-de"].alpha) == (None, 0.0)
    assert found["bread-de"].similarity_before == found["bread-de"].similarity_after
    assert {effect.rank_before for effect in found.values()} == {None}
    assert result.notes == ("Some documents were shifted with language vectors other than the index's own.",)
    result = searcher.search("ยีสต์", SearchSettings("lexical"), language="th", explain=True)
    assert [(hit.id, hit.shift) for hit in result.hits] == [("bread-th", None)]


def test_a_shift_that_cannot_be_taken_back_is_said(client, make):
    name = make()
    kept = metadata.read_metadata(client, f"{name}-v0001")[metadata.VECTORS]
    metadata.change(client, f"{name}-v0001", {metadata.VECTORS: {**kept, "hash": "0123456789abcdef"}})
    result = opened(client, name).search(QUESTION, language="en", explain=True)
    assert {hit.language: hit.shift.similarity_before is None for hit in result.hits} == {
        "en": False, "de": True, "th": True
    }  # fmt: skip
    assert result.notes == (
        f"The similarity before the shift is not available: {name}-v0001 does not store what is needed to reverse "
        "its shift exactly.",
    )


def test_the_command_explains_in_a_table_that_nothing_breaks(name, cluster_env):
    done = langshift(
        "search", name, "Moon Mond", "--mode", "hybrid", "--prefer-language", ".02", "--language", "de", "--explain",
        url=cluster_env, COLUMNS="100",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    hits, explained = done.stdout.split("\n\n")
    assert hits.splitlines()[0].split() == ["rank", "language", "score", "title", "text", "_id"]
    assert "[bold]x[/bold]  [31mred" in hits
    assert "\x1b" not in done.stdout
    head, *rows = explained.splitlines()
    assert head.split() == [
        "rank", "language", "dense", "lexical", "bonus", "similarity", "by", "vector", "_id", "removed",
    ]  # fmt: skip
    german = next(row for row in rows if "tides-de" in row)
    assert re.search(
        r"de +0\.\d{4} \(\d\) +\d\.\d{4} \(\d\) +\+0\.\d{4} +-?0\.\d{4} → -?0\.\d{4} +\d → \d +tides-de +de 1", german
    )
    assert "+0.0000" in next(row for row in rows if "tides-en" in row)
    told = " ".join(explained.split())
    assert "dense, lexical: the score from this leg of the search, and the rank in it, if there is one." in told
    assert "among 6 documents, the hits and the nearest after the shift." in told


def test_anchors_are_explained_with_what_they_were_trusted_for(client, name, cluster_env):
    arguments = ("search", name, "Mond und Meer", "--mode", "anchored", "--language", "de", "--explain")
    done = langshift(*arguments, "--json", url=cluster_env)
    answer = json.loads(done.stdout)
    first = answer["anchors"][0]
    assert first["id"] == "tides-de"
    assert 0 < first["weight"] < first["trust"] < 1
    words = opened(client, name).search("Mond und Meer", SearchSettings("lexical"), language="de").hits[0].score
    assert first["evidence"] == {
        "words": pytest.approx(words, rel=0.05), "cosine": pytest.approx(cosine_of(client, name), abs=1e-5),
        "own_language": 1.0,
    }  # fmt: skip
    note = f"{name} is not calibrated, so mode anchored uses default values and auto is dense."
    assert answer["notes"] == [note]
    for hit in answer["hits"]:
        legs = {leg: said["score"] for leg, said in hit["legs"].items()}
        assert (1 + hit["shift"]["similarity_after"]) / 2 == pytest.approx(legs["dense"], abs=1e-5)
        given = answer["bonus"] if hit["language"] == "de" else 0.0
        # Words in other languages may add to it.
        assert hit["score"] >= legs["moved"] + given - 1e-6
        assert hit["score"] == pytest.approx(legs["moved"] + given, abs=1e-6) or "lexical" in legs

    done = langshift(*arguments, url=cluster_env, COLUMNS="120")
    assert (done.returncode, done.stderr) == (0, f"{note}\n")
    _, hits, anchors = done.stdout.split("\n\n")
    head = hits.splitlines()[0].split()
    assert head == [
        "rank", "language", "dense", "moved", "lexical", "bonus", "similarity", "by", "vector", "_id", "removed"
    ]  # fmt: skip
    told = " ".join(hits.split())
    assert (
        "moved: by the vector that the anchors moved it to; lexical: by words; each with the rank among the hits."
        in told
    )
    title, head, row, *_ = anchors.splitlines()
    assert title == "Anchors, which the query was moved towards:"
    assert head.split() == ["_id", "trust", "weight", "words", "cosine", "own_language"]
    assert row.split()[:3] == ["tides-de", f"{first['trust']:.3f}", f"{first['weight']:.3f}"]
    assert "weight: how much of its vector was added to the query's." in " ".join(anchors.split())


def cosine_of(client, name):
    """The cosine of the question about moon and sea and its German answer, as both are searched with."""
    hits = opened(client, name).search("Mond und Meer", language="de", explain=True).hits
    return next(hit.shift.similarity_after for hit in hits if hit.id == "tides-de")


def test_the_requests_of_an_anchored_search_find_the_same_when_they_are_sent_again(client, name, cluster_env):
    arguments = ("search", name, "O'Moon Mond", "--mode", "anchored", "--show-request", "--size", "3", "--json")
    shown = json.loads(langshift(*arguments, url=cluster_env).stdout)
    gathering, search, _ = shown["requests"]
    assert [request["path"] for request in (gathering, search)] == [f"/{name}-v0001/_msearch", f"/{name}-v0001/_search"]
    body = "".join(json.dumps(line) + "\n" for line in gathering["lines"])
    answers = client.msearch(index=f"{name}-v0001", body=body)["responses"]
    assert all(not answer["timed_out"] and answer["hits"]["hits"] for answer in answers[:1])
    again = client.search(index=f"{name}-v0001", body=search["lines"][0])["hits"]["hits"]
    assert [(hit["_id"], hit["_score"]) for hit in again] == [(hit["id"], hit["score"]) for hit in shown["hits"]]


def test_json_has_all_of_it(client, name, cluster_env):
    done = langshift("search", name, "Moon Mond", "--mode", "hybrid", "--explain", "--json", url=cluster_env)
    answer = json.loads(done.stdout)
    assert set(answer) == {
        "index", "mode", "preference", "fusion", "lexical_weight", "sparse_weight", "one_per_group", "mode_from",
        "mode_reason", "rerank", "rerank_depth", "rerank_per_language", "rerank_fallback", "language",
        "hits", "bonus", "anchors", "compared", "notes", "took", "requests", "from", "depth", "point_in_time", "sorted",
        "sorted_count", "facets", "nothing_fits",
    }  # fmt: skip
    assert answer["requests"] is None
    for hit in answer["hits"]:
        assert set(hit["shift"]) == {
            "language", "alpha", "gamma", "own", "similarity_before", "similarity_after", "rank_before", "rank_after"
        }  # fmt: skip
        assert all(set(leg) == {"score", "rank"} for leg in hit["legs"].values())
    library = opened(client, name).search("Moon Mond", SearchSettings("hybrid"), explain=True)
    assert [hit["shift"] for hit in answer["hits"]] == [asdict(hit.shift) for hit in library.hits]


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_a_request_that_is_shown_finds_the_same_when_it_is_sent_again(client, name, cluster_env, mode):
    arguments = ("search", name, "O'Moon Mond", "--mode", mode, "--show-request", "--size", "3")
    shown = json.loads(langshift(*arguments, "--json", url=cluster_env).stdout)
    request, marking = shown["requests"]
    assert "highlight" in marking["lines"][0]
    body = "".join(json.dumps(line) + "\n" for line in request["lines"])
    headers = {"content-type": "application/x-ndjson" if len(request["lines"]) > 1 else "application/json"}
    answer = client.transport.perform_request(request["method"], request["path"], body=body, headers=headers)
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    done = langshift(*arguments, url=cluster_env)
    curl, first, content, *_ = done.stdout.splitlines()
    assert first == f"POST {request['path']}"
    assert json.loads(content) == request["lines"][0]
    line = f"{curl.removeprefix('# ')} -s"
    sent = subprocess.run(["/bin/sh", "-c", line], env={"OPENSEARCH_URL": cluster_env}, capture_output=True, check=True)
    again = json.loads(sent.stdout)
    first, second = (one.get("responses", [one])[0]["hits"]["hits"] for one in (answer, again))
    assert [hit["_id"] for hit in first] == [hit["_id"] for hit in second]
    if "responses" not in again:
        assert [hit["_id"] for hit in first][:3] == [hit["id"] for hit in shown["hits"]]
