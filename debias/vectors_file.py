"""How language vectors lie in their file: safetensors, one tensor a language, the making in its header."""

from __future__ import annotations

import os
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from langshift.debias.parallel.given import LONGEST
from langshift.debias.vectors import LanguageVectors
from langshift.errors import UsageError
from langshift.languages import parse_tag

_HEADER = "langshift"
_HOW_TO_FIT = "make one with `langshift vectors fit`"
# Attribute -> what stands before the language in the names of its tensors.
_PARTS = {"query_vectors": "query", "means": "mean", "directions": "lir", "maps": "affine"}
_TENSORS = ("vectors", *_PARTS)
_TEXTS = ("encoder", "revision", "document_prefix", "query_prefix", "source")


def to_bytes(vectors: LanguageVectors) -> bytes:
    """The file's content."""
    from safetensors.numpy import save

    header = {field.name: getattr(vectors, field.name) for field in fields(vectors) if field.name not in _TENSORS}
    tensors = dict(vectors.vectors)
    for name, part in _PARTS.items():
        tensors |= {f"{part}/{tag}": tensor for tag, tensor in getattr(vectors, name).items()}
    content: bytes = save(tensors, metadata={_HEADER: orjson.dumps(header, default=dict).decode()})
    return content


def read(path: Path) -> dict[str, Any]:
    """The attributes of the language vectors in a file, not yet known to be sound.

    Raises:
        UsageError: there is no such file, it may not be read, or it is not one of ours.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise UsageError(f"{path}: there is no such file of language vectors; {_HOW_TO_FIT}.")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path}: you may not read it; change its permissions, or copy it to where you may.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = orjson.loads((file.metadata() or {})[_HEADER])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        parts: dict[str, Any] = {name: _of_part(tensors, part) for name, part in _PARTS.items()}
        attributes = {**header, **parts, "vectors": _of_part(tensors, "")}
        known = {field.name for field in fields(LanguageVectors)}
        needed = {field.name for field in fields(LanguageVectors) if field.default is field.default_factory is MISSING}
        if not needed <= set(attributes) <= known:
            raise KeyError
    # An AttributeError is safetensors' word for a type that NumPy does not have.
    except (SafetensorError, KeyError, TypeError, AttributeError, orjson.JSONDecodeError):
        raise UsageError(f"{path}: is not a file of language vectors, or is damaged; {_HOW_TO_FIT}.") from None
    return attributes


def require_sound(vectors: LanguageVectors, path: Path) -> None:
    """Refuse what was read where it cannot be used.

    Raises:
        UsageError: naming the first thing that is wrong.
    """
    kinds = (
        _holds(vectors.pairs, int) and all(count >= 0 for count in vectors.pairs.values()),
        isinstance(vectors.pivot, str) and parse_tag(vectors.pivot) == vectors.pivot,
        isinstance(vectors.dimension, int),
        isinstance(vectors.normalised, bool),
        vectors.alpha is None or isinstance(vectors.alpha, int | float),
        vectors.shift_queries is None or isinstance(vectors.shift_queries, bool),
        _holds(vectors.alphas, int | float),
        _holds(vectors.evidence, dict),
        isinstance(vectors.tuning, dict),
        all(isinstance(getattr(vectors, name), str) for name in _TEXTS),
    )
    if not all(kinds):
        raise UsageError(f"{path}: is not a file of language vectors, or is damaged; {_HOW_TO_FIT}.")
    known = {*vectors.vectors, vectors.pivot}
    strangers = any(set(getattr(vectors, name)) - known for name in (*_PARTS, "alphas", "evidence"))
    if len(known) < 2 or set(vectors.pairs) != known - {vectors.pivot} or vectors.pivot in vectors.vectors or strangers:
        raise UsageError(f"{path}: its header and its vectors do not name the same languages; {_HOW_TO_FIT}.")
    if set(vectors.maps) - set(vectors.means):
        raise UsageError(f"{path}: has a map for a language without its mean embedding; {_HOW_TO_FIT}.")
    for alpha in [vectors.alpha, *vectors.alphas.values()]:
        if alpha is not None and not 0 <= alpha <= 1:
            raise UsageError(f"{path}: it recommends alpha {alpha}, but alpha is between 0 and 1; {_HOW_TO_FIT}.")
    for name in _TENSORS:
        for tag, tensor in getattr(vectors, name).items():
            _require_tensor(vectors.dimension, path, name, tag, tensor)


def _holds(value: object, kind: type | UnionType) -> bool:
    """Whether it is a mapping to such values."""
    return isinstance(value, dict) and all(isinstance(one, kind) for one in value.values())


def _require_tensor(dimension: int, path: Path, name: str, tag: str, tensor: NDArray[np.float32]) -> None:
    if parse_tag(tag) != tag:
        raise UsageError(f"{path}: the tensor {tag!r} is named for no language.")
    several = {"maps": (dimension, dimension), "directions": (*tensor.shape[:1], dimension)}
    shape = several.get(name, (dimension,))
    what = "vector" if name == "vectors" else f"tensor {_PARTS[name]}"
    if tensor.shape != shape or tensor.dtype != np.float32:
        raise UsageError(
            f"{path}: the {what} of {tag} has shape {tensor.shape} and type {tensor.dtype}, "
            f"not {shape} and float32 as its header says."
        )
    if not np.isfinite(tensor).all():
        raise UsageError(f"{path}: the {what} of {tag} holds values that are not numbers.")
    if np.linalg.norm(tensor.astype(np.float64)) > LONGEST:
        raise UsageError(f"{path}: the {what} of {tag} is longer than {LONGEST:.0e}; it is damaged: {_HOW_TO_FIT}.")


def _of_part(tensors: dict[str, NDArray[np.float32]], part: str) -> dict[str, NDArray[np.float32]]:
    """The tensors named ``part/<tag>``, by tag."""
    named = {name.rpartition("/"): tensor for name, tensor in tensors.items()}
    return {tag: tensor for (prefix, _, tag), tensor in named.items() if prefix == part}
