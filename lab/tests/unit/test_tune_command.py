"""``langshift vectors tune``: what it writes, says and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner
from data_folder import write_dataset
from planted import PlantedEncoder, direction, known, parallel_text, write_text

from langshift.debias.vectors import LanguageVectors, Recommendation
from langshift.errors import FingerprintError, LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import load_dataset
from langshift_lab.commands.tune import tune
from langshift_lab.methods.debiaser import MethodDebiaser
from langshift_lab.offline.encoding import encode
from langshift_lab.offline.ranking import debias_vectors, rank, score_ranked
from langshift_lab.tune.tune import MEASURES

OFFSET = 2 * direction(10)


def opened_by_every_name(patch):
    """The encoder that every name opens: documents in German are biased."""
    made = PlantedEncoder({"de": OFFSET}, {})
    patch.setattr("langshift_lab.commands.tune.open_encoder", lambda *_, **__: made)
    return made


@pytest.fixture(autouse=True)
def encoder(monkeypatch):
    return opened_by_every_name(monkeypatch)


@pytest.fixture
def pairs(tmp_path):
    return write_text(tmp_path / "pairs", parallel_text(["en", "de"]))


def file_of(tmp_path, vectors):
    path = tmp_path / "mine.safetensors"
    vectors.save(path)
    return path


def mistuned(folder):
    return file_of(folder, known({"de": OFFSET}, recommendation=Recommendation(0.3, {"de": 0.2})))


@pytest.fixture
def file(tmp_path):
    return mistuned(tmp_path)


def run(*arguments):
    return CliRunner().invoke(tune, list(map(str, arguments)))


class Tuned(NamedTuple):
    """A file that was tuned and the curves drawn; to be read alone."""

    file: Path
    pairs: Path
    told: dict
    stderr: str


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    pairs, file = write_text(folder / "pairs", parallel_text(["en", "de"])), mistuned(folder)
    with pytest.MonkeyPatch.context() as patch:
        opened_by_every_name(patch)
        said = run(file, "--pairs", pairs, "--json")
    assert said.exit_code == 0, said.output
    return Tuned(file, pairs, json.loads(said.stdout), said.stderr)


def refusal(file, *arguments, kind=UsageError):
    before = file.read_bytes() if file.is_file() else None
    said = run(file, *arguments)
    assert isinstance(said.exception, kind), (said.exception, said.output)
    assert said.stdout == ""
    assert (file.read_bytes() if file.is_file() else None) == before
    return str(said.exception)


def test_the_recommendation_goes_into_the_file(tuned, file):
    before, after, told = LanguageVectors.load(file), LanguageVectors.load(tuned.file), tuned.told
    assert told["shift"] is True
    advice = after.recommendation
    assert advice.alpha > 0.5
    assert advice == Recommendation(advice.alpha)
    assert told["recommended"] == {"alpha": advice.alpha, "gamma": 0.0, "directions": 0}
    assert after.hash == before.hash
    assert after.pairs == before.pairs
    # The file keeps what the command told, with the curve in brief.
    assert {name: told[name] for name in after.tuning if name != "curve"} == {
        name: value for name, value in after.tuning.items() if name != "curve"
    }
    assert (told["file"], told["pairs"], told["items"], told["queries"]) == (str(tuned.file), "pairs", 100, 200)
    assert (told["languages"], told["documents"], told["folds"], told["blocks"]) == (["de", "en"], 200, 5, 10)
    assert (told["measure"], told["fitted_on_same_text"]) == ("nDCG@20", False)
    assert after.tuning["curve_columns"] == ["alpha", "gamma", "directions", "nDCG@20", "TLR@20", "SLR@20", "R@20"]
    rows, points = after.tuning["curve"]["shift"], told["curve"]["shift"]
    assert [row[0] for row in rows] == [tenth / 10 for tenth in range(11)]
    for row, point in zip(rows, points, strict=True):
        assert row == [*(point[name] for name in ("alpha", "gamma", "directions")), *point["all"].values()]
        gain = point["all"]["TLR@20"] - points[0]["all"]["TLR@20"]
        assert point["change"]["TLR@20"][0] <= gain + 1e-4
    (groups,) = told["held_out"].values()
    held_out = groups["all"]["TLR@20"]
    assert held_out["difference"] == pytest.approx(held_out["after"] - held_out["before"], abs=1e-5)
    assert held_out["low"] <= held_out["difference"] <= held_out["high"]
    assert [(step["name"], step["taken"]) for step in told["steps"]] == [("shift", True)]


def test_a_gamma_that_gains_is_written_with_its_directions(tmp_path, pairs, encoder):
    cone = 4 * direction(30)
    encoder.offsets = ({"en": cone, "de": cone + OFFSET}, {"en": cone, "de": cone + OFFSET})
    mean = cone.astype(np.float32)
    path = file_of(tmp_path, known({"de": OFFSET}, common={"documents": mean, "queries": mean}).with_rank(2))
    said = run(path, "--pairs", pairs)
    assert said.exit_code == 0, said.output
    after = LanguageVectors.load(path)
    count = after.tuning["recommended"]["directions"]
    assert after.recommendation == Recommendation(after.tuning["recommended"]["alpha"], gamma=0.97)
    assert after.query_directions.shape == (count, 48)
    words = f"{after.recommendation.words} along {count} direction{'s' * (count > 1)}"
    assert said.stdout.splitlines()[-2] == f"Recommended: {words}."
    assert f"Gamma 0.97 with alpha {after.recommendation.alpha:g} by directions" in said.stdout


def test_the_same_again_gives_the_same(tuned, tmp_path):
    again = LanguageVectors.load(tuned.file)
    told = json.loads(run(file_of(tmp_path, again), "--pairs", tuned.pairs, "--json").stdout)
    assert told == {**tuned.told, "file": told["file"]}


def test_what_a_person_reads(tuned, file):
    said = run(file, "--pairs", tuned.pairs)
    assert said.exit_code == 0, said.output
    lines = said.stdout.splitlines()
    assert lines[:2] == [
        "pairs: 100 items in de and en. 200 queries, each about 42% of an item, cut from its middle, search 200 "
        "documents, the whole items; an item is relevant in every language.",
        "The vectors are judged as they are. Every query language counts equally; the pivot is en.",
    ]
    assert lines[-2] == f"Recommended: {LanguageVectors.load(file).recommendation.words}."
    held_out = tuned.told["held_out"]["shift"]["all"]["TLR@20"]
    figures = f"{held_out['before']:.3f} to {held_out['after']:.3f}".replace("0.", ".")
    assert lines[-1] == tuned.told["verdict"]["sentence"]
    assert lines[-1].startswith("Shift it: over 200 questions, nDCG@20 rises from .")
    assert f"answers in other languages are found more often (TLR@20 {figures})" in lines[-1]
    assert max(map(len, lines[2:-3])) <= 80
    assert said.stderr.splitlines()[-1] == f"Wrote the recommendation to {file}."


def test_where_nothing_is_gained_it_says_so(file, pairs, encoder):
    encoder.offsets = ({}, {})
    said = run(file, "--pairs", pairs)
    assert said.exit_code == 0, said.output
    *_, recommended, verdict = said.stdout.splitlines()
    assert recommended == "Recommended: alpha 0."
    assert verdict == (
        "Too few questions to tell: over 200 questions, nDCG@20 stays at .854, and it takes about 300 to see a change "
        "of .01, so raise --sample, or give more parallel text."
    )
    after = LanguageVectors.load(file)
    assert after.recommendation == Recommendation(0.0)
    assert after.tuning["shift"] is False


def test_vectors_of_the_same_text_are_known_by_their_pairs(tmp_path, pairs):
    path = file_of(tmp_path, known({"de": OFFSET}, pairs=100))
    said = run(path, "--pairs", pairs)
    assert said.stdout.splitlines()[1].startswith(
        "The vectors were fitted on this same text, so each fifth of it is judged with vectors that leave it out. "
    )
    assert LanguageVectors.load(path).tuning["fitted_on_same_text"] is True
    # Passages of two lines are fifty pairs, and too few.
    assert refusal(path, "--pairs", pairs, "--join-lines", 2) == (
        f"{pairs}: only 50 items have text in en and another language of the vectors, and at least 100 "
        "are needed: give more parallel text, or join fewer lines."
    )


def test_rows_are_joined_within_documents(tmp_path, file):
    folder = write_text(tmp_path / "long", parallel_text(["en", "de"], items=205))
    ids = tmp_path / "ids"
    ids.write_text("".join(f"{'first' if row < 5 else 'second'}\n" for row in range(205)))
    told = json.loads(run(file, "--pairs", folder, "--join-lines", 2, "--documents", ids, "--json").stdout)
    assert told["items"] == 3 + 100


def test_languages_without_text_are_named(tmp_path, pairs):
    path = file_of(tmp_path, known({"de": OFFSET, "es": OFFSET, "th": OFFSET}))
    (pairs / "es.txt").write_text("es1 es2 es3 es4\n" * 20 + "\n" * 80)
    said = run(path, "--pairs", pairs, "--json")
    assert said.stderr.splitlines()[:3] == [
        "Warning: Not measured: th, in which pairs has no text.",
        "Warning: Not measured: es, in which too few items have text to cut a query from; a higher --sample may help.",
        "Warning: No gamma was tried: the language vectors contain no means of queries; fit them anew with `langshift "
        "vectors fit`.",
    ]
    told = json.loads(said.stdout)
    assert (told["absent"], told["too_few_items"], told["languages"]) == (["th"], ["es"], ["de", "en"])


def test_an_easy_task_says_that_it_shows_little(file, pairs, encoder):
    encoder.offsets = ({"de": 4 * OFFSET}, {})
    assert "can hardly show" not in run(file, "--pairs", pairs).stderr
    # Everybody says everything alike, and nothing is biased: all is found.
    encoder.offsets, encoder.noise = ({}, {}), 0.0
    assert (
        "Warning: SLR@20 is 1.0000 with nothing shifted, so this task can hardly show what a shift costs: a higher "
        "--sample makes the task harder.\n"
    ) in run(file, "--pairs", pairs).stderr


def test_what_cannot_be_tuned_is_refused(tmp_path, file, pairs, encoder):
    nowhere = tmp_path / "nowhere"
    assert refusal(nowhere, "--pairs", pairs) == (
        f"The language-vector file {nowhere} does not exist; create one with `langshift vectors fit`."
    )
    assert refusal(file, "--pairs", nowhere) == f"The parallel text {nowhere} does not exist."
    french = write_text(tmp_path / "french", parallel_text(["en", "fr"]))
    assert refusal(file, "--pairs", french) == (
        f"{french} must contain the pivot en and another language of the vectors (de); it has en, fr."
    )
    without = write_text(tmp_path / "without", parallel_text(["de", "fr"]))
    assert refusal(file, "--pairs", without) == (
        f"{without} must contain the pivot en and another language of the vectors (de); it has de, fr."
    )
    encoder.revision = "2"
    assert refusal(file, "--pairs", pairs, kind=FingerprintError) == (
        f"{file}: these language vectors were fitted with revision 1, not 2: fit vectors for this encoder with "
        "`langshift vectors fit`."
    )
    encoder.revision = "1"
    encoder.offsets = ({"de": np.full(48, np.nan)}, {})
    said = refusal(file, "--pairs", pairs, kind=LangshiftError)
    assert said.startswith("The encoder planted gives no usable vector for an item in de: 'de")


def test_vectors_cannot_be_cut(tmp_path, file, pairs):
    folder = tmp_path / "given"
    folder.mkdir()
    for tag in ("en", "de"):
        np.save(folder / f"{tag}.npy", np.ones((100, 48), np.float32))
    assert refusal(file, "--pairs", folder) == (
        f"{folder} contains vectors, and no query can be cut out of a vector: give texts."
    )
    given = LanguageVectors(**{**vars(known({"de": OFFSET})), "encoder": "given"})
    path = file_of(tmp_path, given)
    assert refusal(path, "--pairs", pairs) == (
        f"{path} was fitted on given vectors, and no query can be cut out of a vector: tune language vectors that "
        "were fitted with an encoder for texts, and give texts; or give judged data with --dataset."
    )


def judged(folder, languages=("en", "de"), articles=10, answers=("en", "de")):
    """Queries cut out of translated passages, six of each article."""
    texts = parallel_text(["en", "de"], items=120)
    rows = range(120)
    documents = {f"{row}-{tag}": (tag, f"{row}", texts[tag][row]) for row in rows for tag in ("en", "de")}
    queries = {
        f"q{row}-{tag}": (tag, f"{row % articles}", None, " ".join(texts[tag][row].split()[3:9]))
        for row in rows
        for tag in languages
    }
    qrels = {f"q{row}-{tag}": {f"{row}-{of}": 1 for of in answers} for row in rows for tag in languages}
    return write_dataset(folder, documents, queries, qrels)


def test_judged_data_are_tuned_on_article_by_article(tmp_path, file):
    said = run(file, "--dataset", judged(tmp_path / "asked"), "--json")
    assert said.exit_code == 0, said.output
    told, after = json.loads(said.stdout), LanguageVectors.load(file)
    assert (told["dataset"], told["queries"], told["documents"], told["blocks"]) == ("asked", 240, 240, 10)
    assert not {"pairs", "items", "question_share", "fitted_on_same_text"} & told.keys()
    assert after.recommendation.alpha == told["recommended"]["alpha"] > 0.5
    assert after.tuning["dataset"] == "asked"
    groups = told["held_out"]["shift"]
    assert groups.keys() == {"all", "pivot", "others"}
    assert groups["pivot"]["TLR@20"]["difference"] > 0
    # The best of the curve by what every other evaluation measures.
    best = max(told["curve"]["shift"], key=lambda point: point["all"]["nDCG@20"])["alpha"]
    data = load_dataset(tmp_path / "asked")
    encoded = encode(data, PlantedEncoder({"de": OFFSET}, {}))
    found = {}
    for alpha in (0.0, best):
        ranked = rank(encoded, debias_vectors(encoded, MethodDebiaser(after, alpha=alpha)), depth=20)
        found[alpha] = score_ranked(MEASURES, encoded, ranked)
    for alpha, scores in found.items():
        point = told["curve"]["shift"][round(alpha * 10)]["all"]
        assert {name: round(scores[name].mean, 4) for name in MEASURES} == pytest.approx(point, abs=1e-4)


def test_measures_that_count_no_query_are_left_out(tmp_path, file):
    folder = judged(tmp_path / "asked", languages=("en",), answers=("de",))
    told = json.loads(run(file, "--dataset", folder, "--json").stdout)
    assert told["held_out"]["shift"].keys() == {"all", "pivot"}
    assert told["held_out"]["shift"]["all"].keys() == {"nDCG@20", "TLR@20", "R@20"}
    assert told["curve"]["shift"][0]["all"]["SLR@20"] is None
    said = run(file, "--dataset", folder)
    assert said.stdout.splitlines()[0] == "asked: 120 queries in en search 240 documents."
    assert "nDCG@20 on each fifth of the articles or groups, with the setting chosen on the other four" in said.stdout


def test_judged_data_that_cannot_be_tuned_on(tmp_path, file, pairs):
    neither = "Give either parallel text with --pairs or judged data with --dataset."
    assert refusal(file) == neither
    folder = judged(tmp_path / "asked", articles=4)
    assert refusal(file, "--pairs", pairs, "--dataset", folder) == neither
    assert refusal(file, "--dataset", folder, "--sample", 100) == (
        "--dataset does not go with --sample: leave one or the other out."
    )
    assert refusal(file, "--dataset", folder) == (
        f"The queries of {folder} that have relevant documents belong to 4 groups, and at least 5 are needed, to "
        "choose on some and judge on others: give a larger dataset."
    )


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--sample", "99", "Invalid value for '--sample': 99 is not in the range x>=100."),
        ("--join-lines", "0", "Invalid value for '--join-lines': 0 is not in the range 1<=x<=1000."),
    ],
)
def test_options_out_of_range_are_refused(file, pairs, option, value, complaint):
    said = run(file, "--pairs", pairs, option, value)
    assert said.exit_code == 2
    assert said.stderr.splitlines()[-1] == f"Error: {complaint}"
