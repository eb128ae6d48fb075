"""Every table of the laboratory's commands, at its worst."""

from pathlib import Path
from types import SimpleNamespace as Of

import pytest
from check_names import LAB
from worst_tables import COUNT, LANGUAGES, LONG, MEANS, NAME, NAMES, require_all_readable, sites_of

from langshift.retrieval.rerank.features import read_model
from langshift_lab.commands import board, fit, label, make, offline, rag, tune
from langshift_lab.construct.questions import REASONS
from langshift_lab.offline.encoding import LanguageSource
from langshift_lab.rerank.laura import FIGURES, LabelComparison, LauraRow
from langshift_lab.rerank.pools import RerankSlice
from langshift_lab.tune.tune import COST, MEASURES, TARGET, MeasureChange, TuningSettings

# What prints each table, given data at its worst.
CASES = []


def case(shown):
    CASES.append(shown)
    return shown


def changed(sign=1):
    return MeasureChange(0.987654, 0.123456, -0.123456 * sign, 0.123456, 0.99999)


@case
def reranker():
    fit._show_weights(read_model())
    fit._show_losses([1.2345] * 5)
    fit._show_slices(
        [RerankSlice(NAME, kept, "other", 0.1, COUNT, 0.9, -0.1234, -0.1234, 0.0123) for kept in (None, 2)]
    )


@case
def orders_of_rerankers():
    figures = dict.fromkeys(FIGURES, 0.123456)
    names = ("search", "untrained", "self-training", "same-language labels", "utilities (LAURA)")
    rows = [LauraRow(name, figures, {}) for name in names]
    fit._show_comparison(LabelComparison(rows, {}, COUNT, COUNT))


@case
def languages_of_the_best_answers():
    label._show_oracle(dict.fromkeys(LANGUAGES, dict.fromkeys(LANGUAGES, 0.123456)))


@case
def answers():
    counts = dict.fromkeys(("asked", "empty", "cut_off", "refused"), COUNT)
    figures = dict.fromkeys(("3-gram recall", "containment", "exact match", "F1", "language coherence"), 0.123456)
    distances = dict.fromkeys(("JS", "KL", "entropy_retrieved", "entropy_oracle"), 0.123456)
    shares = dict.fromkeys(LANGUAGES, 0.123456)
    row = {"queries": COUNT, **distances, "retrieved": shares, "oracle": shares}
    one = {"queries": COUNT, **figures, "undecided": 0.123456, "left_out": COUNT, "answers": counts}
    correlation = {"pearson": -0.1234, "p": 0.99, "queries": COUNT}
    one |= {"by_language": dict.fromkeys(LANGUAGES, figures), "correlation": correlation}
    one |= {"oracle": {**distances, "all_zero": COUNT, "by_language": dict.fromkeys(LANGUAGES, row)}}
    names = ("gold-own", "language-wise:50")
    test = {"difference": -0.123456, "queries": COUNT, "randomisation": 0.00001, "corrected": 0.99999}
    rag._show(
        {
            "queries": {"asked": COUNT, "without_answers": COUNT},
            "conditions": dict.fromkeys(names, one),
            "test": {"clusters": COUNT, "clustered_by": "article"},
            "differences": [{"before": names[0], "after": names[1], "measure": "language coherence", **test}],
        }
    )


@case
def tuned():
    setting = TuningSettings(0.12345, 0.98765, COUNT)
    points = [Of(setting=setting._replace(alpha=tenth / 10)) for tenth in range(11)]
    steps = [Of(name=name, setting=setting, points=points, change=changed(), taken=True) for name in tune._SCALES]
    means = {name: {0.0: 1.0, 0.1: 0.5}.get for name in MEASURES}
    changes = {group: {TARGET: changed(), COST: changed(-1)} for group in ("all", "pivot", "others")}
    report = Of(
        found=Of(steps=steps),
        reported=steps,
        judge=Of(vectors=Of(pivot="zh-Hant"), task=None),
        held_out=dict.fromkeys(tune._SCALES, changes),
        mean=lambda point, name: means[name](point.setting.alpha, 0.123456),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune, "describe_task", lambda _: [])
        patch.setattr(tune, "recommendation", lambda _: [])
        tune._show(report)


@case
def offline_rows():
    result = {
        "measures": MEANS,
        "queries": {"asked": COUNT},
        "detection": {"accuracy": 0.5, "unknown": COUNT},
    }
    debias = Of(method="shift", vectors=Of(pivot="zh-Hant"), gamma=0.97)
    own = ", ".join(f"{tag} 0.12345" for tag in LANGUAGES)
    rows = [
        (Of(debias=debias, alpha=alpha, changes=changes, source=LanguageSource("detected", COUNT), beta=beta), result)
        for alpha, changes, beta in ((f"0.12345 ({own})", "both sides", 0.1), ("1", "documents", 0.0))
    ]
    offline._show_rows(Path(NAME), rows)


@case
def boards():
    known = Of(runs=dict.fromkeys(NAMES, Of(mean=lambda _: 0.123456)), macro=lambda *_: 0.123456)
    known.weighted, known.by_language = (
        known.macro,
        lambda *_: Of(known=0.123456, surprise=None, every=0.123456, languages=dict.fromkeys(LANGUAGES, 0.123456)),
    )
    rows = [Of(**{**vars(known), "name": name}) for name in NAMES]
    rows[0].by_language = lambda *_: Of(known=0.1, surprise=0.2, every=0.3, languages={"de": 0.1})
    datasets = {name: Of(hash=name, queries=COUNT) for name in NAMES}
    shared = dict.fromkeys(NAMES, NAME)
    board._show(
        Of(
            measure=next(iter(LONG)),
            datasets=datasets,
            retrievers=rows,
            surprise=(),
            nearby=(next(iter(LONG)), "LPR"),
            shared=lambda *_: shared,
        )
    )


@case
def constructed():
    make._show("questions", {"prompts": COUNT, "questions": COUNT, "dropped": dict.fromkeys(REASONS, COUNT)})


def test_at_80_columns_no_table_of_any_command_is_broken_and_what_is_hidden_is_said(monkeypatch):
    require_all_readable(monkeypatch, sites_of([LAB]), CASES)
