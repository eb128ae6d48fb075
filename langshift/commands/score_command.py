"""``langshift evaluate score``: its options, and what it does and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from langshift.commands.langshift_options import JSON

if TYPE_CHECKING:
    from langshift.evaluate.measures.scores import Table
    from langshift.evaluate.scored_run import ScoredRun

_FOLDER = click.Path(path_type=Path)


@click.command("score")
@click.argument("run", type=_FOLDER)
@click.option("--dataset", type=_FOLDER, required=True, metavar="FOLDER", help="The dataset that was searched.")
@click.option(
    "--measures",
    metavar="NAMES",
    help="Measures, such as 'nDCG@20 TLR@20'; nDCG, R, TLR and SLR at 20 if not given, and LPR where it can be had.",
)
@JSON
def score(run: Path, dataset: Path, measures: str | None, as_json: bool) -> None:
    """Score RUN, a TREC run of any retriever.

    Ties break as trec_eval breaks them; the rank column is not used. A query without answer counts 0,
    and a query without relevant document is left out.

    \b
    Known measures: nDCG@k R@k P@k AP RR Judged@k and others of ir_measures, such as Success@k;
      TLR@k   recall of relevant documents in other languages than the query's
      SLR@k   recall of those in the query's language
      TR@k    recall by document language, as a matrix
      LPR     how often the query's language has the best score among all translations; needs
              group-scores.jsonl beside RUN, which replay and offline write
      Lang_nDCG@k, also as Lang_nDCG(same=3,other=1)@k; Top1, the first document in four ways
      PEER, PSI@k, Share@k, Entropy@k, JS@k and KL@k

    \b
    Example:
      langshift evaluate score results/plain/run.trec --dataset xquad8 --measures 'nDCG@20 TLR@20 TR@20'
    """
    from langshift import console
    from langshift.evaluate.scored_run import document, score_run

    found = score_run(run, dataset, measures)
    for warning in found.warnings:
        console.note(f"Warning: {warning}")
    if as_json:
        console.emit_json(document(found))
    else:
        show(found)


def show(found: ScoredRun) -> None:
    """Print the measures, by query language where there are several, and the matrices of those that have one."""
    from langshift import console
    from langshift.evaluate.measures import parse_measure
    from langshift.evaluate.scoring import by_language
    from langshift.shown import figure, heading

    heading(f"{found.path}: {found.answered:,} of {len(found.dataset.queries):,} queries answered")
    rows = [
        [name, figure(scores.mean), parse_measure(name).family.direction, f"{scores.queries:,}", f"{scores.left_out:,}"]
        for name, scores in found.scores.items()
    ]
    columns = ["measure", "mean", "good is", "queries", "left out"]
    console.table(None, columns, rows, right={"mean", "queries", "left out"})
    languages = by_language(found.scores, found.languages)
    if len(languages) > 1:
        heading("\nBy query language")
        rows = [[tag, *(figure(scores.mean) for scores in part.values())] for tag, part in languages.items()]
        console.table(None, ["language", *found.scores], rows, right=set(found.scores))
    for name, scores in found.scores.items():
        if scores.table is not None:
            heading(f"\n{name}: {scores.table.rows} down, {scores.table.columns} across")
            _show_table(scores.table)


def _show_table(table: Table) -> None:
    from langshift import console
    from langshift.shown import figure

    heads = table.heads
    rows = [
        [row, *(figure(cells[head].mean if head in cells else None, 3) for head in heads)]
        for row, cells in table.cells.items()
    ]
    console.table(None, ["", *heads], rows, right=set(heads))
