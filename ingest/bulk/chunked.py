"""Documents in chunks: what became of those of a line, and what an earlier form of a document left behind."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from langshift.ingest.bulk.writer import ActionResult

# What a line counts as that several of its chunks have different words for.
_WORDS: Final = ("update", "deleted", "updated", "resent", "created", "not_found")
#: What a document in chunks is counted under, whose other tallies are those of its chunks.
IN_CHUNKS: Final = "in chunks"


class LineParts:
    """Gathers what became of the chunks of lines; may be used from several threads."""

    def __init__(self) -> None:
        self._open: dict[int, list[ActionResult]] = {}
        self._lock = threading.Lock()

    def lines(self, outcomes: Sequence[ActionResult]) -> list[ActionResult]:
        """What became of the lines that came to an end with these outcomes, one each.

        A line is dead if any chunk is; else superseded if any is; else done.
        """
        ended = []
        with self._lock:
            for one in outcomes:
                if not one.item.target:
                    ended.append(one)
                    continue
                parts = self._open.setdefault(one.item.line, [])
                # The bodies of a long document would be held until its last chunk is confirmed.
                parts.append(one._replace(item=one.item._replace(body=b"")))
                if len(parts) == one.item.parts:
                    ended.append(_line(self._open.pop(one.item.line)))
        return ended


def _line(parts: Sequence[ActionResult]) -> ActionResult:
    done = [one for one in parts if one.state == "done"]
    if len(done) < len(parts):
        not_done = next((one for one in parts if one.state == "dead"), None)
        not_done = not_done or next(one for one in parts if one.state == "superseded")
        return not_done._replace(chunks=len(done))
    words = {one.result for one in done}
    item = next((one.item for one in done if one.item.vector is not None), done[0].item)
    every = [tally for one in done for tally in one.item.tallies]
    # Of the document, and not of a chunk.
    whole = [tally for tally in dict.fromkeys(every) if tally.startswith(_OF_DOCUMENTS)]
    tallies = [tally for tally in every if not tally.startswith(_OF_DOCUMENTS)] + whole
    if item.operation == "index":
        tallies.append(IN_CHUNKS)
    result = next(word for word in _WORDS if word in words)
    return ActionResult(item._replace(tallies=tuple(tallies)), "done", result, chunks=len(parts))


_OF_DOCUMENTS = ("no tag", "encoded")
