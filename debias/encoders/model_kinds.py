"""What a model's folder holds: an encoder, or something else that sentence-transformers would open as one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from langshift.errors import UsageError

ModelKind = Literal["encoder", "late interaction", "sparse", "cross-encoder", "language model"]
_BY_TYPE: dict[str, ModelKind] = {
    "SparseEncoder": "sparse",
    "MultiVectorEncoder": "late interaction",
    "ColBERT": "late interaction",
    "CrossEncoder": "cross-encoder",
}
_SPARSE = {"SpladePooling", "MLMTransformer", "SparseAutoEncoder", "CSRSparsity", "SparseStaticEmbedding", "IDF"}
_ENCODER_WANTED = "use a model that makes one vector of a text, such as st:intfloat/multilingual-e5-large"
_RERANKER_WANTED = "use a cross-encoder, such as st:BAAI/bge-reranker-v2-m3"
_NO_ENCODER: dict[ModelKind, str] = {
    "late interaction": "a late-interaction model (as ColBERT is), which makes a vector of every token",
    "sparse": "a sparse model (as SPLADE is), which weights words and makes no dense vector",
    "cross-encoder": "a reranker (a cross-encoder), which scores a query beside a passage and makes no vector",
}
_NO_RERANKER: dict[ModelKind, str] = _NO_ENCODER | {
    "encoder": "an encoder, which makes vectors and scores no pairs",
    "language model": "a causal language model without sentence-transformers' score module (LogitScore in "
    "modules.json), so that its scores would be those of an untrained head",
}
del _NO_RERANKER["cross-encoder"]


def read_json(path: Path, default: Any) -> Any:  # noqa: ANN401 - any JSON value
    """What a file of a model holds, or ``default`` where there is none.

    Raises:
        UsageError: it is no JSON, or of another type than ``default``.
    """
    try:
        found = json.loads(path.read_bytes()) if path.is_file() else default
    except ValueError:
        found = None
    if not isinstance(found, type(default)):
        raise UsageError(f"{path} is not valid JSON, so this model is damaged: copy or download it again.")
    return found


def kind_of(folder: Path) -> ModelKind | None:
    """What the files in a model's folder say that it is; None where they leave it open.

    Raises:
        UsageError: a file is damaged.
    """
    config = read_json(folder / "config.json", {})
    architectures = " ".join(map(str, config.get("architectures") or ()))
    types = [str(module.get("type", "")) for module in read_json(folder / "modules.json", [])]
    modules = {name.rpartition(".")[2] for name in types}
    by_type = _BY_TYPE.get(str(read_json(folder / "config_sentence_transformers.json", {}).get("model_type", "")))
    if by_type is not None:
        return by_type
    pooled = any("Pooling" in name for name in modules)
    if (
        (folder / "artifact.metadata").exists()
        or re.search(r"Col(BERT|Pali|Qwen|Idefics|\w*VBert)", architectures)
        or any(name.startswith("pylate.") for name in types)
        or ({"Transformer", "Dense"} <= modules and not pooled)
    ):
        return "late interaction"
    masked = not types and "ForMaskedLM" in architectures
    # A folder without modules is as good a SPLADE model as an untrained encoder: only its name tells.
    if modules & _SPARSE or (masked and re.search("splade|sparse", f"{folder} {config.get('_name_or_path')}".lower())):
        return "sparse"
    if "LogitScore" in modules or ("ForSequenceClassification" in architectures and not pooled):
        return "cross-encoder"
    if types:
        return "encoder"
    if "ForCausalLM" in architectures:
        return "language model"
    return "encoder" if masked or re.search(r"Model\b", architectures) else None


def require_encoder(folder: Path) -> None:
    """Refuse what makes no dense vector of a text.

    Raises:
        UsageError: naming what it is.
    """
    _refuse(folder, _NO_ENCODER, _ENCODER_WANTED)


def require_reranker(folder: Path) -> None:
    """Refuse what scores no pairs.

    Raises:
        UsageError: naming what it is.
    """
    _refuse(folder, _NO_RERANKER, _RERANKER_WANTED)


def _refuse(folder: Path, refused: dict[ModelKind, str], instead: str) -> None:
    try:
        kind = kind_of(folder)
    except UsageError:
        # Whoever loads it says what is damaged.
        return
    if kind in refused:
        raise UsageError(f"{folder} is {refused[kind]}: {instead}.")
