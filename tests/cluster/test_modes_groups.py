"""One document of each translation group, on a real cluster."""

import uuid

import pytest
from search_request import preferring
from searched_index import Corpus, asked, found, scored

from langshift.retrieval.request import SearchSettings

CORPUS = Corpus()
MODES = ["dense", "lexical", "sparse", "hybrid", "balanced", "anchored"]


@pytest.fixture(scope="module")
def target(client):
    name = f"langshift-test-groups-{uuid.uuid4().hex[:8]}"
    yield CORPUS.write(client, name, 2)
    client.indices.delete(index=name)


def key(name):
    return CORPUS.groups[name] or name


@pytest.mark.parametrize("preference", [0.0, 0.05, -0.05])
@pytest.mark.parametrize("mode", MODES)
def test_each_group_is_there_once_with_the_searchers_version_before_the_others(client, target, mode, preference):
    setting, question = (
        SearchSettings(mode, **preferring(preference)),
        asked(words="sun moon tide wind"),
    )
    run = found(client, target, question, setting.but(one_per_group=True), size=12)
    keys = [key(hit.id) for hit in run.hits]
    assert len(set(keys)) == len(keys) == 12
    for hit in run.hits:
        members = {name for name, group in CORPUS.groups.items() if group and group == CORPUS.groups[hit.id]}
        assert {hit.id, *(other.id for other in hit.others)} == members | {hit.id}
        if "de" in {CORPUS.languages[name] for name in members}:
            assert hit.language == "de"
        given = [other.score for other in hit.others if other.score is not None]
        assert given == sorted(given, reverse=True)
        for one in (hit, *hit.others):
            assert one.source["text"] == {CORPUS.languages[one.id] or "und": CORPUS.texts[one.id]}
            assert one.source.get("group") == CORPUS.groups[one.id]
            assert "embedding" not in one.source
        wanted = scored(client, target, question, setting, run.how, [other.id for other in hit.others])
        assert wanted == {other.id: pytest.approx(other.score, abs=1e-6) for other in hit.others}


@pytest.mark.parametrize("mode", MODES)
def test_a_group_stands_where_its_best_document_would(client, target, mode):
    question = asked(words="sun moon tide wind")
    plain = found(client, target, question, SearchSettings(mode), size=100, source=False).hits
    best = {}
    for hit in plain:
        best.setdefault(key(hit.id), hit.score)
    hits = found(client, target, question, SearchSettings(mode, one_per_group=True), size=10, source=False).hits
    assert [key(hit.id) for hit in hits] == list(best)[:10]
    assert [hit.score for hit in hits] == pytest.approx(list(best.values())[:10], abs=1e-6)
    assert all(one.source == {} for hit in hits for one in (hit, *hit.others))


def test_a_document_of_several_groups_is_in_the_first_of_them(client):
    name = f"langshift-test-groups-{uuid.uuid4().hex[:8]}"
    target = CORPUS.write(client, name, 1)
    try:
        for document, groups in (("d0", ["g0", "g1"]), ("d1", ["g1", "g0"])):
            client.update(index=name, id=document, body={"doc": {"group": groups}}, params={"refresh": "true"})
        question = asked()._replace(vector=CORPUS.vectors["d0"])
        (hit,) = found(client, target, question, SearchSettings("dense", one_per_group=True), size=1, source=False).hits
        members = {hit.id, *(other.id for other in hit.others)}
        assert members == {one for one, group in CORPUS.groups.items() if group == "g0"} - {"d1"}
    finally:
        client.indices.delete(index=name)


def test_the_searchers_version_heads_its_group_also_from_below_the_pool(client, target):
    question = asked()
    pool = {hit.id for hit in found(client, target, question, size=100, source=False).hits}
    hits = found(client, target, question, SearchSettings("dense", one_per_group=True), size=12, source=["year"]).hits
    below = [hit for hit in hits if hit.id not in pool]
    assert below
    assert {hit.language for hit in below} == {"de"}
    assert [hit.source for hit in below] == [{"year": CORPUS.years[hit.id]} for hit in below]
    nobody = found(client, target, asked(language="und"), SearchSettings("dense", one_per_group=True), size=12).hits
    assert {hit.id for hit in nobody} <= pool


def test_as_many_groups_as_are_wanted_where_the_index_has_them(client, target):
    keys = {key(name) for name in CORPUS.vectors}
    for mode in ("dense", "hybrid", "anchored"):
        for preference in (0.0, 0.1):
            setting = SearchSettings(mode, **preferring(preference), one_per_group=True)
            hits = found(client, target, asked(), setting, size=len(keys) - 3, source=False).hits
            assert len(hits) == len({key(hit.id) for hit in hits}) == len(keys) - 3
            hits = found(client, target, asked(), setting, size=len(keys) + 3, source=False).hits
            assert {key(hit.id) for hit in hits} == keys
    assert found(client, target, asked(words="x"), SearchSettings("lexical", one_per_group=True), size=5).hits == ()
