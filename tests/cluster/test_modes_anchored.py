"""Anchored search on a real cluster against NumPy, which moves the query and scores every document itself."""

import uuid
from dataclasses import replace

import numpy as np
import pytest
from anchored_reference import CORPUS, KEPT, WITHOUT_VECTOR, Reference, bm25, without
from search_request import preferring
from searched_index import asked, found, scored

from langshift.plugin.metadata import USUAL
from langshift.retrieval.dsl import body_with_vectors
from langshift.retrieval.hits import RankedHits, stored_vectors
from langshift.retrieval.modes.anchoring import hit_vectors
from langshift.retrieval.question import AnchorModel
from langshift.retrieval.request import SearchSettings

ANCHORED = SearchSettings("anchored")


@pytest.fixture(scope="module", params=[1, 3], ids=["one-shard", "three-shards"])
def target(client, request):
    name = f"langshift-test-anchored-{uuid.uuid4().hex[:8]}"
    made = CORPUS.write(client, name, request.param)
    for one in WITHOUT_VECTOR:
        client.update(index=name, id=one, body={"script": "ctx._source.remove('embedding')"})
    client.indices.refresh(index=name)
    yield made
    client.indices.delete(index=name)


@pytest.fixture(scope="module")
def shard_of(client, target):
    """Id -> the shard that holds it."""
    held = {}
    for shard in range(target.index.shards):
        body = {"size": 1000, "_source": False}
        response = client.search(index=target.index.index, body=body, params={"preference": f"_shards:{shard}"})
        held |= {hit["_id"]: shard for hit in response["hits"]["hits"]}
    return held


def check(client, target, shard_of, question, beta=0.0, size=20, years=()):
    """Compare all of a run with NumPy; give both."""
    setting = SearchSettings("anchored", **preferring(beta))
    filters = {"year": [str(year) for year in years]} if years else {}
    run = found(client, target, question, setting, size=size, filters=filters, source=False)
    wanted = Reference(client, target, question, beta, years)
    hits = wanted.hits(size, shard_of)
    assert [hit.score for hit in run.hits] == pytest.approx([score for _, score in hits], abs=1e-5)
    assert {hit.id: hit.score for hit in run.hits} == {
        hit.id: pytest.approx(wanted.scores[hit.id], abs=1e-5) for hit in run.hits
    }
    assert {anchor.id: (anchor.trust, anchor.weight) for anchor in run.how.anchors} == {
        name: pytest.approx(both, abs=1e-5) for name, both in wanted.trusted.items()
    }
    assert run.how.bonus == pytest.approx(wanted.bonus / 2, abs=1e-6)
    return run, wanted


@pytest.mark.parametrize(("spread", "strength"), [(0.02, 1.0), (0.3, 0.25)])
@pytest.mark.parametrize("words", ["sun moon tide", "comet", "twin twin sun", "nothing here", "?!"])
@pytest.mark.parametrize("language", ["de", "fr", "und"])
def test_what_is_found_is_what_the_equations_say(client, target, shard_of, language, words, spread, strength):
    trusting = replace(target, trust=AnchorModel(spread, strength))
    for seed, sizes in ((1, (1, 100)), (2, (20,))):
        question = asked(seed, language, words)
        for size in sizes:
            check(client, trusting, shard_of, question, size=size)
        check(client, trusting, shard_of, question, years=(2001, 2002))


@pytest.mark.parametrize("count", [2, 6])
@pytest.mark.parametrize("words", ["sun moon tide", "comet", "nothing here"])
def test_where_documents_lost_directions_the_mix_is_scaled_by_what_is_left_of_the_query(
    client, target, shard_of, words, count
):
    rows = np.linalg.qr(np.random.default_rng(count).standard_normal((len(asked().vector), count)))[0].T
    projected = replace(target, trust=AnchorModel(0.1, 1.0), shift=without(rows))
    for language in ("de", "fr"):
        for beta in (0.0, 0.05):
            check(client, projected, shard_of, asked(4, language, words), beta * (language == "de"))


