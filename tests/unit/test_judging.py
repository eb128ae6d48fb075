"""Judging two runs: what is left out, sides and order, what a judgement says of documents, and how many are needed."""

import math
import stat

import numpy as np
import pytest
from judged_runs import DIFFERING, SAME, write_logged, write_runs
from scipy import stats

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Clusters, DatasetQuery, load_dataset
from langshift.evaluate.datasets.texts import read_texts
from langshift.evaluate.judging.judgements import JUDGEMENTS, add, begin, grades, locked, read_judgements, reveal
from langshift.evaluate.judging.needed import Tally, needed, preference_test
from langshift.evaluate.judging.pairing import PairedQuery, left_side, pair_runs


@pytest.fixture
def results(tmp_path):
    write_runs(tmp_path / "results", tmp_path / "dataset")
    return tmp_path / "results"


def pair(results, names=("a", "b")):
    return pair_runs(names, tuple(results / name for name in names))


@pytest.fixture
def pairing(results):
    return pair(results)


@pytest.fixture
def folder(results, pairing):
    """Of judgements that have begun."""
    place = results / "judgements" / pairing.key
    with locked(place):
        begin(place, pairing, seed=1)
    return place


def test_queries_for_which_both_show_the_same_are_left_out_and_counted(pairing):
    assert list(pairing.queries) == [f"q{n}" for n in range(DIFFERING)]
    assert pairing.same == SAME
    assert pairing.queries["q3"].hits == (["d3-x", "d3-0"], ["d3-y", "d3-0"])


def test_runs_that_show_the_same_are_refused(results):
    (results / "b" / "run.trec").write_bytes((results / "a" / "run.trec").read_bytes())
    with pytest.raises(UsageError) as error:
        pair(results)
    assert str(error.value) == "a and b show the same first 10 documents for every query: choose other runs."


def test_replays_of_a_log_are_judged_into_a_dataset(results, tmp_path):
    write_logged(results)
    pairing, folder = pair(results), tmp_path / "judged"
    assert (len(pairing.queries), pairing.same, pairing.clusters.by) == (DIFFERING, SAME, "query")
    begin(folder, pairing, seed=1)
    add(folder, pairing, "q3", "both")
    dataset = load_dataset(folder)
    assert dataset.qrels == {"q3": {"d3-x": 1, "d3-0": 1, "d3-y": 1}}
    assert (dataset.queries[0].text, dataset.documents["d3-x"].language) == ("Question 3", "de")
    texts = read_texts(dataset)
    assert texts["d3-x"].text.startswith("Beginning 3 ")
    assert (texts["d3-0"].title, texts["d3-0"].text) == ("d3-0", "")


def test_replays_without_words_are_refused(results):
    write_logged(results, words=False)
    with pytest.raises(UsageError) as error:
        pair(results)
    assert str(error.value) == (
        "a does not have the words of its queries, which were not to be written: replay the log without --redact of "
        "these to judge it."
    )


def test_a_run_that_is_made_anew_is_judged_anew(results, pairing):
    assert pair(results).key == pairing.key
    run = results / "b" / "run.trec"
    run.write_text(run.read_text().replace(" 2.0 ", " 3.0 "))
    assert pair(results).key != pairing.key


def test_order_and_sides_follow_from_the_seed_alone(pairing):
    orders = {tuple(pairing.shuffled(seed)) for seed in range(20)}
    assert len(orders) == 20
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(pairing.queries))}
    assert pairing.shuffled(7) == pairing.shuffled(7)
    fewer = pairing._replace(queries={name: pairing.queries[name] for name in ("q1", "q4", "q6")})
    assert fewer.shuffled(7) == [name for name in pairing.shuffled(7) if name in fewer.queries]
    sides = [left_side(f"q{n}", seed) for n in range(100) for seed in range(100)]
    assert 4_850 < sum(sides) < 5_150
    assert [left_side("q1", seed) for seed in range(30)] != [left_side("q2", seed) for seed in range(30)]


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        ("first", {"x": 1, "y": 0}),
        ("second", {"x": 0, "y": 1}),
        ("both", {"x": 1, "s": 1, "t": 1, "y": 1}),
        ("neither", {"x": 0, "s": 0, "t": 0, "y": 0}),
    ],
)
def test_the_rule_by_which_a_judgement_of_lists_grades_documents(preferred, expected):
    query = DatasetQuery("q", "?", None, None)
    assert grades(PairedQuery(query, (["s", "x", "t"], ["t", "y", "s"])), preferred) == expected


def test_a_preference_of_an_order_grades_nothing():
    assert grades(PairedQuery(DatasetQuery("q", "?", None, None), (["s", "t"], ["t", "s"])), "first") == {}


def test_judgements_are_a_dataset_at_any_time(folder, pairing):
    for query, preferred in (("q2", "second"), ("q0", "both"), ("q5", "neither"), ("q1", "first")):
        add(folder, pairing, query, preferred)
        dataset = load_dataset(folder)
    assert [query.id for query in dataset.queries] == ["q2", "q0", "q5", "q1"]
    assert {query.language for query in dataset.queries} == {"en"}
    assert dataset.documents["d2-x"].language == "de"
    assert dataset.qrels == {
        "q2": {"d2-y": 1, "d2-x": 0},
        "q0": {"d0-x": 1, "d0-0": 1, "d0-y": 1},
        "q5": {"d5-x": 0, "d5-0": 0, "d5-y": 0},
        "q1": {"d1-x": 1, "d1-y": 0},
    }
    add(folder, pairing, "q1", None)
    assert "q1" not in load_dataset(folder).qrels
    add(folder, pairing, "q1", "second")
    assert load_dataset(folder).qrels["q1"] == {"d1-y": 1, "d1-x": 0}


