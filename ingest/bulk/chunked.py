"""Documents in chunks: what became of those of a line, and what an earlier form of a document left behind."""

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.files import batched
from langshift.ingest.bulk.writer import ActionResult, bulk_lines
from langshift.plugin.metadata import CHUNK, FieldNames, chunk_id, value_at
from langshift.server_errors import Unreadable

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
        # What an update could not do to each chunk leaves a document, and no part of one.
        chunks = 0 if not_done.item.operation == "update" else len(done)
        return not_done._replace(chunks=chunks, there=max(one.there for one in parts))
    words = {one.result for one in done}
    item = next((one.item for one in done if one.item.vector is not None), done[0].item)
    every = [tally for one in done for tally in one.item.tallies]
    # Of the document, and not of a chunk.
    whole = [tally for tally in dict.fromkeys(every) if tally.startswith(_OF_DOCUMENTS)]
    tallies = [tally for tally in every if not tally.startswith(_OF_DOCUMENTS)] + whole
    if item.operation == "index" and item.update is None:
        tallies.append(IN_CHUNKS)
    result = next(word for word in _WORDS if word in words)
    return ActionResult(item._replace(tallies=tuple(tallies)), "done", result, chunks=len(parts))


_OF_DOCUMENTS = ("no tag", "encoded")


class Ended(NamedTuple):
    """What a line has left of a document in chunks.

    Attributes:
        id: the document's id.
        line: the line.
        chunks: how many chunks the document has now; 0 where it was deleted, or where one of its chunks was refused;
            None where somebody has written it later: that form of it tells.
    """

    id: str
    line: int
    chunks: int | None


def left_by(one: ActionResult) -> Ended:
    """What a line has left."""
    gone = one.state == "dead" or one.item.operation == "delete"
    return Ended(one.item.id, one.item.line, None if one.state == "superseded" else 0 if gone else one.chunks)


# Documents in a search, far below what a query may have of clauses; chunks of an answer.
_SOUGHT, _PAGE = 200, 1000
_COUNT, _ORDINAL = f"{CHUNK}.count", f"{CHUNK}.ordinal"
_TAKEN = (200, 404, 409)  # 409: somebody has written it since
_log = logging.getLogger(__name__)


@dataclass
class StaleChunks:
    """Removes chunks that an earlier form of a document has left behind; several threads may call it at once.

    Such a chunk says that its document had another number of chunks: of the same number all were overwritten.

    Attributes:
        client: the cluster.
        index: the version.
        base: the version that line 0 would have.
        fields: the names of the documents' fields.
    """

    client: OpenSearch
    index: str
    base: int
    fields: FieldNames

    def remove_at_once(self, lines: Iterable[ActionResult]) -> None:
        """Remove what the index shows already; that it cannot be asked now is no matter, as ``remove`` comes later."""
        ended = [left_by(one) for one in lines if one.result != "created" and (one.state != "dead" or one.chunks)]
        try:
            self.remove(ended)
        except (OpenSearchException, Unreadable) as error:
            _log.warning("stale chunks are left to the final check: %s", error)

    def remove(self, ended: Iterable[Ended]) -> int:
        """Remove stale chunks of documents; how many they were.

        Args:
            ended: the documents, each once.

        Raises:
            OpenSearchException: the cluster does not do its part.
            Unreadable: likewise.
        """
        removed = 0
        for some in batched(ended, _SOUGHT):
            stale = list(self._stale({one.id: one for one in some}))
            for page in batched(stale, _PAGE):
                self._delete(page)
            removed += len(stale)
        return removed

    def _stale(self, documents: Mapping[str, Ended]) -> Iterator[tuple[str, int]]:
        """The stale chunks of documents, each with the version that it is deleted under."""
        for id, found in groupby(self._others(documents), key=lambda hit: hit["sort"][0]):
            hits, one = list(found), documents[id]
            if one.chunks is None:
                latest = max(hits, key=lambda hit: hit["_version"])
                version, count = latest["_version"], value_at(latest["_source"], _COUNT) or 0
            else:
                version, count = self.base + one.line, one.chunks
            # What a search does not show yet, a chunk of these may be by now.
            own = {chunk_id(id, ordinal) for ordinal in range(count)}
            for hit in hits:
                if hit["_version"] <= version and hit["_id"] not in own:
                    yield hit["_id"], version

    def _others(self, documents: Mapping[str, Ended]) -> Iterator[dict[str, Any]]:
        """The chunks of documents that may be stale, in the order of their documents."""
        key = self.fields.document_key
        ids = defaultdict[int | None, list[str]](list)
        for one in documents.values():
            ids[one.chunks].append(one.id)
        queries = []
        for count, some in ids.items():
            but = [] if count is None else [{"term": {_COUNT: count}}]
            queries.append({"bool": {"filter": [{"terms": {key: some}}], "must_not": but}})
        body: dict[str, Any] = {"query": {"bool": {"should": queries}}, "size": _PAGE, "_source": [_COUNT]}
        body |= {"sort": [key, _ORDINAL], "version": True}
        while True:
            answer = self.client.search(index=self.index, body=body, params={"allow_partial_search_results": "false"})
            yield from (hits := answer["hits"]["hits"])
            if len(hits) < _PAGE:
                return
            body["search_after"] = hits[-1]["sort"]

    def _delete(self, stale: Sequence[tuple[str, int]]) -> None:
        body = b"".join(bulk_lines("delete", id, version) for id, version in stale)
        answer = self.client.bulk(body=body, index=self.index)
        for item in answer["items"]:
            if item["delete"]["status"] not in _TAKEN:
                raise Unreadable(f"The stale chunk {item['delete']['_id']!r} of {self.index} cannot be removed.")