@pytest.mark.parametrize(
    ("beta", "spread"), [(0.05, 0.02), (-0.004, 0.3), (-0.05, 0.02), (-0.05, 0.3), (2.0, 0.3), (-2.0, 0.02)]
)
def test_a_preference_is_added_to_the_modes_own_bonus_whatever_their_signs(client, target, shard_of, beta, spread):
    trusting = replace(target, trust=AnchorModel(spread, 1.0))
    for words in ("sun moon tide", "twin", "nothing"):
        question = asked(words=words)
        run, _ = check(client, trusting, shard_of, question, beta, size=45)
        check(client, trusting, shard_of, question, beta, years=(2000,))
        if abs(beta) == 2:
            assert {hit.language == "de" for hit in run.hits} == {beta > 0}
    if beta == -0.004 and spread == 0.3:
        # Less than the mode gives of its own accord.
        assert (
            found(
                client,
                trusting,
                asked(),
                SearchSettings("anchored", **preferring(beta)),
            ).how.bonus
            > 0
        )
    unknown, _ = check(client, trusting, shard_of, asked(language="fr"), 0.0)
    favouring = found(
        client,
        trusting,
        asked(language="fr"),
        SearchSettings("anchored", **preferring(beta)),
        source=False,
    )
    assert favouring.hits == unknown.hits
    assert favouring.how.bonus == 0


@pytest.mark.parametrize("counterpart", [0.0, 0.6])
@pytest.mark.parametrize("own", [0.0, 0.1])
def test_the_bonus_goes_with_translations_that_are_there_and_without_what_documents_prefer(
    client, target, shard_of, own, counterpart
):
    numbers = np.random.default_rng(5)
    rows = np.linalg.qr(numbers.standard_normal((len(asked().vector), 2)))[0].T
    # The index has documents in en and de, and no preference vector of en.
    own_vectors = {tag: numbers.standard_normal(rows.shape[1]).astype(np.float32) for tag in ("de", "th")}
    shift = replace(without(rows), own=own, own_vectors=own_vectors, scatter=[0.2, 0.1])
    trust = AnchorModel(0.1, 0.75, counterpart=counterpart)
    trusting = replace(target, trust=trust, shift=shift)
    plain = replace(target, trust=AnchorModel(0.1, 0.75), shift=shift)
    for words in ("sun moon tide", "nothing"):
        for language in ("de", "en", "fr"):
            question = asked(6, language, words)
            run, _ = check(client, trusting, shard_of, question, 0.02 * (language == "de"), size=45)
            if language == "fr":
                assert run.how.bonus == 0
            elif counterpart:
                before = found(client, plain, question, ANCHORED, source=False)
                more = found(client, trusting, question, ANCHORED, source=False)
                assert more.how.anchors == before.how.anchors
                assert more.how.bonus > before.how.bonus
    # Less than nothing where documents prefer more than the candidates are worth.
    if own and not counterpart:
        assert found(client, trusting, asked(6, "de", "nothing"), ANCHORED, source=False).how.bonus < 0


@pytest.mark.parametrize("words", ["sun moon tide", "comet", "twin", "nothing"])
@pytest.mark.parametrize("beta", [0.0, 0.1, -0.2])
def test_every_document_is_scored_as_the_equations_say(client, target, words, beta):
    setting = SearchSettings("anchored", **preferring(beta))
    for language in ("de", "fr", "und"):
        question = asked(3, language, words)
        run = found(client, target, question, setting, size=5, filters={"year": ["2001"]}, source=False)
        wanted = Reference(client, target, question, 0.0 if language == "und" else beta, (2001,))
        given = scored(client, target, question, setting, run.how, [*CORPUS.vectors, "not-there"])
        none = dict.fromkeys([*WITHOUT_VECTOR, "not-there"])
        assert given == none | {name: pytest.approx(score, abs=1e-5) for name, score in wanted.scores.items()}


def test_evidence_names_what_trust_was_computed_from(client, target):
    question = asked(words="twin")
    run = found(client, replace(target, trust=AnchorModel(1.0, 1.0)), question, ANCHORED)
    best = bm25(client, target, "twin", ["de", "und"], [{"term": {"language": "de"}}])
    first = next(anchor for anchor in run.how.anchors if anchor.id == "d22")
    cosine = CORPUS.cosines(question.vector)["d22"]
    assert first.evidence == {
        "words": pytest.approx(best["d22"]), "cosine": pytest.approx(cosine, abs=1e-6), "own_language": 1.0
    }  # fmt: skip
    assert [anchor.weight for anchor in run.how.anchors] == sorted(
        (anchor.weight for anchor in run.how.anchors), reverse=True
    )
    for anchor in run.how.anchors:
        assert anchor.evidence["own_language"] == (CORPUS.languages[anchor.id] == "de")


