"""Vectors in documents: how a search must ask for them, in which forms an answer has them, and why it has none."""

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin.metadata import value_at

Vector = NDArray[np.float32]

#: Of a search's body: whole documents, vectors included. Where a request does not say so, k-NN 3.8 and later may leave
#: vectors out (their request processor ``knn_default_excludes``); a list of fields brings the vectors that it names.
WHOLE: Final[Mapping[str, Any]] = {"_source": True}


def parse_vector(value: object) -> Vector | None:
    """A vector in JSON, shape (dimension,), float32: a list of numbers, or base64 of little-endian 32-bit floats.

    Returns:
        None where it is neither.
    """
    if isinstance(value, str):
        try:
            # Java reads it without padding, too.
            packed = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        except (ValueError, binascii.Error):
            return None
        return np.frombuffer(packed, "<f4").astype(np.float32) if packed and len(packed) % 4 == 0 else None
    if not isinstance(value, list) or not value:
        return None
    try:
        vector = np.array(value, np.float32)
    except (TypeError, ValueError):
        return None
    return vector if vector.ndim == 1 else None


def vector_at(source: Mapping[str, Any], field: str) -> Vector | None:
    """A document's vector, shape (dimension,), float32; None where it has none.

    Raises:
        ClusterError: the answer holds something else there, which no document of an index of langshift's can.
    """
    value = value_at(source, field)
    vector = parse_vector(value)
    if vector is None and value is not None:
        raise ClusterError(f"The server returns no vector in {field!r}: {masked(field, value) or 'look at _source'}.")
    return vector


def vector_required(source: Mapping[str, Any], field: str, index: str) -> Vector:
    """The vector of a document of which a query says that it has one.

    Raises:
        ClusterError: it is not in the answer.
    """
    vector = vector_at(source, field)
    if vector is None:
        raise ClusterError(left_out(index, field))
    return vector


def distance(one: NDArray[Any] | None, other: NDArray[Any] | None) -> float:
    """The norm of the difference of two vectors; infinite where one alone is there, or they have other dimensions."""
    if one is None or other is None:
        return 0.0 if one is other else math.inf
    return float(np.linalg.norm(one.astype(np.float64) - other)) if len(one) == len(other) else math.inf


def masked(field: str, value: object) -> str:
    """Why a server returns 1 for a vector, and what to do; empty where it does not."""
    if type(value) is not int or value != 1 or field == field.lower():
        return ""
    return (
        "OpenSearch before 3.7 returns 1 for a vector field with capital letters in its name where derived source is "
        "on (k-NN #3268): upgrade OpenSearch to 3.7 or later; or, here, load the documents from their original "
        'source, and set "index.knn.derived_source.enabled": false in an index of your own'
    )


def masked_in(client: OpenSearch, index: str, field: str) -> str:
    """Why the server returns 1 for the vectors of an index, and what to do; empty where it does not."""
    if field == field.lower():
        return ""
    body = {"size": 1, "query": {"exists": {"field": field}}, "_source": [field]}
    hits = client.search(index=index, body=body)["hits"]["hits"]
    return masked(field, value_at(hits[0]["_source"], field)) if hits else ""


def left_out(index: str, field: str) -> str:
    """What to say where a document has a vector, and the answer has not."""
    return (
        f"The server left the vectors in {field!r} of {index} out of its answer, although they were asked for: take "
        "knn_default_excludes_factory out of the setting cluster.search.enabled_system_generated_factories, and look "
        f"at the search pipeline of the index (index.search.default_pipeline)."
    )


def is_left_out(client: OpenSearch, index: str, field: str, document: str) -> bool:
    """Whether a document whose vector is not in an answer has one all the same."""
    has_vector = [{"ids": {"values": [document]}}, {"exists": {"field": field}}]
    return bool(client.count(index=index, body={"query": {"bool": {"filter": has_vector}}})["count"])
