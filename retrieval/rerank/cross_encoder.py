"""``st:NAME_OR_PATH``: a cross-encoder of sentence-transformers, from Hugging Face or a folder.

It may be a causal language model with a score module, such as Qwen3-Reranker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders.base import LONGEST
from langshift.debias.encoders.model_files import ModelFiles, find_model, load_model
from langshift.debias.encoders.model_kinds import require_kind
from langshift.errors import UsageError

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_BATCH: Final = 32
# LAURA's rerankers read as much; a model may have room for less.
_TOKENS: Final = 512


class CrossEncoderReranker:
    """A cross-encoder with one score; may be used from several threads.

    Attributes:
        name: ``st:`` and the model's name on Hugging Face, or the absolute path of its folder.
        model: the model itself.
    """

    def __init__(self, model: ModelFiles) -> None:
        """Load a model, see ``load_cross_encoder``, which ``find_reranker`` has found."""
        self.name = f"st:{model.name}"
        self.model = load_cross_encoder(model)

    def scores(self, words: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """The logit of each passage, shape (texts,), float64; see ``TextReranker``."""
        if not texts:
            return np.empty(0, np.float64)
        pairs = [(words, text[:LONGEST]) for text in texts]
        logits = self.model.predict(pairs, batch_size=_BATCH, show_progress_bar=False)
        return np.asarray(logits, np.float64)


def find_reranker(name_or_path: str) -> ModelFiles:
    """A model that reranks, see ``find_model``; a folder never touches the network.

    Raises:
        UsageError: there is no such model, or no model in the folder.
        LangshiftError: the extra is not installed, or the model cannot be fetched.
    """
    return find_model("The rerankers st:NAME need", name_or_path, "cross-encoder")


def load_cross_encoder(found: ModelFiles) -> CrossEncoder:
    """Load a model that gives raw logits, in single precision.

    Raises:
        UsageError: it is damaged or no reranker, needs code of its own that may not be run, or gives several scores.
    """
    require_kind(found.folder, "cross-encoder")
    from sentence_transformers import CrossEncoder
    from torch import nn

    trouble = "damaged, or is no cross-encoder that sentence-transformers can load"
    model = load_model(CrossEncoder, found, trouble, activation_fn=nn.Identity())
    # A causal language model's score module gives one, whatever the model's configuration says of labels.
    if model.num_labels != 1:
        raise UsageError(f"{found.folder} gives {model.num_labels} scores for each passage: a reranker must give one.")
    model.max_seq_length = min(model.max_seq_length or _TOKENS, _TOKENS)
    return model
