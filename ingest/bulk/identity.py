"""What makes two loads the same, and how a person is told what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import UsageError

Identity = Mapping[str, Any]
"""As JSON: ``corpus`` (as messages name it), ``content`` (its SHA-256), ``index``, ``fingerprint`` (a
``Fingerprint`` as ``to_dict`` gives it), ``least_confidence``, and what else may change what is written."""

_SHOWN = {"corpus": "the corpus", "content": "the content of {corpus}", "least_confidence": "the least confidence"}
_UNREADABLE = {"content"}
"""Hashes tell nobody anything."""


def require_same(begun: Identity, now: Identity, journal: Path) -> None:
    """Refuse to go on with a load under another identity.

    Args:
        begun: what the load began with.
        now: what it is to go on with.
        journal: the load's journal; without it the load is given up.

    Raises:
        UsageError: naming each thing that changed, with both values where they tell a person something.
    """
    changed = list(_changed(begun, now))
    if changed:
        told = changed[0] if len(changed) == 1 else f"{', '.join(changed[:-1])} and {changed[-1]}"
        raise UsageError(
            f"The load of {begun.get('corpus')} into {begun.get('index')} cannot be resumed, because since then "
            f"{told} changed: run it with what it began with, or remove {journal} to give it up."
        )


def _changed(begun: Identity, now: Identity) -> Iterator[str]:
    # The same input under another path is the same input.
    same_input = begun.get("content") is not None and begun.get("content") == now.get("content")
    for name in dict.fromkeys((*begun, *now)):
        old, new = begun.get(name), now.get(name)
        if name == "corpus" and same_input:
            continue
        if name == "fingerprint" and old and new:
            for part, was, is_now in Fingerprint.from_dict(old).differences(Fingerprint.from_dict(new)):
                yield f"the {part.replace('_', ' ')} ({_value(was)}, not {_value(is_now)})"
        elif old != new:
            shown = _SHOWN.get(name, f"the {name.replace('_', ' ')}").format(corpus=now.get("corpus"))
            yield shown if name in _UNREADABLE else f"{shown} ({_value(old)}, not {_value(new)})"


def _value(value: object) -> str:
    if value is None:
        return "none"
    return repr(value) if isinstance(value, str) and not value else str(value)
