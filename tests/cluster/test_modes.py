"""Every search mode on a real cluster, with one shard and with three."""

import math
import uuid
from dataclasses import replace

import pytest
from search_request import preferring
from searched_index import Corpus, asked, found, scored

from langshift.errors import UsageError
from langshift.retrieval.hits import ScoringContext
from langshift.retrieval.modes import hybrid
from langshift.retrieval.plans import execute
from langshift.retrieval.question import SearchRequest
from langshift.retrieval.request import SearchSettings

CORPUS = Corpus()
SETTINGS = [
    SearchSettings("dense"),
    SearchSettings("dense", prefer_language=0.1),
    SearchSettings("dense", spread=0.1),
    SearchSettings("lexical"),
    SearchSettings("lexical", prefer_language=0.1),
    SearchSettings("sparse"),
    SearchSettings("sparse", prefer_language=0.1),
    SearchSettings("hybrid"),
    SearchSettings("hybrid", fusion="rrf"),
    SearchSettings("hybrid", sparse_weight=0.4),
    SearchSettings("hybrid", prefer_language=0.1, lexical_weight=0.0, sparse_weight=0.4),
    SearchSettings("hybrid", fusion="rrf", sparse_weight=0.4),
    SearchSettings("hybrid", prefer_language=0.1),
    SearchSettings("hybrid", spread=0.1, fusion="rrf"),
    SearchSettings("balanced"),
    SearchSettings("balanced", prefer_language=0.1),
    SearchSettings("anchored"),
    SearchSettings("anchored", prefer_language=0.1),
    SearchSettings("anchored", spread=0.3),
]


def told(setting):
    tokens = f"tokens-{setting.lexical_weight:g}" if setting.sparse_weight else ""
    parts = [setting.mode, setting.fusion if setting.mode == "hybrid" else "", tokens, f"{setting.preference:g}"]
    return "-".join(part for part in parts if part != "")


every_setting = pytest.mark.parametrize("setting", SETTINGS, ids=told)


@pytest.fixture(scope="module", params=[1, 3], ids=["one-shard", "three-shards"])
def target(client, request):
    name = f"langshift-test-modes-{uuid.uuid4().hex[:8]}"
    yield CORPUS.write(client, name, request.param)
    client.indices.delete(index=name)


def preferred(question, beta):
    """(Id, score) by cosine with a preference, best first, in NumPy."""
    same = {name: language == question.language for name, language in CORPUS.languages.items()}
    given = {n: (1 + c + abs(beta) * (same[n] == (beta > 0))) / 2 for n, c in CORPUS.cosines(question.vector).items()}
    return sorted(given.items(), key=lambda item: -item[1])


@pytest.mark.parametrize("beta", [0.02, 0.1, 0.5, 2.0, -0.02, -0.1, -0.5, -2.0])
@pytest.mark.parametrize("filters", [{}, {"year": ["2001"]}], ids=["all", "filtered"])
def test_the_preference_is_exact(client, target, beta, filters):
    for seed in range(4):
        question = asked(seed)
        hits = found(
            client, target, question, SearchSettings("dense", **preferring(beta)), filters=filters, source=False
        ).hits
        wanted = [(n, s) for n, s in preferred(question, beta) if not filters or CORPUS.years[n] == 2001][:20]
        assert [hit.id for hit in hits] == [name for name, _ in wanted]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in wanted], abs=1e-6)
        cosines = CORPUS.cosines(question.vector)
        assert [hit.legs["dense"].score for hit in hits] == pytest.approx(
            [(1 + cosines[hit.id]) / 2 for hit in hits], abs=1e-6
        )


@pytest.mark.parametrize("filters", [{}, {"year": ["2001"]}], ids=["all", "filtered"])
def test_documents_are_found_by_their_weights_of_tokens(client, target, filters):
    for seed in range(4):
        question = asked(seed)
        sums = {
            name: sum(weight * question.weights.get(token, 0.0) for token, weight in held.items())
            for name, held in CORPUS.weights.items()
            if not filters or CORPUS.years[name] == 2001
        }
        run = found(client, target, question, SearchSettings("sparse"), size=400, filters=filters, source=False)
        # The server keeps eight binary digits of what a token weighs.
        assert {hit.id: hit.score for hit in run.hits} == {
            name: pytest.approx(wanted, rel=1 / 256) for name, wanted in sums.items() if wanted
        }
        assert [hit.score for hit in run.hits] == sorted((hit.score for hit in run.hits), reverse=True)


def test_heavy_tokens_of_a_query_are_made_lighter_in_proportion(client, target):
    question, heavy = asked(), 1000.0
    weighed = question._replace(weights={token: heavy * weight for token, weight in question.weights.items()})
    for setting in (SearchSettings("sparse"), SearchSettings("hybrid", sparse_weight=0.4)):
        plain, scaled = (found(client, target, one, setting, source=False).hits for one in (question, weighed))
        assert [hit.id for hit in plain] == [hit.id for hit in scaled]
    assert found(client, target, weighed, SearchSettings("sparse")).hits[0].legs["sparse"].rank == 1


