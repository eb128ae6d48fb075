"""The command ``vectors methods``."""

from functools import partial
from typing import Any

import click

from langshift.commands.vectors import fit_and_show, fitting_options
from langshift.parameters import Command, option, parse_list
from langshift_lab.methods.fit import fit_methods


@click.command("methods", cls=Command)
@option(
    "--methods LIST",
    "What to fit beside shift and centering: lir, affine.",
    default="shift",
    callback=partial(parse_list, example="lir,affine"),
)
@fitting_options
def methods(methods: list[str], **given: Any) -> None:  # noqa: ANN401 - the parameters of fit_and_show
    """Fit language vectors as `vectors fit` does, and beside them what the other methods move by.

    The file holds both: loads and retunes use its language vectors alone, `evaluate offline --method` all of it.
    Centering, LIR and affine maps are what the paper compares the shift with.

    \b
    Example:
      langshift vectors methods --pairs parallel --pivot en,de,zh --methods lir,affine --output vectors
    """
    fit_and_show(partial(fit_methods, methods=methods), **given)
