"""The commands of ``langshift vectors``: making, showing and judging files of language vectors."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from langshift.commands.import_command import import_
from langshift.commands.ingest_options import encoder_options, pairs_encoder_options, passage_options
from langshift.commands.langshift_options import JSON, parse_list

_PATH = click.Path(path_type=Path)


@click.group()
def vectors() -> None:
    """Language vectors: fit them on parallel text, look at them, and judge them.

    \b
    Example:
      langshift vectors show use-m
    """


@vectors.command("fit")
@click.option("--pairs", type=_PATH, required=True, metavar="PATH", help="Parallel text, or given vectors.")
@click.option("--languages", callback=parse_list, metavar="LIST", help="Such as ar,de,en. [default: all that PATH has]")
@click.option(
    "--pivot",
    "pivots",
    default="en",
    show_default=True,
    callback=partial(parse_list, example="en,de"),
    metavar="LIST",
    help="The language to shift towards; several are fitted in one pass.",
)
@click.option(
    "--methods",
    default="shift",
    show_default=True,
    callback=partial(parse_list, example="shift,lir"),
    metavar="LIST",
    help="What to fit: shift and centering (always), lir, affine.",
)
@encoder_options
@click.option(
    "--output",
    type=_PATH,
    required=True,
    metavar="FILE",
    help="Where to write them; with several pivots a folder, which gets <pivot>.safetensors.",
)
@passage_options
@JSON
def fit(
    pairs: Path,
    languages: list[str] | None,
    pivots: list[str],
    methods: list[str],
    encoder: str,
    trust_remote_code: bool,
    output: Path,
    join_lines: int,
    documents: Path | None,
    as_json: bool,
) -> None:
    """Fit language vectors on parallel text: the mean difference to the pivot language's embeddings.

    PATH is a folder with one file a language, such as th.txt and en.txt, whose lines are translations of each
    other; or a TSV, JSONL or Parquet file with a column a language; or mMARCO's collections; or, with --encoder
    given, vectors of your own making. A pair that lacks a side is left out and counted as missing.

    \b
    Example:
      langshift vectors fit --pairs parallel --pivot en --output mine.safetensors
      langshift vectors fit --pairs parallel --pivot en,de,zh --methods shift,affine --output vectors
    """
    from langshift.commands.vectors_command import run_fit

    run_fit(
        pairs, languages, pivots, methods, encoder, output, join_lines, documents,
        trust_remote_code=trust_remote_code, as_json=as_json,
    )  # fmt: skip


@vectors.command("show")
@click.argument("file")
@JSON
def show(file: str, as_json: bool) -> None:
    """Show what is in FILE, or in the language vectors shipped for an encoder (use-m).

    \b
    Example:
      langshift vectors show use-m
    """
    from langshift.commands.vectors_command import run_show

    run_show(file, as_json=as_json)


@vectors.command("check")
@click.argument("file")
@click.option(
    "--pairs", type=_PATH, metavar="PATH", help="Gather the evidence anew on this parallel text, as for `vectors fit`."
)
@pairs_encoder_options
@passage_options
@JSON
def check(
    file: str,
    pairs: Path | None,
    encoder: str | None,
    trust_remote_code: bool,
    join_lines: int,
    documents: Path | None,
    as_json: bool,
) -> None:
    """Judge FILE, or the language vectors shipped for an encoder, language by language.

    The evidence was gathered when FILE was fitted. With --pairs it is gathered anew on that text, and the
    vectors fitted there are compared with FILE's: use text like that which you index.

    \b
    Columns: missing, rows that lack a side; norm of V, in per cent of the embeddings' norm; halves,
    the mean cosine between V of random halves of the pairs, and where 95 % of them lie; enough,
    pairs for an expected cosine of .95 with the true V; suspect, pairs that look misaligned;
    cosine with the V that --pairs gives.

    \b
    Verdicts, by the first rule that holds:
      use            the vector is under 1 % as long as embeddings: nothing to gain or to lose
      do not use     there are fewer than 10 pairs; or two halves of them give vectors with a cosine
                     under .33: the error is longer than what the shift removes; or --pairs gives
                     another vector (cosine under .71)
      use with care  that cosine of the halves is under .82: more pairs are needed; or more than
                     5 % of the pairs look misaligned; or the encoder tells texts of the language
                     apart too poorly to say; or --pairs gives a cosine under .9
      use            otherwise

    \b
    Example:
      langshift vectors check mine.safetensors
      langshift vectors check use-m --pairs parallel --join-lines 3
    """
    from langshift.commands.ingest_check_command import run_check

    run_check(
        file, pairs, encoder, join_lines, documents, trust_remote_code=trust_remote_code, as_json=as_json
    )  # fmt: skip


vectors.add_command(import_)
