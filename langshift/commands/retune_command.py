"""The commands ``retune`` and ``rollback``: their options."""

from __future__ import annotations

from pathlib import Path

import click

from langshift.commands.ingest_options import PATIENCE, index_encoder_options
from langshift.commands.langshift_options import JSON
from langshift.errors import UsageError
from langshift.languages import parse_tag
from langshift.retrieval.options import FiniteRange, Share


def parse_scales(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    """``th=0.3``, given once or more, as canonical tag -> scale."""
    scales: dict[str, float] = {}
    for text in given:
        told, equals, scale = text.partition("=")
        tag = parse_tag(told)
        if tag is None or not equals:
            raise click.BadParameter(f"{text} names no language with a scale: write th=0.3.")
        if tag in scales:
            raise click.BadParameter(f"{tag} is named twice: name each language once.")
        scales[tag] = Share().convert(scale, parameter, ctx)
    return scales


@click.command()
@click.argument("name")
@click.option("--alpha", type=Share(), metavar="A", help="Scale of the shift, 0 (none) to 1, in all languages.")
@click.option(
    "--alpha-for",
    "alphas",
    callback=parse_scales,
    multiple=True,
    metavar="TAG=A",
    help="Scale of one language, such as th=0.3; again for more. Without --alpha the others stay as they are.",
)
@click.option(
    "--vectors",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Other language vectors of the same encoder; without --alpha with the scales that they recommend.",
)
@click.option(
    "--throttle",
    type=FiniteRange(0, min_open=True),
    metavar="N",
    help="Documents a second at most. [default: what the cluster manages]",
)
@PATIENCE
@click.option(
    "--gate",
    type=click.Path(path_type=Path),
    metavar="DATASET",
    help="Replay this dataset on both versions before the new one goes live, and judge by --fail-if.",
)
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Stay with the old version where this holds: 'SLR@20 < -0.01' is about the change, 'value nDCG@20 < 0.7' "
    "about the new figure itself; again for more. See langshift evaluate compare.",
)
@index_encoder_options
@JSON
def retune(
    name: str,
    alpha: float | None,
    alphas: dict[str, float],
    vectors: Path | None,
    throttle: float | None,
    patience: float,
    gate: Path | None,
    conditions: tuple[str, ...],
    encoder: str | None,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Change the shift of the index NAME without encoding anything again.

    A new version is made inside the cluster from the live one. Writes and deletes that come meanwhile are
    caught up with, the last of them while writes are blocked for a moment; vectors and counts are checked;
    then the alias changes to the new version at once. Until then nothing is changed for whoever searches.
    The version before is kept, takes no writes, and is what `langshift rollback NAME` goes back to.

    Whatever ends it early, the old version stays live and complete, and the same command can be run again.

    \b
    Example:
      langshift retune news --alpha 0.6 --alpha-for th=0.3
      langshift retune news --alpha 0.6 --gate DATASET --fail-if 'SLR@20 < -0.01'
    """
    from langshift.commands.retuning import GateOptions, Options, run_retune
    from langshift.plugin.plan import Wanted
    from langshift.retrieval.opening import SearchOptions

    if alpha is None and not alphas and vectors is None:
        raise UsageError("There is nothing to retune to: give --alpha, --alpha-for or --vectors.")
    if (gate is None) != (not conditions):
        lacking = "a dataset with --gate" if gate is None else "conditions with --fail-if"
        raise UsageError(f"--gate and --fail-if belong together: give {lacking}, too.")
    if gate is None and (encoder is not None or trust_remote_code):
        raise UsageError("Nothing is encoded without --gate: leave --encoder and --trust-remote-code out.")
    search = SearchOptions(encoder, trust_remote_code)
    run_retune(
        Options(
            name=name,
            wanted=Wanted(alpha, alphas, vectors),
            throttle=throttle,
            patience=patience,
            gate=None if gate is None else GateOptions(gate, conditions, search),
            as_json=as_json,
        )
    )


@click.command()
@click.argument("name")
@PATIENCE
@JSON
def rollback(name: str, patience: float, as_json: bool) -> None:
    """Let NAME stand for the version before the live one again.

    What was written since a retune is carried over first, with the shift of the version that it goes to. A
    version that a load made holds other documents than the one before it: there nothing is carried over.
    The version that is left is kept.

    \b
    Example:
      langshift rollback news
    """
    from langshift.commands.retuning import run_rollback

    run_rollback(name, patience, as_json=as_json)
