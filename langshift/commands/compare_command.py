"""What ``langshift evaluate compare`` does and prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langshift import console
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.compare import baseline as baselines
from langshift.evaluate.compare import compare_gate, junit
from langshift.evaluate.compare.baseline import Baseline
from langshift.evaluate.compare.compare_gate import Condition, Figures, Verdict
from langshift.evaluate.compare.comparing import Comparison
from langshift.evaluate.compare.document import in_words
from langshift.evaluate.compare.findings import Findings, compare_places, findings
from langshift.evaluate.compare.sections import SECTIONS, column_of
from langshift.evaluate.compare.winners import Extremes
from langshift.evaluate.datasets.identity import identity
from langshift.evaluate.report import compare_tables
from langshift.shown import heading, line


def run(
    places: Sequence[Path],
    folder: Path | None,
    measures: str | None,
    *,
    conditions: Sequence[str],
    baseline: Path | None,
    save_baseline: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Compare, print, and judge.

    Raises:
        UsageError: something given cannot be used.
        LangshiftError: a condition holds; everything is printed and written all the same.
    """
    parsed = [compare_gate.parse(text) for text in conditions]
    _require_sense(len(places), parsed, baseline, save_baseline, junit)
    compared = compare_places(places, folder, measures, [condition.measure for condition in parsed])
    before = baselines.read(baseline, identity(compared.dataset)["hash"]) if baseline else None
    verdicts = _judge(compared, parsed, before)
    found = findings(compared)
    for warning in found.warnings:
        console.note(f"Warning: {warning}")
    if as_json:
        console.emit_json(found.to_dict(verdicts))
    else:
        show(found, verdicts)
    _end(compared, verdicts, save_baseline, junit)


def _require_sense(
    count: int, conditions: Sequence[Condition], baseline: Path | None, save: Path | None, junit: Path | None
) -> None:
    if junit is not None and not conditions:
        raise UsageError("--junit has nothing to write: give conditions with --fail-if.")
    if baseline is not None and not conditions:
        raise UsageError("--baseline has nothing to judge: give conditions with --fail-if.")
    if count == 1 and not conditions and save is None:
        raise UsageError("There is one run only: give two or more to compare, or --fail-if or --save-baseline.")


def _judge(compared: Comparison, conditions: Sequence[Condition], baseline: Baseline | None) -> list[Verdict]:
    letters = [candidate.letter for candidate in compared.candidates]

    def figures(letter: str) -> Figures:
        return lambda name, language: compared.mean(letter, column_of(name), language)

    before = baseline.mean if baseline else figures(letters[0]) if len(letters) > 1 else None
    for condition in conditions:
        if baseline and condition.change and condition.measure not in baseline.measures:
            raise UsageError(
                f"The baseline of {baseline.name} has no {condition.measure}: "
                f"save it again with --measures '{condition.measure}' among others."
            )
    return [
        compare_gate.judge(condition, list(compared.asked), figures(letters[-1]), before) for condition in conditions
    ]


def _end(compared: Comparison, verdicts: Sequence[Verdict], save: Path | None, report: Path | None) -> None:
    """Write what is to be kept, and fail where a condition holds."""
    last = compared.candidates[-1]
    if report is not None:
        junit.write(report, " ".join(candidate.name for candidate in compared.candidates), verdicts)
    failed = [verdict for verdict in verdicts if verdict.failed]
    if failed:
        raise LangshiftError(" ".join(verdict.says for verdict in failed))
    if save is not None:
        baselines.save(save, baselines.of(compared, last.letter))
        console.note(f"Kept the figures of {last.label} in {save}.")


def show(found: Findings, verdicts: Sequence[Verdict]) -> None:
    """Print everything for a person."""
    compared = found.compared
    _show_sections(compared)
    if len(compared.candidates) > 1:
        line("\nA superscript names a run that is significantly lower. " + in_words(compared.clusters))
        _show_slices(compared)
        _show_languages(compared)
    for one in found.matrices:
        earlier, later = one.pair
        heading(f"\n{one.measure} by query and document language: what {later} changes against {earlier}")
        _table(compare_tables.matrix(one))
    for extreme in found.examples:
        _show_extremes(extreme)
    if found.advice:
        heading("\nWhich to use")
        for sentence in found.advice:
            line(f"- {sentence}")
    if verdicts:
        heading("\nConditions")
        for verdict in verdicts:
            line(f"- {'FAILS' if verdict.failed else 'passes'}: {verdict.says}")


def _show_sections(compared: Comparison) -> None:
    present = {column.section for column in compared.columns}
    heading(f"{compared.dataset.folder}: {len(compared.dataset.queries):,} queries")
    _show_settings(compared)
    for section, title in SECTIONS.items():
        if section in present:
            heading(f"\n{title}")
            _table(compare_tables.figures(compared, section))
            if len(compared.candidates) > 1:
                _table(compare_tables.chances(compared, section))


def _show_settings(compared: Comparison) -> None:
    """Say how each run searched, where they are replays in different settings."""
    if len({run.how for run in compared.candidates if run.how}) > 1:
        for run in compared.candidates:
            line(f"{run.label}: {run.how or 'setting unknown'}")


def _show_slices(compared: Comparison) -> None:
    first, *later = (candidate.letter for candidate in compared.candidates)
    for letter in later if compared.slices else ():
        heading(f"\nBy answer in the searcher's language: {first}, and what {letter} changes (* significant)")
        _table(compare_tables.by_slice(compared, letter))


def _show_languages(compared: Comparison) -> None:
    if len(compared.asked) < 2:
        return
    first, *later = (candidate.letter for candidate in compared.candidates)
    for letter in later:
        for section in dict.fromkeys(column.section for column in compared.columns):
            heading(f"\nBy query language, {section}: {first}, and what {letter} changes (* significant)")
            _table(compare_tables.by_language(compared, section, letter))


def _show_extremes(extreme: Extremes) -> None:
    line(f"\n{compare_tables.tally(extreme)}")
    # Two texts, the rank, and what parts them.
    width = max(20, (console.out.width - 5) // 2)
    for title, examples in (("Biggest winners", extreme.winners), ("Biggest losers", extreme.losers)):
        if examples:
            heading(f"\n{title} (* answers the query)")
        for example in examples:
            line(compare_tables.example_head(example))
            _table(compare_tables.example_hits(example, extreme.pair, width), left=True)


def _table(made: compare_tables.Table, *, left: bool = False) -> None:
    console.table(None, made.heads, made.rows, right=set() if left else set(made.heads[1:]))
