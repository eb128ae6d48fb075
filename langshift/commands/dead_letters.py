"""The commands of ``dead-letters``."""

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
from langshift.parameters import INDEX_ENCODER, JSON, CommandGroup, option
from langshift.retry import PATIENCE, waiting
from langshift.settings import Settings
from langshift.wording import pluralize


@click.group("dead-letters", cls=CommandGroup)
def dead_letters() -> None:
    """List documents that could not be indexed, with the reasons, and send them again.

    \b
    Example:
      langshift dead-letters list
    """


_STATE = option("--state URI", "Those in the state of a load.", dest="state")


@dead_letters.command("list")
@option("--index NAME", "Only those of this index. [default: of every index]", dest="name")
@_STATE
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
        again = ", ".join(f"`langshift dead-letters replay --index {index}{more}`" for index in names)
        line(f"Repair what is wrong, then send them again: {again}.")


@dead_letters.command("replay")
@option("--index NAME", "The index that the dead letters are for.", dest="name", required=True)
@_STATE
@INDEX_ENCODER
@JSON
def replay(name: str, state: str | None, encoder: str | None, as_json: bool) -> None:
    """Send the dead letters of an index again, and remove those that went through.

    Repair what was wrong first: the index's settings, the encoder's server, or the documents themselves, in the file
    that `langshift dead-letters list` names (the line in `document`). Documents are processed as by the last load into
    the index. A document that was loaded as a whole since then is not changed.

    Exit codes: 0 none are left, 3 some are left, with their new reasons.

    \b
    Example:
      langshift dead-letters replay --index news
    """
    with waiting(PATIENCE):
        folder = None if state is None else StateFolder(state, PATIENCE)
        done = replay_letters(name, encoder, LoadDisplay, folder)
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
    click.get_current_context().exit(3 if done.left else 0)


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
