"""A shortlist without a cluster: what is asked for, and similarities at any scales against plain arithmetic."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from plain_index import PLAIN
from search_request import index_filter, preferring

from langshift.debias.vectors import CommonStep
from langshift.errors import UsageError
from langshift.plugin.metadata import FieldNames
from langshift.plugin.stored_shift import StoredShift
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.filters import NO_FILTER
from langshift.retrieval.hits import Leg, ScoredDoc
from langshift.retrieval.plans import ShardBody
from langshift.retrieval.question import SearchContext, SearchQuery
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.shortlist import Shortlist, build_shortlist, fetch_vectors, rank, rank_at, similarity_breakdown

DIMENSION = 5
NUMBERS = np.random.default_rng(5)
LANGUAGES = ("de", "en", "th")
SHIFT = StoredShift(
    "made",
    "en",
    {tag: NUMBERS.standard_normal(DIMENSION).astype(np.float32) for tag in ("de", "th")},
    0.6,
    {"th": 1.2},
    0.95,
    CommonStep(
        NUMBERS.standard_normal(DIMENSION).astype(np.float32),
        np.linalg.qr(NUMBERS.standard_normal((DIMENSION, 2)))[0].T.astype(np.float32),
    ),
)
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
    assert len(bodies_of(build_shortlist(asked(), target(), NO_FILTER, {}))) == 6
    # Without a language nothing is favoured.
    assert len(bodies_of(build_shortlist(asked("und"), target(), NO_FILTER, {}))) == 2
    bodies = bodies_of(build_shortlist(asked(), target(3), index_filter({"year": ["1990"]}), {}))
    assert [body.shard for body in bodies if isinstance(body, ShardBody)] == [0, 1, 2]
    assert [body["size"] for body in bodies] == [300, 100, 100, 100, 100, 100, 100, 100]
    assert all('"year": ["1990"]' in str(body).replace("'", '"') for body in bodies)
    assert all(body["_source"] == {"excludes": ["a.vector"]} for body in bodies)


def test_a_leg_that_cannot_be_asked_is_left_out_with_the_reason():
    exchange = build_shortlist(SearchQuery("sun", "de"), target(), NO_FILTER, {"dense": "There is no encoder."})
    assert len(bodies_of(exchange)) == 3
    with pytest.raises(StopIteration) as end:
        exchange.send([answer(("d1", 2.0, {"language": "de"}))] * 3)
    shortlist = end.value.value
    assert (shortlist.lacks, shortlist.ids) == ({"dense": "There is no encoder."}, ("d1",))
    (hit,) = rank(shortlist, SearchSettings("lexical")).hits
    assert (hit.id, hit.score, hit.language, hit.source) == ("d1", 2.0, "de", {"language": "de"})
    with pytest.raises(UsageError) as raised:
        rank(shortlist, SearchSettings("hybrid"))
    assert str(raised.value) == "There is no encoder."
    exchange = build_shortlist(SearchQuery("ทะเล" * 600), target(), NO_FILTER, {"dense": "There is no encoder."})
    with pytest.raises(StopIteration) as end:
        next(exchange)
    assert set(end.value.value.lacks) == {"dense", "lexical"}
    assert end.value.value.ids == ()


def test_a_setting_that_it_cannot_rank_is_refused():
    for setting in (SearchSettings("anchored"), SearchSettings("dense", one_per_group=True)):
        with pytest.raises(ValueError, match="cannot be ranked"):
            rank(Shortlist(asked(), target(), NO_FILTER, {}, {}), setting)


def shortlist_of(languages, question=None, filters=None, **more):
    found = tuple(
        ScoredDoc(name, 0.9, language, legs={"dense": Leg(0.9, rank)})
        for rank, (name, language) in enumerate(languages.items(), start=1)
    )
    return Shortlist(question or asked(), target(**more), index_filter(filters), {("dense", "all"): found}, {})


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


def moved(raw, language, alpha, gamma):
    """A document as the cluster would hold it, float64."""
    found = raw - (alpha * SHIFT.vectors[language].astype(np.float64) if language in SHIFT.vectors else 0.0)
    if not gamma:
        return found
    mean, basis = (one.astype(np.float64) for one in (SHIFT.step.mean, SHIFT.step.directions))
    return (np.eye(DIMENSION) - gamma * basis.T @ basis) @ (found - mean) + (1 - gamma) * mean


def made_documents(count=40, gamma=SHIFT.gamma):
    """Id -> (vector as made, language, stored document)."""
    numbers, made = np.random.default_rng(6), {}
    for number in range(count):
        language, raw = LANGUAGES[number % 3], numbers.standard_normal(DIMENSION) * 10 ** numbers.uniform(0, 2)
        alpha = SHIFT.scale(language) if language != "en" else 0.0
        stamp = {"vectors": "made", "alpha": alpha, "gamma": gamma, **({"language": language} if alpha else {})}
        vector = np.float32(moved(raw, language, alpha, gamma)).tolist()
        made[f"d{number}"] = (raw, language, {"language": language, "a": {"vector": vector, "stamp": stamp, "more": 1}})
    return made


def cosine(one, other):
    return float(one @ other) / float(np.linalg.norm(one) * np.linalg.norm(other))


def fetched(documents, shift=SHIFT):
    shortlist = shortlist_of({name: source["language"] for name, (_, _, source) in list(documents.items())[:10]})
    hits = [(name, 1.0, source) for name, (_, _, source) in documents.items()]
    return shortlist, ended(fetch_vectors(shortlist, shift), [answer(*hits[10:]), answer(*hits[:10])])


def test_similarities_at_any_scales_are_those_of_documents_shifted_by_them():
    documents, query = made_documents(), asked().vector.astype(np.float64)
    query /= np.linalg.norm(query)
    _, vectors = fetched(documents)
    assert set(vectors.places) == set(documents)
    assert set(vectors.sources) == set(list(documents)[10:])
    assert vectors.sources["d11"] == {"language": "th", "a": {"stamp": documents["d11"][2]["a"]["stamp"], "more": 1}}
    for alpha, gamma in product((None, 0.0, 0.37, 1.0), (None, 0.0, 0.9, 0.98)):
        similarities = vectors.similarities(alpha, gamma)
        for name, place in vectors.places.items():
            raw, language, _ = documents[name]
            scales = SHIFT.scale(language) if alpha is None else alpha, SHIFT.gamma if gamma is None else gamma
            made = moved(raw, language, *scales)
            assert similarities[place] == pytest.approx(cosine(query, made), abs=2e-5)
            told = similarity_breakdown(vectors, name, alpha, gamma)
            assert told.value == pytest.approx(similarities[place], abs=1e-12)
            length = np.linalg.norm(made)
            taken = scales[0] * SHIFT.vectors[language].astype(np.float64) if language != "en" else np.zeros(DIMENSION)
            assert told[1:3] == pytest.approx((query @ raw / length, -query @ taken / length), rel=1e-3, abs=1e-5)
            assert told.own + told.language + told.common == pytest.approx(told.value, abs=1e-12)
            wanted = {language: scales[0] if language != "en" else 0.0, "gamma": scales[1]}
            assert told.removed == {key: scale for key, scale in wanted.items() if scale}
    indexed = [cosine(query, np.array(source["a"]["vector"])) for _, _, source in documents.values()]
    assert [vectors.similarities(None)[vectors.places[name]] for name in documents] == pytest.approx(indexed, abs=1e-6)


def test_a_gamma_that_no_index_can_have_is_refused():
    shortlist, vectors = fetched(made_documents())
    with pytest.raises(UsageError, match=r"^gamma 0\.5 cannot be used: it must be 0, or 0\.9 to 0\.98\."):
        rank_at(shortlist, vectors, SearchSettings("dense"), None, 0.5)
    shortlist, vectors = fetched(made_documents(gamma=0.0), replace(SHIFT, gamma=0.0, step=None))
    assert not vectors.unmovable
    assert rank_at(shortlist, vectors, SearchSettings("dense"), 0.5, 0.0).hits
    with pytest.raises(UsageError) as raised:
        rank_at(shortlist, vectors, SearchSettings("dense"), 0.5, 0.95)
    assert str(raised.value) == "Gamma cannot be changed: the index stores no directions of queries."


def test_documents_are_ranked_at_an_alpha_with_the_preference():
    documents = made_documents()
    shortlist, vectors = fetched(documents)
    for preference in (0.0, 0.2, -0.2):
        scores = {
            one.id: (1 + similarity) / 2
            + abs(preference) / 2 * (preference != 0 and (one.language == "de") == (preference > 0))
            for one, similarity in zip(vectors.found, vectors.similarities(0.4), strict=True)
        }
        hits = rank_at(
            shortlist,
            vectors,
            SearchSettings("dense", **preferring(preference)),
            0.4,
            size=12,
        ).hits
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
        {"vectors": "others", "alpha": 0.0, "gamma": 0.95},
    ],
)
def test_what_cannot_be_taken_back_stays_as_indexed(stamp):
    documents = made_documents()
    documents["d0"][2]["a"]["stamp"] = stamp
    _, vectors = fetched(documents)
    assert vectors.unmovable == {"d0"}
    stored = cosine(asked().vector, np.array(documents["d0"][2]["a"]["vector"]))
    for alpha, gamma in ((None, None), (0.0, None), (0.8, 0.9)):
        assert vectors.similarities(alpha, gamma)[vectors.places["d0"]] == pytest.approx(stored, abs=1e-7)
        told = similarity_breakdown(vectors, "d0", alpha, gamma)
        assert told == (pytest.approx(stored, abs=1e-7) if alpha is None else None, None, None, None, None, {})


def test_what_was_moved_by_nothing_is_moved_by_the_indexs_own_vectors():
    documents = made_documents()
    raw = np.array(documents["d0"][2]["a"]["vector"])
    documents["d0"][2]["a"]["stamp"] = {"vectors": "others", "alpha": 0.0}
    _, vectors = fetched(documents)
    assert not vectors.unmovable
    query = asked().vector.astype(np.float64)
    for gamma in (0.0, 0.9):
        found = vectors.similarities(0.8, gamma)[vectors.places["d0"]]
        assert found == pytest.approx(cosine(query, moved(raw, "de", 0.8, gamma)), abs=1e-7)


def test_a_document_without_a_vector_is_not_there():
    documents = made_documents()
    del documents["d0"][2]["a"]["vector"]
    _, vectors = fetched(documents)
    assert "d0" not in vectors.places
    assert similarity_breakdown(vectors, "d0", 1.0) is None
