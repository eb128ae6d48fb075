"""Settings of the embedded OpenSearch that a user gives: ``opensearch.yml`` in langshift's folder."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from langshift.errors import ClusterError, UsageError
from langshift.files import text_lines

FILE: Final = "opensearch.yml"
# By these langshift finds the server and its files, and they keep it to this machine.
_OURS = re.compile(
    r"cluster\.name|node\.(name|portsfile|attr\.langshift_native)|path\.(data|home|logs)"
    r"|http\.((bind_|publish_)?host|(publish_)?port)|(discovery|network|transport)\..*"
)
_REASON = re.compile(r"Exception: (.*?)\.?$")


def read_settings(home: Path) -> dict[str, Any]:
    """The settings in the user's file, by their names with dots; none without a file.

    Raises:
        UsageError: it cannot be read, or has a setting that is langshift's own.
    """
    file = home / FILE
    if not file.exists():
        return {}
    try:
        # Values are text, as they stand there, for the server to read.
        found = yaml.load("\n".join(text_lines(file)), yaml.BaseLoader)  # noqa: S506 - it makes nothing else
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        raise UsageError(f"{file}{f', line {place.line + 1},' if place else ''} is not YAML.") from None
    if not isinstance(found, dict | None):
        raise UsageError(f"{file} has no settings: write lines such as `http.max_content_length: 200mb`.")
    settings = dict(_flat(found or {}))
    for name, value in settings.items():
        if _OURS.fullmatch(name):
            raise UsageError(f"{file} has the setting {name}, which langshift sets itself: remove it there.")
        if isinstance(value, list) and not all(isinstance(one, str) for one in value):
            raise UsageError(f"{file} has a list within the setting {name} that is not of words or numbers alone.")
    return settings


def _flat(settings: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def refused(home: Path, settings: Mapping[str, Any], error: ClusterError) -> ClusterError:
    """The error of a start, in words that name the user's setting which the server refuses, where it does."""
    # What begins with a bracket is said in passing.
    told = [line for line in error.log if not line.startswith("[")]
    for name, value in settings.items():
        named = re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w.])|value \[{re.escape(str(value))}\]")
        reasons = [found[1] for line in told if (found := _REASON.search(line))]
        if reasons and any(map(named.search, told)):
            reason = next(filter(named.search, reasons), reasons[0])
            return ClusterError(f"OpenSearch refuses the setting {name} of {home / FILE}: {reason}.")
    return error
