"""The commands of this room: ``evaluate replay``, ``dataset convert`` and ``demo``."""

from __future__ import annotations

from pathlib import Path

import click

from langshift.options import JSON, parse_list

_FOLDER = click.Path(path_type=Path)


@click.group()
def evaluate() -> None:
    """Measure an index on the live cluster.

    \b
    Example:
      langshift evaluate replay DATASET --index news
    """


@evaluate.command("replay")
@click.argument("dataset", type=_FOLDER)
@click.option("--index", "name", required=True, metavar="NAME", help="The index to search.")
@click.option(
    "--mode",
    type=click.Choice(["dense", "lexical"]),
    default="dense",
    show_default=True,
    help="How to search.",
)
@click.option("--output", type=_FOLDER, metavar="FOLDER", help="Write run.trec, per-query.jsonl and result.json here.")
@JSON
def replay_command(dataset: Path, name: str, mode: str, output: Path | None, as_json: bool) -> None:
    """Send every query of DATASET to the cluster, and score the answers.

    DATASET is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv. The best 100 documents
    are asked for, one query at a time. Without --output nothing is written.

    \b
    TLR@20 is the recall of relevant documents in other languages than the query's,
    SLR@20 of those in the query's own language.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh --no-language
      langshift ingest xquad8/corpus.jsonl --index xquad
      langshift evaluate replay xquad8 --index xquad --output results/xquad
    """
    from langshift.evaluate.replay_command import run

    run(dataset, name, mode="lexical" if mode == "lexical" else "dense", output=output, as_json=as_json)


@click.group()
def dataset() -> None:
    """Make dataset folders: a corpus, queries, and which document answers which query.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
    """


@dataset.group()
def convert() -> None:
    """Make a dataset folder from a published collection.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
    """


@convert.command("xquad")
@click.argument("folder", type=_FOLDER)
@click.argument("out", type=_FOLDER)
@click.option(
    "--languages",
    callback=parse_list,
    metavar="LIST",
    help="Languages to pool, such as ar,de,en; all that FOLDER has if not given.",
)
@click.option("--pivot", default="en", show_default=True, help="The language of the queries.")
@click.option(
    "--no-language",
    is_flag=True,
    help="Leave languages out of corpus.jsonl, for ingest to detect; languages.tsv keeps them for measuring.",
)
@JSON
def convert_xquad_command(
    folder: Path, out: Path, languages: list[str] | None, pivot: str, no_language: bool, as_json: bool
) -> None:
    """Make the pooled multilingual set OUT from XQuAD's files in FOLDER.

    FOLDER holds en.json, de.json and so on, or xquad.en.json. The corpus holds every language's
    version of each paragraph, and all versions of a paragraph are relevant to its questions.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh --pivot en
    """
    from langshift.console import emit_json, note
    from langshift.evaluate.xquad import convert_xquad

    made = convert_xquad(folder, out, languages=languages, pivot=pivot, with_language=not no_language)
    if as_json:
        emit_json(made.to_dict())
        return
    note(
        f"Wrote {made.folder}: {made.documents:,} passages in {len(made.languages)} languages, "
        f"{made.queries:,} questions in {made.pivot}, {made.judgements:,} judgements."
    )


@click.command()
@click.option("--output", type=_FOLDER, metavar="FOLDER", help="Write the runs and figures of both indices here.")
@JSON
def demo(output: Path | None, as_json: bool) -> None:
    """Index the bundled corpus twice, without and with the shift, and show what changes.

    The corpus is 44 topics in 12 languages with two questions each in every language. It is written
    to the indices langshift-demo-plain and langshift-demo-shifted, which are replaced.

    \b
    Example:
      langshift demo
    """
    from langshift.evaluate.demo_command import run

    run(output, as_json=as_json)
