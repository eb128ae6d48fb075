"""Language vectors published with the paper's reference implementation: torch files of one tensor a language."""

import pickle
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders.base import Encoder, identity
from langshift.debias.encoders.model_files import full_name, model_name
from langshift.debias.vectors import LanguageVectors
from langshift.errors import UsageError, no_file, require_extra
from langshift.languages import parse_tag

_TENSOR = "v_"


class PublishedVectors(NamedTuple):
    """Language vectors as a ``.pt`` file holds them.

    Attributes:
        path: the file.
        model: the name of the model whose embeddings they are of.
        pivot: the pivot language's tag.
        vectors: tag -> V_ℓ, shape (dimension,), float32.
    """

    path: Path
    model: str
    pivot: str
    vectors: dict[str, NDArray[np.float32]]

    @property
    def encoder(self) -> str:
        """The encoder that gives such embeddings."""
        return f"st:{full_name(self.model)}"


def read_pt(path: Path) -> PublishedVectors:
    """Read a file without running code in it.

    Raises:
        UsageError: there is no such file, it holds pickled code or something else than language vectors.
        LangshiftError: the extra is not installed.
    """
    content = _load(path)
    keys = ("model_name", "source_lang")
    if not isinstance(content, dict) or not all(isinstance(content.get(key), str) for key in keys):
        raise UsageError(
            f"{path} contains no language vectors: it must be a dict with model_name, source_lang and a tensor "
            "v_<lang> for every language."
        )
    pivot = _tag(path, content["source_lang"], "source_lang")
    vectors: dict[str, NDArray[np.float32]] = {}
    for key, tensor in content.items():
        if not isinstance(key, str) or not key.startswith(_TENSOR):
            continue
        tag = _tag(path, key.removeprefix(_TENSOR), key)
        if tag in vectors:
            raise UsageError(f"{path} contains two vectors of {tag}; remove one of them.")
        vectors[tag] = _vector(path, key, tensor)
    # The pivot's difference to itself, where somebody wrote it down.
    if pivot in vectors and vectors.pop(pivot).any():
        raise UsageError(f"{path} is damaged: its vector of {pivot} towards {pivot} itself is not 0.")
    if not vectors:
        raise UsageError(f"{path} contains no tensor v_<lang> of a language other than {pivot}.")
    if len(lengths := {vector.size for vector in vectors.values()}) > 1:
        raise UsageError(f"{path}: its vectors have different dimensions: {' and '.join(map(str, sorted(lengths)))}.")
    return PublishedVectors(path, content["model_name"], pivot, dict(sorted(vectors.items())))


def _load(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    if not path.is_file():
        raise UsageError(f"{no_file(path, f'The language-vector file {path} does not exist')}.")
    require_extra(f"{path} is a PyTorch file, which needs", "transformers", "torch")
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a file of something else fails wherever the reader stumbles first
        if isinstance(error, pickle.UnpicklingError) and _is_pickled(path):
            raise UsageError(
                f"{path} contains pickled code, which is not run: ask its author for a file with tensors only."
            ) from error
        raise UsageError(f"{path} is not a file saved by PyTorch, or is damaged: download it again.") from error


def _is_pickled(path: Path) -> bool:
    """Whether a file begins as torch's archives and as pickles do; text is none, though the reader tries it."""
    with path.open("rb") as file:
        return file.read(4).startswith((b"PK\x03\x04", b"\x80"))


def _tag(path: Path, written: str, key: str) -> str:
    tag = parse_tag(written)
    if tag is None:
        raise UsageError(f"{path}: {written!r} in {key} is not a valid language.")
    return tag


def _vector(path: Path, key: str, tensor: Any) -> NDArray[np.float32]:  # noqa: ANN401 - whatever the file holds
    import torch

    shape = tuple(tensor.shape) if isinstance(tensor, torch.Tensor) else None
    if shape is None or len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != 1):
        raise UsageError(
            f"{path}: {key} must be a vector, not {type(tensor).__name__ if shape is None else f'of shape {shape}'}."
        )
    vector: NDArray[np.float32] = tensor.detach().to(torch.float32).reshape(-1).numpy()
    if not np.isfinite(vector).all():
        raise UsageError(f"{path}: {key} contains values that are not numbers.")
    return vector


def require_model_of(published: PublishedVectors, encoder: str) -> None:
    """Refuse an encoder that is named for another model than the file is, before it is opened.

    Raises:
        UsageError: naming both.
    """
    kind, _, rest = encoder.partition(":")
    # A server names its model behind its address, and given vectors may be named for theirs.
    theirs = model_name(rest) if kind == "st" else rest.rpartition("#")[2] or encoder
    one, other = full_name(published.model).lower(), full_name(theirs).lower()
    if "/" not in one or "/" not in other:
        # The organisation counts where both have one.
        one, other = one.rpartition("/")[2], other.rpartition("/")[2]
    if one != other:
        raise UsageError(
            f"{published.path} contains language vectors of the model {published.model}, not of {theirs} "
            f"(--encoder {encoder}): vectors of one model cannot be used with another."
        )


def with_encoder(published: PublishedVectors, encoder: Encoder) -> LanguageVectors:
    """The language vectors, for the encoder whose embeddings they shift.

    Raises:
        UsageError: the encoder's vectors have another dimension, or norm 1.
    """
    dimension = next(iter(published.vectors.values())).size
    if encoder.dimension != dimension:
        raise UsageError(
            f"{published.path}: its vectors have {dimension} dimensions, but {encoder.id} returns {encoder.dimension}: "
            "it is another model, or another version of it."
        )
    if encoder.normalised:
        raise UsageError(
            f"{published.path}: its vectors were built from embeddings that are not normalised, but {encoder.id} "
            f"returns vectors of norm 1: import them for {published.encoder}, or fit vectors for this encoder with "
            "`langshift vectors fit`."
        )
    return LanguageVectors(
        pivot=published.pivot,
        vectors=published.vectors,
        # The files do not say how many pairs there were.
        pairs=dict.fromkeys(published.vectors, 0),
        **identity(encoder),
        source=f"unknown pairs (imported from {published.path.name}, built with {published.model})",
    )
