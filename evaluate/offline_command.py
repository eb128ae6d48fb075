"""``langshift evaluate offline``: its options, and what it does and prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from langshift.options import JSON

if TYPE_CHECKING:
    from langshift.evaluate.dataset import Dataset
    from langshift.evaluate.offline.encoding import Encoded
    from langshift.evaluate.offline.found import Offline
    from langshift.ingest.encoders import Encoder
    from langshift.ingest.making import Making

_FOLDER = click.Path(path_type=Path)
_Command = TypeVar("_Command", bound=Callable[..., object])


def encoding_options(command: _Command) -> _Command:
    """The options that say how texts become vectors."""
    for option in reversed(
        (
            click.option("--encoder", default="use-m", show_default=True, help="The encoder of both sides."),
            click.option(
                "--vectors",
                type=_FOLDER,
                metavar="FILE",
                help="Language vectors; those that come with langshift if not given.",
            ),
            click.option(
                "--pivot",
                metavar="LANGUAGE",
                help="Move the language vectors to this pivot; the file's own pivot if not given.",
            ),
            click.option(
                "--cache",
                type=_FOLDER,
                metavar="FOLDER",
                help="Keep the encodings here, for the next time; not kept if not given.",
            ),
        )
    ):
        command = option(command)
    return command


@click.command("offline")
@click.argument("dataset", type=_FOLDER)
@encoding_options
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1),
    metavar="A",
    help="Scale of the shift, 0 to 1; what the language vectors recommend, else 1, if not given.",
)
@click.option(
    "--beta",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    metavar="B",
    help="Language preference: added to the cosine of documents in the query's language.",
)
@click.option("--measures", metavar="NAMES", help="Measures, such as 'nDCG@20 TLR@20 SLR@20 LPR'.")
@click.option("--output", type=_FOLDER, metavar="FOLDER", help="Write the run, group scores and result.json here.")
@JSON
def offline(
    dataset: Path,
    encoder: str,
    vectors: Path | None,
    pivot: str | None,
    cache: Path | None,
    alpha: float | None,
    beta: float,
    measures: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Search DATASET exactly, without a cluster, and score the answers.

    Documents and queries are encoded here, documents shifted as ingest shifts them, and every query is
    compared with every document by cosine. The best 100 documents count. Languages that the dataset does
    not name are detected. --output gets run.trec, group-scores.jsonl, per-query.jsonl and result.json,
    which `langshift evaluate compare` reads.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
      langshift evaluate offline xquad8 --alpha 0 --output results/plain
      langshift evaluate offline xquad8 --alpha 1 --output results/shifted
    """
    from langshift import console
    from langshift.evaluate.dataset import load_dataset
    from langshift.evaluate.offline.found import evaluate, result, write_files
    from langshift.evaluate.result import check_output
    from langshift.evaluate.scoring import parse_names

    if output is not None:
        check_output(output)
    given = load_dataset(dataset)
    names = parse_names(measures, given)
    encoded, making = prepare(given, encoder, vectors, pivot, cache, alpha)
    with console.progress() as bars:
        searching = bars.add_task("Searching", total=len(encoded.queries), rate="")
        found = evaluate(encoded, making, names, beta=beta, on_queries=lambda done: bars.advance(searching, done))
    document = result(found)
    for warning in document["warnings"]:
        console.note(f"Warning: {warning}")
    if output is not None:
        write_files(output, found, document, output.name or "offline")
    if as_json:
        console.emit_json(document)
    else:
        show(found)
        if output is not None:
            console.note(f"Wrote run.trec, group-scores.jsonl, per-query.jsonl and result.json to {output}.")


def prepare(
    dataset: Dataset, name: str, vectors: Path | None, pivot: str | None, cache: Path | None, alpha: float | None
) -> tuple[Encoded, Making]:
    """Encode a dataset, with progress bars, and choose the language vectors.

    Raises:
        UsageError: an encoder, file of vectors or pivot that cannot be used.
        FingerprintError: the vectors were fitted with another encoder.
    """
    from langshift.evaluate.result import check_output
    from langshift.ingest.encoders import open_encoder

    if cache is not None:
        check_output(cache, "--cache")
    encoder = open_encoder(name)
    making = _making(encoder, vectors, pivot, alpha)
    return _encode(dataset, encoder, cache), making


def _making(encoder: Encoder, vectors: Path | None, pivot: str | None, alpha: float | None) -> Making:
    from dataclasses import replace

    from langshift.errors import UsageError
    from langshift.evaluate.offline.ranking import repivoted
    from langshift.ingest.detect import open_detector
    from langshift.ingest.making import choose

    making = choose(encoder, open_detector(), vectors, alpha)
    if pivot is None:
        return making
    if making.vectors is None:
        raise UsageError(f"--pivot {pivot} has nothing to move: give language vectors with --vectors.")
    return replace(making, vectors=repivoted(making.vectors, pivot))


def _encode(dataset: Dataset, encoder: Encoder, cache: Path | None) -> Encoded:
    from langshift import console
    from langshift.evaluate.offline.encoding import encode

    with console.progress() as bars:
        totals = {"documents": len(dataset.documents), "queries": len(dataset.queries)}
        tasks = {kind: bars.add_task(f"Encoding {kind}", total=total, rate="") for kind, total in totals.items()}
        return encode(dataset, encoder, cache, lambda kind, done: bars.advance(tasks[kind], done))


def show(found: Offline) -> None:
    """Print measures, and by query language where there are several."""
    from langshift import console
    from langshift.evaluate.scoring import by_language
    from langshift.evaluate.shown import figure, heading

    names, asked = list(found.scores), len(found.encoded.queries)
    pivot = f", pivot {found.fingerprint.pivot}" if found.fingerprint.alpha else ""
    beta = f", beta {found.beta:g}" if found.beta else ""
    folder = found.encoded.dataset.folder
    heading(f"{folder}: {asked:,} queries, exact search, alpha {found.fingerprint.alpha:g}{pivot}{beta}")
    rows = [[name, figure(scores.mean), f"{scores.queries:,}"] for name, scores in found.scores.items()]
    console.table(None, ["measure", "mean", "queries"], rows, right={"mean", "queries"})
    languages = by_language(found.scores, found.encoded.languages)
    if len(languages) > 1:
        rows = [
            [language, *(figure(scores[name].mean) for name in names), f"{scores[names[0]].queries:,}"]
            for language, scores in languages.items()
        ]
        heading("\nBy query language")
        console.table(None, ["language", *names, "queries"], rows, right={*names, "queries"})
