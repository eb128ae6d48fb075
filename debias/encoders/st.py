"""``st:NAME_OR_PATH``: models of sentence-transformers, from Hugging Face or a folder, as the paper has them."""

from __future__ import annotations

import json
import logging
import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders import have_norm_1
from langshift.debias.encoders.model_folder import fetch, hub_name, local_folder, model_name, require_model, revision
from langshift.debias.encoders.prefixes import prefixes
from langshift.errors import LangshiftError, UsageError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# The paper's Appendix B.
_TOKENS = 512
# A token of natural text has some four characters; beyond this nothing is left to read, but much to cut into tokens.
_LONGEST = 20_000
_BATCH = {"cuda": 64}
_SMALL_BATCH = 32
# One norm may be 1 by chance, not most of them.
_PROBE = ["The weather is fine.", "a", "How far is it from here to the sea?"]


class SentenceTransformersEncoder:
    """A model of sentence-transformers; a Normalize module at its end is bypassed.

    Attributes:
        id: ``st:`` and the model's name on Hugging Face, or the absolute path of its folder.
        revision: hash of weights, tokenizer and configurations, whatever the folder is called.
        dimension: length of a vector.
        normalised: whether the vectors have norm 1 though Normalize is bypassed.
        query_prefix: text put before every query.
        document_prefix: text put before every document.
        longest: how many characters of a text are read; of them the first 512 tokens, or fewer where the
            model has room for fewer.
    """

    longest: int | None = _LONGEST

    def __init__(self, name: str, folder: Path, *, code: bool) -> None:
        """Load a model.

        Args:
            name: name on Hugging Face, or the absolute path of the folder.
            folder: where it lies.
            code: run code that comes with the model.
        """
        self._model = _load(folder, code=code)
        self.id = f"st:{name}"
        self.revision = revision(folder, code=code)
        self.query_prefix, self.document_prefix = prefixes(model_name(name), self._model.prompts, _origin(folder))
        self._batch = _BATCH.get(self._model.device.type, _SMALL_BATCH)
        probe = self.encode_documents(_PROBE)
        self.dimension = probe.shape[1]
        self.normalised = have_norm_1(probe)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents with the document prefix, shape (len(texts), dimension), float32."""
        return self._encode(self._model.encode_document, texts, self.document_prefix)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries with the query prefix, shape (len(texts), dimension), float32."""
        return self._encode(self._model.encode_query, texts, self.query_prefix)

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        # It sorts by length over the whole call, batches, and gives the vectors back in the order of the texts. A
        # prefix that is given, "" too, stands in place of every prompt of the model's own.
        vectors = encode(
            [text[:_LONGEST] for text in texts], prompt=prefix, batch_size=self._batch, show_progress_bar=False
        )
        return np.asarray(vectors, np.float32)


def open_st(name_or_path: str, *, trust_remote_code: bool = False) -> SentenceTransformersEncoder:
    """Open a model of Hugging Face by its name, or one of a folder; a folder never touches the network.

    Args:
        name_or_path: such as ``intfloat/multilingual-e5-large``, or a folder.
        trust_remote_code: run code that comes with the model.

    Raises:
        UsageError: there is no such model, its folder is damaged, or it needs code of its own that may not be run.
        LangshiftError: the extra is not installed, or the model cannot be fetched.
    """
    _require_extra()
    _quieten()
    if folder := local_folder(name_or_path):
        return SentenceTransformersEncoder(str(folder), require_model(folder), code=trust_remote_code)
    name = hub_name(name_or_path)
    return SentenceTransformersEncoder(name, fetch(name, code=trust_remote_code), code=trust_remote_code)


def _require_extra() -> None:
    try:
        import sentence_transformers  # noqa: F401
    except ImportError as error:
        raise LangshiftError(
            "The encoders st:NAME need an extra: pip install 'langshift[transformers]'; "
            "or take --encoder use-m, which comes with langshift."
        ) from error


def _quieten() -> None:
    """Standard error is for the person who runs langshift: no bars and advice of the libraries' own there."""
    from huggingface_hub.utils import disable_progress_bars
    from huggingface_hub.utils import logging as hub_logging
    from transformers.utils import logging as transformers_logging

    disable_progress_bars()
    hub_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)


def _load(folder: Path, *, code: bool) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize
    from torch import nn

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SentenceTransformer(
                str(folder),
                trust_remote_code=code,
                # Code that comes with a model may lie in another repository.
                local_files_only=not code,
                # Half precision would make vectors depend on the batch and on the machine.
                model_kwargs={"dtype": "float32"},
            )
    except Exception as error:  # a damaged model fails in as many ways as it has files
        if not code and "trust_remote_code" in str(error):
            raise UsageError(
                f"{folder}: this model runs code that comes with it: read that code, and if you trust it give "
                "--trust-remote-code."
            ) from error
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"{folder}: this model is damaged, or sentence-transformers cannot load it "
            f"({type(error).__name__}: {reason}): copy or fetch it again."
        ) from error
    if isinstance(model[-1], Normalize):
        # In its place, so that the other modules keep their names.
        model[-1] = nn.Identity()
    _limit(model)
    return model


def _limit(model: SentenceTransformer) -> None:
    """Read 512 tokens at most, also where a router leads to several transformers."""
    from sentence_transformers.sentence_transformer.modules import Transformer

    readers = [module for module in model.modules() if isinstance(module, Transformer)] or [model[0]]
    for reader in readers:
        # Tables of word vectors have no limit that could be set.
        length = getattr(reader, "max_seq_length", math.inf)
        if length is None or _TOKENS < length < math.inf:
            reader.max_seq_length = _TOKENS


def _origin(folder: Path) -> str:
    """The model that this one says it was made from, or ""."""
    config = folder / "config.json"
    return str(json.loads(config.read_bytes()).get("_name_or_path", "")) if config.is_file() else ""
