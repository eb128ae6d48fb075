"""The console's language map, as a browser gets it, and its figures against NumPy's."""

import uuid

import numpy as np
import pytest
from adopted_index import adopted
from console_process import heading, serving_here
from searched import drop, make_index

from langshift.plugin import metadata
from langshift.plugin.index_sample import draw
from langshift.plugin.versions import live
from langshift.web.language_map.measure import measure

LANGUAGES = ("de", "en", "th")
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def browser(cluster_url, tmp_path_factory):
    with serving_here(url=cluster_url, home=tmp_path_factory.mktemp("console")) as console, console.client() as opened:
        yield opened


@pytest.fixture(scope="module")
def name(client, tmp_path_factory):
    """Two topics in three languages, each topic a group."""
    chosen = f"langshift-test-{uuid.uuid4().hex[:8]}"
    make_index(client, tmp_path_factory.mktemp("corpus") / "corpus.jsonl", chosen)
    yield chosen
    drop(client, chosen)


@pytest.fixture(scope="module")
def given(client, cluster_url, tmp_path_factory):
    """An adopted index, whose model is not here."""
    chosen = f"langshift-test-{uuid.uuid4().hex[:8]}"
    with adopted(client, cluster_url, chosen, tmp_path_factory.mktemp("vectors")) as found:
        yield found


def the_map(browser, name):
    """The page."""
    answer = browser.get(f"/languages/{name}")
    assert answer.status_code == 200, answer.text
    return answer


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_figures_are_what_numpy_says_of_the_vectors(client, name):
    found = measure(client, name)
    assert (found.languages, found.remarks, found.moved) == (LANGUAGES, [], True)
    assert found.drawn == dict.fromkeys(LANGUAGES, 2)
    sources = [hit["_source"] for hit in client.search(index=name, body={"size": 10})["hits"]["hits"]]
    stored = [np.array(one["embedding"]) for one in sources]
    made = [vector + taken(client, name, one["shift"]) for vector, one in zip(stored, sources, strict=True)]
    for row, asked in enumerate(LANGUAGES):
        for column, written in enumerate(LANGUAGES):
            pairs = [
                (made[query], document)
                for query, one in enumerate(sources)
                for document, other in enumerate(sources)
                if (one["language"], other["language"]) == (asked, written) and query != document
            ]
            before = np.mean([cosine(query, made[document]) for query, document in pairs])
            after = np.mean([cosine(query, stored[document]) for query, document in pairs])
            assert found.nearness.before[row, column] == pytest.approx(before, abs=1e-6)
            assert found.nearness.after[row, column] == pytest.approx(after, abs=1e-6)
            assert found.similarities(asked, written) == [
                pytest.approx(before, abs=1e-6),
                pytest.approx(after, abs=1e-6),
            ]


def taken(client, name, stamp):
    """What was subtracted from a document."""
    from langshift.plugin.stored_shift import read

    if not stamp.get("language"):
        return 0.0
    return stamp["alpha"] * read(client, live(client, name).index).vectors[stamp["language"]]


def test_the_sample_is_the_same_each_time(client, given):
    index = live(client, given)
    meta = metadata.read_metadata(client, index.index)
    first, second = (draw(client, index.index, meta, index.languages, 5) for _ in range(2))
    assert all(np.array_equal([one.stored for one in first[tag]], [one.stored for one in second[tag]]) for tag in first)
    assert {tag: len(of) for tag, of in first.items()} == dict.fromkeys(index.languages, 5)


def test_the_page_shows_heat_maps_and_pictures(browser, name):
    answer = the_map(browser, name)
    assert heading(answer) == f"Languages of {name}"
    assert answer.text.count("<svg") == 2
    for told in ("Before the shift", "As indexed", "Along the language vectors", "stand in for queries"):
        assert told in " ".join(answer.text.split())
    assert browser.get(f"/languages/{name}").text == answer.text


def test_a_version_has_a_map_of_its_own(browser, name):
    assert heading(the_map(browser, f"{name}-v0001")) == f"Languages of {name}"


def test_the_model_need_not_be_here(browser, given):
    assert the_map(browser, given).text.count("<svg") == 2


def test_what_cannot_be_taken_back_is_shown_as_indexed(client, given):
    kept = metadata.read_metadata(client, live(client, given).index)
    metadata.change(client, f"{given}-v0001", {metadata.VECTORS: None})
    try:
        found = measure(client, given)
    finally:
        metadata.change(client, f"{given}-v0001", {metadata.VECTORS: kept[metadata.VECTORS]})
    assert found.nearness is None
    assert sum(found.drawn.values()) == 40 * 4
    assert (found.widest.before, found.along) == (None, None)
    assert found.remarks[0] == (
        f"Vectors before the shift are not shown: {given}-v0001 does not store what is needed to reverse it exactly."
    )


def test_a_document_with_a_forged_stamp_is_left_out(client, given):
    index = live(client, given).index
    fields = live(client, given).fields
    vector = next(
        hit for hit in client.search(index=index, body={"size": 300})["hits"]["hits"] if "vec" in hit["_source"]
    )
    body = {"vec": vector["_source"]["vec"], fields.language: HOSTILE}
    body[fields.stamp] = {"alpha": 1.0, "language": HOSTILE, "vectors": "0" * 16}
    client.index(index=index, id="forged", body=body, refresh=True)
    try:
        found = measure(client, given)
    finally:
        client.delete(index=index, id="forged", refresh=True)
    assert HOSTILE in found.languages
    assert found.remarks[0] == (
        f"For 1 of the {sum(found.drawn.values()) + 1} documents drawn, the shift cannot be reversed exactly: they "
        "are left out here."
    )


def test_a_hostile_tag_is_shown_as_text(client, browser, index_name, tmp_path):
    make_index(client, tmp_path / "corpus.jsonl", index_name)
    hit = client.search(index=index_name, body={"size": 1})["hits"]["hits"][0]["_source"]
    client.index(index=index_name, id="odd", body={**hit, "language": HOSTILE}, refresh=True)
    answer = the_map(browser, index_name)
    assert "<script>alert" not in answer.text
    assert ">&lt;script&gt;alert(1)&lt;/script&gt;</span>" in answer.text


def test_an_index_without_documents_says_so(client, browser, index_name, tmp_path):
    make_index(client, tmp_path / "corpus.jsonl", index_name)
    client.delete_by_query(index=index_name, body={"query": {"match_all": {}}}, params={"refresh": "true"})
    answer = the_map(browser, index_name)
    assert (
        f"{index_name}-v0001 has no document with a language and a vector, so there is nothing to show." in answer.text
    )
    assert "<svg" not in answer.text
