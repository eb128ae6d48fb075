"""What ``langshift dead-letters list`` does and prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from langshift.console import counted, emit_json, table
from langshift.ingest.bulk.dead_letter import DeadLetter
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.letter_groups import Group, grouped
from langshift.ingest.bulk.place import LoadPlace
from langshift.ingest.dead_letters_replay import none_of, say, with_letters


def run_list(name: str | None, *, as_json: bool) -> None:
    """Show the dead letters of an index, or of all, by what was wrong.

    Raises:
        UsageError: a file holds a line that is no dead letter.
    """
    counts: Counter[LoadPlace] = Counter()
    groups = grouped(_letters(with_letters(name), counts))
    files = [str(place.dead_letters) for place in counts]
    if as_json:
        emit_json({"total": counts.total(), "groups": [group.to_dict() for group in groups], "files": files})
    elif not groups:
        say(none_of(name))
    else:
        _print(groups)
        for (place, count), file in zip(counts.items(), files, strict=True):
            say(f"{counted(count, 'dead letter')} of {place.name} in {file}")
        again = ", ".join(f"`langshift dead-letters replay --index {index}`" for index in {p.name: 0 for p in counts})
        say(f"Repair what is wrong, then send them again: {again}.")


def _letters(found: list[LoadPlace], counts: Counter[LoadPlace]) -> Iterator[DeadLetter]:
    for place in found:
        for letter in DeadLetters(place.dead_letters):
            counts[place] += 1
            yield letter


def _print(groups: list[Group]) -> None:
    rows = [
        [
            f"{group.count:,}",
            group.stage,
            group.type,
            group.reason,
            f"{Path(group.example.corpus).name}, line {group.example.line}",
        ]
        for group in groups
    ]
    table(None, ["count", "stage", "type", "reason", "for example"], rows, right={"count"})