@pytest.mark.parametrize("grouped", [False, True])
def test_legs_say_what_each_part_of_the_score_does(client, target, grouped):
    question = asked(words="sun moon twin")
    setting = ANCHORED.but(one_per_group=grouped)
    plain = found(client, target, question, setting, source=False)
    run = found(client, replace(target, legs=True), question, setting, source=False)
    assert [(hit.id, hit.score) for hit in run.hits] == [(hit.id, hit.score) for hit in plain.hits]
    assert all(not hit.legs for hit in plain.hits)
    wanted = Reference(client, target, question)
    cosines = CORPUS.cosines(question.vector)
    words = bm25(client, target, question.words, ["de", "und", "en", "th"], [])
    shown = [hit for hit in run.hits if hit.legs]
    assert shown == list(run.hits) or grouped
    for hit in shown:
        legs = {
            "dense": (1 + cosines[hit.id]) / 2,
            "moved": (1 + wanted.moved @ KEPT[hit.id]) / 2,
            **({"lexical": words[hit.id]} if hit.id in words else {}),
        }
        assert {leg: said.score for leg, said in hit.legs.items()} == pytest.approx(legs, abs=1e-5)
    for leg in ("dense", "moved", "lexical") if not grouped else ():
        ranked = sorted((hit.legs[leg] for hit in run.hits if leg in hit.legs), key=lambda said: said.rank)
        assert [said.rank for said in ranked] == list(range(1, len(ranked) + 1))
        assert [said.score for said in ranked] == sorted((said.score for said in ranked), reverse=True)


def test_where_no_words_match_and_the_nearest_alone_is_trusted_it_stays_first(client, target):
    sure = replace(target, trust=AnchorModel(1e-4, 1.0))
    for seed in range(20):
        for language in ("und", "fr"):
            question = asked(seed, language, "nothing")
            dense = found(client, sure, question, source=False).hits
            run = found(client, sure, question, ANCHORED, source=False)
            assert run.hits[0].id == dense[0].id
            assert run.how.anchors[0].id == dense[0].id


def test_anchors_match_the_filters_too(client, target):
    question = asked(words="twin comet sun")
    filters = {"language": ["en"], "year": ["2000", "2001"]}
    run = found(client, target, question, ANCHORED, filters=filters, source=False)
    anchors = {anchor.id for anchor in run.how.anchors}
    assert {CORPUS.languages[name] for name in anchors} == {"en"}
    assert {CORPUS.years[name] for name in anchors} <= {2000, 2001}
    assert run.how.bonus == 0
    nothing = found(client, target, question, ANCHORED, filters={"year": ["1"]}, source=False)
    assert nothing == RankedHits(())


@pytest.mark.parametrize("dimension", [5, 6])
def test_vectors_come_exactly_as_they_are_stored(client, index_name, dimension):
    stored = np.random.default_rng(0).standard_normal((3, dimension)).astype(np.float32)
    stored[0] *= np.float32(1e-20)
    vector = {"type": "knn_vector", "dimension": dimension}
    client.indices.create(index=index_name, body={"mappings": {"properties": {USUAL.vector: vector}}})
    for number, one in enumerate(stored):
        client.index(index=index_name, id=f"d{number}", body={USUAL.vector: one.tolist()})
    client.index(index=index_name, id="without", body={}, params={"refresh": "true"})
    response = client.search(index=index_name, body=body_with_vectors({"match_all": {}}, 4, USUAL))
    read = hit_vectors(stored_vectors(response), dict.fromkeys(["d0", "d1", "d2"], "und"), None)
    assert sorted(read) == ["d0", "d1", "d2"]
    for number, one in enumerate(stored.astype(np.float64)):
        assert read[f"d{number}"] == pytest.approx(one / np.linalg.norm(one), rel=1e-12)


@pytest.mark.parametrize("length", [1.0, 0.5])
def test_anchors_do_not_know_what_moves_documents_towards_their_language(length):
    own = {"de": np.float32([0.3, -0.2, 0.1])}
    shift = replace(without(np.eye(3)[:1]), own=0.02, own_vectors=own, scatter=[0.2, 0.0])
    raw = np.float32([0.6, 0.0, 0.8]) * length
    # An engine that keeps vectors at length 1 keeps a preference of beta.
    given = raw + (shift.own if length == 1 else shift.weight) * own["de"]
    stored = given / np.linalg.norm(given) if length == 1 else given

    def hit(name, language, vector):
        numbers = np.append(np.float32(vector), np.float32(0)).view("<i8").tolist()
        return {"_id": name, "_score": 1, "fields": {"language": [language], "vector": [[3, *numbers]]}}

    hits = [hit("a", "de", stored), hit("b", "und", raw)]
    found = hit_vectors(stored_vectors({"hits": {"hits": hits}}), {"a": "de", "b": "und"}, shift)
    tolerance = 1e-2 if length == 1 else 1e-6
    assert found["a"] == pytest.approx(raw / length, abs=tolerance)
    assert found["b"] == pytest.approx(raw / length, abs=1e-6)
