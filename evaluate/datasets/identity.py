"""What a run is a run of: the dataset's ids and judgements, in a few digits."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from langshift.evaluate.datasets.dataset import Dataset


def identity(dataset: Dataset) -> dict[str, Any]:
    """The dataset as it stands in ``result.json``: where it was, how large, and a hash of ids and judgements.

    Two datasets of one hash have the same queries, documents and judgements, wherever they lie.
    """
    content = [
        sorted(dataset.documents),
        sorted(query.id for query in dataset.queries),
        sorted((query, sorted(judged.items())) for query, judged in dataset.qrels.items()),
    ]
    return {
        "folder": str(dataset.folder.absolute()),
        "documents": len(dataset.documents),
        "queries": len(dataset.queries),
        "hash": hashlib.sha256(orjson.dumps(content)).hexdigest()[:16],
    }
