"""What ``langshift adopt`` does and prints."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass

from opensearchpy.exceptions import RequestError

from langshift.cluster import open_cluster
from langshift.console import counted, emit_json, note, out, table
from langshift.errors import ClusterError
from langshift.failures import reason
from langshift.ingest.adopt.adopting import Asked, Opened, adopt, open_old, require_name
from langshift.ingest.bulk.place import LoadPlace
from langshift.ingest.opened_load import LoadOptions
from langshift.ingest.remarks import dead_letters_say, moved_in_words, unfinished_versions
from langshift.ingest.shown_load import ShownLoad, tell_end
from langshift.ingest.summary import Summary
from langshift.plugin.versions import check_name
from langshift.settings import Settings
from langshift.terminated import terminated_like_interrupted

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """The command's options.

    Attributes:
        asked: what is to be adopted.
        name: the new index.
        load: how it is written.
        as_json: whether to print JSON.
    """

    asked: Asked
    name: str
    load: LoadOptions
    as_json: bool


def run(options: Options) -> int:
    """Check what was given before anything is written; then adopt and tell.

    Returns:
        The exit code: 0, or 3 where documents went to dead letters.
    """
    name = options.name
    check_name(name)
    client = open_cluster()
    with ExitStack() as stack:
        stack.enter_context(terminated_like_interrupted())
        opened = stack.enter_context(open_old(client, options.asked, options.load.patience))
        require_name(client, opened.old, name, options.load)
        for sentence in unfinished_versions(client, name):
            note(sentence)
        place = LoadPlace.of(Settings.from_env().home, client, name)
        watch = stack.enter_context(ShownLoad(opened.old.name, options.asked.making, place))
        try:
            summary = adopt(client, opened, name, options.load, watch)
        except RequestError as error:
            raise ClusterError(_refused(opened, reason(error))) from error
        told = _last_line(summary, opened)
        _log.info("%s", told)
    if options.as_json:
        emit_json(_document(summary, opened))
    else:
        _print(summary, opened)
    return tell_end(summary, opened.making, told, as_json=options.as_json)


def _refused(opened: Opened, why: str) -> str:
    remedy = ""
    if "total fields" in why:
        remedy = f": raise index.mapping.total_fields.limit of {opened.old.index} by 20, which changes no document"
    return f"The cluster refuses the new index ({why}){remedy}."


def _document(summary: Summary, opened: Opened) -> dict[str, object]:
    """As ``langshift adopt --json`` prints it: as of a load, with the old index and the names of fields."""
    told = summary.to_dict()
    old = {"name": told.pop("corpus"), "index": opened.old.index, "uuid": opened.old.uuid}
    # Of a load alone.
    for needless in ("cut", "longest", "resumed", "deleted"):
        told.pop(needless)
    return {**told, "old": old, "fields": opened.fields.to_dict()}


def _print(summary: Summary, opened: Opened) -> None:
    counts = sorted(summary.languages.items(), key=lambda one: (-one[1], one[0]))
    rows = [[tag, f"{count:,}"] for tag, count in counts]
    table(None, ["language", "documents"], rows, right={"documents"})
    without = f", {summary.vectorless:,} without a vector" if summary.vectorless else ""
    out.print(
        f"Adopted {counted(summary.documents, 'document')} of {opened.old.shown} into {summary.name} "
        f"({summary.index}), {summary.shifted:,} of them {moved_in_words(summary.made)}{without}; "
        f"{opened.old.name} was not touched.",
        markup=False,
        soft_wrap=True,
    )


def _last_line(summary: Summary, opened: Opened) -> str:
    """That nothing was lost, and what is not there."""
    told = [f"{counted(summary.present, 'document')} on the server, checked"]
    if summary.dead:
        told.append(f"{counted(summary.dead, 'dead letter')} ({dead_letters_say(summary.name)})")
    return (
        f"All {counted(summary.lines, 'document')} that searches of {opened.old.name} found when reading began are "
        f"accounted for: {', '.join(told)}. What is written to {opened.old.name} since then is not in {summary.name}."
    )
