"""A shortlist ranks as the live search does, in every setting, and at any alpha as an index of that alpha."""

import uuid

import numpy as np
import pytest
from search_request import index_filter, preferring
from searched import TEXTS, a_name, drop, make_index
from searched_index import DIMENSION, Corpus, asked, found, found_by_each

from langshift.debias.debiaser import shifted as shifted_vector
from langshift.debias.encoders import open_encoder
from langshift.errors import UsageError
from langshift.plugin.stored_shift import StoredShift
from langshift.retrieval.plans import execute
from langshift.retrieval.question import SearchOptions, SearchQuery
from langshift.retrieval.request import SearchArguments, SearchSettings
from langshift.retrieval.result import own_source
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.shortlist import build_shortlist, fetch_vectors, rank, rank_at, rankable, similarity_breakdown

CORPUS = Corpus()
NUMBERS = np.random.default_rng(8)
SHIFT = StoredShift(
    "made",
    "en",
    {tag: NUMBERS.standard_normal(DIMENSION).astype(np.float32) for tag in ("de", "th")},
    0.5,
    {"th": 0.75},
)
SETTINGS = [
    SearchSettings(mode, **preferring(preference), fusion=fusion, lexical_weight=weight)
    for mode in ("dense", "balanced", "lexical", "hybrid")
    for preference in (0, 0.1, -0.1, 2.0)
    for fusion, weight in (
        [("min-max", 0.3), ("min-max", 1.0), ("rrf", 0.6)] if mode == "hybrid" else [("min-max", 0.3)]
    )
]


def told(setting):
    return f"{setting.mode}-{setting.fusion}-{setting.lexical_weight:g}-{setting.preference:g}"


def near_ties_aside(hits, wanted):
    """The hits are those, with these scores; documents of one score may stand in any order, and be cut off."""
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in wanted], abs=1e-6)
    scores = {hit.id: hit.score for hit in hits}
    for hit, other in zip(hits, wanted, strict=True):
        assert hit.id == other.id or abs(scores.get(other.id, hit.score) - other.score) <= 2e-6, (hit, other)


@pytest.fixture(scope="module", params=[1, 3], ids=["one-shard", "three-shards"])
def target(client, request):
    name = f"langshift-test-shortlist-{uuid.uuid4().hex[:8]}"
    yield CORPUS.write(client, name, request.param)
    client.indices.delete(index=name)


def shortlisted(client, target, question, filters=None, lacks=None):
    return execute(client, target.index.index, build_shortlist(question, target, index_filter(filters), lacks or {}))


@pytest.mark.parametrize(
    ("language", "filters"),
    [("de", {}), ("und", {}), ("fi", {"year": ["2001"]}), ("de", {"language": ["de", "th"]})],
    ids=["all", "unknown", "none-of-it", "filtered"],
)
def test_it_ranks_as_the_live_search_does(client, target, language, filters):
    for seed, words in enumerate(("sun moon tide", "comet twin", "nothing of that")):
        question = asked(seed, language, words)
        shortlist = shortlisted(client, target, question, filters)
        lives = found_by_each(client, target, question, SETTINGS, filters=filters)
        for setting, live in zip(SETTINGS, lives, strict=True):
            mine = rank(shortlist, setting, size=20)
            near_ties_aside(mine.hits, live.hits)
            assert mine.how.bonus == pytest.approx(live.how.bonus, abs=1e-6), told(setting)
            assert all(hit.source == other.source for hit in mine.hits for other in live.hits if hit.id == other.id)


