"""What ``langshift pipeline install`` and ``remove`` do and print."""

from __future__ import annotations

from opensearchpy import OpenSearch

from langshift.cluster import open_cluster
from langshift.console import emit_json, note, out
from langshift.errors import UsageError
from langshift.plugin import pipeline
from langshift.plugin.first import First
from langshift.plugin.index_shift import shift_of
from langshift.plugin.versions import live

_DONE = {"installed": "Installed", "updated": "Brought up to date:", "unchanged": "Nothing to do:"}


def run_install(name: str, after: str | None, *, as_json: bool) -> None:
    """Put the pipeline of an index.

    Raises:
        UsageError: what is to run first cannot.
        ClusterError: there is no such index, or its documents cannot be shifted by a pipeline.
    """
    client = open_cluster()
    found = live(client, name)
    index, shift = found.index, shift_of(client, found)
    first = _first(client, index, after)
    done = pipeline.install(client, index, shift, found.fields, first)
    if as_json:
        emit_json(
            {
                "index": index,
                "pipeline": pipeline.name_for(index),
                "first": first._asdict() if first else None,
                "vectors": shift.hash,
                "alpha": shift.alpha,
                "alphas": dict(shift.alphas),
                "done": done,
            }
        )
        return
    out.print(f"{_DONE[done]} {pipeline.name_for(index)}, the default pipeline of {index}.", soft_wrap=True)
    if first is not None:
        so_far = ", the default pipeline so far," if first.was_default else ""
        note(f"The pipeline {first.name}{so_far} runs before it.")
    if shift.hash is None:
        note(f"{index} has no language vectors: documents get a stamp, and no vector moves.")


def run_remove(name: str, *, as_json: bool) -> None:
    """Take the pipeline of an index away; nothing happens where there is none.

    Raises:
        ClusterError: there is no such index.
    """
    client = open_cluster()
    index = live(client, name).index
    removed = pipeline.remove(client, index)
    now = pipeline.default(client, index)
    if as_json:
        emit_json({"index": index, "removed": removed.name if removed else None, "default_pipeline": now})
    elif removed is None:
        out.print(f"{index} has no pipeline of langshift's: nothing to remove.", soft_wrap=True)
    else:
        left = f"the default pipeline {now} again" if now else "no default pipeline now"
        out.print(f"Removed {removed.name}: {index} has {left}. Its documents stay as they are.", soft_wrap=True)


def _first(client: OpenSearch, index: str, after: str | None) -> First | None:
    """What runs before the shift: what was there before stays."""
    now = pipeline.default(client, index)
    # The pipeline of another version would only shift before this one does.
    there = None if now is None else pipeline.read(client, now)
    before = None if now is None else First(now, was_default=True)
    first = before if there is None else there.first
    if after is None or (first is not None and first.name == after):
        return first
    if first is not None and first.was_default:
        raise UsageError(
            f"{index} has the default pipeline {first.name}, which stays what runs first: put {after} into it, "
            "or leave --after out."
        )
    return First(after, was_default=False)
