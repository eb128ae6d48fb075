"""Write batches of index entries through the bulk API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin.versions import Target

# A bulk request of about this many bytes is large enough to be cheap and small enough for any server's
# limit (http.max_content_length, 100 MB by default, 10 MB on some managed services).
_CHUNK_BYTES = 5 << 20


class BulkWriter:
    """Send entries to the index of a load.

    Attributes:
        written: entries that the server has confirmed.
        replaced: those among them that took the place of an entry of the same ``_id``.
    """

    def __init__(self, client: OpenSearch, target: Target) -> None:
        self.written = 0
        self.replaced = 0
        self._client = client
        self._target = target

    def write(self, ids: Sequence[str], entries: Sequence[dict[str, Any]]) -> None:
        """Write entries, in as many requests as their size asks for.

        Raises:
        ClusterError: the server refuses an entry (named with the reason), or its answer leaves some out.
        """
        chunk, count = bytearray(), 0
        for identifier, entry in zip(ids, entries, strict=True):
            chunk += orjson.dumps({"index": {"_id": identifier}}) + b"\n"
            chunk += orjson.dumps(entry, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n"
            count += 1
            if len(chunk) >= _CHUNK_BYTES:
                self._send(bytes(chunk), count)
                chunk, count = bytearray(), 0
        if chunk:
            self._send(bytes(chunk), count)

    def _send(self, body: bytes, count: int) -> None:
        answer = self._client.bulk(body=body, **self._target.bulk_parameters)
        results = [item["index"] for item in answer["items"]]
        if len(results) != count:
            raise ClusterError(
                f"The cluster answered for {len(results)} of {count} documents of a bulk request: run again."
            )
        refused = [result for result in results if "error" in result]
        self.written += len(results) - len(refused)
        self.replaced += sum(result.get("result") == "updated" for result in results)
        if refused:
            first = refused[0]
            raise ClusterError(
                f"The cluster refuses {len(refused)} of {len(results)} documents of a bulk request, "
                f"first {first['_id']!r}: {_reason(first['error'])}."
            )


def entry(
    title: str,
    text: str,
    language: str,
    confidence: float,
    embedding: NDArray[np.float32],
    stamp: dict[str, Any],
    other: dict[str, Any],
) -> dict[str, Any]:
    """The index entry of one document.

    Args:
        title: may be empty; then the field is left out, as is an empty text.
        text: the document's text.
        language: as ``text_language`` gives it; it names the text fields.
        confidence: the detector's posterior.
        embedding: the shifted vector, shape (dimension,), float32, C-contiguous.
        stamp: what was done to the vector.
        other: every other field, as it came.
    """
    made: dict[str, Any] = {**other, "language": language, "language_confidence": confidence}
    if title:
        made["title"] = {language: title}
    if text:
        made["text"] = {language: text}
    made["embedding"] = embedding
    made["shift"] = stamp
    return made


def _reason(error: dict[str, Any]) -> str:
    cause = error.get("caused_by", {}).get("reason")
    told = f"{error.get('reason', error.get('type', 'no reason given'))}{f' ({cause})' if cause else ''}"
    return " ".join(told.split()).rstrip(".")
