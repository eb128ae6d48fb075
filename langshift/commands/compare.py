"""The commands ``evaluate compare`` and ``evaluate report``."""

from collections.abc import Sequence
from pathlib import Path

import click

from langshift.errors import REPORT, LangshiftError, UsageError, require_extra
from langshift.evaluate.compare import gate
from langshift.evaluate.compare.breakdowns import ExampleQueries
from langshift.evaluate.compare.comparison import SECTIONS, Comparison, column_of
from langshift.evaluate.compare.findings import ComparisonFindings, compare_places, describe_test, findings
from langshift.evaluate.compare.gate import Baseline, Condition, ConditionResult, Figures
from langshift.evaluate.datasets.dataset import identity
from langshift.evaluate.replay.result import check_output
from langshift.evaluate.report import tables
from langshift.evaluate.report.tables import show_table
from langshift.evaluate.runs import command
from langshift.output import emit_json, heading, line, note, out, warn
from langshift.parameters import JSON, PATH, Command, json_or_tables, option


def _judge(compared: Comparison, conditions: Sequence[Condition], baseline: Baseline | None) -> list[ConditionResult]:
    letters = compared.letters

    def figures(letter: str) -> Figures:
        return lambda name, language: compared.mean(letter, column_of(name), language)

    before = baseline.mean if baseline else figures(letters[0]) if len(letters) > 1 else None
    for condition in conditions:
        if baseline and condition.change and condition.measure not in baseline.measures:
            raise UsageError(
                f"The baseline of {baseline.name} has no {condition.measure}: "
                f"save it again with {condition.measure} among the --measures."
            )
    return [gate.judge(condition, list(compared.by_language), figures(letters[-1]), before) for condition in conditions]


def _end(compared: Comparison, verdicts: Sequence[ConditionResult], save: Path | None, report: Path | None) -> None:
    """Write what is to be kept, and fail where a condition holds."""
    last = compared.candidates[-1]
    if report is not None:
        gate.write(report, " ".join(candidate.name for candidate in compared.candidates), verdicts)
    failed = [verdict for verdict in verdicts if verdict.failed]
    if failed:
        raise LangshiftError(" ".join(verdict.says for verdict in failed))
    if save is not None:
        gate.save(save, gate.of(compared, last.letter))
        note(f"Saved the figures of {last.label} to {save}.")


def show(found: ComparisonFindings, conditions: Sequence[ConditionResult]) -> None:
    """Print everything for a person."""
    compared = found.compared
    _show_sections(compared)
    if len(compared.candidates) > 1:
        line("\nA superscript names a run that is significantly lower. " + describe_test(compared.clusters))
        _show_breakdowns(compared)
    for one in found.matrices:
        earlier, later = one.pair
        heading(f"\n{one.measure} by query and document language: change from {earlier} to {later}")
        show_table(tables.recalls(one)[0])
    if most := tables.most_shown_table(found.most_shown):
        heading(f"\n{most.caption}")
        show_table(most)
    if found.positions:
        table = tables.positions_table(
            {compared.candidate(letter).label: scores for letter, scores in found.positions.items()}
        )
        heading(f"\n{table.caption}")
        show_table(table)
    for extreme in found.examples:
        _show_extremes(extreme)
    if conditions:
        gate.show_conditions(conditions)
    if found.verdicts:
        heading("\nWhich to use")
    for verdict in found.verdicts.values():
        line(verdict.sentence)


def _show_sections(compared: Comparison) -> None:
    heading(f"{compared.dataset.folder}: {len(compared.dataset.queries):,} queries")
    # Replays in different settings say how each searched.
    if len({run.how for run in compared.candidates if run.how}) > 1:
        for run in compared.candidates:
            line(f"{run.label}: {run.how or 'setting unknown'}")
    for section in compared.sections:
        heading(f"\n{SECTIONS[section]}")
        show_table(tables.figures_by_run(compared, section))
        if len(compared.candidates) > 1:
            show_table(tables.p_values(compared, section))


def _show_breakdowns(compared: Comparison) -> None:
    """By slice, and by query language."""
    first, *later = compared.letters
    for letter in later if compared.slices else ():
        heading(f"\nBy answer in the searcher's language: {first}, and the change to {letter} (* significant)")
        show_table(tables.narrow(tables.by_slice(compared, letter), "answer exists"))
    for letter in later if len(compared.by_language) > 1 else ():
        for section in compared.sections:
            heading(f"\nBy query language, {section}: {first}, and the change to {letter} (* significant)")
            show_table(tables.narrow(tables.by_language(compared, section, letter), "language"))


