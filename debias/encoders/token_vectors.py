"""Late-interaction models (ColBERT and others): a vector of every token, MaxSim, and how an index keeps the vectors.

::

    MaxSim(q, d) = Σ over tokens i of q of  max over tokens j of d of  ⟨q_i, d_j⟩        all rows of length 1
"""

import base64
import struct
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final

import numpy as np

from langshift.debias.encoders.base import LONGEST, Matrix
from langshift.debias.encoders.model_files import TROUBLE, ModelFiles, find_model, load_model, loading, revision
from langshift.debias.encoders.model_kinds import require_kind
from langshift.debias.encoders.sentence_transformers import limit_tokens
from langshift.errors import UsageError
from langshift.normal_form import normal_form

_BATCH: Final = 32
#: Of so many tokens of a document that are near each other, the mean is kept.
POOLED: Final = 2
# Before the rows: their length.
_HEAD: Final = struct.Struct("<H")
_LARGEST: Final = 127


class TokenEncoder:
    """A late-interaction model of sentence-transformers, with the prompts and lengths that it comes with.

    Of texts that it does not cut itself it reads 512 tokens. May be used from several threads.

    Attributes:
        id: ``st:`` and the model's name on Hugging Face, or the absolute path of its folder.
        revision: hash of weights, tokenizer, prompts and configurations, whatever the folder is called.
        dimension: length of a token's vector.
    """

    def __init__(self, model: ModelFiles) -> None:
        """Load a model.

        Args:
            model: as ``find_model`` finds it.

        Raises:
            UsageError: it is damaged or no late-interaction model, or needs code of its own that may not be run.
        """
        require_kind(model.folder, "late interaction")
        from sentence_transformers import MultiVectorEncoder

        self.id = f"st:{model.name}"
        self.revision = revision(model, settings=True)
        # Queries and documents are cut to different lengths, by one tokenizer.
        self._lock = Lock()
        self._model = load_model(MultiVectorEncoder, model, TROUBLE)
        with loading(model, TROUBLE):
            limit_tokens(self._model, None, self.id)
            self.dimension = self.encode_documents(["a"])[0].shape[1]

    def encode_documents(self, texts: Sequence[str]) -> list[Matrix]:
        """Vectors of documents' tokens, each shape (tokens, dimension), float32, of rows of length 1."""
        return self._encode(self._model.encode_document, texts)

    def encode_queries(self, texts: Sequence[str]) -> list[Matrix]:
        """Vectors of queries' tokens, likewise."""
        return self._encode(self._model.encode_query, texts)

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str]) -> list[Matrix]:
        if not texts:
            return []
        read = [normal_form(text)[:LONGEST] for text in texts]
        with self._lock:
            made = encode(
                read, batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True
            )
        return [np.asarray(one, np.float32) for one in made]


def open_token_encoder(name: str) -> TokenEncoder:
    """Open a late-interaction model by its name; a folder never touches the network.

    Args:
        name: ``st:NAME_OR_PATH``.

    Raises:
        UsageError: there is no such model, or it is none of late interaction, or cannot be loaded.
        LangshiftError: the extra is not installed, or the model cannot be fetched.
    """
    kind, _, rest = name.partition(":")
    if kind != "st" or not rest:
        raise UsageError(f"Unknown late-interaction model {name!r}; choose st:NAME_OR_PATH (sentence-transformers).")
    return TokenEncoder(find_model("Late-interaction models st:NAME need", rest))


def max_sim(query: Matrix, document: Matrix) -> float:
    """Sum, over the query's tokens, of the greatest inner product with one of the document's; 0 where it has none.

    Args:
        query: shape (tokens, dimension), float32.
        document: likewise.
    """
    if not len(document):
        return 0.0
    return float((query @ document.T).max(axis=1).sum(dtype=np.float64))


def pool(document: Matrix) -> Matrix:
    """Fewer tokens: of each cluster of ``POOLED`` on average, their mean, of length 1; the first token stays as it is.

    Args:
        document: shape (tokens, dimension), float32, of rows of length 1.

    Returns:
        About tokens / ``POOLED`` rows, by sentence-transformers' own pooling.
    """
    import torch
    from sentence_transformers.multi_vector_encoder.modules import HierarchicalTokenPooling

    pooled = HierarchicalTokenPooling(POOLED).pool([torch.from_numpy(np.array(document, np.float32))])
    return np.asarray(pooled[0].numpy(), np.float32)


def pack(document: Matrix) -> str:
    """How an index keeps a document's tokens: pooled, a byte a dimension, in base64.

    A token that is kept takes as many bytes as it has dimensions, and a third more in base64: 200 tokens of 128
    dimensions, of which 100 are kept, take 12.8 KB, and 17.1 KB in the document. Each number is a multiple of 1/127 of
    the row's greatest, so that a row differs by at most sqrt(dimension) / 127 times that number.

    Args:
        document: shape (tokens, dimension), float32, of rows of length 1.
    """
    rows = pool(document)
    greatest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    whole = np.rint(rows * (_LARGEST / np.where(greatest > 0, greatest, 1))).astype(np.int8)
    return base64.b64encode(_HEAD.pack(rows.shape[1]) + whole.tobytes()).decode()


def unpack(packed: Any) -> Matrix:  # noqa: ANN401 - any JSON value
    """What ``pack`` has packed, shape (tokens, dimension), float32, of rows of length 1.

    Raises:
        ValueError: it is nothing that ``pack`` makes.
    """
    content = base64.b64decode(packed, validate=True) if isinstance(packed, str) else b""
    if len(content) < _HEAD.size:
        raise ValueError("There is no head.")
    (dimension,) = _HEAD.unpack_from(content)
    if not dimension or (len(content) - _HEAD.size) % dimension:
        raise ValueError(f"There are no whole rows of {dimension} numbers.")
    rows = np.frombuffer(content, np.int8, offset=_HEAD.size).reshape(-1, dimension).astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)