def test_they_are_for_their_owner_alone(folder, pairing):
    add(folder, pairing, "q2", "second")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, *folder.rglob("*"))}
    assert modes == {
        **dict.fromkeys(("judgements", folder.name, "qrels"), 0o700),
        **dict.fromkeys((".lock", JUDGEMENTS, "corpus.jsonl", "queries.jsonl", "test.tsv"), 0o600),
    }


def test_what_was_judged_is_read_again(folder, pairing):
    begin(folder, pairing, seed=2)
    for query, preferred in (("q2", "second"), ("q0", "both"), ("q0", None), ("q3", "first"), ("q0", "neither")):
        add(folder, pairing, query, preferred)
    judged = read_judgements(folder, pairing)
    assert (judged.seed, judged.revealed) == (1, False)
    assert list(judged.preferences.items()) == [("q2", "second"), ("q3", "first"), ("q0", "neither")]
    reveal(folder)
    assert read_judgements(folder, pairing).revealed


def test_a_line_that_was_cut_off_does_not_count_and_harms_nothing(folder, pairing):
    add(folder, pairing, "q2", "second")
    whole = (folder / JUDGEMENTS).read_bytes()
    (folder / JUDGEMENTS).write_bytes(whole + b'{"query":"q3","prefer')
    assert dict(read_judgements(folder, pairing).preferences) == {"q2": "second"}
    add(folder, pairing, "q4", "first")
    assert dict(read_judgements(folder, pairing).preferences) == {"q2": "second", "q4": "first"}
    assert (folder / JUDGEMENTS).read_bytes().startswith(whole + b'{"query":"q4"')


@pytest.mark.parametrize(
    "line", [b"{}{}", b'{"query": 1}', b'{"query": "q1", "preferred": "third"}', b'{"query": "q9"}', b"\xff"]
)
def test_a_damaged_line_is_named(folder, pairing, line):
    with (folder / JUDGEMENTS).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(UsageError) as error:
        read_judgements(folder, pairing)
    assert str(error.value) == f"{folder / JUDGEMENTS}, line 2, is not a judgement: remove the line."


def test_a_planted_link_is_not_written_through(folder, pairing, tmp_path):
    other = tmp_path / "other"
    (folder / JUDGEMENTS).rename(other)
    (folder / JUDGEMENTS).symlink_to(other)
    before = other.read_bytes()
    with pytest.raises(OSError, match="symbolic links"):
        add(folder, pairing, "q2", "second")
    assert other.read_bytes() == before


def test_the_needed_number_by_hand():
    # p = .7: n = (1.96 * .5 + .8416 * .4583)^2 / .04 = 46.63, with the correction 51.504; half decided: 103.01.
    assert (needed(0.7), needed(0.3), needed(0.7, 0.5)) == (52, 52, 104)
    assert needed(0.5) is None
    # Six of six is the least that is significant: 2 / 2^6 = .031.
    assert needed(1.0) == 6


def power(p_values, judged):
    return float((p_values[:, judged - 1] < 0.05).mean())


@pytest.mark.parametrize(("rate", "decided"), [(0.6, 0.8), (0.65, 0.4), (0.7, 0.7), (0.8, 1.0), (0.9, 0.5)])
def test_the_needed_number_is_what_planted_differences_need(rate, decided):
    named = needed(rate, decided)
    random = np.random.default_rng(50)
    drawn = random.random((2_000, 2 * named))
    wins = np.cumsum(drawn < decided * rate, axis=1)
    losses = np.cumsum((drawn >= decided * rate) & (drawn < decided), axis=1)
    # The sign test of each prefix: as if judging had stopped there.
    p_values = np.minimum(1, 2 * stats.binom.cdf(np.minimum(wins, losses), wins + losses, 0.5))
    enough = next(judged for judged in range(1, 2 * named) if power(p_values, judged) >= 0.8)
    assert abs(named - enough) <= enough / 4
    assert power(p_values, math.ceil(enough * 0.75)) < 0.8


def test_without_clusters_the_test_is_the_sign_test():
    given = [*["second"] * 11, *["first"] * 3, *["both"] * 2, "neither"]
    preferences = {f"q{n}": one for n, one in enumerate(given)}
    found = preference_test(preferences, Clusters({name: name for name in preferences}, "query"))
    assert found.difference == pytest.approx(8 / 17)
    assert found.randomisation == pytest.approx(stats.binomtest(11, 14).pvalue, abs=0.003)
    assert found.interval[0] > 0
    together = preference_test(preferences, Clusters(dict.fromkeys(preferences, "one"), "group"))
    assert (together.clusters, together.randomisation) == (1, 1.0)
    assert preference_test({}, Clusters({}, "query")) is None


def test_a_tally_of_judgements():
    tally = Tally.of(["second", "first", "both", "second", "neither", "second"])
    assert tally == (1, 3, 1, 1)
    assert (tally.judged, tally.decided, tally.rate, tally.decided_share) == (6, 4, 0.75, 5 / 8)
    assert (Tally.of([]).rate, Tally.of([]).decided_share) == (None, 0.5)
