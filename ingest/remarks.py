"""What a person is told of a load, in words."""

from __future__ import annotations

from opensearchpy import OpenSearch

from langshift.console import counted
from langshift.debias.fingerprint import Fingerprint
from langshift.ingest.making import Making
from langshift.ingest.summary import Summary
from langshift.languages import text_language
from langshift.plugin.transfer import mark
from langshift.plugin.versions import unfinished


def last_line(summary: Summary) -> str:
    """That nothing was lost, or what is left to do: where each line of the input is."""
    documents = counted(summary.present, "document")
    told = [f"{documents} on the server, checked"]
    if summary.deleted:
        told.append(f"{summary.deleted:,} deleted")
    if summary.dead:
        told.append(counted(summary.dead, "dead letter"))
    why = f" ({dead_letters_say(summary.name)})" if summary.dead else ""
    all_ = "The 1 line of {} is" if summary.lines == 1 else f"All {summary.lines:,} lines of {{}} are"
    return f"{all_.format(summary.corpus)} accounted for: {', '.join(told)}{why}."


def dead_letters_say(name: str) -> str:
    """Where to read why documents of an index went to the dead letters."""
    return f"langshift dead-letters list --index {name} says why"


def unfinished_versions(client: OpenSearch, name: str) -> list[str]:
    """A sentence for each version of an index that another command is making, or has left."""
    told = []
    for index in unfinished(client, name):
        transfer = mark.noted(client, index)
        by = "load" if transfer is None else transfer[0]
        told.append(f"{index} is unfinished: a {by} is making it, or one was cut off; no search sees it.")
    return told


def remarks(summary: Summary, making: Making) -> list[str]:
    """What a person should know of a load that went through, one sentence each."""
    told = []
    if summary.cut:
        told.append(
            f"{counted(summary.cut, 'text')} longer than the {summary.longest:,} characters that {making.encoder.id} "
            "reads: the vector stands for the beginning, word search finds all of it."
        )
    if summary.languages["und"]:
        unclear = counted(summary.languages["und"], "document")
        fate = "shifted by whatever languages they may be in" if summary.made.soft else f"not {_verb(summary.made)}"
        told.append(f"{unclear} without a clear language: {fate}.")
    for tag, count in summary.folded.most_common():
        told.append(f"{counted(count, 'document')} in {tag} counted to {text_language(tag)}, its macrolanguage.")
    if summary.without_vector:
        named = ", ".join(
            f"{tag} ({counted(count, 'document')})" for tag, count in summary.without_vector.most_common()
        )
        fate = f"not {_verb(summary.made)}" + (" by their own language" if summary.made.soft else "")
        what = "language vector" if summary.made.method == "shift" else "map"
        told.append(f"No {what} for {named}: {fate}.")
    if summary.replaced:
        replaced = counted(summary.replaced, "document")
        told.append(f"{replaced} took the place of one with the same _id, in the index or this corpus.")
    if summary.superseded:
        superseded = counted(summary.superseded, "line")
        told.append(
            f"{superseded} left out: the index holds a later version of the document, by this corpus or others."
        )
    if summary.repaired:
        repaired = counted(summary.repaired, "document")
        told.append(f"{repaired} that the cluster had confirmed and lost: written once more.")
    return told


def moved_in_words(made: Fingerprint) -> str:
    """How the documents of an index were moved, such as ``shifted with alpha 1 (fr .5)``."""
    how = "softly " if made.soft else ""
    alphas = ", ".join(f"{tag} {alpha:g}" for tag, alpha in made.alphas.items())
    return f"{how}{_verb(made)} with alpha {made.alpha:g}{f' ({alphas})' if alphas else ''}"


def _verb(made: Fingerprint) -> str:
    return "shifted" if made.method == "shift" else "mapped"
