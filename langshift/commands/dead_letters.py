"""The command ``dead-letters list``; and ``ingest --dead-letters``, which sends them again."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click

from langshift.commands.load_display import LoadDisplay
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters, grouped, shortened
from langshift.ingest.bulk.journal import IDENTITY
from langshift.ingest.bulk.journal_store import load_workspaces
from langshift.ingest.dead_letter_replay import replay_letters, with_letters
from langshift.ingest.parts.folder import StateFolder
from langshift.ingest.parts.journal import DEAD, borrowed_letters
from langshift.ingest.progress import dead_letters_say
from langshift.output import emit_json, line, table
from langshift.parameters import JSON, CommandGroup, option
from langshift.retry import PATIENCE
from langshift.settings import Settings
from langshift.wording import pluralize


@click.group("dead-letters", cls=CommandGroup)
def dead_letters() -> None:
    """List documents that could not be indexed, with the reasons.

    \b
    Example:
      langshift dead-letters list
    """


@dead_letters.command("list")
@option("--index NAME", "Only those of this index. [default: of every index]", dest="name")
@option("--state URI", "Those in the state of a load.", dest="state")
@JSON
def list_(name: str | None, state: str | None, as_json: bool) -> None:
    """List dead letters by reason, the most frequent first.

    Reasons that only differ in details of single documents (ids, quoted values, numbers) are counted together; the
    reason shown is the example's own. The files that are named contain each document as it was read. No cluster is
    needed.

    \b
    Example:
      langshift dead-letters list --index news
    """
    counts: Counter[tuple[str, str]] = Counter()
    with ExitStack() as stack:
        found = [(place.name, str(place.dead_letters), DeadLetters(place.dead_letters)) for place in with_letters(name)]
        if state is not None:
            folder = StateFolder(state, PATIENCE)
            facts, letters, _ = stack.enter_context(borrowed_letters(folder))
            found = [(facts[IDENTITY]["index"], f"{folder.shown}/{DEAD}", letters)]
        groups = grouped(_letters(found, counts))
    files = [file for _, file in counts]
    if as_json:
        emit_json({"total": counts.total(), "groups": [group.to_dict() for group in groups], "files": files})
    elif not groups:
        line(none_of(name))
    else:
        rows = []
        for group in groups:
            example = f"{Path(group.example.corpus).name}, line {group.example.line}"
            rows.append([f"{group.count:,}", group.stage, group.type, shortened(group.example.reason), example])
        columns = ["count", "stage", "type", "reason", "example"]
        table(None, columns, rows, right={"count"}, prose={"reason", "example"})
        for (index, file), count in counts.items():
            line(f"{pluralize(count, 'dead letter')} of {index} in {file}")
        more = "" if state is None else f" --state {state}"
        names = dict.fromkeys(index for index, _ in counts)
        again = ", ".join(f"`langshift ingest --dead-letters --index {index}{more}`" for index in names)
        line(f"Repair what is wrong, then send them again: {again}.")


def send_again(name: str, state: str | None, encoder: str | None, patience: float, *, as_json: bool) -> int:
    """Send the dead letters of an index again, remove those that went through, and print what became of them.

    Args:
        name: the index.
        state: the state of the load that they are of; None for those of this machine's loads.
        encoder: where the index's encoder is now; None for where it was in the last load.
        patience: seconds to wait for the store of the state.
        as_json: whether to print JSON.

    Returns:
        The exit code: 0, or 3 where some are left.
    """
    done = replay_letters(name, encoder, LoadDisplay, None if state is None else StateFolder(state, patience))
    if as_json:
        figures = {"replayed": done.total, "indexed": done.indexed, "superseded": done.superseded, "left": done.left}
        emit_json(figures)
    elif not done.total:
        line(none_of(name))
    else:
        stay = (
            f"{done.left:,} remain in {done.file} ({dead_letters_say(name, state or '')})"
            if done.left
            else "none remain"
        )
        line(
            f"Replayed {pluralize(done.total, 'dead letter')} of {name}: {done.indexed:,} indexed, "
            f"{done.superseded:,} superseded by a later version of the document, {stay}."
        )
    return 3 if done.left else 0


def _letters(found: list[tuple[str, str, DeadLetters]], counts: Counter[tuple[str, str]]) -> Iterator[DeadLetter]:
    for index, file, letters in found:
        for letter in letters:
            counts[index, file] += 1
            yield letter


def none_of(name: str | None) -> str:
    """That there are none, and whether nothing was ever loaded under the name."""
    if name is not None and not load_workspaces(Settings.from_env().home, name):
        return f"There are no dead letters of {name}: nothing was loaded into an index of that name from here."
    return f"There are no dead letters{f' of {name}' if name else ''}."
