"""Dead letters gathered by what is wrong with them, so that like goes with like."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langshift.ingest.bulk.dead_letter import DeadLetter, Stage

_TAKEN_OUT = "..."
# A quoted value, but not a quoted field's name; an apostrophe within a word quotes nothing.
_QUOTED = re.compile(r"(?<!field )(?<!\w)(?:'.*?'|\".*?\"|`.*?`|«.*?»)(?!\w)", re.DOTALL)
_NUMBER = re.compile(r"(?<!\w)[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?")
_REPEATED = re.compile(r"\.\.\.(?:\s*[,:]?\s*\.\.\.)+")
# A reason may quote a document: what tells one kind from another stands at the beginning.
_LONGEST = 300


@dataclass
class Group:
    """Dead letters of one kind.

    Attributes:
        type: the error's type.
        reason: the error in words, without what is a single document's.
        stage: where it happened.
        count: how many letters.
        example: the first of them.
    """

    type: str
    reason: str
    stage: Stage
    count: int
    example: DeadLetter

    def to_dict(self) -> dict[str, Any]:
        """As ``langshift dead-letters list --json`` prints it."""
        first = self.example
        example = {"corpus": first.corpus, "line": first.line, "_id": first.id, "reason": first.reason}
        return {
            "type": self.type,
            "reason": self.reason,
            "stage": self.stage,
            "count": self.count,
            "example": example,
        }


def grouped(letters: Iterable[DeadLetter]) -> list[Group]:
    """The kinds of dead letters, the most frequent first; those as frequent in the order in which they came."""
    groups: dict[tuple[str, str, str], Group] = {}
    for letter in letters:
        reason = kind_of(letter)
        group = groups.setdefault(
            (letter.type, reason, letter.stage), Group(letter.type, reason, letter.stage, 0, letter)
        )
        group.count += 1
    return sorted(groups.values(), key=lambda group: -group.count)


def kind_of(letter: DeadLetter) -> str:
    """A letter's reason with ``...`` for its id, quoted values and numbers."""
    reason = letter.reason
    if letter.id:
        reason = re.sub(rf"(?<!\w){re.escape(letter.id)}(?!\w)", _TAKEN_OUT, reason)
    reason = _NUMBER.sub(_TAKEN_OUT, _QUOTED.sub(_TAKEN_OUT, reason))
    reason = _REPEATED.sub(_TAKEN_OUT, reason)
    return reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]} {_TAKEN_OUT}"
