"""What tuning recommends where the right answer is known, and the figures that it rests on."""

import numpy as np
import pytest
from planted import InMemory, PlantedEncoder, direction, known, parallel_text

from langshift.debias.debiaser import Debiaser
from langshift.evaluate.offline.ranking import debias_vectors, rank, score_ranked
from langshift.evaluate.tune.search import COST, MEASURES, TARGET
from langshift.evaluate.tune.task import make_task, sample_items
from langshift.evaluate.tune.tune import Judge, TuningSettings, Weighing, tune

OFFSETS = {tag: 2 * direction(seed) for tag, seed in (("de", 10), ("es", 11), ("ru", 12))}
CONE = 4 * direction(30)


def judged(encoder, vectors, languages=("de", "es", "ru"), seed=0, **more):
    items = sample_items(InMemory(parallel_text(["en", *languages], seed=seed)), "en", list(languages), 600)
    fitted = known({tag: vectors[tag] for tag in languages}, **more)
    return Judge(make_task(items, encoder), fitted, same_text=False)


def test_a_planted_bias_is_taken_out_as_far_as_chance_can_tell():
    found = tune(judged(PlantedEncoder(OFFSETS, {}), OFFSETS, ("de", "es")), 0.01)
    documents, both = found.steps
    assert found.both_sides == found.documents_only == documents.setting
    curve = found.curves["documents_only"]
    means = [found.weighing.mean(point.figures[TARGET], everything(found)) for point in curve]
    assert curve[int(np.argmax(means))].setting.alpha >= 0.9
    assert 0.5 < documents.setting.alpha < 1
    # Queries that need no shift are left alone.
    assert (documents.taken, both.taken, both.setting.shift_queries) == (True, False, False)
    assert documents.change.low > 0.05
    assert found.last is documents


@pytest.mark.parametrize("seed", range(2))
def test_where_nothing_is_biased_nothing_is_shifted(seed):
    noise = {tag: 0.2 * direction(20 + 10 * seed + number) for number, tag in enumerate(("de", "es"))}
    found = tune(judged(PlantedEncoder({}), noise, ("de", "es"), seed), 0.01)
    assert found.both_sides == found.documents_only == TuningSettings()
    assert found.last is None
    assert not any(step.taken for step in found.steps)


@pytest.fixture(scope="module")
def biased_on_both_sides():
    offsets = {tag: 1.5 * offset for tag, offset in OFFSETS.items() if tag != "ru"}
    return judged(PlantedEncoder(offsets), offsets, ("de", "es"))


def test_queries_with_the_bias_of_documents_are_shifted_too(biased_on_both_sides):
    found = tune(biased_on_both_sides, 0.01)
    documents, both = found.steps
    assert (both.taken, found.both_sides) == (True, both.setting)
    assert both.setting.shift_queries
    assert both.setting.alpha >= 0.8
    assert (found.documents_only, documents.setting.shift_queries) == (documents.setting, False)
    assert both.change.before == pytest.approx(found.weighing.mean(documents.held_out[TARGET], everything(found)))
    # Without common means there is no gamma to try, and the curve is that of alpha.
    assert {point.setting.gamma for point in found.curves["both_sides"]} == {0.0}
    assert [point.setting.alpha for point in found.curves["both_sides"]] == [tenth / 10 for tenth in range(11)]


def test_what_all_texts_share_is_taken_off_both_sides():
    """All vectors lie in a narrow cone, in which the bias by language is most of what is left."""
    offsets = {tag: CONE + (0.0 if tag == "en" else OFFSETS[tag]) for tag in ("en", "de", "es")}
    cone = CONE.astype(np.float32)
    found = tune(
        judged(PlantedEncoder(offsets), OFFSETS, ("de", "es"), common={"documents": cone, "queries": cone}), 0.01
    )
    documents, both = found.steps
    assert (both.taken, both.setting.shift_queries) == (True, True)
    assert (documents.setting.gamma, documents.setting.shift_queries) == (0.0, False)
    gammas = found.curves["both_sides"]
    assert [point.setting.gamma for point in gammas] == [tenth / 10 for tenth in range(11)]
    # The smallest gamma of those that are alike, and no smaller one.
    means = {point.setting.gamma: found.weighing.mean(point.figures[TARGET], everything(found)) for point in gammas}
    best = max(gammas, key=lambda point: means[point.setting.gamma])
    assert 0 < both.setting.gamma <= best.setting.gamma
    for point in gammas:
        lacking = found.weighing.interval(best.figures[TARGET] - point.figures[TARGET], everything(found))
        if point.setting.gamma < both.setting.gamma:
            assert lacking[0] > 0


