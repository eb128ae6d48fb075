"""What parameters of commands are made of: ranges of numbers, and options that are given as one argument."""

import functools
import math
from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


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
