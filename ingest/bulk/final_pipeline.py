"""The final pipeline of an index, which no request can leave out: whether it leaves documents as they are sent."""

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, NotFoundError, RequestError

from langshift.errors import ClusterError
from langshift.ingest.bulk.writer import BulkChunk
from langshift.plugin import metadata
from langshift.plugin.metadata import FieldNames, value_at
from langshift.plugin.stored_vector import parse_vector
from langshift.plugin.versions import Target
from langshift.server_errors import reason

_SAMPLED = 20  # documents of the first request
_TOLERANCE = 1e-6  # of the largest component; a server may keep a vector in another float format
_HASH = 16  # bytes


def final_pipeline(client: OpenSearch, index: str) -> str | None:
    """The final pipeline of an index; None where it has none, is gone, or this user may not read its settings."""
    try:
        found: str | None = metadata.read_settings(client, index).get("final_pipeline")
    except (AuthorizationException, NotFoundError):
        return None
    return None if found == "_none" else found


def refused(index: str, name: str, why: str) -> ClusterError:
    """The error about a final pipeline that does not leave documents as they are sent."""
    return ClusterError(
        f"The final pipeline {name} of {index} {why}, so what langshift writes would not be what is indexed: remove it "
        f'with `PUT /{index}/_settings` and {{"index.final_pipeline": "_none"}}, or from the index template that sets '
        "it, then run the command again."
    )


def relied_on(fields: FieldNames) -> list[str]:
    """What langshift relies on in a document beside its vector, by the names of an index's fields."""
    return [fields.language, fields.stamp, *fields.text_fields]


def content_hash(source: Mapping[str, Any], fields: FieldNames) -> bytes:
    """A hash of what ``relied_on`` names in a document.

    Args:
        source: the document, as it is sent or as it is stored.
        fields: the names of its fields.
    """
    texts = [list(_strings(value_at(source, path))) for path in fields.text_fields]
    found = [value_at(source, fields.language), value_at(source, fields.stamp), texts]
    content = orjson.dumps(found, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(content, digest_size=_HASH).digest()


def _strings(value: object) -> Iterator[str]:
    """All strings in a JSON value, each with the names of the fields before it; numbers are written in many ways."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name in sorted(value):
            yield from (name, *_strings(value[name]))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def sampled(vector: NDArray[np.float32], source: Mapping[str, Any], fields: FieldNames) -> bytes:
    """What the final check compares of a document that is sent: the vector's bytes, and the hash of the rest.

    Args:
        vector: the shifted vector, shape (dimension,), float32.
        source: the document.
        fields: the names of its fields.
    """
    return vector.tobytes() + content_hash(source, fields)


def is_same(stored: Mapping[str, Any], sent: bytes, fields: FieldNames) -> bool:
    """Whether a stored document is what was sent, by what ``sampled`` has kept, or by its vector's bytes alone."""
    there = parse_vector(value_at(stored, fields.vector))
    size = 0 if there is None else there.nbytes
    vector, content = np.frombuffer(sent[:size], np.float32), sent[size:]
    return bool(size) and same_vector(there, vector) and content in (b"", content_hash(stored, fields))


def same_vector(stored: NDArray[np.float32] | None, sent: NDArray[np.float32]) -> bool:
    """Whether a stored vector is what was sent but for rounding."""
    if stored is None or len(stored) != len(sent):
        return False
    difference = np.abs(stored - sent).max(initial=0)
    return bool(difference <= _TOLERANCE * np.abs(sent).max(initial=0))


class FinalPipelineCheck:
    """Has the cluster run an index's final pipeline on the first documents, before anything is written."""

    def __init__(self, client: OpenSearch, target: Target) -> None:
        self._client, self._index, self._fields = client, target.index, target.fields
        self._lock = threading.Lock()
        self._done = False
        #: The pipeline; None where there is none.
        self.name: str | None = None

    def require_harmless(self, chunk: BulkChunk) -> None:
        """Look at the first documents that are sent; all later calls do nothing.

        Single documents that the pipeline drops or fails over are told in the answer to their request.

        Raises:
            ClusterError: it changes one of them, or takes none.
            OpenSearchException: the cluster cannot be asked now.
        """
        with self._lock:
            if self._done:
                return
            bodies = [item.body for item in chunk.items if item.operation == "index"][:_SAMPLED]
            if bodies:
                self.name = final_pipeline(self._client, self._index)
                if self.name is not None:
                    self._run(self.name, bodies)
                self._done = True

    def _run(self, name: str, bodies: Sequence[bytes]) -> None:
        sent = [{"_index": self._index, **_document(body)} for body in bodies]
        try:
            answers = self._client.ingest.simulate(id=name, body={"docs": sent})["docs"]
        except AuthorizationException:
            return  # the answers and the final check tell of it
        except RequestError as error:
            raise refused(self._index, name, f"cannot run ({reason(error)})") from error
        if not any(answers):
            raise refused(self._index, name, f"drops documents such as {sent[0]['_id']!r}")
        for document, answer in zip(sent, answers, strict=True):
            if answer and "doc" in answer and (what := self._changed(document, answer["doc"])):
                raise refused(self._index, name, f"changes {what} of documents such as {document['_id']!r}")
        errors = [answer["error"] for answer in answers if answer and "error" in answer]
        if len(errors) == sum(map(bool, answers)):
            raise refused(self._index, name, f"fails ({errors[0].get('reason') or errors[0].get('type')})")

    def _changed(self, sent: Mapping[str, Any], made: Mapping[str, Any]) -> str | None:
        """What it has changed of a document; None where that is nothing that langshift relies on."""
        for place in ("_id", "_index", "_routing"):
            if made.get(place) != sent.get(place):
                return place
        before, after = sent["_source"], made["_source"]
        if not _same_or_none(value_at(after, self._fields.vector), value_at(before, self._fields.vector)):
            return self._fields.vector
        paths = relied_on(self._fields)
        return next((path for path in paths if value_at(after, path) != value_at(before, path)), None)


def _same_or_none(there: object, sent: object) -> bool:
    return there is None if sent is None else same_vector(parse_vector(there), np.asarray(sent, np.float32))


def _document(body: bytes) -> dict[str, Any]:
    """The document in an operation's lines of a bulk request, as the simulation of a pipeline takes it."""
    action, source = body.split(b"\n", 1)
    ((_, about),) = orjson.loads(action).items()
    routing = {"_routing": about["routing"]} if "routing" in about else {}
    return {"_id": about["_id"], "_source": orjson.loads(source), **routing}
