"""What the commands that search exactly share: the options that say how texts become vectors, and their use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from langshift.commands.ingest_options import encoder_options
from langshift.commands.langshift_options import parse_list

if TYPE_CHECKING:
    from langshift.debias.encoders import Encoder
    from langshift.evaluate.datasets.dataset import Dataset
    from langshift.evaluate.offline.encoding import Encoded
    from langshift.evaluate.offline.sources import Source
    from langshift.ingest.making import Making

FOLDER = click.Path(path_type=Path)
_Command = TypeVar("_Command", bound=Callable[..., object])


class Sides(NamedTuple):
    """How texts become vectors, as it was asked for.

    Attributes:
        encoder: the encoder's name.
        trust_remote_code: whether to run code that comes with a model.
        vectors: the file of language vectors; None takes those that come with langshift.
        pivot: the pivot language; None leaves the file's own.
        cache: where encodings are kept; None keeps none.
    """

    encoder: str
    trust_remote_code: bool
    vectors: Path | None
    pivot: str | None
    cache: Path | None


def encoding_options(command: _Command) -> _Command:
    """The options that say how texts become vectors."""
    options = (
        click.option(
            "--vectors",
            type=FOLDER,
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
            type=FOLDER,
            metavar="FOLDER",
            help="Keep the encodings here, for the next time; not kept if not given.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return encoder_options(command)


def parse_sides(ctx: click.Context, parameter: click.Parameter, given: str | None) -> list[str]:
    """``"never,always"`` as a list of what ``--shift-queries`` can be."""
    from langshift.evaluate.offline.setting import SHIFT_QUERIES

    parts = parse_list(ctx, parameter, given, "never,always") or []
    for part in parts:
        if part not in SHIFT_QUERIES:
            raise click.BadParameter(f"{part!r} is none of {', '.join(SHIFT_QUERIES)}.")
    return parts


def parse_sources(ctx: click.Context, parameter: click.Parameter, given: str | None) -> list[Source]:
    """``"given,detected:20"`` as a list of sources of languages."""
    from langshift.evaluate.offline.sources import Source

    found = []
    for part in parse_list(ctx, parameter, given, "given,detected,detected:20") or []:
        source = Source.parse(part)
        if source is None:
            raise click.BadParameter(
                f"{part!r} is none of given, detected and soft; a number of characters, 1 or more, can follow the "
                "latter two, such as detected:20."
            )
        found.append(source)
    return found


def choose_making(dataset: Dataset, sides: Sides, alpha: float | None, methods: Sequence[str] = ("shift",)) -> Making:
    """The encoder, and the language vectors, moved to the pivot that was asked for.

    Args:
        dataset: may bring vectors.
        sides: what was asked for.
        alpha: scale of the shift; None takes what the vectors recommend.
        methods: what will be done with the vectors.

    Raises:
        UsageError: an encoder, cache, file of vectors or pivot that cannot be used.
        FingerprintError: the vectors were fitted with another encoder.
    """
    from dataclasses import replace

    from langshift.debias.debias import recommended
    from langshift.debias.detect import open_detector
    from langshift.debias.encoders import open_encoder
    from langshift.errors import UsageError
    from langshift.evaluate.offline.encoding import brought
    from langshift.evaluate.offline.repivot import repivoted
    from langshift.evaluate.replay.result import check_output
    from langshift.ingest.making import choose

    if sides.cache is not None:
        check_output(sides.cache, "--cache")
    encoder = open_encoder(
        sides.encoder, trust_remote_code=sides.trust_remote_code, brought=brought(dataset, sides.encoder)
    )
    making = choose(encoder, open_detector(), sides.vectors, alpha)
    if sides.pivot is None:
        return making
    known = making.debias.vectors
    if known is None:
        raise UsageError(f"--pivot {sides.pivot} has nothing to move: give language vectors with --vectors.")
    turned = repivoted(known, sides.pivot)
    if "affine" in methods and known.maps and not turned.maps:
        raise UsageError(
            f"The maps of the method affine lead to {known.pivot} and cannot be turned to {turned.pivot}: fit some "
            f"with `langshift vectors fit --pivot {turned.pivot} --methods affine`."
        )
    return replace(making, debias=recommended(turned, "shift", alpha))


def encode_shown(dataset: Dataset, encoder: Encoder, cache: Path | None) -> Encoded:
    """Encode a dataset, with progress bars.

    Raises:
        UsageError: a document that cannot be read.
        LangshiftError: the encoder gives no usable vector for a text.
    """
    from langshift import console
    from langshift.evaluate.offline.encoding import encode

    with console.progress() as bars:
        totals = {"documents": len(dataset.documents), "queries": len(dataset.queries)}
        tasks = {kind: bars.add_task(f"Encoding {kind}", total=total, rate="") for kind, total in totals.items()}
        return encode(dataset, encoder, cache, lambda kind, done: bars.advance(tasks[kind], done))
