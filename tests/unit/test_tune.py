"""What tuning recommends where the right answer is known, and the figures that it rests on."""

import numpy as np
import pytest
from planted import InMemory, PlantedEncoder, direction, known, parallel_text

from langshift.debias.debiaser import Debiaser
from langshift.evaluate.tune.task import make_task, sample_items
from langshift.evaluate.tune.tune import ALPHAS, COST, MEASURES, TARGET, Judge, ShiftSettings, Weighing, tune

OFFSETS = {tag: 2 * direction(seed) for tag, seed in (("de", 10), ("es", 11), ("ru", 12))}


def judged(encoder, vectors, languages=("de", "es", "ru"), seed=0):
    items = sample_items(InMemory(parallel_text(["en", *languages], seed=seed)), "en", list(languages), 600)
    return Judge(make_task(items, encoder), known({tag: vectors[tag] for tag in languages}), same_text=False)


def test_a_planted_bias_is_taken_out_whole():
    found = tune(judged(PlantedEncoder(OFFSETS, {}), OFFSETS, ("de", "es")), 0.01)
    assert found.setting == ShiftSettings(alpha=1.0)
    documents, queries, languages = found.steps
    assert (documents.taken, queries.taken, languages.taken) == (True, False, False)
    assert documents.change.low > 0.1
    # Shifting queries that need no shift is harmful, and the step says so.
    assert queries.change.difference < -0.1
    assert found.last is documents


@pytest.mark.parametrize("seed", range(2))
def test_where_nothing_is_biased_nothing_is_shifted(seed):
    noise = {tag: 0.2 * direction(20 + 10 * seed + number) for number, tag in enumerate(("de", "es"))}
    found = tune(judged(PlantedEncoder({}), noise, ("de", "es"), seed), 0.01)
    assert found.setting == ShiftSettings()
    assert found.last is None
    assert not any(step.taken for step in found.steps)


def test_a_wrong_vector_gets_an_alpha_of_its_own_and_the_others_theirs():
    straight = {tag: offset for tag, offset in OFFSETS.items() if tag != "ru"}
    found = tune(judged(PlantedEncoder(straight, {}), OFFSETS), 0.01)
    documents, _, languages = found.steps
    # One for all is a compromise; without Russian the others are shifted whole.
    assert 0 < documents.setting.alpha < 1
    assert found.setting == languages.setting == ShiftSettings(alpha=1.0, own=(("ru", 0.0),))
    assert languages.change.low > 0


@pytest.fixture(scope="module")
def biased_on_both_sides():
    offsets = {tag: 1.5 * offset for tag, offset in OFFSETS.items() if tag != "ru"}
    return judged(PlantedEncoder(offsets), offsets, ("de", "es"))


def test_queries_with_the_bias_of_documents_are_shifted_too(biased_on_both_sides):
    found = tune(biased_on_both_sides, 0.01)
    assert found.setting.shift_queries
    assert found.setting.alpha >= 0.9
    documents, queries = found.steps[:2]
    assert queries.taken
    assert queries.change.before == pytest.approx(found.weighing.mean(documents.held_out[TARGET], everything(found)))


def everything(found):
    return np.ones(len(found.plain.figures[TARGET]), bool)


def test_no_alpha_costs_more_than_the_budget(biased_on_both_sides):
    losses = {}
    for budget in (0.0, 0.05, 1.0):
        found = tune(biased_on_both_sides, budget)
        documents = found.steps[0].setting.alpha
        every = everything(found)
        least = found.weighing.mean(found.plain.figures[COST], every) - budget - 1e-9
        within = [p for p in found.curves["documents"] if found.weighing.mean(p.figures[COST], every) >= least]
        best = max(within, key=lambda point: found.weighing.mean(point.figures[TARGET], every))
        assert documents == best.setting.alpha
        losses[budget] = documents
    assert losses[0.0] < losses[0.05] < losses[1.0] == 1.0


def test_figures_are_those_of_an_exhaustive_search():
    judge = judged(PlantedEncoder(OFFSETS), OFFSETS)
    for setting in (ShiftSettings(), ShiftSettings(0.6), ShiftSettings(0.6, (("ru", 0.1),), shift_queries=True)):
        point = judge.at(setting)
        expected = exhaustive(judge.task, judge.vectors, setting)
        for measure, figures in expected.items():
            assert np.abs(point.figures[measure] - figures).max() < 1e-12
        assert judge.at(setting) is point
    assert [point.setting.alpha for point in judge.curve(ALPHAS)] == [tenth / 10 for tenth in range(11)]


def exhaustive(task, vectors, setting):
    """TLR@20 and SLR@20 of each query by NumPy alone."""
    debias = Debiaser(vectors, "shift", setting.alpha, dict(setting.own), setting.shift_queries)
    tags = np.array([name.partition(" ")[2] for name in task.encoded.ids])
    documents = debias.documents(task.encoded.documents, tags.tolist()).astype(np.float64)
    queries = debias.queries(task.encoded.queries, task.languages.tolist()).astype(np.float64)
    scores = queries @ (documents / np.linalg.norm(documents, axis=1, keepdims=True)).T
    best = np.argsort(-scores, axis=1)[:, :20]
    right = task.document_items[best] == task.items[:, np.newaxis]
    own = tags[best] == task.languages[:, np.newaxis]
    return {TARGET: (right & ~own).sum(axis=1) / 3, COST: (right & own).sum(axis=1).astype(float)}


def test_each_fold_is_judged_without_its_share_in_vectors_fitted_on_the_same_text():
    """Of 100 pairs of noise, vectors fitted on them fit them: judged so, a shift looks better than it is."""
    encoder = PlantedEncoder({}, noise=2.0)
    texts = InMemory(parallel_text(["en", "de"], items=100, words=12))
    task = make_task(sample_items(texts, "en", ["de"], 600), encoder)
    english, german = (task.encoded.documents[rows].astype(np.float64) for rows in (slice(0, 100), slice(100, 200)))
    vectors = known({"de": (german - english).mean(axis=0)}, pairs=100)
    seen = Judge(task, vectors, same_text=False).at(ShiftSettings(1.0)).figures["nDCG@20"].mean()
    unseen = Judge(task, vectors, same_text=True).at(ShiftSettings(1.0)).figures["nDCG@20"].mean()
    assert unseen < seen
    # Where nothing is shifted there is nothing to take out.
    plain = [Judge(task, vectors, same_text=same).at(ShiftSettings()).figures for same in (False, True)]
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
