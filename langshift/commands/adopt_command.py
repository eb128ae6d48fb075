"""The command ``adopt``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from langshift.commands.ingest_options import (
    ALPHA,
    LANGUAGE_VECTORS,
    LEAST_CONFIDENCE,
    LID_MODEL,
    PATIENCE,
    encoder_options,
)
from langshift.commands.langshift_options import JSON
from langshift.errors import UsageError

if TYPE_CHECKING:
    from langshift.plugin.target import IfExists


@click.command()
@click.argument("old")
@click.option("--name", metavar="NEW", help="The name of the new index; not needed with --audit.")
@click.option("--vector-field", "vector", required=True, metavar="F", help="The field of OLD that holds the vectors.")
@click.option(
    "--text-field",
    "texts",
    required=True,
    multiple=True,
    metavar="T",
    help="A field of OLD with text, of which languages are detected; again for more. Word search looks into them.",
)
@click.option(
    "--language-field",
    "language",
    metavar="L",
    help="A field of OLD that names a document's language as a BCP 47 tag (th, zh-TW). [default: detected]",
)
@encoder_options
@LANGUAGE_VECTORS
@ALPHA
@LID_MODEL
@LEAST_CONFIDENCE
@click.option(
    "--if-exists",
    type=click.Choice(["fail", "replace", "new-version"]),
    default="fail",
    show_default=True,
    help="Where NEW exists: refuse, put a new version in its place, or do so and keep the old one.",
)
@PATIENCE
@click.option(
    "--audit", is_flag=True, help="Only read a random sample of OLD and say what a shift would change; write nothing."
)
@click.option(
    "--sample",
    type=click.IntRange(100, 10_000),
    metavar="N",
    help="With --audit: how many documents to draw, and how many queries to take at most. [default: 2000]",
)
@click.option(
    "--queries",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --audit: queries in BEIR's layout (queries.jsonl); with --encoder given each brings its `embedding`. "
    "[default: the documents stand in for them]",
)
@JSON
def adopt(
    old: str,
    name: str | None,
    vector: str,
    texts: tuple[str, ...],
    language: str | None,
    encoder: str,
    trust_remote_code: bool,
    vectors: Path | None,
    alpha: float | None,
    lid_model: Path | None,
    min_confidence: float,
    if_exists: IfExists,
    patience: float,
    audit: bool,
    sample: int | None,
    queries: Path | None,
    as_json: bool,
) -> None:
    """Take over OLD, an index (or alias) with vectors that anybody has made, as NEW.

    Its documents are read, their languages detected, their vectors shifted, and all is written to a new index with
    the same fields, mapping, analyzers and settings; nothing is encoded: --encoder only names what made the vectors.
    Each document also gets its language, how certain that is, and what was done to its vector. NEW is searched,
    measured and retuned as any index of langshift's.

    OLD is never written to, not even refreshed: what no search of OLD finds yet, and what is written to OLD while it
    is read or later, is not in NEW. Send new documents to NEW too (see langshift pipeline), or stop writing to OLD.
    A document that NEW does not take goes to the dead letters, and the exit code is 3. A run that is cut off leaves
    nothing of NEW behind: run it again.

    \b
    Example:
      langshift adopt old-articles --audit --vector-field vec --text-field headline --text-field body
      langshift adopt old-articles --name news --vector-field vec --text-field headline --text-field body
      langshift adopt old-articles --name news --vector-field vec --text-field body --language-field meta.lang
    """
    from langshift.commands.audit_run import SAMPLE, run_audit
    from langshift.commands.run import Options, run
    from langshift.ingest.adopt.adopting import Asked
    from langshift.ingest.making_options import MakingOptions
    from langshift.ingest.opened_load import LoadOptions

    if not audit and (sample is not None or queries is not None):
        raise UsageError("--sample and --queries say what --audit looks at: give --audit too.")
    making = MakingOptions(
        encoder=encoder,
        trust_remote_code=trust_remote_code,
        vectors=vectors,
        alpha=alpha,
        method="shift",
        soft=False,
        lid_model=lid_model,
        least_confidence=min_confidence,
    )
    asked = Asked(old, vector, texts, language, making)
    if audit:
        run_audit(asked, sample or SAMPLE, queries, patience, as_json=as_json)
        return
    if name is None:
        raise UsageError("Give the new index a name with --name, or only look at the old one with --audit.")
    code = run(Options(asked, name, LoadOptions(if_exists, patience=patience), as_json))
    if code:
        click.get_current_context().exit(code)
