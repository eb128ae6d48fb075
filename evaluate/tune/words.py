"""What tuning found, in sentences."""

from __future__ import annotations

from langshift.evaluate.report.compare_tables import probability
from langshift.evaluate.tune.chance import Change
from langshift.evaluate.tune.choosing import PLAIN
from langshift.evaluate.tune.judging import COST, TARGET
from langshift.evaluate.tune.report import Report
from langshift.shown import figure, listed, signed

# Where nearly everything is found, little can be lost.
_EASY = 0.98


def task(report: Report) -> list[str]:
    """What was asked and searched."""
    asked, vectors = report.judge.task, report.judge.vectors
    languages = sorted(set(asked.languages.tolist()))
    judged = (
        "The vectors were fitted on this same text, so each fifth of it is judged without its share in them."
        if report.same_text
        else "The vectors are judged as they are."
    )
    return [
        f"{report.pairs}: {asked.count:,} items in {listed(languages)}. {len(asked.items):,} questions, each about "
        f"{asked.share:.0%} of an item from its middle, search {len(asked.encoded.ids):,} documents, the whole items; "
        "an item answers in every language.",
        f"{judged} Every query language counts alike; the pivot is {vectors.pivot}, and the shift may cost "
        f"{figure(report.found.budget)} of {COST}.",
    ]


def recommendation(report: Report) -> list[str]:
    """What to do, what it gains, and what it costs."""
    overall = report.held_out["all"]
    target, cost = overall[TARGET], overall[COST]
    if report.found.last is None:
        return [_refusal(report, target)]
    return [
        f"Recommended: {_setting(report)}.",
        f"On held-out items {TARGET} goes from {figure(target.before)} to {figure(target.after)}: {change(target)}, "
        f"p {probability(target.p)}; {COST} from {figure(cost.before)} to {figure(cost.after)}: {change(cost)}.",
    ]


def warnings(report: Report) -> list[str]:
    """What makes the figures less than they seem, in sentences."""
    told = []
    if report.absent:
        told.append(f"{report.pairs} has no text in {listed(list(report.absent))}: nothing is measured there.")
    if report.few:
        told.append(
            f"Too few of the items have text to cut a question out of in {listed(list(report.few))}: nothing is "
            "measured there; a higher --sample may help."
        )
    overall = report.held_out["all"][COST]
    if overall.before > _EASY:
        told.append(
            f"{COST} is {figure(overall.before)} with nothing shifted, so this task can hardly show what a shift "
            "costs: a higher --sample makes it harder."
        )
    return told + (_over_budget(report) if report.found.last else [])


def interval(found: Change) -> str:
    """``+.0084 to +.0123``."""
    return f"{_bound(found.low)} to {_bound(found.high)}"


def change(found: Change) -> str:
    """A change with its interval: ``+.0103 (95 % +.0084 to +.0123)``."""
    return f"{_bound(found.difference)} (95 % {interval(found)})"


def _bound(value: float) -> str:
    return signed(value).replace("=", "0")


def _refusal(report: Report, target: Change) -> str:
    if report.told.setting != PLAIN:
        why = (
            f"the alpha chosen on the other items changes {TARGET} on held-out ones by {change(target)}, "
            f"p {probability(target.p)}, which is no gain beyond chance"
        )
    else:
        why = f"no alpha above 0 raises {TARGET} within the budget"
    return f"Do not shift this model: {why}. Recommended: alpha 0."


def _setting(report: Report) -> str:
    setting, pivot = report.found.setting, report.judge.vectors.pivot
    own = [f"{alpha:g} for {key}" for key, alpha in setting.own]
    alphas = listed([*own, f"{setting.alpha:g} for {'every other' if own else 'every'} language"])
    queries = f"queries in other languages than {pivot} shifted too" if setting.shift_queries else "queries as they are"
    return f"alpha {alphas}; {queries}"


def _over_budget(report: Report) -> list[str]:
    """The groups of queries whose own loss is beyond the budget, since a mean can hide one."""
    names = {"all": "over all queries", "pivot": "for queries in the pivot language", "others": "for the other queries"}
    losses = {names[group]: -changes[COST].difference for group, changes in report.held_out.items()}
    over = [f"{figure(loss)} {name}" for name, loss in losses.items() if loss > report.found.budget]
    return [f"On held-out items {COST} falls by more than the budget: by {listed(over)}."] if over else []