def test_a_query_without_weights_is_refused_and_one_without_tokens_found_by_the_other_legs(client, target):
    fused = SearchSettings("hybrid", sparse_weight=0.4)
    for setting in (SearchSettings("sparse"), fused):
        with pytest.raises(UsageError, match="has no weights of tokens"):
            found(client, target, asked()._replace(weights=None), setting)
    tokenless = asked()._replace(weights={})
    with pytest.raises(UsageError, match="gives no weights for the query 'sun moon tide'"):
        found(client, target, tokenless, SearchSettings("sparse"))
    for fuses in (True, False):
        there = replace(target, fuses=fuses)
        hits = found(client, there, tokenless, fused, source=False).hits
        assert hits == found(client, there, asked(), SearchSettings("hybrid"), source=False).hits


def test_there_is_no_preference_for_no_language(client, target):
    question = asked(language="und")
    plain = found(client, target, question, source=False)
    assert found(client, target, question, SearchSettings("dense", prefer_language=0.5), source=False) == plain


@pytest.mark.parametrize("fusion", ["min-max", "rrf"])
@pytest.mark.parametrize(("weight", "tokens"), [(0.0, 0.5), (0.3, 0.0), (0.5, 0.5), (1.0, 0.0)])
@pytest.mark.parametrize("words", ["sun moon tide", "comet", "twin", "nothing"])
def test_the_clients_fusion_is_the_plugins(client, target, fusion, weight, tokens, words):
    setting = SearchSettings("hybrid", fusion=fusion, lexical_weight=weight * (1 - tokens), sparse_weight=tokens)
    for filters in ({}, {"year": ["2001"]}, {"language": ["th"]}, {"year": ["1900"]}):
        question = asked(words=words)
        theirs = found(client, target, question, setting, size=60, filters=filters, source=False)
        ours = found(client, replace(target, fuses=False), question, setting, size=60, filters=filters, source=False)
        assert [hit.score for hit in ours.hits] == pytest.approx([hit.score for hit in theirs.hits], abs=1e-4)
        given = {hit.id: hit.score for hit in ours.hits}
        assert given | {hit.id: pytest.approx(hit.score, abs=1e-4) for hit in theirs.hits if hit.id in given} == given


@every_setting
def test_every_document_of_a_run_is_scored_as_the_run_scored_it(client, target, setting):
    question = asked()
    run = found(client, target, question, setting, size=30, source=False)
    ids = [*[hit.id for hit in run.hits], "not-there"]
    wanted = {hit.id: pytest.approx(hit.score, abs=1e-6) for hit in run.hits} | {"not-there": None}
    assert scored(client, target, question, setting, run.how, ids) == wanted
    assert scored(client, target, question, setting, run.how, []) == {}


def test_documents_below_the_cut_are_scored_on_the_scale_of_the_run(client, target):
    question = asked()
    for setting in SETTINGS:
        shallow = found(client, target, question, setting, size=5, source=False)
        deep = found(client, target, question, setting, size=90, source=False)
        given = scored(client, target, question, setting, shallow.how, [hit.id for hit in deep.hits])
        assert given == {hit.id: pytest.approx(hit.score, abs=1e-6) for hit in deep.hits}, setting
    every = scored(
        client, target, question, SearchSettings("dense", prefer_language=0.1), ScoringContext(), list(CORPUS.vectors)
    )
    assert every == {name: pytest.approx(score, abs=1e-6) for name, score in preferred(question, 0.1)}
    none = scored(
        client, target, question._replace(words="nothing"), SearchSettings("lexical"), ScoringContext(), ["d0", "d1"]
    )
    assert none == {"d0": None, "d1": None}


@every_setting
def test_filters_hold_in_every_mode(client, target, setting):
    for grouped in (False, True):
        hits = found(
            client,
            target,
            asked(),
            setting.but(one_per_group=grouped),
            filters={"year": ["2001", "2002"], "language": ["de", "th"]},
        ).hits
        inside = [one for hit in hits for one in (hit, *hit.others)]
        assert len(hits) >= 10
        assert {CORPUS.years[one.id] for one in inside} == {2001, 2002}
        assert {one.language for one in inside} == {"de", "th"}
        assert found(client, target, asked(), setting.but(one_per_group=grouped), filters={"year": ["1"]}).hits == ()


@every_setting
def test_hits_bring_what_is_asked_for(client, target, setting):
    question = asked()
    all_of_it = found(client, target, question, setting, size=10).hits
    assert all(hit.source["year"] == CORPUS.years[hit.id] and "embedding" not in hit.source for hit in all_of_it)
    some = found(client, target, question, setting, size=10, source=["year"]).hits
    assert [hit.source for hit in some] == [{"year": CORPUS.years[hit.id]} for hit in all_of_it]
    none = found(client, target, question, setting, size=10, source=False).hits
    assert [(hit.id, hit.score, hit.language) for hit in none] == [(h.id, h.score, h.language) for h in all_of_it]
    assert {hit.id: hit.language for hit in none} == {hit.id: CORPUS.languages[hit.id] or "und" for hit in none}
    assert all(hit.source == {} for hit in none)


