"""The commands of this room: ``ingest``, ``search`` and ``vectors``."""

from __future__ import annotations

from pathlib import Path

import click

from langshift.options import JSON, Share, parse_list

_ENCODER = click.option("--encoder", default="use-m", show_default=True, metavar="NAME", help="The encoder: use-m.")


@click.command()
@click.argument("corpus")
@click.option("--index", "name", required=True, metavar="NAME", help="The index, made if there is none.")
@_ENCODER
@click.option("--vectors", type=click.Path(path_type=Path), metavar="FILE", help="Language vectors. [default: shipped]")
@click.option(
    "--alpha",
    type=Share(),
    metavar="A",
    help="Scale of the shift, 0 (none) to 1. [default: what the vectors recommend, else 1]",
)
@click.option(
    "--lid-model",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A fastText model that detects languages. [default: the bundled lid.176.ftz]",
)
@click.option(
    "--min-confidence",
    type=Share(),
    default=0.5,
    show_default=True,
    metavar="P",
    help="A detection below this makes a document `und`, which is not shifted.",
)
@JSON
def ingest(
    corpus: str,
    name: str,
    encoder: str,
    vectors: Path | None,
    alpha: float | None,
    lid_model: Path | None,
    min_confidence: float,
    as_json: bool,
) -> None:
    """Index CORPUS: detect each document's language, encode it, shift it, write it.

    CORPUS is a JSONL file (_id, title, text, language, group and any other field; plain, gzip or zstd), or
    - for standard input. A document's own language wins over detection. The whole corpus is read once
    before anything is written: a line that cannot be used stops the command, with the index as it was.

    \b
    Example:
      langshift ingest corpus.jsonl --index news
    """
    from langshift.ingest.ingest_command import run

    run(corpus, name, encoder, vectors, alpha, lid_model, min_confidence, as_json=as_json)


@click.command()
@click.argument("name")
@click.argument("words")
@click.option(
    "--mode", type=click.Choice(["dense", "lexical"]), default="dense", show_default=True, help="How to search."
)
@click.option("--language", metavar="TAG", help="The query's language. [default: detected among the index's own]")
@click.option("--size", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many hits.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Only documents with this value; several values of one field are alternatives.",
)
@JSON
def search(
    name: str, words: str, mode: str, language: str | None, size: int, filters: tuple[str, ...], as_json: bool
) -> None:
    """Search the index NAME for WORDS.

    \b
    Example:
      langshift search news "how do tides come about" --filter language=th --filter language=de
    """
    from langshift.ingest.search_command import run

    run(name, words, mode, language, size, filters, as_json=as_json)


@click.group()
def vectors() -> None:
    """Language vectors: fit them on parallel text, and look at them.

    \b
    Example:
      langshift vectors show use-m
    """


@vectors.command("fit")
@click.option("--pairs", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="Files <lang>.txt.")
@click.option(
    "--languages", callback=parse_list, metavar="LIST", help="Such as ar,de,en. [default: all that FOLDER has]"
)
@click.option("--pivot", default="en", show_default=True, metavar="TAG", help="The language to shift towards.")
@_ENCODER
@click.option("--output", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Where to write them.")
@click.option(
    "--join-lines",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Join N consecutive lines to one passage: vectors are best fitted on texts as long as the index's.",
)
@click.option(
    "--documents",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A document id a line: joined passages never cross documents.",
)
@JSON
def fit(
    pairs: Path,
    languages: list[str] | None,
    pivot: str,
    encoder: str,
    output: Path,
    join_lines: int,
    documents: Path | None,
    as_json: bool,
) -> None:
    """Fit language vectors on parallel text: the mean difference to the pivot language's embeddings.

    FOLDER holds one file a language, such as th.txt and en.txt, whose lines are translations of each other.

    \b
    Example:
      langshift vectors fit --pairs parallel --pivot en --output mine.safetensors
    """
    from langshift.ingest.vectors_command import run_fit

    run_fit(pairs, languages, pivot, encoder, output, join_lines, documents, as_json=as_json)


@vectors.command("show")
@click.argument("file")
@JSON
def show(file: str, as_json: bool) -> None:
    """Show what is in FILE, or in the language vectors shipped for an encoder (use-m).

    \b
    Example:
      langshift vectors show use-m
    """
    from langshift.ingest.vectors_command import run_show

    run_show(file, as_json=as_json)
