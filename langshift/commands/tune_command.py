"""``langshift vectors tune``: its options, and what it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from langshift.commands.ingest_options import pairs_encoder_options, passage_options
from langshift.commands.langshift_options import JSON
from langshift.retrieval.options import Share

if TYPE_CHECKING:
    from langshift.debias.encoders import Encoder
    from langshift.debias.parallel.rows import ParallelText
    from langshift.debias.vectors import LanguageVectors
    from langshift.evaluate.tune.items import Items
    from langshift.evaluate.tune.task import Task

_PATH = click.Path(path_type=Path)


@click.command("tune")
@click.argument("file", type=_PATH)
@click.option("--pairs", type=_PATH, required=True, metavar="PATH", help="Parallel text, as for `vectors fit`.")
@passage_options
@click.option(
    "--budget",
    type=Share(),
    default=0.01,
    show_default=True,
    metavar="B",
    help="How much of SLR@20, recall in the query's own language, the shift may cost.",
)
@pairs_encoder_options
@click.option(
    "--sample",
    type=click.IntRange(min=100),
    metavar="N",
    help="How many items to use, evenly spread. [default: 600, fewer where there are more than eight languages]",
)
@click.option("--plot", type=_PATH, metavar="FILE", help="Draw the curves here: .svg, .png or .pdf.")
@JSON
def tune(
    file: Path,
    pairs: Path,
    join_lines: int,
    documents: Path | None,
    budget: float,
    encoder: str | None,
    trust_remote_code: bool,
    sample: int | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Find by parallel text how far documents are to be shifted with FILE, and write that into FILE.

    A task is made of the text: about ten words from the middle of an item are a question in each language,
    and the whole item is to be found in every language. The alpha with the highest TLR@20 over all query
    languages alike is looked for, as long as SLR@20 falls by no more than --budget; then whether queries in
    other languages than the pivot are to be shifted too, and whether single languages need an alpha of their
    own. Each is recommended only where it gains more than chance on fifths of the text that had no part in
    the choice; where nothing does, alpha 0 is recommended: do not shift this model.

    The vectors of FILE are judged as they are. Where they were fitted on this same text (as many pairs in
    every language), each fifth is judged without its share in them.

    \b
    Example:
      langshift vectors fit --pairs NTREX --pivot en --languages en,de,th --output mine.safetensors
      langshift vectors tune mine.safetensors --pairs NTREX --plot curve.svg
    """
    from langshift import console
    from langshift.debias.encoders import open_encoder
    from langshift.evaluate.tune.choosing import tune as find
    from langshift.evaluate.tune.judging import Judge
    from langshift.evaluate.tune.plot import plot as draw
    from langshift.evaluate.tune.plot import require_plotting
    from langshift.evaluate.tune.report import Report
    from langshift.evaluate.tune.tables import show
    from langshift.evaluate.tune.words import warnings

    if plot is not None:
        require_plotting(plot)
    vectors = _load(file)
    source, absent = _open(pairs, join_lines, documents, vectors)
    opened = open_encoder(encoder or vectors.encoder, trust_remote_code=trust_remote_code)
    vectors.require_encoder(opened, str(file))
    items, few, same_text = _sample(source, vectors, sample)
    task = _encode(items, opened)
    with console.progress() as bars:
        searches = bars.add_task("Searching", total=None, rate="")
        judge = Judge(task, vectors, same_text=same_text, on_point=lambda: bars.advance(searches))
        found = find(judge, budget)
    report = Report(pairs.resolve().name, judge, found, absent, few, same_text)
    report.recommended().save(file)
    if plot is not None:
        draw(report, plot)
    for warning in warnings(report):
        console.note(f"Warning: {warning}")
    if as_json:
        console.emit_json({"file": str(file), **report.document()})
        return
    show(report)
    console.note(f"Wrote the recommendation into {file}.")
    if plot is not None:
        console.note(f"Drew the curves in {plot}.")


def _load(file: Path) -> LanguageVectors:
    from langshift.commands.vectors_command import check_output
    from langshift.debias.encoders import is_given
    from langshift.debias.vectors import LanguageVectors
    from langshift.errors import UsageError

    vectors = LanguageVectors.load(file)
    check_output(file)
    if is_given(vectors.encoder):
        raise UsageError(
            f"{file}: was fitted on given vectors, and no question can be cut out of a vector: tune with texts, and "
            "vectors fitted with the encoder that reads them."
        )
    return vectors


def _open(
    pairs: Path, join_lines: int, documents: Path | None, vectors: LanguageVectors
) -> tuple[ParallelText, list[str]]:
    """The parallel text in the languages of the vectors, and those of them that it does not have."""
    from langshift.debias.parallel import open_parallel
    from langshift.errors import UsageError

    whole = open_parallel(pairs, join_lines=join_lines, documents=documents)
    if whole.dimension is not None:
        raise UsageError(f"{whole.shown}: holds vectors, and no question can be cut out of a vector: give texts.")
    theirs = ", ".join(whole.languages)
    if vectors.pivot not in whole.languages:
        raise UsageError(f"{whole.shown}: has no text in the vectors' pivot language {vectors.pivot}; it has {theirs}.")
    used = sorted(set(vectors.vectors) & set(whole.languages))
    if not used:
        mine = ", ".join(sorted(vectors.vectors))
        raise UsageError(f"{whole.shown}: has no text in any language of the vectors ({mine}); it has {theirs}.")
    chosen = open_parallel(pairs, [vectors.pivot, *used], join_lines=join_lines, documents=documents)
    return chosen, sorted(set(vectors.vectors) - set(used))


def _sample(source: ParallelText, vectors: LanguageVectors, sample: int | None) -> tuple[Items, list[str], bool]:
    """The items, the languages that too few of them have, and whether the vectors were fitted on this text."""
    from langshift.evaluate.tune.items import default_sample, sample_items, well_covered

    used = [tag for tag in source.languages if tag != vectors.pivot]
    items = sample_items(source, vectors.pivot, used, sample or default_sample(len(used) + 1))
    same_text = all(items.pairs[tag] == vectors.pairs[tag] for tag in used)
    return *well_covered(items), same_text


def _encode(items: Items, encoder: Encoder) -> Task:
    from langshift import console
    from langshift.evaluate.tune.task import make_task

    with console.progress() as bars:
        texts = sum(bool(text) for of in items.texts.values() for text in of)
        shown = bars.add_task("Encoding items and questions", total=2 * texts, rate="")
        return make_task(items, encoder, lambda done: bars.advance(shown, done))