def test_what_a_leg_lacks_is_said_where_a_setting_needs_it(client, target):
    many = asked(words="ทะเล" * 600)
    shortlist = shortlisted(client, target, many)
    sentence = "The query has too many words for a lexical search: the limit is 500."
    assert shortlist.lacks == {"lexical": sentence}
    near_ties_aside(
        rank(shortlist, SearchSettings("dense", prefer_language=0.1)).hits,
        found(client, target, many, SearchSettings("dense", prefer_language=0.1), size=100).hits,
    )
    for mode in ("lexical", "hybrid"):
        with pytest.raises(UsageError) as raised:
            rank(shortlist, SearchSettings(mode))
        assert str(raised.value) == sentence
    nowhere = SearchQuery("sun moon", "de", np.zeros(DIMENSION, np.float32))
    shortlist = shortlisted(client, target, nowhere)
    near_ties_aside(
        rank(shortlist, SearchSettings("lexical")).hits,
        found(client, target, nowhere, SearchSettings("lexical"), size=100).hits,
    )
    for setting in (
        SearchSettings("dense"),
        SearchSettings("balanced"),
        SearchSettings("hybrid"),
        SearchSettings("lexical", prefer_language=0.1),
    ):
        with pytest.raises(UsageError, match="is all zeros"):
            rank(shortlist, setting)


class Shifted:
    """The corpus with vectors that are shifted and stamped."""

    def __init__(self, client, alpha, shards=1):
        self.name = f"langshift-test-shortlist-{uuid.uuid4().hex[:8]}"
        self.target = CORPUS.write(client, self.name, shards)
        lines = []
        for name, raw in CORPUS.vectors.items():
            tag, stamp = CORPUS.languages[name], {"vectors": "made", "alpha": 0.0}
            if tag in SHIFT.vectors:
                stamp |= {"alpha": SHIFT.scale(tag) if alpha is None else alpha, "language": tag}
            stored = shifted_vector(raw, stamp, SHIFT)
            lines += [{"update": {"_id": name}}, {"doc": {"embedding": stored.tolist(), "shift": stamp}}]
        assert not client.bulk(index=self.name, body=lines, refresh=True)["errors"]


@pytest.fixture(scope="module")
def shifted(client):
    """Alpha, or None for the index's own scales -> the index."""
    made = {alpha: Shifted(client, alpha) for alpha in (None, 0.0, 0.9)}
    yield made
    for one in made.values():
        client.indices.delete(index=one.name)


def both(client, one, question, filters=None):
    shortlist = shortlisted(client, one.target, question, filters)
    return shortlist, execute(client, one.name, fetch_vectors(shortlist, SHIFT))


@pytest.mark.parametrize("filters", [{}, {"year": ["2001"]}, {"language": ["th"]}], ids=["all", "year", "th"])
def test_it_ranks_at_any_alpha_as_an_index_of_that_alpha(client, shifted, filters):
    for seed in range(2):
        question = asked(seed)
        shortlist, vectors = both(client, shifted[None], question, filters)
        assert not vectors.unmovable
        settings = [
            SearchSettings("dense"),
            SearchSettings("dense", prefer_language=0.1),
            SearchSettings("dense", spread=0.1),
            SearchSettings("balanced"),
        ]
        for alpha in (0.0, 0.9):
            lives = found_by_each(client, shifted[alpha].target, question, settings, filters=filters)
            for setting, live in zip(settings, lives, strict=True):
                hits = rank_at(shortlist, vectors, setting, alpha, size=20).hits
                near_ties_aside(hits, live.hits)
                plain = [{**hit.source, "shift": None} for hit in live.hits]
                assert [{**hit.source, "shift": None} for hit in hits] == plain
        assert rank_at(shortlist, vectors, SearchSettings("hybrid"), None) == rank(shortlist, SearchSettings("hybrid"))
        lexical = rank(shortlist, SearchSettings("lexical"))
        assert rank_at(shortlist, vectors, SearchSettings("lexical"), 0.9) == lexical


def test_at_the_indexs_own_alpha_it_ranks_as_indexed(client, shifted):
    shortlist, vectors = both(client, shifted[0.9], asked(3))
    for setting in SETTINGS:
        near_ties_aside(rank_at(shortlist, vectors, setting, 0.9, size=20).hits, rank(shortlist, setting, size=20).hits)


