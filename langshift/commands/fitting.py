"""What the commands of ``vectors`` share: parallel text as it is opened, fitted on, and told of."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import AS_KNOWN, Encoder
from langshift.debias.encoders.precomputed import vector_spec_of
from langshift.debias.fitting.fit import fit
from langshift.debias.parallel import open_parallel
from langshift.debias.parallel.columns import ParallelText
from langshift.debias.vectors import LanguageVectors
from langshift.errors import FingerprintError, UsageError
from langshift.languages import parse_tag
from langshift.output import note, progress
from langshift.parameters import option, option_group

PAIRS_ENCODER = option("--encoder NAME", "The encoder for --pairs. [default: FILE's]")
#: The options that join rows of parallel text; a command is given them as ``passages``, for ``open_parallel``.
passage_options = option_group(
    "passages",
    dict,
    option(
        "--join-lines N",
        "Join N rows to one passage, about as long as the texts in the index.",
        click.IntRange(1, 1000),
        default=1,
    ),
    option("--documents FILE", "A document id for each row, which --join-lines does not cross."),
)


def open_for(pairs: Path, passages: dict[str, Any], vectors: LanguageVectors) -> tuple[ParallelText, list[str]]:
    """The parallel text in the pivot and those languages of the vectors that it has, and those that it has not."""
    found = open_parallel(pairs, **passages).languages
    used = sorted(set(vectors.vectors) & set(found))
    if vectors.pivot not in found or not used:
        raise UsageError(
            f"{pairs} must contain the pivot {vectors.pivot} and another language of the vectors "
            f"({', '.join(sorted(vectors.vectors))}); it has {', '.join(found)}."
        )
    chosen = open_parallel(pairs, [vectors.pivot, *used], pivots=[vectors.pivot], **passages)
    return chosen, sorted(set(vectors.vectors) - set(used))


def fit_shown(
    source: ParallelText,
    pivots: Sequence[str],
    encoder: Encoder,
    fit_with: Callable[..., Mapping[str, LanguageVectors]] = fit,
    **options: Any,  # noqa: ANN401 - fit's
) -> Mapping[str, LanguageVectors]:
    """Fit with a progress bar over the rows; ``options`` are for ``langshift.debias.fitting.fit.fit``."""
    with progress() as bars:
        task = bars.add_task("rows", total=source.total, rate="")
        return fit_with(source, pivots, encoder, on_rows=lambda done, _: bars.update(task, completed=done), **options)


def left_out_in_words(source: ParallelText) -> list[str]:
    """What was left out of parallel text as no translation, a sentence for each language."""
    return [f"{source.shown}, {tag}: {of.words} left out." for tag, of in source.left_out.items() if of.words]


def left_out_document(source: ParallelText) -> dict[str, Any]:
    """The same as figures, of all languages."""
    return {
        tag: {"identical": of.identical, "other_language": dict(of.detected)} for tag, of in source.left_out.items()
    }


def output_files(output: Path, pivots: Sequence[str]) -> dict[str, Path]:
    """Where each pivot's vectors go, found before the work to be free for them."""
    tags = list(dict.fromkeys(parse_tag(pivot) or pivot for pivot in pivots))
    if len(tags) == 1:
        check_output(output)
        return {tags[0]: output}
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} is a file: with several pivots, --output takes the name of a folder.")
    files = {tag: output / f"{tag}.safetensors" for tag in tags}
    for file in files.values():
        check_output(file)
    return files


def check_output(output: Path) -> None:
    """Refuse, before the work, a file that cannot be written or that holds something else.

    Raises:
        UsageError: saying why.
    """
    if output.is_dir():
        raise UsageError(f"{output} is a folder: --output takes the name of a file, such as mine.safetensors.")
    if output.exists():
        try:
            LanguageVectors.load(output)
        except UsageError:
            raise UsageError(f"{output} exists and does not contain language vectors: name another file.") from None
    folder = next(parent for parent in output.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"{output} cannot be written: {folder} is not a writable folder.")


def encoder_for(vectors: LanguageVectors, path: Path, source: ParallelText, name: str | None) -> Encoder:
    """The encoder that the file names, or another one that was asked for."""
    opened = open_encoder(
        name or vectors.encoder,
        vector_spec=vector_spec_of(source),
        named_by="" if name else f"The file {path}",
        reading=AS_KNOWN.of(vectors, vectors.encoder) if name in (None, vectors.encoder) else AS_KNOWN,
    )
    if opened.dimension != vectors.dimension:
        other = opened.id != vectors.encoder
        remedy = f"use the encoder {vectors.encoder}" if other else "it is not the model that they were fitted with"
        raise UsageError(
            f"{path} contains vectors of {vectors.dimension} dimensions, but {opened.id} returns {opened.dimension}; "
            f"{remedy}."
        )
    try:
        vectors.require_encoder(opened, str(path))
    except FingerprintError:
        if name is None:
            raise
        note(f"Warning: {path} was fitted with {vectors.encoder}, and is compared with vectors of {opened.id}.")
    return opened
