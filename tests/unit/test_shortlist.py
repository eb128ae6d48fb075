"""A shortlist without a cluster: what is asked for, and similarities at any scales against plain arithmetic."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from plain_index import PLAIN

from langshift.errors import UsageError
from langshift.plugin.metadata import FieldNames
from langshift.plugin.stored_shift import StoredShift
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.hits import Leg, ScoredDoc
from langshift.retrieval.settings import SearchContext, SearchQuery, SearchSettings
from langshift.retrieval.shortlist import Shortlist, build_shortlist, fetch_vectors, rank, rank_at, similarity_breakdown
from langshift.retrieval.steps import ShardBody

DIMENSION = 5
NUMBERS = np.random.default_rng(5)
LANGUAGES = ("de", "en", "th")
SHIFT = StoredShift(
    "made",
    "en",
    {tag: NUMBERS.standard_normal(DIMENSION).astype(np.float32) for tag in ("de", "th")},
    0.6,
    {"th": 1.2},
    0.7,
    NUMBERS.standard_normal(DIMENSION).astype(np.float32),
)
QUERY_MEAN = NUMBERS.standard_normal(DIMENSION).astype(np.float32)
FIELDS = FieldNames(vector="a.vector", stamp="a.stamp")


def target(shards=1, fields=FIELDS, documents=20):
    counts = {"de": 9, "en": 6, "th": 5}
    live = IndexInfo("news", "news-v0001", PLAIN, fields, LANGUAGES, documents, shards, counts, frozenset(LANGUAGES))
    return SearchContext(live)


def asked(language="de", words="sun"):
    return SearchQuery(words, language, np.array([3, 1, -2, 0.5, 1], np.float32))


def bodies_of(exchange):
    """The bodies of the first step."""
    return list(next(exchange))


def answer(*hits):
    """What the cluster answers: hits of id, score and source."""
    found = [{"_id": name, "_score": score, "_source": source} for name, score, source in hits]
    return {"took": 7, "timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": found}}


def ended(exchange, answers):
    """What an exchange of one step returns."""
    next(exchange)
    with pytest.raises(StopIteration) as end:
        exchange.send(answers)
    return end.value.value


def test_one_step_asks_for_all_that_a_preference_may_favour():
    assert len(bodies_of(build_shortlist(asked(), target(), {}, {}))) == 6
    # Without a language nothing is favoured.
    assert len(bodies_of(build_shortlist(asked("und"), target(), {}, {}))) == 2
    bodies = bodies_of(build_shortlist(asked(), target(3), {"year": ["1990"]}, {}))
    assert [body.shard for body in bodies if isinstance(body, ShardBody)] == [0, 1, 2]
    assert [body["size"] for body in bodies] == [300, 100, 100, 100, 100, 100, 100, 100]
    assert all('"year": ["1990"]' in str(body).replace("'", '"') for body in bodies)
    assert all(body["_source"] == {"excludes": ["a.vector"]} for body in bodies)


def test_a_leg_that_cannot_be_asked_is_left_out_with_the_reason():
    exchange = build_shortlist(SearchQuery("sun", "de"), target(), {}, {"dense": "There is no encoder."})
    assert len(bodies_of(exchange)) == 3
    with pytest.raises(StopIteration) as end:
        exchange.send([answer(("d1", 2.0, {"language": "de"}))] * 3)
    shortlist = end.value.value
    assert (shortlist.lacks, shortlist.ids, shortlist.took) == ({"dense": "There is no encoder."}, ("d1",), 7)
    (hit,) = rank(shortlist, SearchSettings("lexical")).hits
    assert (hit.id, hit.score, hit.language, hit.source) == ("d1", 2.0, "de", {"language": "de"})
    with pytest.raises(UsageError) as raised:
        rank(shortlist, SearchSettings("hybrid"))
    assert str(raised.value) == "There is no encoder."
    exchange = build_shortlist(SearchQuery("ทะเล" * 600), target(), {}, {"dense": "There is no encoder."})
    with pytest.raises(StopIteration) as end:
        next(exchange)
    assert set(end.value.value.lacks) == {"dense", "lexical"}
    assert end.value.value.ids == ()


def test_a_setting_that_it_cannot_rank_is_refused():
    for setting in (SearchSettings("anchored"), SearchSettings(one_per_group=True)):
        with pytest.raises(ValueError, match="cannot be ranked"):
            rank(Shortlist(asked(), target(), {}, {}, {}), setting)


def shortlist_of(languages, question=None, filters=None, **more):
    found = tuple(
        ScoredDoc(name, 0.9, language, legs={"dense": Leg(0.9, rank)})
        for rank, (name, language) in enumerate(languages.items(), start=1)
    )
    return Shortlist(question or asked(), target(**more), filters or {}, {("dense", "all"): found}, {})


def test_of_each_language_only_what_is_missing_is_asked_for():
    held = {f"de-{n}": "de" for n in range(30)} | {"th-1": "th", "x-1": "fi"}
    *nearest, named = bodies_of(fetch_vectors(shortlist_of(held, documents=25), SHIFT))
    assert [body["size"] for body in nearest] == [30, 29, 29]
    told = [str(body["query"]["knn"]["a.vector"]["filter"]) for body in nearest]
    assert "'en'" in told[0]
    assert "['th-1']" in told[1]
    assert "must_not': [{'terms': {'language': ['de', 'en', 'th']}" in told[2]
    assert "['x-1']" in told[2]
    assert (named["size"], named["_source"]) == (32, ["a.vector", "a.stamp", "language"])
    # Documents of no language are asked for only where there are any, and languages only that are searched.
    filtered = shortlist_of(held, filters={"language": ["en"]}, documents=25)
    assert [body["size"] for body in bodies_of(fetch_vectors(filtered, SHIFT))] == [30, 32]
    assert [body["size"] for body in bodies_of(fetch_vectors(shortlist_of(held), SHIFT))] == [30, 29, 32]


def made_documents(count=40):
    """Id -> (vector as made, probabilities, stored document), of one language and of several."""
    numbers, made = np.random.default_rng(6), {}
    for number in range(count):
        language, raw = LANGUAGES[number % 3], numbers.standard_normal(DIMENSION) * 10 ** numbers.uniform(-2, 2)
        probable = {"de": 0.7, "th": 0.3} if number % 4 == 3 else {language: 1.0} if language != "en" else {}
        stamp = {"vectors": "made", "alpha": SHIFT.scale(language) if probable else 0.0, "gamma": SHIFT.gamma}
        if number % 4 == 3:
            stamp |= {"language": language, "languages": probable, "alphas": {t: SHIFT.scale(t) for t in probable}}
        elif probable:
            stamp["language"] = language
        taken = sum((p * SHIFT.scale(t) * SHIFT.vectors[t].astype(float) for t, p in probable.items()), 0.0)
        taken = taken + SHIFT.gamma * SHIFT.common.astype(float)
        stored = np.float32(raw - taken)
        source = {"language": language, "a": {"vector": stored.tolist(), "stamp": stamp, "more": 1}}
        # What is made of what is stored, not of what float32 left out.
        made[f"d{number}"] = (np.float64(stored) + taken, probable, source)
    return made


def cosine(one, other):
    return float(one @ other) / float(np.linalg.norm(one) * np.linalg.norm(other))


def fetched(documents, question=None):
    shortlist = shortlist_of(
        {name: source["language"] for name, (_, _, source) in list(documents.items())[:10]}, question
    )
    hits = [(name, 1.0, source) for name, (_, _, source) in documents.items()]
    return shortlist, ended(fetch_vectors(shortlist, SHIFT, QUERY_MEAN), [answer(*hits[10:]), answer(*hits[:10])])


def test_similarities_at_any_scales_are_exact():
    documents, searched = made_documents(), asked().vector.astype(np.float64)
    raw_query = searched + SHIFT.gamma * QUERY_MEAN.astype(np.float64)
    _, vectors = fetched(documents)
    assert set(vectors.ids) == set(documents)
    assert set(vectors.sources) == set(list(documents)[10:])
    assert vectors.sources["d11"] == {"language": "th", "a": {"stamp": documents["d11"][2]["a"]["stamp"], "more": 1}}
    for alpha, gamma in product((None, 0.0, 0.37, 1.0, 2.0), (None, 0.0, 0.7, 1.0)):
        similarities = vectors.similarities(alpha, gamma)
        scale = SHIFT.gamma if gamma is None else gamma
        query, common = raw_query - scale * QUERY_MEAN.astype(np.float64), scale * SHIFT.common.astype(np.float64)
        for place, name in enumerate(vectors.ids):
            raw, probable, _ = documents[name]
            scales = {tag: p * (SHIFT.scale(tag) if alpha is None else alpha) for tag, p in probable.items()}
            taken = sum((f * SHIFT.vectors[t].astype(np.float64) for t, f in scales.items()), np.zeros(DIMENSION))
            moved = raw - taken - common
            assert similarities[place] == pytest.approx(cosine(query, moved), abs=1e-9)
            told = similarity_breakdown(vectors, name, alpha, gamma)
            assert told.moved == similarities[place]
            parts = told.own_part, told.language_part, told.common_part
            assert sum(parts) == pytest.approx(told.moved, abs=1e-12)
            lengths = np.linalg.norm(query) * np.linalg.norm(moved)
            assert parts == pytest.approx((query @ raw / lengths, -query @ taken / lengths, -query @ common / lengths))
            assert told.before == pytest.approx(cosine(raw_query, raw), abs=1e-9)
            assert told.by == pytest.approx({tag: f for tag, f in (scales | {"common": scale}).items() if f})
    # At the index's own scale it is what is stored, to rounding.
    assert vectors.similarities(None, SHIFT.gamma) == pytest.approx(vectors.indexed, abs=1e-12)


def test_an_index_without_common_means_has_no_gamma_to_look_at():
    documents = made_documents()
    for _, _, source in documents.values():
        source["a"]["stamp"].pop("gamma")
    plain = replace(SHIFT, gamma=0.0, common=None)
    shortlist = shortlist_of({name: source["language"] for name, (_, _, source) in documents.items()})
    hits = [(name, 1.0, source) for name, (_, _, source) in documents.items()]
    vectors = ended(fetch_vectors(shortlist, plain), [answer(*hits)])
    assert not vectors.unmovable
    assert vectors.similarities(0.4, 0.0) == pytest.approx(vectors.similarities(0.4, 0.9))


def test_documents_are_ranked_at_an_alpha_with_the_preference():
    documents = made_documents()
    shortlist, vectors = fetched(documents)
    for preference in (0.0, 0.2, -0.2):
        scores = {
            one.id: (1 + similarity) / 2
            + abs(preference) / 2 * (preference != 0 and (one.language == "de") == (preference > 0))
            for one, similarity in zip(vectors.found, vectors.similarities(0.4), strict=True)
        }
        hits = rank_at(shortlist, vectors, SearchSettings(preference=preference), 0.4, size=12).hits
        assert [hit.id for hit in hits] == sorted(scores, key=lambda name: -scores[name])[:12]
        assert [hit.score for hit in hits] == pytest.approx(sorted(scores.values(), reverse=True)[:12])
    assert all(hit.source == vectors.sources.get(hit.id, {}) for hit in hits)


@pytest.mark.parametrize(
    "stamp",
    [
        None,
        {"vectors": "made"},
        {"vectors": "others", "alpha": 1.0, "language": "de"},
        {"vectors": "made", "alpha": 1.0, "language": "fi"},
        {"vectors": "others", "alpha": 0.0, "languages": {"de": 0.7, "th": 0.3}},
        {"vectors": "others", "alpha": 0.0, "gamma": 0.7},
    ],
)
def test_what_cannot_be_taken_back_stays_as_indexed(stamp):
    documents = made_documents()
    documents["d0"][2]["a"]["stamp"] = stamp
    _, vectors = fetched(documents)
    assert vectors.unmovable == {"d0"}
    stored = np.array(documents["d0"][2]["a"]["vector"])
    for alpha in (None, 0.0, 0.8):
        assert vectors.similarities(alpha)[vectors.places["d0"]] == pytest.approx(
            cosine(asked().vector, stored), abs=1e-7
        )
        told = similarity_breakdown(vectors, "d0", alpha)
        assert (told.before, told.moved, told.own_part, told.language_part, told.common_part) == (None,) * 5
        assert told.indexed == pytest.approx(cosine(asked().vector, stored), abs=1e-7)


def test_what_was_moved_by_nothing_is_moved_by_the_indexs_own_vectors():
    documents = made_documents()
    raw = np.array(documents["d0"][2]["a"]["vector"])
    documents["d0"][2]["a"]["stamp"] = {"vectors": "others", "alpha": 0.0}
    _, vectors = fetched(documents)
    assert not vectors.unmovable
    moved, query = raw - 0.8 * SHIFT.vectors["de"].astype(np.float64), asked().vector.astype(np.float64)
    place = vectors.places["d0"]
    assert vectors.similarities(0.8)[place] == pytest.approx(cosine(query, moved), abs=1e-7)
    more = cosine(query - 0.1 * QUERY_MEAN, moved - 0.8 * SHIFT.common)
    assert vectors.similarities(0.8, 0.8)[place] == pytest.approx(more, abs=1e-7)


def test_a_document_without_a_vector_is_not_there():
    documents = made_documents()
    del documents["d0"][2]["a"]["vector"]
    _, vectors = fetched(documents)
    assert "d0" not in vectors.ids
    assert similarity_breakdown(vectors, "d0", 1.0) is None