def test_scores_do_not_go_with_the_size(client, target):
    for setting in SETTINGS:
        few, many = (found(client, target, asked(), setting, size=size, source=False) for size in (5, 40))
        assert [hit[:3] for hit in few.hits] == [hit[:3] for hit in many.hits[:5]]


@pytest.mark.parametrize("beta", [0.05, -0.05])
@pytest.mark.parametrize("mode", ["lexical", "sparse", "hybrid"])
def test_in_other_modes_the_bonus_is_as_much_of_their_scores_as_beta_is_of_the_cosines(client, target, mode, beta):
    question = asked()
    plain = found(client, target, question, SearchSettings(mode), size=100, source=False)
    cosines = sorted(CORPUS.cosines(question.vector).values(), reverse=True)[:100]
    own = [hit.score for hit in plain.hits]
    bonus = abs(beta) * (own[0] - own[-1]) / (cosines[0] - cosines[-1])
    run = found(
        client,
        target,
        question,
        SearchSettings(mode, **preferring(beta)),
        size=20,
        source=False,
    )
    assert run.how.bonus == pytest.approx(math.copysign(bonus, beta), rel=1e-4)
    wanted = {h.id: h.score + bonus * ((h.language == "de") == (beta > 0)) for h in plain.hits}
    best = sorted(wanted.values(), reverse=True)[:20]
    assert [hit.score for hit in run.hits] == pytest.approx(best, abs=1e-4)
    assert all(hit.score == pytest.approx(wanted[hit.id], abs=1e-4) for hit in run.hits)


@pytest.mark.parametrize("mode", ["dense", "lexical", "sparse", "hybrid"])
def test_a_strong_preference_also_finds_what_was_below_the_pool(client, target, mode):
    question = asked(words="sun sand wind")
    for fusion in ("min-max", "rrf"):
        setting = SearchSettings(mode, prefer_language=9.0, fusion=fusion)
        hits = found(client, target, question, setting, size=45, source=False).hits
        assert [hit.language for hit in hits] == ["de"] * 45
        pool = found(client, target, question, SearchSettings(mode, fusion=fusion), size=100, source=False).hits
        assert not {hit.id for hit in hits} <= {hit.id for hit in pool}
        spread = found(
            client, target, question, setting.but(prefer_language=0.0, spread=9.0), size=60, source=False
        ).hits
        assert "de" not in {hit.language for hit in spread}


def test_balanced_gives_every_language_its_best_five_of_the_fifty_nearest(client, target):
    question = asked()
    nearest = sorted(CORPUS.cosines(question.vector).items(), key=lambda item: -item[1])[:50]
    wanted = []
    for name, cosine in nearest:
        if sum(CORPUS.languages[other] == CORPUS.languages[name] for other, _ in wanted) < 5:
            wanted.append((name, cosine))
    hits = found(client, target, question, SearchSettings("balanced"), size=50).hits
    assert [hit.id for hit in hits] == [name for name, _ in wanted]
    assert [hit.score for hit in hits] == pytest.approx([(1 + cosine) / 2 for _, cosine in wanted], abs=1e-6)
    assert {hit.language for hit in hits} == {"en", "de", "th", "und"}
    moved = found(client, target, question, SearchSettings("balanced", prefer_language=9.0), size=50).hits
    assert [hit.language for hit in moved[:5]] == ["de"] * 5
    assert sorted(hit.id for hit in moved) == sorted(hit.id for hit in hits)


@pytest.mark.parametrize("fusion", ["min-max", "rrf"])
@pytest.mark.parametrize("beta", [0.0, 0.1, -0.1])
def test_hybrid_gives_0_and_the_bonus_to_what_no_leg_retrieved(client, target, fusion, beta):
    question, setting = asked(words="comet"), SearchSettings("hybrid", **preferring(beta), fusion=fusion)
    exchange = hybrid.plan(SearchRequest(question, setting, target, size=1000, source=False))
    run = execute(client, target.index.index, exchange)
    given = scored(client, target, question, setting, run.how, [*CORPUS.vectors, "not-there"])
    assert given.pop("not-there") is None
    rest = given.keys() - {hit.id for hit in run.hits}
    assert len(rest) > 40
    assert all(given[name] in (0.0, abs(run.how.bonus)) for name in rest)
    if not beta:
        assert all(given[name] == 0 for name in rest)


def test_what_a_leg_did_not_rank_has_no_rank(client, target):
    question = asked()
    legs = [
        hit.legs["dense"]
        for hit in found(client, target, question, SearchSettings("dense", prefer_language=0.2), source=False).hits
    ]
    assert {leg.rank for leg in legs} == {None}
    setting = SearchSettings("hybrid", prefer_language=0.2)
    exchange = hybrid.plan(SearchRequest(question, setting, target, size=1000, source=False))
    run = execute(client, target.index.index, exchange)
    ranks = [hit.legs["dense"].rank for hit in run.hits if "dense" in hit.legs]
    retrieved = [rank for rank in ranks if rank is not None]
    assert sorted(retrieved) == list(range(1, len(retrieved) + 1))
    assert len(retrieved) < len(ranks) or target.index.shards > 1