def everything(found):
    return np.ones(len(found.plain.figures[TARGET]), bool)


def test_each_setting_has_the_smallest_preference_that_keeps_the_budget(biased_on_both_sides):
    judge = biased_on_both_sides
    for budget in (0.0, 0.05, 1.0):
        found = tune(judge, budget)
        every = everything(found)
        least = found.weighing.mean(found.plain.figures[COST], every) - budget - 1e-9
        for point in (*found.curves["documents_only"], *found.curves["both_sides"]):
            assert found.weighing.mean(point.figures[COST], every) >= least
            if preference := point.setting.preference:
                less = judge.at(point.setting._replace(preference=preference - 0.001))
                assert found.weighing.mean(less.figures[COST], every) < least
        if budget == 1.0:
            assert {point.setting.preference for point in found.curves["documents_only"]} == {0.0}


def test_figures_are_those_of_every_other_search():
    cone = CONE.astype(np.float32)
    judge = judged(PlantedEncoder(OFFSETS), OFFSETS, common={"documents": cone, "queries": -cone})
    encoded = judge.task.encoded
    for setting in (
        TuningSettings(),
        TuningSettings(0.6, preference=0.05),
        TuningSettings(0.6, 0.3, shift_queries=True, preference=0.2),
        TuningSettings(0.0, 0.5, shift_queries=True),
    ):
        debias = Debiaser(judge.vectors, "shift", setting.alpha, {}, setting.shift_queries, setting.gamma)
        ranked = rank(encoded, debias_vectors(encoded, debias), beta=setting.preference, depth=20)
        expected = score_ranked(MEASURES, encoded, ranked)
        point = judge.at(setting)
        for measure, figures in point.figures.items():
            of = expected[measure].per_query
            assert np.abs(figures - [of[query.id] for query in encoded.dataset.queries]).max() < 1e-12
        # The preference with which an answer in the query's language comes among the first is where it does.
        found = judge.candidates(setting).thresholds() <= setting.preference
        assert (found == (point.figures[COST] > 0)).all()


def test_each_fold_is_judged_without_its_share_in_vectors_fitted_on_the_same_text():
    """Of 100 pairs of noise, vectors fitted on them fit them: judged so, a shift looks better than it is."""
    encoder = PlantedEncoder({}, noise=2.0)
    texts = InMemory(parallel_text(["en", "de"], items=100, words=12))
    task = make_task(sample_items(texts, "en", ["de"], 600), encoder)
    english, german = (task.encoded.documents[rows].astype(np.float64) for rows in (slice(0, 100), slice(100, 200)))
    vectors = known({"de": (german - english).mean(axis=0)}, pairs=100)
    seen = Judge(task, vectors, same_text=False).at(TuningSettings(1.0)).figures["nDCG@20"].mean()
    unseen = Judge(task, vectors, same_text=True).at(TuningSettings(1.0)).figures["nDCG@20"].mean()
    assert unseen < seen
    # Where nothing is shifted there is nothing to take out.
    plain = [Judge(task, vectors, same_text=same).at(TuningSettings()).figures for same in (False, True)]
    assert all((plain[0][measure] == plain[1][measure]).all() for measure in MEASURES)


def test_query_languages_count_alike_and_neighbours_as_one():
    weighing = Weighing(np.array([1.0, 1.0, 0.5, 0.5, 0.5, 0.5]), np.array([0, 1, 0, 0, 1, 1]))
    every = np.ones(6, bool)
    before, after = np.zeros(6), np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    change = weighing.change(before, after, every)
    assert (change.before, change.after, change.difference) == (0.0, 0.5, 0.5)
    # Two blocks: signs can fall alike in two of four ways, however many queries there are.
    assert change.p == 0.5
    assert not change.gained
    assert (change.low, change.high) == (0.5, 0.5)
    many = Weighing(np.ones(400), np.arange(400) // 4)
    noise = np.random.default_rng(0).normal(0.1, 0.5, 400)
    change = many.change(np.zeros(400), noise, np.ones(400, bool))
    assert change.low < noise.mean() < change.high
    assert change.gained
    assert not many.change(noise, np.zeros(400), np.ones(400, bool)).gained
    half = np.arange(400) < 200
    assert many.mean(noise, half) == pytest.approx(noise[:200].mean())


def test_queries_are_reported_apart_by_whether_they_are_in_the_pivot_language():
    judge = judged(PlantedEncoder({}), OFFSETS, ("de", "es"))
    found = judge.task.groups
    assert {name: int(kept.sum()) for name, kept in found.items()} == {"all": 300, "pivot": 100, "others": 200}
    assert set(judge.task.languages[found["pivot"]]) == {"en"}
