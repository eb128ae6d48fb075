"""Settings as people write them: ``hybrid --prefer-language .02``."""

import shlex
from collections.abc import Sequence
from typing import Any, Final

from langshift.errors import UsageError
from langshift.retrieval.request import RECOMMENDED, SETTING, USUAL, SearchSettings, in_command, read_arguments

#: What evaluations call a search without options.
_DEFAULT: Final = "default"


def read_setting(text: str) -> SearchSettings:
    """``hybrid --prefer-language .02`` as a setting; what begins with an option is of the mode ``dense``.

    ``default`` is what a search does without options.

    Raises:
        UsageError: it is none.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        raise UsageError(f"The setting {text!r} is not complete: a quotation mark is missing.") from None
    if words == [_DEFAULT]:
        return RECOMMENDED
    if words and not words[0].startswith("-"):
        words = ["--mode", *words]
    try:
        return read_arguments(SearchSettings, in_command, **_arguments(words))
    except UsageError as error:
        raise UsageError(f"The setting {text!r} cannot be used: {error}") from error


def _arguments(words: Sequence[str]) -> dict[str, Any]:
    """The arguments that options stand for: ``--spread .1`` or ``--spread=.1``."""
    known = {in_command(one.name): one for one in SETTING}
    given: dict[str, Any] = {"mode": USUAL.mode}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option not in known or (equals and known[option].kind is bool):
            raise UsageError(f"There is no option {word}: choose from {', '.join(known)}.")
        if known[option].kind is bool:
            given[known[option].name] = True
            continue
        value = value if equals else next(rest, "")
        if not value:
            raise UsageError(f"{option} needs a value.")
        given[known[option].name] = value
    return given


def format_settings(setting: SearchSettings) -> str:
    """A setting as ``read_setting`` reads it, without what is usual."""
    if setting == RECOMMENDED:
        return _DEFAULT
    words: list[str] = [setting.mode]
    for one in SETTING[1:]:
        value = getattr(setting, one.name)
        if value != one.usual:
            # Of a number the fewest digits that are read as the very same.
            written = repr(value).removesuffix(".0") if isinstance(value, float) else shlex.quote(str(value))
            words.append(in_command(one.name, None if one.kind is bool else written))
    return " ".join(words)
