"""What to do where nobody has judged the answers: commands, those that take least effort first."""

import shlex
from collections.abc import Iterable
from typing import NamedTuple

from langshift.retrieval.request import RECOMMENDED, format_settings


class NextCommand(NamedTuple):
    """One thing to do.

    Attributes:
        effort: what it takes, and of whom.
        command: for a shell.
    """

    effort: str
    command: str


def next_commands(
    indices: Iterable[str], settings: Iterable[str], queries: int, judge: str | None, encoder: str | None = None
) -> list[NextCommand]:
    """The commands that lead from two runs of a log to figures.

    Args:
        indices: what was searched, the earlier run first.
        settings: how, as options.
        queries: how many were asked.
        judge: by which command a person judges the runs; None where they cannot be judged.
        encoder: where the encoder of the indices was said to be.
    """
    names, ways = list(dict.fromkeys(indices)), list(dict.fromkeys(settings))
    options = [word for name in names for word in ("--index", name)]
    if ways != [format_settings(RECOMMENDED)]:
        options += [word for setting in ways for word in ("--setting", setting)]
    options += ["--encoder", encoder] if encoder else []
    # Settings are compared by what is written.
    options += ["--output", "judged"] if len(ways) > 1 else []
    made, replay = f"langshift dataset make {shlex.quote(names[-1])} titles", "langshift evaluate replay"
    found = [
        NextCommand(
            "Minutes, and nobody judges: titles of the documents ask",
            f"{made} && {replay} titles {shlex.join(options)}",
        ),
        NextCommand(
            "Minutes, where you have questions with their answers, or clicks", f"{replay} DATASET {shlex.join(options)}"
        ),
    ]
    if judge:
        asked = f"{queries:,} {'query' if queries == 1 else 'queries'}"
        found.append(NextCommand(f"Hours: a person judges {asked} in the browser, list against list", judge))
    return found
