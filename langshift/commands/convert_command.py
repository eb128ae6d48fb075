"""What ``langshift dataset convert`` does and prints, whatever the format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from langshift.console import emit_json, note, progress
from langshift.evaluate.convert.pool import Choice, Converted, build
from langshift.evaluate.convert.source import Source

_LEFT = {
    "passages": "passages without text",
    "queries": "questions without a relevant passage in the pool",
    "judgements": "judgements of passages that are not in SOURCE or not in the chosen languages",
}


def run(
    out: Path,
    read: Callable[[], Source],
    *,
    as_json: bool,
    pivot: Sequence[str] | None = None,
    every: bool = False,
    keep: int | None = None,
    by_article: bool = False,
    no_language: bool = False,
) -> None:
    """Make the pools, and say what was written.

    One set is printed as one JSON object; several, as ``{"sets": [...]}``.
    """
    choice = Choice(None if every else pivot, keep, by_article, not no_language)
    with progress() as shown:
        task = shown.add_task("passages", total=None, rate="")
        made = build(out, read, choice, lambda passages: shown.advance(task, passages))
    if as_json:
        emit_json(made[0].to_dict() if len(made) == 1 else {"sets": [one.to_dict() for one in made]})
        return
    for one in made:
        note(_sentence(one))
        for what, count in one.left_out.items():
            if count:
                note(f"Left out of it: {count:,} {_LEFT[what]}.")


def _sentence(made: Converted) -> str:
    languages = f" in {len(made.languages)} language{'' if len(made.languages) == 1 else 's'}" if made.languages else ""
    asked = f" in {made.pivot}" if made.pivot else ""
    return (
        f"Wrote {made.folder}: {made.documents:,} passages{languages}, "
        f"{made.queries:,} questions{asked}, {made.judgements:,} judgements."
    )
