"""``langshift evaluate offline``: its options, and what it does and prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from langshift.commands.langshift_options import JSON, parse_list
from langshift.commands.options import (
    FOLDER,
    Sides,
    choose_making,
    encode_shown,
    encoding_options,
    parse_sides,
    parse_sources,
)
from langshift.retrieval.options import FiniteRange, Share

if TYPE_CHECKING:
    from langshift.evaluate.offline.encoding import Encoded
    from langshift.evaluate.offline.found import Offline
    from langshift.evaluate.offline.setting import Setting
    from langshift.evaluate.offline.sources import Source
    from langshift.ingest.making import Making

_FILES = "run.trec, group-scores.jsonl, per-query.jsonl and result.json"


@click.command("offline")
@click.argument("dataset", type=FOLDER)
@encoding_options
@click.option(
    "--method",
    "methods",
    default="shift",
    show_default=True,
    callback=partial(parse_list, example="none,shift,affine"),
    metavar="LIST",
    help="What takes language out of the vectors: none, shift, centering, lir, affine.",
)
@click.option(
    "--alpha",
    type=Share(),
    metavar="A",
    help="Scale of shift and affine, 0 to 1; what the language vectors recommend, else 1, if not given.",
)
@click.option(
    "--shift-queries",
    default="auto",
    show_default=True,
    callback=parse_sides,
    metavar="LIST",
    help="Whether queries move, too: never, always, or auto, as the language vectors recommend, else never.",
)
@click.option(
    "--language-from",
    "sources",
    default="given",
    show_default=True,
    callback=parse_sources,
    metavar="LIST",
    help="Languages by which documents move: given by the dataset, detected, detected:20 (from 20 characters), "
    "soft or soft:20 (all that are possible).",
)
@click.option(
    "--beta",
    type=FiniteRange(0),
    default=0.0,
    show_default=True,
    metavar="B",
    help="Language preference: added to the cosine of documents in the query's language.",
)
@click.option("--measures", metavar="NAMES", help="Measures, such as 'nDCG@20 TLR@20 SLR@20 LPR'.")
@click.option("--output", type=FOLDER, metavar="FOLDER", help="Write the run, group scores and result.json here.")
@JSON
def offline(
    dataset: Path,
    encoder: str,
    trust_remote_code: bool,
    vectors: Path | None,
    pivot: str | None,
    cache: Path | None,
    methods: list[str],
    alpha: float | None,
    shift_queries: list[str],
    sources: list[Source],
    beta: float,
    measures: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Search DATASET exactly, without a cluster, and score the answers.

    Documents and queries are encoded here, documents moved as ingest moves them, and every query is
    compared with every document by cosine. The best 100 documents count. Languages that the dataset does
    not name are detected; measures go by the dataset's languages, whatever --language-from says. --output
    gets run.trec, group-scores.jsonl, per-query.jsonl and result.json, which `langshift evaluate compare`
    reads.

    Several methods, sources of languages or sides make one table, and one folder each in --output. The
    methods centering and lir change queries, too, and have no alpha.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
      langshift evaluate offline xquad8 --method none,shift,centering,lir,affine --vectors FILE
      langshift evaluate offline xquad8 --method none,shift --shift-queries never,always
      langshift evaluate offline xquad8 --method none,shift --language-from given,detected,detected:20
    """
    from langshift import console
    from langshift.evaluate.datasets.dataset import load_dataset
    from langshift.evaluate.offline.found import result, write_files
    from langshift.evaluate.offline.setting import settings
    from langshift.evaluate.replay.result import check_output
    from langshift.evaluate.report.offline_tables import show, show_rows
    from langshift.evaluate.scoring import parse_names

    if output is not None:
        check_output(output)
    given = load_dataset(dataset)
    names = parse_names(measures, given)
    sides = Sides(encoder, trust_remote_code, vectors, pivot, cache)
    making = choose_making(given, sides, 0.0 if methods == ["none"] else alpha, methods)
    rows = settings(making.debias.vectors, methods, alpha, shift_queries, sources)
    folders = _folders(output, rows)
    encoded = encode_shown(given, making.encoder, cache)
    documents = []
    for found in _evaluated(encoded, making, rows, names, beta):
        documents.append(result(found))
        if found.setting.name in folders:
            folder = folders[found.setting.name]
            write_files(folder, found, documents[-1], folder.name or "offline")
    for warning in dict.fromkeys(warning for document in documents for warning in document["warnings"]):
        console.note(f"Warning: {warning}")
    if as_json:
        console.emit_json(documents[0] if len(rows) == 1 else {"rows": documents})
        return
    if len(rows) == 1:
        show(dataset, rows[0], documents[0])
    else:
        show_rows(dataset, list(zip(rows, documents, strict=True)))
    if output is not None:
        told = f"to {output}" if len(rows) == 1 else f"for each of {', '.join(folders)} to {output}"
        console.note(f"Wrote {_FILES} {told}.")


def _folders(output: Path | None, rows: Sequence[Setting]) -> dict[str, Path]:
    """Setting's name -> where its files go; nothing where none are written.

    Raises:
        UsageError: one of these places cannot be written to.
    """
    from langshift.evaluate.replay.result import check_output

    if output is None:
        return {}
    if len(rows) == 1:
        return {rows[0].name: output}
    folders = {setting.name: output / setting.name for setting in rows}
    for folder in folders.values():
        check_output(folder)
    return folders


def _evaluated(
    encoded: Encoded, making: Making, rows: Sequence[Setting], names: Sequence[str], beta: float
) -> Iterator[Offline]:
    """One evaluation after the other, with a progress bar."""
    from langshift import console
    from langshift.evaluate.offline.found import evaluate
    from langshift.evaluate.offline.sources import tell

    told = tell(encoded, [setting.source for setting in rows], making)
    with console.progress() as bars:
        searching = bars.add_task("Searching", total=len(encoded.queries) * len(rows), rate="")
        for setting in rows:
            bars.update(searching, rate=setting.name)
            yield evaluate(
                encoded,
                setting,
                told[setting.source],
                making,
                names,
                beta=beta,
                on_queries=lambda done: bars.advance(searching, done),
            )