def _show_extremes(extreme: ExampleQueries) -> None:
    line(f"\n{tables.tally(extreme)}")
    # Two texts, the rank, and what parts them.
    width = max(20, (out.width - 5) // 2)
    for title, examples in (("Biggest winners", extreme.winners), ("Biggest losers", extreme.losers)):
        if examples:
            heading(f"\n{title} (* answers the query)")
        for example in examples:
            line(tables.example_head(example))
            show_table(tables.example_hits(example, extreme.pair, width))


@click.command("compare", cls=Command)
@click.argument("runs", nargs=-1, required=True, type=PATH)
@option("--dataset FOLDER", "The dataset. [default: the one that the runs name]")
@option("--measures NAMES", "Measures, such as 'nDCG@20 TLR@20 SLR@20 LPR'.")
@option(
    "--fail-if CONDITION",
    "End with exit code 1 if this holds, such as 'SLR@20 < -0.01'; can be repeated.",
    dest="conditions",
    multiple=True,
)
@option("--baseline FILE", "Measure changes from the figures in this file.")
@option("--save-baseline FILE", "Save the last run's figures here if no condition holds.")
@option("--junit FILE", "Write the conditions and verdicts as JUnit XML.")
@json_or_tables
def compare(
    runs: tuple[Path, ...],
    dataset: Path | None,
    measures: str | None,
    conditions: tuple[str, ...],
    baseline: Path | None,
    save_baseline: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Compare RUNS of one dataset: who gains, who loses, and what may be chance.

    A run is a folder that `langshift evaluate replay` or `offline` wrote with --output, or any TREC run.
    Every pair of runs is tested, with the queries of one article or group kept together, and corrected for
    the number of tests. Figures are shown separately for same-language and cross-language answers, and for
    each query language.

    \b
    CONDITION is a change from the first run, or the baseline, to the last: 'SLR@20 < -0.01'; a change for
    the queries in one language or any: 'nDCG@20 in any < -0.02'; or the last run's figure:
    'value nDCG@20 < 0.7'.

    \b
    Example:
      langshift evaluate offline xquad8 --alpha 0 --output results/plain
      langshift evaluate offline xquad8 --alpha 1 --output results/shifted
      langshift evaluate compare results/plain results/shifted --fail-if 'SLR@20 < -0.02'
    """
    parsed = [gate.parse(text) for text in conditions]
    if junit is not None and not parsed:
        raise UsageError("--junit has nothing to write: give conditions with --fail-if.")
    if baseline is not None and not parsed:
        raise UsageError("--baseline has nothing to judge: give conditions with --fail-if.")
    if len(runs) == 1 and not parsed and save_baseline is None:
        raise UsageError("There is only one run: give two or more to compare, or use --fail-if or --save-baseline.")
    compared = compare_places(runs, dataset, measures, [condition.measure for condition in parsed])
    before = gate.read(baseline, identity(compared.dataset)["hash"]) if baseline else None
    verdicts = _judge(compared, parsed, before)
    found = findings(compared)
    warn(found.warnings)
    if as_json:
        emit_json(found.to_dict(verdicts))
    else:
        show(found, verdicts)
    _end(compared, verdicts, save_baseline, junit)


@click.command("report", cls=Command)
@click.argument("runs", nargs=-1, required=True, type=PATH)
@option("--dataset FOLDER", "The dataset. [default: the one that the runs name]")
@option("--output FOLDER", "Where to write. [default: the folder of the last run]")
@JSON
def report(runs: tuple[Path, ...], dataset: Path | None, output: Path | None, as_json: bool) -> None:
    """Generate one page on RUNS that shows what changes: tables, figures, examples, and what was run.

    A run is a folder that `langshift evaluate replay`, `modes`, `offline` or `langshift demo` wrote with --output,
    or any TREC run; the others are compared with the first, as in `langshift evaluate compare`. A JSON document
    of `langshift evaluate sweep` among them adds the curve over alpha, and the language preferences.

    report.html opens from disk and loads no other resources; its tables are also written as Markdown
    (report.md), CSV (report.csv, one figure a line) and LaTeX (report.tex).

    \b
    Example:
      langshift evaluate replay xquad8 --index plain --output results/plain
      langshift evaluate replay xquad8 --index shifted --output results/shifted
      langshift evaluate sweep xquad8 --prefer-language 0,.02,.05,.1 --json > results/sweep.json
      langshift evaluate report results/plain results/shifted results/sweep.json --output results
    """
    require_extra("A report needs", "report", *REPORT)
    from langshift.evaluate.report.report import build
    from langshift.evaluate.report.writers import write

    folders = [place for place in runs if not place.is_file()]
    folder = output or (folders[-1] if folders else runs[-1].parent)
    check_output(folder)
    made = build(runs, dataset, command())
    warn(made.found.warnings)
    written = write(made, folder)
    if as_json:
        files = {path.suffix.removeprefix("."): str(path) for path in written}
        emit_json({"files": files, "comparison": made.to_dict()})
        return
    for sentence in made.found.summary:
        line(sentence)
    line(f"\nThe report is {written[0]}")
    line(f"Its tables are also in {folder}, as {', '.join(path.name for path in written[1:])}")
