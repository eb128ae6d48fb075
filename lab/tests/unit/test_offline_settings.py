"""Rows that options ask for, the languages that sources tell, and what tables say of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from data_folder import write_dataset
from encoded_data import vectors
from toy_encoder import ToyEncoder

from langshift.debias.detector import open_detector
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.ingest.config import EmbeddingPipeline
from langshift_lab.commands import offline
from langshift_lab.methods.debiaser import MethodDebiaser
from langshift_lab.offline.encoding import GIVEN, LanguageSource, encode, resolve_document_languages
from langshift_lab.offline.ranking import Grid, OfflineSettings, settings

KNOWN = vectors(
    {"de": np.ones(8), "es": np.arange(8)},
    means={tag: np.ones(8) for tag in ("en", "de", "es")},
    directions={tag: np.eye(8)[:1] for tag in ("en", "de", "es")},
    maps={tag: np.eye(8) for tag in ("de", "es")},
)
TUNED = replace(
    vectors({"de": np.ones(8)}, common=dict.fromkeys(("documents", "queries"), np.arange(8)), alpha=0.5, gamma=0.97),
    query_directions=np.eye(8, dtype=np.float32)[:2],
)
BY_DETECTION = [GIVEN, LanguageSource("detected", 20)]


def asked(known=KNOWN, **grid):
    return list(settings(known, Grid(**grid)).values())


def names(known=KNOWN, **grid):
    return list(settings(known, Grid(**grid)))


def test_single_languages_are_scaled_while_the_others_stay():
    of = {"de": (0.0, 1.0), "es": (0.25,)}
    every = {"methods": ("none", "shift", "lir"), "alphas": (0.5,), "alphas_of": of}
    assert names(**every) == ["none", "shift-de-0", "shift-de-1", "shift-es-0.25", "lir"]
    rows = asked(**every)[1:4]
    assert {row.debias.alpha for row in rows} == {0.5}
    assert [row.debias.alphas for row in rows] == [{"de": 0.0}, {"de": 1.0}, {"es": 0.25}]
    assert [row.alpha for row in rows] == ["0.5 (de 0)", "0.5 (de 1)", "0.5 (es 0.25)"]
    # A conservative default moves nothing but the language that is swept, and nothing at all where that is 0.
    assert names(alphas=(0.0, 1.0), alphas_of={"de": (0.0, 1.0)}) == [
        "none", "shift-alpha-0-de-1", "shift-alpha-1-de-0", "shift-alpha-1-de-1",
    ]  # fmt: skip
    with pytest.raises(
        UsageError, match=r"^There is no language vector for fr to scale: --alpha-for accepts de, es\.$"
    ):
        names(alphas_of={"fr": (1.0,)})


def test_rows_that_come_to_the_same_are_one():
    every = ("none", "shift", "centering", "lir", "affine")
    assert names(methods=every) == list(every)
    # Nothing is done by none, nor by a shift of nothing, whatever else is asked for.
    both = ("never", "always")
    assert names(methods=("none", "shift"), shift_queries=both, sources=BY_DETECTION) == [
        "none",
        "shift",
        "shift-both-sides",
        "shift-detected-20",
        "shift-both-sides-detected-20",
    ]
    assert names(methods=("none", "shift"), alphas=(0.0,), shift_queries=both, sources=BY_DETECTION) == ["none"]
    # Centering and LIR change queries without being asked.
    assert names(methods=("centering", "affine"), shift_queries=both) == ["centering", "affine", "affine-both-sides"]
    assert [setting.changes for setting in asked(methods=every)] == [
        "nothing",
        "documents",
        "both sides",
        "both sides",
        "documents",
    ]


def test_what_the_language_vectors_recommend():
    measured = vectors({"de": [1, 0]}, maps={"de": np.eye(2)}, means={"de": [0, 1]}, alpha=0.5, alphas={"de": 0.25})
    (shift, affine) = asked(measured, methods=("shift", "affine"))
    assert (shift.alpha, shift.debias.alphas, shift.changes) == ("0.5 (de 0.25)", {"de": 0.25}, "documents")
    assert (affine.alpha, affine.debias.alphas) == ("1", {})
    # A scale that is given holds for all languages; centering has none.
    (shift, centering) = asked(measured, methods=("shift", "centering"), alphas=(0.75,))
    assert (shift.alpha, shift.debias.alphas, centering.alpha, centering.debias.alpha) == ("0.75", {}, None, 1.0)
    # A gamma that is recommended was measured with queries as they are, by one language.
    grid = Grid(("none", "shift"), ("never", "always"), (GIVEN, LanguageSource("soft")))
    rows = settings(TUNED, grid).items()
    assert [(name, row.debias.gamma, row.changes) for name, row in rows] == [
        ("none", 0.0, "nothing"),
        ("shift", 0.97, "documents"),
        ("shift-both-sides", 0.0, "both sides"),
        ("shift-soft", 0.0, "documents"),
        ("shift-both-sides-soft", 0.0, "both sides"),
    ]
    assert [row.debias.gamma for row in asked(TUNED, alphas=(1.0,))] == [0.0]
    assert [row.debias.gamma for row in asked(TUNED, alphas=(1.0,), gammas=(0.95,))] == [0.95]
    # Without language vectors nothing moves.
    assert names(None, methods=("none", "shift")) == ["none"]
    # Scales are named where there are several.
    grid = {"alphas": (0.5, 1.0), "betas": (0.0, 0.5)}
    assert names(methods=("shift", "centering"), **grid) == [
        f"{row}-beta-{beta}" for row in ("shift-alpha-0.5", "shift-alpha-1", "centering") for beta in ("0", "0.5")
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"methods": ("shift", "best")}, "Unknown method 'best'; choose one of none, shift, centering, lir, affine."),
        (
            {"known": None, "methods": ("lir",)},
            "The method lir needs language vectors: name them with --vectors.",
        ),
        (
            {"known": vectors({"de": [1, 0]}), "methods": ("shift", "centering")},
            "The language vectors contain nothing for the method centering: fit them with "
            "`langshift vectors methods --methods centering`.",
        ),
        (
            {"methods": ("shift", "affine"), "sources": (LanguageSource("soft", 20),)},
            "--language-from soft:20 works only with the method shift, not affine: leave affine out of --method, "
            "or soft:20 out of --language-from.",
        ),
        (
            {"known": TUNED, "sources": (LanguageSource("soft", 20),), "gammas": (0.97,)},
            "--language-from soft:20 takes no gamma: leave --gamma or soft:20 out.",
        ),
        (
            {"known": TUNED, "gammas": (0.5,)},
            "gamma 0.5 cannot be used: it must be 0, or 0.9 to 0.98. Values between find less than either, and what 1 "
            "takes out of a vector cannot be put back.",
        ),
        (
            {"gammas": (0.97,)},
            "The language vectors contain no directions of queries for a gamma: fit them anew with `langshift vectors "
            "fit`, or leave gamma at 0.",
        ),
    ],
)
def test_methods_that_cannot_be_used(options, expected):
    with pytest.raises(UsageError) as caught:
        asked(**options)
    assert str(caught.value) == expected


def test_sources_in_words():
    for text in ("given", "detected", "soft", "detected:20", "soft:1"):
        assert str(LanguageSource.parse(text)) == text
    for text in ("", "Detected", "given:20", "detected:", "detected:0", "soft:-1", "soft:2.5", "detected:²"):
        assert LanguageSource.parse(text) is None


DOCUMENTS = {
    "a": ("en", "a", "The quick brown fox jumps over the lazy dog."),
    "b": (
        "de",
        "b",
        "The name stands in English, aber der lange Rest dieses Textes ist deutsch, und zwar ganz und gar.",
    ),
    "c": ("es", "c", "\n  1234 5678 9012 3456 El zorro salta sobre el perro perezoso, que duerme al sol."),
    "d": (None, "d", "Der Fuchs springt über den faulen Hund, der in der Sonne schläft."),
}


def test_detection_reads_as_much_as_it_is_told(tmp_path):
    folder = write_dataset(tmp_path / "data", DOCUMENTS, {"q": ("en", "a", None, "Fox?")}, {"q": {"a": 1}})
    data = encode(load_dataset(folder), ToyEncoder())
    making = EmbeddingPipeline(ToyEncoder(), MethodDebiaser(KNOWN), open_detector())
    sources = [GIVEN, LanguageSource("detected"), LanguageSource("detected", 20), LanguageSource("soft", 20)]
    told = resolve_document_languages(data, sources, making)
    given, whole, short, soft = (told[source] for source in sources)
    assert (given.tags, given.detection) == (["en", "de", "es", "de"], None)
    # The dataset names three languages; the fourth is detected, and judges nobody.
    assert whole.tags == ["en", "de", "es", "de"]
    assert whole.detection == {"accuracy": 1.0, "documents": 3, "unknown": 0}
    assert short.tags == ["en", "en", "und", "de"]
    assert short.detection == {"accuracy": pytest.approx(1 / 3), "documents": 3, "unknown": 1}
    # English is the pivot, and most of the detector's languages have no vector: only what moves is kept.
    assert soft.detection == {**short.detection, "unknown": None}
    assert all(posterior.keys() <= {"de", "es"} for posterior in soft.posteriors)
    assert soft.posteriors[2] == {}
    assert soft.posteriors[3]["de"] > 0.5
    moved = soft.move(MethodDebiaser(KNOWN), data.documents, slice(0, 4))
    assert np.array_equal(moved[2], data.documents[2])
    expected = sum(p * np.float64(KNOWN.vectors[tag]) for tag, p in soft.posteriors[3].items())
    assert data.documents[3] - moved[3] == pytest.approx(expected, abs=1e-5)


def found(ndcg, detection=None):
    figures = {"nDCG@20": ndcg, "LPR": None}
    counts = {"nDCG@20": 1190, "LPR": 0}
    return {
        "measures": figures,
        "queries": {"asked": 1190, **counts},
        "detection": detection,
        "by_language": {},
    }


def shown(capsys):
    return capsys.readouterr().out.replace(" \n", "\n").splitlines()


def test_a_table_leaves_out_what_says_nothing(tmp_path, capsys):
    folder = tmp_path.relative_to(tmp_path.parent)
    none, shift = asked(methods=("none", "shift"))
    offline._show_rows(folder, [(none, found(0.5)), (shift, found(0.75))])
    assert shown(capsys) == [
        f"{folder}: 1,190 queries, exact search, alpha 1, pivot en",
        "method  nDCG@20  LPR",
        "none      .5000    -",
        "shift     .7500    -",
    ]
    measured = vectors({"de": [1, 0]}, maps={"de": np.eye(2)}, alpha=0.5, alphas={"de": 0.25})
    rows = asked(measured, methods=("none", "shift", "affine"), shift_queries=("never", "always"))
    offline._show_rows(folder, [(row._replace(beta=0.02), found(0.5)) for row in rows])
    assert shown(capsys) == [
        f"{folder}: 1,190 queries, exact search, pivot en, beta 0.02",
        "method          alpha  changes     nDCG@20  LPR",
        "none                -  nothing       .5000    -",
        "shift   0.5 (de 0.25)  documents     .5000    -",
        "shift   0.5 (de 0.25)  both sides    .5000    -",
        "affine              1  documents     .5000    -",
        "affine              1  both sides    .5000    -",
    ]
    rows = asked(TUNED, methods=("none", "shift"), shift_queries=("never", "always"))
    offline._show_rows(folder, [(row, found(0.5)) for row in rows])
    assert shown(capsys) == [
        f"{folder}: 1,190 queries, exact search, alpha 0.5, pivot en",
        "method  gamma  changes     nDCG@20  LPR",
        "none        -  nothing       .5000    -",
        "shift    0.97  documents     .5000    -",
        "shift       -  both sides    .5000    -",
    ]
    rows = asked(methods=("none", "shift"), sources=(*BY_DETECTION, LanguageSource("soft", 20)))
    detection = {"accuracy": 0.75, "documents": 4, "unknown": 1200}
    detected = [None, None, detection, {**detection, "accuracy": None, "unknown": None}]
    offline._show_rows(folder, [(row, found(0.5, one)) for row, one in zip(rows, detected, strict=True)])
    assert shown(capsys) == [
        f"{folder}: 1,190 queries, exact search, alpha 1, pivot en",
        "method  languages      LID    und  nDCG@20  LPR",
        "none    -                -      -    .5000    -",
        "shift   given            -      -    .5000    -",
        "shift   detected:20  .7500  1,200    .5000    -",
        "shift   soft:20          -      -    .5000    -",
    ]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (OfflineSettings(MethodDebiaser(KNOWN, alpha=0.0)), "alpha 0"),
        (OfflineSettings(MethodDebiaser(KNOWN, 0.0, method="none")), "method none"),
        (OfflineSettings(MethodDebiaser(KNOWN, 0.5, method="affine")), "method affine, alpha 0.5, pivot en"),
        (OfflineSettings(MethodDebiaser(TUNED, gamma=0.95)), "alpha 1, pivot en, gamma 0.95"),
        (OfflineSettings(MethodDebiaser(KNOWN, method="centering")), "method centering, both sides changed"),
        (
            OfflineSettings(MethodDebiaser(KNOWN, shift_queries=True), LanguageSource("detected", 1000)),
            "alpha 1, pivot en, both sides changed, languages detected from the first 1,000 characters",
        ),
        (
            OfflineSettings(MethodDebiaser(KNOWN), LanguageSource("soft")),
            "alpha 1, pivot en, languages detected softly",
        ),
    ],
)
def test_one_setting_in_words(setting, expected, tmp_path, capsys):
    offline._show_one(tmp_path, setting, found(0.5))
    assert shown(capsys)[0] == f"{tmp_path}: 1,190 queries, exact search, {expected}"
