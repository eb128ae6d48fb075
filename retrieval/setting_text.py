"""Settings as people write them: ``hybrid --prefer-language .02``."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final, cast

from langshift.errors import UsageError
from langshift.retrieval.settings import (
    RECOMMENDED,
    REPLAY_PARAMETERS,
    USUAL,
    SearchSettings,
    SettingArguments,
    in_command,
    setting_of,
)

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
        return setting_of(in_command, **_arguments(words))
    except UsageError as error:
        raise UsageError(f"The setting {text!r} cannot be used: {error}") from error


def _arguments(words: Sequence[str]) -> SettingArguments:
    """The arguments that options stand for: ``--spread .1`` or ``--spread=.1``."""
    known = {in_command(one.name): one for one in REPLAY_PARAMETERS}
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
    return cast(SettingArguments, given)


def format_settings(setting: SearchSettings) -> str:
    """A setting as ``read_setting`` reads it, without what is usual."""
    if setting == RECOMMENDED:
        return _DEFAULT
    beta = setting.preference
    given = {**asdict(setting), "prefer_language": max(beta, 0.0), "spread": max(-beta, 0.0)}
    words: list[str] = [setting.mode]
    for one in REPLAY_PARAMETERS[1:]:
        value = given[one.name]
        if value != one.usual and (value or one.usual):
            # Of a number the fewest digits that are read as the very same.
            written = repr(value).removesuffix(".0") if isinstance(value, float) else shlex.quote(str(value))
            words.append(in_command(one.name, None if one.kind is bool else written))
    return " ".join(words)
