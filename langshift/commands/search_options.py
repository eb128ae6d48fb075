"""The options of commands that search: how, and by which encoder."""

from functools import partial
from typing import Any

import click

from langshift.parameters import INDEX_ENCODER, REMOTE_CODE, Decorator, FiniteRange, flag, option, option_group
from langshift.retrieval.settings import PARAMETERS, Mode, Parameter, SearchOptions, in_command, setting_of


def setting_options(mode: Mode) -> Decorator:
    """Return the options of a setting; the command is given them as one argument ``setting``.

    Args:
        mode: that of the command without ``--mode``.
    """
    return option_group("setting", partial(setting_of, in_command), *(_option(one, mode) for one in PARAMETERS))


def _option(parameter: Parameter, mode: Mode) -> Decorator:
    name, usual = in_command(parameter.name), parameter.usual
    if parameter.kind is bool:
        return flag(name, parameter.help, rare=parameter.rare)
    spec, type_ = f"{name} {parameter.metavar}", _type(parameter)
    if parameter.name == "mode":
        return option(spec, parameter.help, type_, default=mode)
    shown = "" if usual is None else f" [default: {usual}]"
    return option(spec, f"{parameter.help}{shown}", type_, rare=parameter.rare)


def _type(parameter: Parameter) -> Any:  # noqa: ANN401 - click's
    if parameter.choices:
        return click.Choice(parameter.choices)
    if parameter.kind is int:
        return click.IntRange(parameter.least, parameter.most)
    return FiniteRange(parameter.least, parameter.most) if parameter.kind is float else None


#: The options of a command that needs the encoder of an index; it is given them as ``search``.
search_options = option_group("search", SearchOptions, INDEX_ENCODER, REMOTE_CODE)
