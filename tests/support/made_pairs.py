"""Given pairs of any number, written in blocks: for tests, and for benchmarks that fit a million of them."""

from contextlib import ExitStack, contextmanager

import numpy as np
import orjson

BLOCK = 8192  # rows held at a time


def write_pairs(path, rows, dimension, *, languages=("de",), pivot="en", noise=1.0, seed=0):
    """Write the pivot's vectors, and in each language the same ones moved by that language's offset, and noise.

    Args:
        path: a file ``.parquet`` or ``.jsonl``, or a folder that gets files ``<lang>.npy``.
        rows: how many pairs a language.
        dimension: of the vectors.
        languages: all but the pivot.
        pivot: the pivot language.
        noise: standard deviation of what moves each vector besides, in each dimension.
        seed: of the random numbers.

    Returns:
        The offset of each language, (dimension,) float32: what a fit finds within noise / sqrt(rows).
    """
    random = np.random.default_rng(seed)
    offsets = {tag: random.normal(size=dimension).astype(np.float32) for tag in languages}
    writer = {".parquet": _parquet, ".jsonl": _jsonl}.get(path.suffix, _arrays)
    with writer(path, (pivot, *languages), rows, dimension) as write:
        for start in range(0, rows, BLOCK):
            shape = (min(BLOCK, rows - start), dimension)
            vectors = {pivot: random.standard_normal(shape, np.float32)}
            for tag, offset in offsets.items():
                moved = random.standard_normal(shape, np.float32)
                moved *= noise
                moved += vectors[pivot]
                moved += offset
                vectors[tag] = moved
            write(vectors)
    return offsets


@contextmanager
def _arrays(folder, languages, rows, dimension):
    folder.mkdir(parents=True, exist_ok=True)
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, dimension)}
    with ExitStack() as opened:
        files = {tag: opened.enter_context((folder / f"{tag}.npy").open("wb")) for tag in languages}
        for file in files.values():
            np.lib.format.write_array_header_1_0(file, header)
        yield lambda vectors: [block.tofile(files[tag]) for tag, block in vectors.items()]


@contextmanager
def _parquet(path, languages, _rows, dimension):
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    schema = pa.schema([(tag, pa.list_(pa.float32(), dimension)) for tag in languages])

    def write(vectors):
        columns = [pa.FixedSizeListArray.from_arrays(vectors[tag].ravel(), dimension) for tag in languages]
        file.write_batch(pa.record_batch(columns, schema=schema))

    with ParquetWriter(path, schema, use_dictionary=False) as file:
        yield write


@contextmanager
def _jsonl(path, languages, _rows, _dimension):
    def write(vectors):
        for row in zip(*(vectors[tag] for tag in languages), strict=True):
            pair = dict(zip(languages, row, strict=True))
            file.write(orjson.dumps(pair, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))

    with path.open("wb") as file:
        yield write
