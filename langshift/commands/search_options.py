"""The options of commands that search: how, and by which encoder."""

from functools import partial
from typing import Any, Final

import click

from langshift.parameters import INDEX_ENCODER, Decorator, FiniteRange, flag, option, option_group
from langshift.retrieval.settings import (
    PARAMETERS,
    REPLAY_PARAMETERS,
    Mode,
    Parameter,
    SearchOptions,
    in_command,
    setting_of,
)


def setting_options(mode: Mode) -> Decorator:
    """Return the options of a setting; the command is given them as one argument ``setting``.

    Args:
        mode: that of the command without ``--mode``.
    """
    return option_group("setting", partial(setting_of, in_command), *(_option(one, mode) for one in PARAMETERS))


_WITHIN: Final = REPLAY_PARAMETERS[-1]
#: The option ``--within`` of replays and evaluations; a single search has ``--filter``.
WITHIN = option(
    f"{in_command(_WITHIN.name)} {_WITHIN.metavar}",
    _WITHIN.help,
    callback=lambda _context, _parameter, given: None if given is None else _WITHIN.read(given, in_command),
)


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
search_options = option_group("search", SearchOptions, INDEX_ENCODER)
