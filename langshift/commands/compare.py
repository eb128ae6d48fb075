"""The command ``evaluate compare``."""

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from langshift import extensions
from langshift.commands.compare_tables import show, show_brief
from langshift.errors import REPORT, LangshiftError, UsageError, require_extra
from langshift.evaluate.compare import breakdowns, gate
from langshift.evaluate.compare.comparison import Comparison, column_of
from langshift.evaluate.compare.findings import compare_places, findings
from langshift.evaluate.compare.gate import Baseline, Condition, ConditionResult, Figures
from langshift.evaluate.datasets.dataset import identity
from langshift.evaluate.replay.result import check_output
from langshift.evaluate.report.report import Report, build
from langshift.evaluate.report.tables import HITS
from langshift.evaluate.runs import command
from langshift.files import write_json
from langshift.output import emit_json, note, warn
from langshift.parameters import JSON, PATH, Command, flag, option


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
    return [
        gate.check_condition(condition, list(compared.by_language), figures(letters[-1]), before)
        for condition in conditions
    ]


def _end(compared: Comparison, verdicts: Sequence[ConditionResult], save: Path | None, junit: Path | None) -> None:
    """Write what is to be kept, and fail where a condition holds."""
    last = compared.candidates[-1]
    if junit is not None:
        gate.write_junit(junit, " ".join(candidate.name for candidate in compared.candidates), verdicts)
    failed = [verdict for verdict in verdicts if verdict.failed]
    if failed:
        raise LangshiftError(" ".join(verdict.says for verdict in failed))
    if save is not None:
        write_json(save, msgspec.to_builtins(gate.baseline_of(compared, last.letter)))
        note(f"Saved the figures of {last.label} to {save}.")


@click.command("compare", cls=Command)
@click.argument("runs", nargs=-1, required=True, type=PATH)
@option("--dataset FOLDER", "The dataset. [default: the one that the runs name]")
@option(
    "--measures NAMES",
    "Measures, such as 'nDCG@20 TLR@20'. [default: nDCG, R, TLR, SLR and MostShown at 20, own at 1 and 3, and LPR if "
    "it is available]",
)
@flag("--brief", "Print a line a run, and the tests against the first.")
@option("--report FOLDER", "Write a page with all tables, report.html, and every figure, report.csv, here.")
@option(
    "--fail-if CONDITION",
    "End with exit code 1 if this holds, such as 'SLR@20 < -0.01'; can be repeated.",
    dest="conditions",
    multiple=True,
)
@option("--baseline FILE", "Measure changes from the figures in this file.")
@option("--save-baseline FILE", "Save the last run's figures here if no condition holds.")
@option("--mteb FILE", "Write the last run's figures as JSON, as MTEB's TaskResult reads it.", rare=True)
@option("--junit FILE", "Write the conditions and verdicts as JUnit XML.")
@JSON
def compare(
    runs: tuple[Path, ...],
    dataset: Path | None,
    measures: str | None,
    brief: bool,
    report: Path | None,
    conditions: tuple[str, ...],
    baseline: Path | None,
    save_baseline: Path | None,
    mteb: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Compare RUNS of one dataset: who gains, who loses, and what may be chance; of one run, show the figures.

    A run is a folder that `langshift evaluate replay` or `offline` wrote with --output, or any TREC run, whose rank
    column is not used. Every pair of runs is tested, with the queries of one article or group kept together, and
    corrected for the number of tests. Figures are shown separately for same-language and cross-language answers, and
    for each query language. A query without an answer counts as 0, and one without a relevant document is left out.

    \b
    Known measures: nDCG@k R@k P@k AP RR Judged@k and others of ir_measures, such as Success@k;
      TLR@k   recall of relevant documents in other languages than the query's
      SLR@k   recall of those in the query's language
      own@k   how often one of these is among the first k
      TR@k    recall by document language, as a matrix
      LPR     how often the query's language has the best score among all translations; needs
              group-scores.jsonl beside the run, which replay and offline write
      Lang_nDCG@k, also as Lang_nDCG(same=3,other=1)@k; Top1, the first document in four ways
      PSI@k and EvidenceHit@k, the place of the evidence in the document, from evidence.tsv
      MostShown@k, the language that is shown most: its share of the hits and of what is relevant
      PEER, Share@k, Entropy@k, JS@k and KL@k

    \b
    CONDITION is a change from the first run, or the baseline, to the last: 'SLR@20 < -0.01'; a change for
    the queries in one language or any: 'nDCG@20 in any < -0.02'; or the last run's figure:
    'value nDCG@20 < 0.7'.

    \b
    Example:
      langshift evaluate replay xquad8 --index plain --index shifted --output results
      langshift evaluate compare results/plain results/shifted --fail-if 'SLR@20 < -0.02' --report results
      langshift evaluate compare other/run.trec --dataset xquad8 --measures 'nDCG@20 TLR@20 TR@20'
    """
    task_result = None if mteb is None else extensions.load(extensions.FIGURES, "mteb", "--mteb")
    parsed = [gate.parse_condition(text) for text in conditions]
    if junit is not None and not parsed:
        raise UsageError("--junit has nothing to write: give conditions with --fail-if.")
    if baseline is not None and not parsed:
        raise UsageError("--baseline has nothing to judge: give conditions with --fail-if.")
    if report is not None:
        require_extra("A report needs", "report", *REPORT)
        check_output(report, "--report")
    compared = compare_places(runs, dataset, measures, [condition.measure for condition in parsed])
    before = gate.read_baseline(baseline, identity(compared.dataset)["hash"]) if baseline else None
    figures = None if task_result is None else task_result(compared, compared.candidates[-1])
    verdicts = _judge(compared, parsed, before)
    found = findings(compared, breakdowns.HITS if report is None else HITS)
    made = None if report is None else build(found, command())
    warn(found.warnings)
    if as_json:
        emit_json(found.to_dict(verdicts))
    else:
        (show_brief if brief else show)(found, verdicts)
    if made is not None and report is not None:
        _write_report(made, report)
    if mteb is not None and figures is not None:
        write_json(mteb, figures)
        note(f"Wrote the figures of {compared.candidates[-1].label} to {mteb}.")
    _end(compared, verdicts, save_baseline, junit)


def _write_report(made: Report, folder: Path) -> None:
    from langshift.evaluate.report.writers import write

    page, figures = write(made, folder)
    note(f"Wrote the report {page}, and its figures to {figures}.")
