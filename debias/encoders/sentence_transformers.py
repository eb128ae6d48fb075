"""``st:NAME_OR_PATH``: models of sentence-transformers, from Hugging Face or a folder, as the paper has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from langshift.debias.encoders import base, model_files
from langshift.debias.encoders.base import AS_KNOWN, LONGEST, Encoder, Matrix, Pooling, Reading
from langshift.debias.encoders.model_kinds import read_json, require_kind
from langshift.debias.encoders.prompts import known_prefixes
from langshift.debias.encoders.sparse import SparseEncoder, TokenWeights, heaviest
from langshift.errors import UsageError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


# The paper's Appendix B.
_TOKENS = 512
# A token of natural text has some four characters, or with room to spare:
_CHARACTERS = LONGEST // _TOKENS
# As langshift names it -> as sentence-transformers does.
_POOLINGS: dict[Pooling, str] = {"mean": "mean", "cls": "cls", "last": "lasttoken"}
# One norm may be 1 by chance, not most of them.
_PROBE = ["The weather is fine.", "a", "How far is it from here to the sea?"]


class SentenceTransformersEncoder(Encoder):
    """A model of sentence-transformers; a Normalize module at its end is bypassed.

    Attributes:
        id: ``st:`` and the model's name on Hugging Face, or the absolute path of its folder.
        revision: hash of weights, tokenizer and configurations, whatever the folder is called.
        dimension: length of a vector.
        normalised: whether the vectors have norm 1 though Normalize is bypassed.
        query_prefix: text put before every query.
        document_prefix: text put before every document.
        pooling: where it is not the model's own.
        max_tokens: where it is neither 512 nor all that the model has room for.
        longest: how many characters of a text are read; of them the first tokens, as many as ``window`` says.
        window: 512 tokens, or fewer where the model has room for fewer, or as many as were asked for.
    """

    longest = LONGEST

    def __init__(self, model: model_files.ModelFiles, reading: Reading) -> None:
        """Load a model.

        Args:
            model: as ``find_model`` finds it.
            reading: how it is to read texts.

        Raises:
            UsageError: it is damaged or no encoder, or cannot read texts in that way.
        """
        folder = model.folder
        require_kind(folder, "encoder")
        self.id = f"st:{model.name}"
        self._model = _load(model)
        self.pooling = _set_pooling(self._model, reading.pooling, self.id)
        self.max_tokens = limit_tokens(self._model, reading.max_tokens, self.id)
        self.revision = model_files.revision(model)
        trained_from = str(read_json(folder / "config.json", {}).get("_name_or_path", ""))
        known = known_prefixes(self._model.prompts, model_files.model_name(model.name), trained_from)
        self.query_prefix, self.document_prefix = reading.prefixes(known, self.id)
        if reading.pooling is None and not reading.recorded and not (folder / "modules.json").is_file():
            used = next((ours for ours, theirs in _POOLINGS.items() if theirs in _modes(self._model)), "mean")
            base.note_once(f"{self.id} has no modules.json: {used} pooling is used (--pooling).")
        # What fills a GPU (tests/bench/RESULTS.md).
        self._batch, self.batch = (128, 1024) if self._model.device.type == "cuda" else (32, self.batch)
        lengths = {reader.max_seq_length for reader in readers(self._model)}
        # Of a copy, which cuts nothing, and which no thread that encodes is at.
        self._tokenizer: Any = deepcopy(getattr(self._model.tokenizer, "backend_tokenizer", None))
        if self._tokenizer is not None and lengths:
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            self.window = min(lengths)
            self.longest = max(LONGEST, self.window * _CHARACTERS)
        with model_files.loading(model, model_files.TROUBLE):
            probe = self.encode_documents(_PROBE)
        self.dimension = probe.shape[1]
        self.normalised = base.have_norm_1(probe)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents with the document prefix, shape (len(texts), dimension), float32."""
        return self._encode(self._model.encode_document, texts, self.document_prefix)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Vectors of queries with the query prefix, shape (len(texts), dimension), float32."""
        return self._encode(self._model.encode_query, texts, self.query_prefix)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens documents have, with the document prefix and the marks of begin and end."""
        return [len(one.ids) for one in self._tokenizer.encode_batch([self.document_prefix + text for text in texts])]

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str], prefix: str) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        # It sorts by length over the whole call, batches, and gives the vectors back in the order of the texts. A
        # prefix that is given, "" too, stands in place of every prompt of the model's own.
        vectors = encode(
            [text[: self.longest] for text in texts], prompt=prefix, batch_size=self._batch, show_progress_bar=False
        )
        return np.asarray(vectors, np.float32)


