"""What tuning recommends where the right answer is known, and the figures that it rests on."""

import numpy as np
import pytest
from planted import InMemory, PlantedEncoder, direction, known, parallel_text

from langshift_lab.methods.debiaser import MethodDebiaser
from langshift_lab.offline.ranking import debias_vectors, rank, score_ranked
from langshift_lab.tune.task import make_task, sample_items
from langshift_lab.tune.tune import ALPHAS, GAMMA, MEASURES, TARGET, Judge, TuningSettings, Weighing, tune

OFFSETS = {tag: 2 * direction(seed) for tag, seed in (("de", 10), ("es", 11), ("ru", 12))}
CONE = 4 * direction(30)


def judged(encoder, vectors, languages=("de", "es", "ru"), seed=0, **more):
    items = sample_items(InMemory(parallel_text(["en", *languages], seed=seed)), "en", list(languages), 600)
    fitted = known({tag: vectors[tag] for tag in languages}, **more)
    return Judge(make_task(items, encoder), fitted)


def test_a_planted_bias_is_taken_out_as_far_as_chance_can_tell():
    found = tune(judged(PlantedEncoder(OFFSETS, {}), OFFSETS, ("de", "es")))
    # Without a mean of queries there is no gamma to try.
    (shift,) = found.steps
    assert [point.setting for point in shift.points] == [TuningSettings(alpha) for alpha in ALPHAS]
    means = [found.weighing.mean(point.figures[TARGET], everything(found)) for point in shift.points]
    assert shift.points[int(np.argmax(means))].setting.alpha >= 0.9
    assert 0.5 < shift.setting.alpha < 1
    assert (shift.taken, found.recommended) == (True, shift.setting)
    assert shift.change.low > 0.05


@pytest.mark.parametrize("seed", range(2))
def test_where_nothing_is_biased_nothing_is_shifted(seed):
    noise = {tag: 0.2 * direction(20 + 10 * seed + number) for number, tag in enumerate(("de", "es"))}
    mean = {side: 0.2 * direction(40).astype(np.float32) for side in ("documents", "queries")}
    found = tune(judged(PlantedEncoder({}), noise, ("de", "es"), seed, common=mean))
    assert [step.name for step in found.steps] == ["shift", "gamma"]
    assert not any(step.taken for step in found.steps)
    assert found.recommended == TuningSettings()


# Queries carry what tells languages apart as documents do, and all texts lie in a narrow cone.
BIASED = {tag: CONE + (0.0 if tag == "en" else OFFSETS[tag]) for tag in ("en", "de", "es")}
COMMON = {side: CONE.astype(np.float32) for side in ("documents", "queries")}


@pytest.fixture(scope="module")
def cone():
    return judged(PlantedEncoder(BIASED), OFFSETS, ("de", "es"), common=COMMON)


def test_what_queries_have_in_common_is_taken_out_of_documents_along_as_few_directions_as_are_as_good(cone):
    found = tune(cone)
    shift, gamma = found.steps
    # Two languages and the pivot have three directions.
    assert [point.setting for point in gamma.points] == [TuningSettings(1.0, GAMMA, count) for count in (1, 2)]
    assert (cone.most_directions, gamma.taken, found.recommended) == (3, True, gamma.setting)
    assert gamma.change.before == pytest.approx(found.weighing.mean(shift.held_out[TARGET], everything(found)))
    means = [found.weighing.mean(point.figures[TARGET], everything(found)) for point in gamma.points]
    best = gamma.points[int(np.argmax(means))]
    for point in gamma.points[: gamma.points.index(best)]:
        lacking = found.weighing.interval(best.figures[TARGET] - point.figures[TARGET], everything(found))
        assert (lacking[0] > 0) is (point.setting.directions < gamma.setting.directions)


def test_a_gain_that_is_not_worth_seeing_is_no_reason_for_a_gamma(cone, monkeypatch):
    monkeypatch.setattr("langshift_lab.tune.tune.VISIBLE", 0.9)
    found = tune(cone)
    shift, gamma = found.steps
    assert gamma.change.gained
    assert not gamma.taken
    assert found.recommended == shift.setting


def test_languages_whose_texts_are_the_same_leave_one_direction():
    """Whatever is fitted on identical texts, tuning tries no more directions than there are."""
    judge = judged(PlantedEncoder({}), {"de": np.zeros_like(CONE)}, ("de",), common=COMMON)
    assert judge.most_directions == 1
    assert [point.setting.directions for point in tune(judge).steps[1].points] == [1]


def everything(found):
    return np.ones(len(found.plain.figures[TARGET]), bool)


def test_figures_are_those_of_every_other_search():
    judge = judged(PlantedEncoder(OFFSETS), OFFSETS, common=COMMON)
    encoded = judge.task.encoded
    for setting in (TuningSettings(), TuningSettings(0.6), TuningSettings(0.6, 0.95, 2), TuningSettings(0.0, 0.97, 4)):
        known = judge.vectors.with_rank(setting.directions or None)
        debias = MethodDebiaser(known, alpha=setting.alpha, gamma=setting.gamma)
        ranked = rank(encoded, debias_vectors(encoded, debias), depth=20)
        expected = score_ranked(MEASURES, encoded, ranked)
        for measure, figures in judge.at(setting).figures.items():
            of = expected[measure].per_query
            assert np.abs(figures - [of[query.id] for query in encoded.dataset.queries]).max() < 1e-12


def test_each_fold_is_judged_without_its_share_in_vectors_fitted_on_the_same_text():
    """Of 100 pairs of noise, vectors fitted on them fit them: judged so, a shift looks better than it is."""
    encoder = PlantedEncoder({}, noise=2.0)
    texts = InMemory(parallel_text(["en", "de"], items=100, words=12))
    items = sample_items(texts, "en", ["de"], 600)
    task = make_task(items, encoder)
    english, german = (task.encoded.documents[rows].astype(np.float64) for rows in (slice(0, 100), slice(100, 200)))
    vectors = known({"de": (german - english).mean(axis=0)}, pairs=100)
    judges = [Judge(make_task(items, encoder, same_text=same), vectors) for same in (False, True)]
    seen, unseen = (judge.at(TuningSettings(1.0)).figures["nDCG@20"].mean() for judge in judges)
    assert unseen < seen
    # Where nothing is shifted there is nothing to take out.
    plain = [judge.at(TuningSettings()).figures for judge in judges]
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
