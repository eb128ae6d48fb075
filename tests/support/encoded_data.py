"""Encoded datasets and language vectors made of numbers alone."""

from pathlib import Path

import numpy as np
from advice import advised

from langshift.evaluate.datasets.dataset import Dataset, DatasetDocument, DatasetQuery
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift_lab.methods.vectors import MethodVectors
from langshift_lab.offline.encoding import EncodedDataset


def encoded(documents, queries, tags, asked, groups=None, qrels=None):
    """An encoded dataset of documents d0, d1 ... and queries q0, q1 ..."""
    ids = [f"d{number}" for number in range(len(documents))]
    groups = groups or [None] * len(ids)
    primary = [None if tag == "und" else tag.partition("-")[0] for tag in tags]
    names = [f"q{number}" for number in range(len(queries))]
    dataset = Dataset(
        Path("data"),
        {name: DatasetDocument(tag, group) for name, tag, group in zip(ids, primary, groups, strict=True)},
        tuple(DatasetQuery(name, "?", tag, None) for name, tag in zip(names, asked, strict=True)),
        qrels or {},
    )
    languages = DatasetLanguages(
        dict(zip(ids, tags, strict=True)),
        dict(zip(ids, primary, strict=True)),
        dict(zip(names, asked, strict=True)),
        (),
    )
    return EncodedDataset(dataset, ids, np.array(documents, np.float32), np.array(queries, np.float32), languages)


def vectors(of, pivot="en", **parts):
    """Language vectors of made-up numbers; ``parts`` are further tensors by tag, or recommendations."""
    dimension = len(next(iter(of.values())))
    made = {tag: np.array(vector, np.float32) for tag, vector in of.items()}
    tensors = {
        name: {tag: np.array(tensor, np.float32) for tag, tensor in parts.pop(name).items()}
        for name in ("query_vectors", "common", "means", "directions", "maps")
        if name in parts
    }
    if "query_directions" in parts:
        parts["query_directions"] = np.array(parts["query_directions"], np.float32)
    return MethodVectors(
        pivot, made, dict.fromkeys(of, 9), "toy", "1", "", dimension, False, "made up", **tensors, **advised(parts)
    )