def open_st(name_or_path: str, *, reading: Reading = AS_KNOWN) -> SentenceTransformersEncoder:
    """Open a model of Hugging Face by its name, or one of a folder; a folder never touches the network.

    Args:
        name_or_path: such as ``intfloat/multilingual-e5-large``, or a folder.
        reading: how it is to read texts.

    Raises:
        UsageError: there is no such model, its folder is damaged, it needs code of its own that may not be run, or it
            makes no vectors, or not in the way that was asked for.
        LangshiftError: the extra is not installed, or the model cannot be fetched.
    """
    instead = "; or use an encoder that comes with langshift"
    model = model_files.find_model("The encoders st:NAME need", name_or_path, otherwise=instead)
    return SentenceTransformersEncoder(model, reading)


def _load(found: model_files.ModelFiles) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize
    from torch import nn

    model = model_files.load_model(SentenceTransformer, found, model_files.TROUBLE)
    if isinstance(model[-1], Normalize):
        # In its place, so that the other modules keep their names.
        model[-1] = nn.Identity()
    return model


def _poolings(model: SentenceTransformer) -> list[Any]:
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

    return [module for module in model.modules() if isinstance(module, PoolingModule)]


def _modes(model: SentenceTransformer) -> list[Any]:
    return [module.pooling_mode for module in _poolings(model)]


def _set_pooling(model: SentenceTransformer, wanted: Pooling | None, name: str) -> Pooling | None:
    """Let a model pool as it is wanted; None where it does so already.

    Raises:
        UsageError: it pools in no way that can be replaced.
    """
    if wanted is None or set(_modes(model)) == {_POOLINGS[wanted]}:
        return None
    if not all(isinstance(mode, str) for mode in _modes(model)) or not _modes(model):
        raise UsageError(f"The model {name} has no pooling that --pooling {wanted} could replace: leave it out.")
    for module in _poolings(model):
        module.pooling_mode = _POOLINGS[wanted]
    return wanted


def limit_tokens(model: Any, wanted: int | None, name: str) -> int | None:  # noqa: ANN401 - sentence-transformers'
    """Let a model read so many tokens of a text, and the usual number where None is wanted; None where it is that.

    Raises:
        UsageError: it has no room for as many.
    """
    limited = readers(model)
    room = {id(reader): _room(reader) for reader in limited}
    if wanted is not None and wanted > min(room.values(), default=0):
        most = f"at most {min(room.values()):,} tokens" if room else "texts whole"
        raise UsageError(f"The model {name} reads {most}, so --max-tokens {wanted} cannot be met: leave it out.")
    for reader in limited:
        reader.max_seq_length = min(room[id(reader)], wanted or _TOKENS)
    return None if all(min(most, _TOKENS) == wanted for most in room.values()) else wanted


def _room(reader: Any) -> int:  # noqa: ANN401 - sentence-transformers'
    """How many tokens a model can read, by its tokenizer and its table of positions."""
    from torch import nn

    most = math.inf if reader.max_seq_length is None else reader.max_seq_length
    for module in reader.modules():
        table = getattr(module, "position_embeddings", None)
        if isinstance(table, nn.Embedding):
            # Models like RoBERTa count positions from there.
            padding = getattr(module, "padding_idx", None)
            most = min(most, table.num_embeddings - (padding + 1 if isinstance(padding, int) else 0))
    return int(min(most, base.MOST_TOKENS))


def readers(model: Any) -> list[Any]:  # noqa: ANN401 - sentence-transformers'
    """What reads texts, where its tokens have a limit: not tables of word vectors."""
    from sentence_transformers.sentence_transformer.modules import Transformer

    # A router leads to several transformers.
    found = [module for module in model.modules() if isinstance(module, Transformer)] or [model[0]]
    return [one for one in found if getattr(one, "max_seq_length", math.inf) != math.inf]


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
        model = model_files.find_model("The sparse encoders st:NAME need", name_or_path, otherwise=instead)
        require_kind(model.folder, "sparse")
        from sentence_transformers import SparseEncoder as Model

        self.id = f"st:{model.name}"
        self.revision = model_files.revision(model, settings=True)
        self._model = model_files.load_model(Model, model, model_files.TROUBLE)
        with model_files.loading(model, model_files.TROUBLE):
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