def test_it_accounts_for_a_similarity(client, shifted):
    question = asked(2)
    query = question.vector.astype(np.float64) / np.linalg.norm(question.vector)
    _, vectors = both(client, shifted[None], question)
    for name in vectors.places:
        raw, tag = CORPUS.vectors[name].astype(np.float64), CORPUS.languages[name]
        for alpha in (None, 0.0, 0.4):
            scale = 0.0 if tag not in SHIFT.vectors else SHIFT.scale(tag) if alpha is None else alpha
            taken = scale * SHIFT.vectors[tag].astype(np.float64) if scale else np.zeros(DIMENSION)
            length = np.linalg.norm(raw - taken)
            told_of = similarity_breakdown(vectors, name, alpha)
            assert told_of.value == pytest.approx(query @ (raw - taken) / length, abs=1e-6)
            assert told_of.own == pytest.approx(query @ raw / length, abs=1e-6)
            assert told_of.language == pytest.approx(-(query @ taken) / length, abs=1e-6)
            assert told_of.common == pytest.approx(0, abs=1e-6)
            assert told_of.removed == ({tag: scale} if scale else {})
    assert similarity_breakdown(vectors, "d-none", 1.0) is None


def test_documents_of_unknown_shift_stay_as_indexed(client):
    one = Shifted(client, None)
    try:
        changes = {
            "d1": "ctx._source.shift.vectors = 'others'",
            "d4": "ctx._source.remove('shift')",
            "d2": "ctx._source.remove('embedding')",
            "d7": "ctx._source.shift.language = 'fi'; ctx._source.shift.alpha = 0.5",
        }
        for name, script in changes.items():
            client.update(index=one.name, id=name, body={"script": script}, params={"refresh": "true"})
        _, vectors = both(client, one, asked(1, words="sun moon tide comet"))
        known = set(vectors.places) & {"d1", "d4", "d7"}
        assert vectors.unmovable == known
        for name in known:
            told_of = similarity_breakdown(vectors, name, 0.2)
            assert told_of == (None, None, None, None, None, {})
            place = vectors.places[name]
            assert vectors.similarities(0.2)[place] == pytest.approx(vectors.similarities(None)[place], abs=1e-12)
        assert "d2" not in vectors.places
        assert similarity_breakdown(vectors, "d2", 0.2) is None
    finally:
        client.indices.delete(index=one.name)


@pytest.fixture(scope="module")
def made(client, tmp_path_factory):
    """Makes a small index of texts; gives its searcher."""
    names, encoders = [], {"use-m": open_encoder("use-m")}

    def make(**how):
        names.append(a_name())
        make_index(client, tmp_path_factory.mktemp("shortlist") / "c.jsonl", names[-1], **how)
        return Searcher(client, names[-1], SearchOptions(), encoders)

    yield make
    for name in names:
        drop(client, name)


def test_a_searcher_makes_the_shortlist_and_its_vectors(client, made):
    searcher, plain = made(), made(alpha=0.0)
    words = "Why does the sea rise twice a day?"
    shortlist = execute(client, searcher.index.index, searcher.shortlist(words))
    assert (shortlist.question.language, set(shortlist.ids)) == ("en", set(TEXTS))
    for setting in SETTINGS:
        wanted = searcher.search(words, setting)
        hits = rank(shortlist, setting, size=10).hits
        near_ties_aside(hits, wanted.hits)
        found = {hit.id: own_source(hit.source, searcher.index.fields) for hit in hits}
        assert found == {hit.id: hit.source for hit in wanted.hits}, told(setting)
    assert searcher.shiftable is None
    vectors = execute(client, searcher.index.index, searcher.vectors(shortlist))
    before = plain.search(words)
    at = rank_at(shortlist, vectors, SearchSettings("dense"), 0.0).hits
    assert [hit.id for hit in at] == [hit.id for hit in before.hits]
    assert [hit.score for hit in at] == pytest.approx([hit.score for hit in before.hits], abs=1e-6)
    with pytest.raises(UsageError, match="qqqqq"):
        searcher.shortlist(words, SearchArguments(language="qqqqq"))
    german = execute(
        client, searcher.index.index, searcher.shortlist(words, SearchArguments(filters={"language": ["de"]}))
    )
    assert set(german.ids) == {"tides-de", "bread-de"}


def test_settings_that_search_on_from_what_they_found_are_searched_live():
    assert all(map(rankable, SETTINGS))
    assert not any(rankable(SearchSettings(mode)) for mode in ("auto", "anchored"))
    assert not rankable(SearchSettings("dense", one_per_group=True))
