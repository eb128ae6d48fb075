"""The journals of a replay: one for each index, opened anew or gone on with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import orjson

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Query
from langshift.evaluate.replay.asked import Asked, Plan, Way
from langshift.evaluate.replay.journal import Identity, Journal, begin, resume, unfinished
from langshift.evaluate.replay.requests import TOP_K
from langshift.evaluate.run import command


def folders_of(output: Path, names: Sequence[str]) -> list[Path]:
    """Where the files of each index go: ``output``, or folders there of their names where there are several."""
    return [output / name for name in names] if len(names) > 1 else [output]


def check_resume(output: Path, names: Sequence[str], *, resume: bool) -> None:
    """Refuse what cannot be gone on with, and to begin anew over what can.

    Args:
        output: the folder.
        names: the indices.
        resume: whether to go on.

    Raises:
        UsageError: there is something to go on with and nobody says so, or nothing.
    """
    begun = [folder for folder in folders_of(output, names) if unfinished(folder)]
    if begun and not resume:
        raise UsageError(
            f"{begun[0]} holds an unfinished replay: go on with it by --resume, or name another --output, "
            "or remove the folder to begin anew."
        )
    if resume and not begun:
        raise UsageError(f"{output} holds no unfinished replay: leave --resume out to begin one.")


def open_journals(output: Path, asked: Asked, plan: Plan) -> list[Journal]:
    """Open the journal of each index: go on with one that was cut off, and begin the others.

    Nothing is written or removed before all is checked.

    Args:
        output: the folder.
        asked: what is replayed.
        plan: how.

    Raises:
        UsageError: a journal is of something else.
    """
    folders = folders_of(output, [way.searcher.index.name for way in asked.ways])
    identities = [_identity(way, asked, plan) for way in asked.ways]
    journals = {
        folder: resume(folder, identity)
        for folder, identity in zip(folders, identities, strict=True)
        if unfinished(folder)
    }
    for folder, identity in zip(folders, identities, strict=True):
        if folder not in journals:
            journals[folder] = begin(folder, identity, command())
    return [journals[folder] for folder in folders]


def _identity(way: Way, asked: Asked, plan: Plan) -> Identity:
    """What must be the same for answers to belong together: queries, index, setting, and how they are sent."""
    index = way.searcher.index
    queries = [[query.id, query.text, asked.languages[query.id], _digest(query)] for query in asked.queries]
    times = None if plan.log is None else [logged.time for logged in plan.log]
    sent = {name: value for name, value in plan.load.to_dict().items() if name != "warm_up"}
    return {
        "queries": hashlib.sha256(orjson.dumps([queries, times])).hexdigest()[:16],
        "index": index.index,
        "documents": index.documents,
        "setting": asdict(way.setting),
        "shift_queries": way.shift_queries,
        "trust": None if way.trust is None else way.trust.to_dict(),
        "top_k": TOP_K,
        "indices": [one.searcher.index.name for one in asked.ways],
        "load": sent,
        "fingerprint": index.fingerprint.to_dict(),
    }


def _digest(query: Query) -> str | None:
    """What tells a vector that came with a query from another."""
    return None if query.embedding is None else hashlib.sha256(query.embedding.tobytes()).hexdigest()[:16]
