"""The command ``evaluate board``."""

from pathlib import Path

import click

from langshift.commands.run_tables import show_table
from langshift.evaluate.report.tables import plain_table
from langshift.output import emit_json, heading, warn
from langshift.parameters import JSON, PATH, Command, option, parse_list
from langshift.wording import format_score, join_words, pluralize
from langshift_lab.board import Board, make_board


@click.command("board", cls=Command)
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=PATH)
@option("--measure NAME", "What to show. [default: nDCG@10, or the first measure that all runs have]")
@option(
    "--surprise LIST",
    "Query languages whose mean stands apart; MIRACL's are de,yo.",
    callback=lambda context, parameter, given: parse_list(context, parameter, given, "de,yo") or [],
)
@JSON
def board(folders: tuple[Path, ...], measure: str | None, surprise: list[str], as_json: bool) -> None:
    """Put runs of many datasets and retrievers in one table.

    A FOLDER is a run that `langshift evaluate replay` or `offline` wrote with --output, or holds several of them,
    however deep. A retriever is named after its runs' folder, and where that has the dataset's name, after the folder
    above; runs of one name are one row where encoder, scales and setting are the same, too. The macro mean
    counts every dataset alike, the weighted mean every query. Both are over the datasets that every retriever has.

    nDCG and LPR side by side show what finds answers and what finds them in the searcher's language. By
    query language, each language counts alike.

    \b
    Example:
      langshift evaluate offline xquad8 --method none,shift --output results/xquad8
      langshift evaluate offline belebele --method none,shift --output results/belebele
      langshift evaluate board results
    """
    made = make_board(folders, measure, surprise)
    warn(made.remarks)
    if as_json:
        emit_json(made.to_dict())
        return
    _show(made)


def _show(made: Board) -> None:
    """Print the table, nDCG beside LPR, and the means by query language."""
    shared, rows = made.shared(made.measure), made.retrievers
    heading(f"{made.measure}: {pluralize(len(rows), 'retriever')}, {pluralize(len(made.datasets), 'dataset')}")
    # The last columns are left out where a terminal is narrow.
    heads = ["retriever", "macro mean", "weighted mean", *made.datasets]
    cells = [
        [
            row.name,
            format_score(row.macro(made.measure, shared.values())),
            format_score(row.weighted(made.measure, shared.values())),
            *(
                format_score(row.runs[one.hash].mean(made.measure)) if one.hash in row.runs else ""
                for one in made.datasets.values()
            ),
        ]
        for row in rows
    ]
    counts = ["queries", "", "", *(f"{one.queries:,}" for one in made.datasets.values())]
    show_table(plain_table(heads, [*cells, counts]))
    if made.nearby:
        over = made.shared(*made.nearby)
        heading(f"\n{join_words(made.nearby)}, macro means over {join_words([*over])}")
        both = [[row.name, *(format_score(row.macro(name, over.values())) for name in made.nearby)] for row in rows]
        show_table(plain_table(["retriever", *made.nearby], both))
    means = [row.by_language(made.measure, shared.values(), made.surprise) for row in rows]
    languages = sorted({language for one in means for language in one.languages})
    if len(languages) > 1:
        heading(f"\n{made.measure} by query language, every language alike")
        apart = ["known", "surprise"] if any(one.surprise is not None for one in means) else []
        parts = [
            [
                row.name,
                *(format_score(getattr(one, name)) for name in (*apart, "every")),
                *map(format_score, map(one.languages.get, languages)),
            ]
            for row, one in zip(rows, means, strict=True)
        ]
        show_table(plain_table(["retriever", *apart, "all", *languages], parts))
