"""``st:NAME_OR_PATH``: learned sparse models of sentence-transformers, such as SPLADE, of Hugging Face or a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from langshift.debias.encoders.base import LONGEST
from langshift.debias.encoders.model_files import TROUBLE, find_model, load_model, loading, revision
from langshift.debias.encoders.model_kinds import require_kind
from langshift.debias.encoders.sentence_transformers import limit_tokens, readers
from langshift.debias.encoders.sparse import SparseEncoder, TokenWeights, heaviest

# A model gives every token of a text a number for every word that it knows: a batch has at most so many, 1 GB.
_NUMBERS: Final = 1 << 28
_MOST: Final = 32


class SentenceTransformersSparse(SparseEncoder):
    """A sparse model, which reads up to 512 tokens of a text, with the prompts that it comes with.

    Tokens are called by their number in its vocabulary.

    Attributes:
        id: ``st:`` and the model's name on Hugging Face, or the absolute path of its folder.
        revision: hash of weights, tokenizer, prompts and configurations, whatever the folder is called.
    """

    def __init__(self, name_or_path: str) -> None:
        """Load a model; a folder never touches the network.

        Raises:
            UsageError: there is no such model, it is damaged, or no sparse one, or needs code that may not be run.
            LangshiftError: the extra is not installed, or the model cannot be fetched.
        """
        instead = "; or use the one that comes with langshift, e5-small"
        model = find_model("The sparse encoders st:NAME need", name_or_path, otherwise=instead)
        require_kind(model.folder, "sparse")
        from sentence_transformers import SparseEncoder as Model

        self.id = f"st:{model.name}"
        self.revision = revision(model, settings=True)
        self._model = load_model(Model, model, TROUBLE)
        with loading(model, TROUBLE):
            limit_tokens(self._model, None, self.id)
            window = max((reader.max_seq_length for reader in readers(self._model)), default=1)
            self._batch = min(max(_NUMBERS // (window * (self._model.get_embedding_dimension() or 1)), 1), _MOST)
            self.encode_documents(["a"])

    def encode_documents(self, texts: Sequence[str]) -> list[TokenWeights]:
        """Weights of documents."""
        return self._encode(self._model.encode_document, texts)

    def encode_queries(self, texts: Sequence[str]) -> list[TokenWeights]:
        """Weights of queries."""
        return self._encode(self._model.encode_query, texts)

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str]) -> list[TokenWeights]:
        if not texts:
            return []
        coded = encode(
            [text[:LONGEST] for text in texts],
            batch_size=self._batch,
            show_progress_bar=False,
            convert_to_tensor=False,
            save_to_cpu=True,
        )
        return [heaviest(_weights(one.coalesce())) for one in coded]


def _weights(one: Any) -> TokenWeights:  # noqa: ANN401 - a sparse tensor
    return dict(zip(map(str, one.indices()[0].tolist()), one.values().float().tolist(), strict=True))
