"""Arrow's columns as texts and as NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from langshift.debias.parallel.given import sound, spread
from langshift.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


def kind_of(column: pa.DataType) -> str | None:
    """What a column of a type can hold for a language: ``text``, ``vectors``, or None."""
    from pyarrow import types

    if types.is_dictionary(column):
        column = column.value_type
    if types.is_string(column) or types.is_large_string(column) or types.is_string_view(column):
        return "text"
    if types.is_list(column) or types.is_large_list(column) or types.is_fixed_size_list(column):
        number = types.is_floating(column.value_type) or types.is_integer(column.value_type)
        return "vectors" if number else None
    return None


def texts_of(column: pa.Array, places: Sequence[str], path: Path) -> list[str]:
    """The n texts of a column, ``""`` for null.

    Raises:
        UsageError: bytes that are no UTF-8, which Parquet's writers need not check.
    """
    texts: list[str] = []
    try:
        for value in column:
            text = value.as_py()
            texts.append(text.strip() if text else "")
    except UnicodeDecodeError:
        raise UsageError(f"{path}, {places[len(texts)]}: is not UTF-8 text.") from None
    return texts


def vectors_of(column: pa.Array, dimension: int, places: Sequence[str], tag: str, path: Path) -> NDArray[np.float32]:
    """The (n, d) vectors of a column, NaN where it is null or empty; without a copy where all are there.

    Raises:
        UsageError: a vector of another dimension, or one that is not finite.
    """
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    there = lengths > 0
    other = there & (lengths != dimension)
    if other.any():
        row = int(other.argmax())
        raise UsageError(
            f"{path}, {places[row]}: the vector in {tag} has {lengths[row]} numbers, but the first one {dimension}."
        )
    block = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
    own = places if there.all() else [places[int(row)] for row in np.flatnonzero(there)]
    return spread(sound(block, own, tag, str(path)), there)
