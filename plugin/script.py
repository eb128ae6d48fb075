"""The stored script that shifts documents inside the cluster, and what it is to be told."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.plugin.fields import Fields
from langshift.plugin.shift_index_shift import IndexShift
from langshift.spellings import codes, folds

# What the ids of the script begin with, of whatever langshift.
PREFIX = "langshift-shift-"


@cache
def source() -> str:
    """The script, in Painless."""
    return resources.files(__package__).joinpath("shift.painless").read_text(encoding="utf-8")


@cache
def script_id() -> str:
    """The id under which the cluster stores the script; another source has another."""
    return f"{PREFIX}{hashlib.sha256(source().encode()).hexdigest()[:8]}"


def is_stored(client: OpenSearch) -> bool:
    """Whether the cluster has the script, as it must be."""
    try:
        there = client.get_script(id=script_id())["script"]
    except NotFoundError:
        return False
    return all(there.get(name) == value for name, value in _stored().items())


def install(client: OpenSearch) -> str:
    """Store the script where it is not stored yet; gives its id.

    Raises:
        TransportError: the cluster refuses it.
    """
    if not is_stored(client):
        client.put_script(id=script_id(), body={"script": _stored()})
    return script_id()


def params(old: IndexShift, new: IndexShift, fields: Fields, *, pipeline: bool) -> dict[str, Any]:
    """What the script is to be told, as plain JSON.

    Args:
        old: how documents that have a stamp were shifted.
        new: how they are to be shifted.
        fields: the names of their fields, which do not change.
        pipeline: whether documents come through an ingest pipeline, from any client: then those without a stamp are
            as the encoder made them, and each names its language as it likes. Otherwise they come by ``_reindex``.
    """
    same = old.hash == new.hash
    every = [*new.vectors.values(), *old.vectors.values()]
    return {
        "pipeline": pipeline,
        "same": same,
        # Without language vectors the index itself refuses vectors of another dimension.
        "dimension": len(every[0]) if every else 0,
        "fields": {
            "vector": fields.vector,
            "language": fields.language,
            "confidence": fields.confidence,
            "stamp": fields.stamp,
            "told": fields.told or fields.language,
        },
        "split": not fields.texts,
        "old": {"hash": old.hash, "vectors": {} if same else _plain(old.vectors)},
        "new": {
            "hash": new.hash,
            "alpha": float(new.alpha),
            "alphas": {tag: float(alpha) for tag, alpha in new.alphas.items()},
            "keys": new.keys,
            "vectors": _plain(new.vectors),
        },
        **({"codes": codes()} if pipeline else {}),
        "folds": folds(),
    }


def reason(error: Mapping[str, Any]) -> str:
    """The sentence of the innermost cause of an error that the cluster reports, such as one that the script throws."""
    while isinstance(cause := error.get("caused_by"), Mapping):
        error = cause
    return str(error.get("reason") or error.get("type"))


def _stored() -> dict[str, str]:
    return {"lang": "painless", "source": source()}


def _plain(vectors: Mapping[str, NDArray[np.float32]]) -> dict[str, list[float]]:
    """The same numbers: every float32 is a float64."""
    return {tag: vector.astype(np.float64).tolist() for tag, vector in vectors.items()}
