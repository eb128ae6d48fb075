"""``langshift evaluate sweep``: its options, and what it does and prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from langshift.commands.langshift_options import JSON
from langshift.commands.options import FOLDER, Sides, choose_making, encode_shown, encoding_options

if TYPE_CHECKING:
    from langshift.evaluate.datasets.dataset import Dataset
    from langshift.evaluate.offline.encoding import Encoded
    from langshift.evaluate.offline.sweep import Sweep
    from langshift.ingest.making import Making

_ALPHAS = "0,.1,.2,.3,.4,.5,.6,.7,.8,.9,1"


def _numbers(ctx: click.Context, parameter: click.Parameter, given: str | None) -> list[float]:  # noqa: ARG001
    """``"0,.5,1"`` as ascending numbers, each once; none where the option was not given."""
    try:
        numbers = sorted({float(part) for part in (given or "").split(",") if part.strip()})
    except ValueError:
        numbers = [-1.0]
    highest = 1.0 if parameter.name == "alphas" else float("inf")
    if any(not 0 <= number <= highest or number == float("inf") for number in numbers) or (given and not numbers):
        reach = "from 0 to 1" if highest == 1 else "from 0 up"
        raise click.BadParameter(f"{given!r} is no list of numbers {reach}, parted by commas, such as 0,.02,.05,.1.")
    return numbers


@click.command("sweep")
@click.argument("dataset", type=FOLDER)
@encoding_options
@click.option("--alpha", "alphas", default=_ALPHAS, callback=_numbers, metavar="LIST", help="Alphas to try.")
@click.option("--beta", "betas", callback=_numbers, metavar="LIST", help="Language preferences to try, if any.")
@click.option("--select", default="nDCG@20", show_default=True, metavar="NAME", help="The measure to choose by.")
@click.option("--measures", metavar="NAMES", help="Measures to report, such as 'nDCG@20 TLR@20 LPR Lang_nDCG@20'.")
@JSON
def sweep(
    dataset: Path,
    encoder: str,
    trust_remote_code: bool,
    vectors: Path | None,
    pivot: str | None,
    cache: Path | None,
    alphas: list[float],
    betas: list[float],
    select: str,
    measures: str | None,
    as_json: bool,
) -> None:
    """Try alphas on DATASET by exact search, from one encoding.

    First every alpha for all languages alike, then for one language at a time with the others at the best
    one. The best is chosen on one half of the queries and reported on the other; queries of one article
    (or, where the dataset names no articles, of one group) stay in one half. --beta adds a table of language
    preferences, over all queries, at the smallest, the best and the largest alpha.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
      langshift evaluate sweep xquad8 --alpha 0,.25,.5,.75,1 --beta 0,.02,.05,.1
    """
    from langshift import console
    from langshift.evaluate.datasets.dataset import load_dataset
    from langshift.evaluate.offline.sweep_document import document
    from langshift.evaluate.report.sweep_tables import show

    given = load_dataset(dataset)
    names, select = _names(given, measures, select, betas)
    making = choose_making(given, Sides(encoder, trust_remote_code, vectors, pivot, cache), 1.0)
    encoded = encode_shown(given, making.encoder, cache)
    found = _sweep(encoded, making, names, select, alphas, betas)
    for warning in encoded.languages.warnings:
        console.note(f"Warning: {warning}")
    if as_json:
        console.emit_json(document(found, encoded, making, names))
    else:
        show(found, names)


def _names(dataset: Dataset, measures: str | None, select: str, betas: Sequence[float]) -> tuple[list[str], str]:
    """The measures to report, that to choose by among them, and its name as scores have it.

    Raises:
        UsageError: an unknown measure, or one that is not to be high.
    """
    from langshift.errors import UsageError
    from langshift.evaluate.datasets.dataset import PER_LANGUAGE
    from langshift.evaluate.measures import parse_measure
    from langshift.evaluate.scoring import parse_names

    chosen = parse_measure(select).name
    parse_names(chosen, dataset)
    direction = parse_measure(chosen).family.direction
    if direction != "high":
        good = "low" if direction == "low" else "neither high nor low"
        raise UsageError(f"--select {chosen} cannot choose, since {good} is good there: name another, such as nDCG@20.")
    names = parse_names(measures, dataset)
    if betas and measures is None and dataset.judged != PER_LANGUAGE:
        names.append("Lang_nDCG@20")
    return list(dict.fromkeys([chosen, *names])), chosen


def _sweep(
    encoded: Encoded, making: Making, names: list[str], select: str, alphas: list[float], betas: list[float]
) -> Sweep:
    from langshift import console
    from langshift.errors import UsageError
    from langshift.evaluate.datasets.clusters import clusters
    from langshift.evaluate.offline.sweep import Sweeper, halves, sweep

    if making.debias.vectors is None:
        raise UsageError("A sweep needs language vectors: give some with --vectors.")
    parts = halves(*clusters(encoded.dataset))
    with console.progress() as bars:
        task = bars.add_task("Searching", total=None, rate="")

        def on_point(setting: str) -> None:
            bars.update(task, advance=1, rate=setting)

        sweeper = Sweeper(encoded, making.debias.vectors, names, on_point)
        steps = len(sweeper.shiftable()) * (len(alphas) - 1)
        bars.update(task, total=len(alphas) + steps + 1 + len(betas) * min(3, len(alphas)))
        return sweep(sweeper, parts, select, alphas, betas)
