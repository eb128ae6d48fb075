"""The command ``ingest``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from langshift.commands.ingest_options import ALPHA, LANGUAGE_VECTORS, LID_MODEL, PATIENCE, encoder_options
from langshift.commands.langshift_options import JSON
from langshift.plugin.engine import ENGINES
from langshift.retrieval.options import Share

if TYPE_CHECKING:
    from langshift.plugin.engine import Engine
    from langshift.plugin.target import IfExists


@click.command()
@click.argument("corpus")
@click.option("--index", "name", required=True, metavar="NAME", help="The index, made if there is none.")
@encoder_options
@LANGUAGE_VECTORS
@ALPHA
@click.option(
    "--method",
    default="shift",
    show_default=True,
    metavar="NAME",
    help="How documents are moved: shift, or affine (a linear map of each language onto the pivot's space).",
)
@click.option(
    "--soft",
    is_flag=True,
    help="Shift a detected document by all languages that it may be in, as far as each is probable.",
)
@LID_MODEL
@click.option(
    "--min-confidence",
    type=Share(),
    default=0.5,
    show_default=True,
    metavar="P",
    help="A detection below this makes a document `und`, which is not shifted, unless by --soft.",
)
@click.option(
    "--if-exists",
    type=click.Choice(["fail", "append", "replace", "new-version"]),
    default="fail",
    show_default=True,
    help="Where the index exists: refuse, add to it, put a new version in its place, or do so and keep the old one.",
)
@click.option(
    "--template",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Own analyzers, fields and settings of a new index: JSON with any of analyzers, mappings, settings.",
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    help="What indexes the vectors of a new index; the embedded OpenSearch has lucene only. [default: lucene]",
)
@click.option("--resume", is_flag=True, help="Go on with a load that was cut off; without one, begin.")
@click.option("--fast-load", is_flag=True, help="Make a new index without replicas, which it gets at the end.")
@PATIENCE
@JSON
def ingest(
    corpus: str,
    name: str,
    encoder: str,
    trust_remote_code: bool,
    vectors: Path | None,
    alpha: float | None,
    method: str,
    soft: bool,
    lid_model: Path | None,
    min_confidence: float,
    if_exists: IfExists,
    template: Path | None,
    engine: Engine | None,
    resume: bool,
    fast_load: bool,
    patience: float,
    as_json: bool,
) -> None:
    """Index CORPUS: detect each document's language, encode it, shift it, write it.

    CORPUS is a JSONL file (_id, title, text, language, group and any other field; plain, gzip or zstd), a
    Parquet file with such columns, or - for standard input. A document's own language wins over detection.
    Of two documents with one _id the later wins; {"_op": "delete", "_id": ...} deletes. A line that cannot be
    indexed goes to the dead letters (see langshift dead-letters), and the exit code is 3.

    After a crash, a lost cluster or Ctrl-C the same command with --resume goes on; nothing is lost or doubled.

    A template {"analyzers": {"ja": "kuromoji"}} has Japanese texts analyzed by kuromoji, which the cluster must have.

    \b
    Example:
      langshift ingest corpus.jsonl --index news
      langshift ingest corpus.jsonl --index news --template own.json --engine faiss-fp16
    """
    from langshift.commands.ingest_command import Options, run
    from langshift.ingest.making_options import MakingOptions
    from langshift.ingest.opened_load import LoadOptions
    from langshift.plugin.merged_template import Shape, Template

    shape = Shape(Template.read(template) if template else None, engine)
    code = run(
        Options(
            corpus=corpus,
            name=name,
            making=MakingOptions(
                encoder=encoder,
                trust_remote_code=trust_remote_code,
                vectors=vectors,
                alpha=alpha,
                method=method,
                soft=soft,
                lid_model=lid_model,
                least_confidence=min_confidence,
            ),
            load=LoadOptions(if_exists, resume, fast_load, patience, shape),
            as_json=as_json,
        )
    )
    if code:
        click.get_current_context().exit(code)
