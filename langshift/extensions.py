"""What other distributions add, found by entry points: commands, formats of datasets, who writes questions and figures.

Above all it is langshift-lab's, of which nothing is imported here: only the names are known, so that what is missing
can be told from what never was.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from langshift.errors import UsageError

COMMANDS, FORMATS, FIGURES = "langshift.commands", "langshift.formats", "langshift.figures"
QUESTIONS = "langshift.questions"
#: The names that langshift-lab has in each group of entry points; of a group of commands, its own name stands for all.
LAB = {
    COMMANDS: ("evaluate board", "evaluate offline", "evaluate rag", "rerank", "vectors methods", "vectors tune"),
    FORMATS: ("xquad", "mlqa", "belebele", "miracl", "posir", "neuclir", "multieup"),
    FIGURES: ("mteb",),
    QUESTIONS: ("generator",),
}


def commands(group: str = "") -> list[str]:
    """The commands that are added to a group; to langshift's own list where no group is named."""
    within, names = f"{group} " if group else "", found(COMMANDS)
    below = (name.removeprefix(within) for name in names if name.startswith(within))
    return [name for name in below if " " not in name]


def load_command(words: str) -> click.Command | None:
    """The command that is called by these words after ``langshift``; None where there is none.

    Raises:
        UsageError: it belongs to langshift-lab, which is not installed.
    """
    command: click.Command | None = load(COMMANDS, words, f"langshift {words}")
    return command


def found(group: str) -> dict[str, EntryPoint]:
    """Name -> entry point, of all that is installed; nothing is loaded."""
    return {one.name: one for one in entry_points(group=group)}


def load(group: str, name: str, shown: str) -> Any:  # noqa: ANN401 - whatever it is
    """Import what is named; None where there is nothing of that name.

    Args:
        group: the group of entry points.
        name: the name in it.
        shown: what a person called it by, for the message.

    Raises:
        UsageError: it belongs to langshift-lab, which is not installed.
    """
    if entry := found(group).get(name):
        return entry.load()
    if name in LAB[group]:
        raise UsageError(f"{shown} belongs to langshift-lab, which is not installed: pip install langshift-lab.")
    return None
