"""The options of a setting, for every command that searches in one; and a setting as these options."""

from __future__ import annotations

import functools
import math
import shlex
from collections.abc import Callable
from typing import Any

import click

from langshift.errors import UsageError
from langshift.retrieval.settings import FUSIONS, MODES, MOST_PREFERENCE, USUAL, SearchSettings, in_command, setting_of


class FiniteRange(click.FloatRange):
    """A number in a range; neither ``nan`` nor ``inf`` is one, which click alone lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's signature
        """The number, refused where it is outside of the range, infinite or not a number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Share(FiniteRange):
    """A number from 0 to 1."""

    def __init__(self) -> None:
        super().__init__(0, 1)


Command = Callable[..., Any]

_OPTIONS = (
    click.option("--mode", type=click.Choice(MODES), default=USUAL.mode, show_default=True, help="How to search."),
    click.option(
        "--prefer-language",
        type=FiniteRange(0, MOST_PREFERENCE),
        metavar="B",
        help="Documents in the searcher's language are given B more, in units of cosine, in every mode; .02 is little.",
    ),
    click.option(
        "--spread",
        type=FiniteRange(0, MOST_PREFERENCE),
        metavar="B",
        help="Documents in other languages than the searcher's are given B more; the opposite of --prefer-language.",
    ),
    click.option(
        "--fusion",
        type=click.Choice(FUSIONS),
        help=f"How --mode hybrid puts vectors and words together: by scores or by ranks. [default: {USUAL.fusion}]",
    ),
    click.option(
        "--lexical-weight",
        type=Share(),
        metavar="W",
        help=f"The share of the words in --mode hybrid. [default: {USUAL.lexical_weight:g}]",
    ),
    click.option(
        "--one-per-group",
        is_flag=True,
        help="Of documents that are translations of each other show one, in the searcher's language if there is one.",
    ),
)
_NAMES = ("mode", "prefer_language", "spread", "fusion", "lexical_weight", "one_per_group")


def setting_options(command: Command) -> Command:
    """The options of a setting; the command is given them as one argument ``setting``."""

    @functools.wraps(command)
    def with_setting(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - click's
        given = {name: options.pop(name) for name in _NAMES}
        return command(*arguments, setting=setting_of(**given, spelt=in_command), **options)

    made: Command = with_setting
    for option in reversed(_OPTIONS):
        made = option(made)
    return made


def read_setting(text: str) -> SearchSettings:
    """``hybrid --prefer-language .02`` as a setting; what begins with an option is of the usual mode.

    Raises:
        UsageError: it is none.
    """
    try:
        words = shlex.split(text)
        if words and not words[0].startswith("-"):
            words = ["--mode", *words]
        found: SearchSettings = _setting.main(words, prog_name="--setting", standalone_mode=False)
    except ValueError:
        raise UsageError(f"The setting {text!r} is not complete: a quotation mark is missing.") from None
    except click.ClickException as error:
        raise UsageError(f"The setting {text!r} cannot be used: {error.format_message().rstrip('.')}.") from error
    except UsageError as error:
        raise UsageError(f"The setting {text!r} cannot be used: {error}") from error
    return found


@click.command(add_help_option=False)
@setting_options
def _setting(setting: SearchSettings) -> SearchSettings:
    return setting


def format_settings(setting: SearchSettings) -> str:
    """A setting as ``read_setting`` reads it, without what is usual."""
    words: list[str] = [setting.mode]
    if setting.preference:
        option = "prefer_language" if setting.preference > 0 else "spread"
        words.append(in_command(option, _shortest(abs(setting.preference))))
    if setting.fusion != USUAL.fusion:
        words.append(in_command("fusion", setting.fusion))
    if setting.lexical_weight != USUAL.lexical_weight:
        words.append(in_command("lexical_weight", _shortest(setting.lexical_weight)))
    if setting.one_per_group:
        words.append(in_command("one_per_group"))
    return " ".join(words)


def _shortest(number: float) -> str:
    """The fewest digits that are read as the very same number."""
    return repr(float(number)).removesuffix(".0")
