"""Given vectors as one NumPy file a language, aligned by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from langshift.debias.parallel.given import sound
from langshift.debias.parallel.naming import chosen
from langshift.debias.parallel.rows import Places, Rows
from langshift.errors import UsageError

_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    size: int  # bytes before the first number


class GivenArrays:
    """Files ``<lang>.npy`` of a folder: (n, d) float16, float32 or float64, the same shape in every language."""

    def __init__(self, folder: Path, found: dict[str, str], languages: Sequence[str] | None) -> None:
        """Read the headers.

        Args:
            folder: where the files are.
            found: their names by language tag.
            languages: those to read; None reads all.

        Raises:
            UsageError: a file is no such array, the shapes differ, or a language is not there.
        """
        self.shown = str(folder)
        self._files = {tag: folder / name for tag, name in chosen(found, languages, self.shown, "vectors").items()}
        self.languages = list(self._files)
        self._headers = {tag: _header(path) for tag, path in self._files.items()}
        (first, header), *others = self._headers.items()
        for tag, other in others:
            if other.shape != header.shape:
                raise UsageError(
                    f"{self._files[tag]} has the shape {other.shape} but {self._files[first]} has {header.shape}: "
                    "given vectors must be aligned row by row."
                )
        self.total, self.dimension = header.shape

    def batches(self, size: int) -> Iterator[Rows]:
        """Read the files in step; see ``ParallelText``."""
        with ExitStack() as opened:
            readers = {}
            for tag, path in self._files.items():
                # Unbuffered plain reads: a mapped file would count to the process's memory.
                readers[tag] = opened.enter_context(path.open("rb", buffering=0))
                readers[tag].seek(self._headers[tag].size)
            for start in range(0, self.total, size):
                places = Places("row", start + 1, min(size, self.total - start))
                vectors = {
                    tag: sound(self._block(tag, reader, len(places)), places, tag, str(self._files[tag]))
                    for tag, reader in readers.items()
                }
                yield Rows(places, {}, vectors)

    def _block(self, tag: str, reader: FileIO, rows: int) -> NDArray[Any]:
        header = self._headers[tag]
        return np.fromfile(reader, header.dtype, rows * self.dimension).reshape(rows, self.dimension)


def _header(path: Path) -> _Header:
    try:
        with path.open("rb") as file:
            read = _READERS.get(npy.read_magic(file))
            if read is None:
                raise ValueError
            shape, fortran, dtype = read(file)
            header = _Header(shape, dtype, file.tell())
    except ValueError:
        raise UsageError(f"{path}: is no array as numpy.save writes it.") from None
    if dtype.hasobject:
        raise UsageError(f"{path}: holds pickled Python objects, which are not read; save an array of float32.")
    if dtype.kind != "f" or dtype.itemsize > 8:
        raise UsageError(f"{path}: holds {dtype}; vectors are float16, float32 or float64.")
    if len(shape) != 2 or min(shape) < 1:
        raise UsageError(f"{path}: has the shape {shape}; one vector a row, (rows, dimensions), is needed.")
    if fortran and shape[0] > 1:
        raise UsageError(f"{path}: is stored by column; save numpy.ascontiguousarray of it, to be read row by row.")
    expected, found = header.size + shape[0] * shape[1] * dtype.itemsize, path.stat().st_size
    if found < expected:
        raise UsageError(f"{path}: breaks off, with {found:,} of {expected:,} bytes.")
    return header
