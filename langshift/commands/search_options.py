"""The options of commands that search: those that a search is declared to have, and by which encoder."""

from typing import Any, Final

import click

from langshift.parameters import INDEX_ENCODER, Decorator, FiniteRange, flag, option, option_group
from langshift.retrieval.filters import read_filters
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import ARGUMENTS, Argument, SearchArguments, in_command, read_arguments

_FILTER: Final = option(
    "--filter FIELD=VALUE",
    "Only these documents: =, !=, <, <=, >, >=, FIELD=*, or OpenSearch's DSL as JSON; can be repeated.",
    dest="filters",
    multiple=True,
)


def _arguments(filters: tuple[str, ...], **given: Any) -> SearchArguments:  # noqa: ANN401 - click's
    known = {name: value for name, value in given.items() if value is not None}
    return read_arguments(SearchArguments, in_command, **known, **read_filters(filters)._asdict())


def _option(argument: Argument) -> Decorator:
    """The option of an argument, as its declaration says."""
    name, _, metavar = argument.option.partition(" ")
    if argument.kind is bool:
        return flag(name, argument.help, rare=argument.rare)
    help_, more = argument.help, dict[str, Any](dest=argument.name, rare=argument.rare)
    if argument.repeated:
        return option(argument.option, f"{help_.rstrip('.')}; can be repeated.", multiple=True, **more)
    if metavar == "A,B":
        more["callback"] = _parts
    if argument.needs is None and argument.usual:
        more["default"] = argument.usual
    elif argument.usual:
        help_ += f" [default: {argument.usual}]"
    return option(argument.option, help_, _type(argument), **more)


def _parts(_context: click.Context, _parameter: click.Parameter, given: str | None) -> list[str] | None:
    """``"title, url"`` as ``["title", "url"]``; None where the option was not given."""
    return None if given is None else list(filter(None, map(str.strip, given.split(","))))


def _type(argument: Argument) -> Any:  # noqa: ANN401 - click's
    if argument.choices:
        return click.Choice(argument.choices)
    if argument.kind is int:
        return click.IntRange(*argument.range)
    if argument.option.endswith(" N"):
        # What is more than may be is refused with what to do instead.
        return click.IntRange(0)
    return FiniteRange(*argument.range) if argument.kind is float else None


#: The options of a search; the command is given them as one argument ``arguments``.
search_arguments = option_group(
    "arguments", _arguments, *(_option(one) for one in ARGUMENTS.values() if one.option and not one.of_replays), _FILTER
)
#: The option ``--within`` of replays and evaluations; a single search has ``--filter``.
WITHIN = option(
    ARGUMENTS["within"].option,
    ARGUMENTS["within"].help,
    callback=lambda _context, _parameter, given: (
        None if given is None else ARGUMENTS["within"].value(given, in_command)
    ),
)
#: The options of a command that needs the encoder of an index; it is given them as ``search``.
search_options = option_group("search", SearchOptions, INDEX_ENCODER)
