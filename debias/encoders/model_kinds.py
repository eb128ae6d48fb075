"""What a model's folder holds: an encoder, or something else that sentence-transformers would open as one."""

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
_IS: dict[ModelKind, str] = {
    "encoder": "an encoder, which makes one vector of a text",
    "late interaction": "a late-interaction model (as ColBERT is), which makes a vector of every token",
    "sparse": "a sparse model (as SPLADE is), which weights words and makes no dense vector",
    "cross-encoder": "a reranker (a cross-encoder), which scores a query beside a passage and makes no vector",
    "language model": "a causal language model without sentence-transformers' score module (LogitScore in "
    "modules.json), so that its scores would be those of an untrained head",
}
# Where a model of a kind has its place.
_BELONGS: dict[ModelKind, str] = {
    "encoder": "--encoder",
    "late interaction": "--rerank or --tokens",
    "sparse": "--sparse",
    "cross-encoder": "--rerank",
}
_WANTED: dict[ModelKind, str] = {
    "encoder": "a model that makes one vector of a text, such as st:intfloat/multilingual-e5-large",
    "late interaction": "a late-interaction model, such as st:LiquidAI/LFM2-ColBERT-350M",
    "sparse": "a sparse model, such as st:opensearch-project/opensearch-neural-sparse-encoding-multilingual-v1",
    "cross-encoder": "a cross-encoder, such as st:BAAI/bge-reranker-v2-m3",
}


def read_json(path: Path, default: Any) -> Any:  # noqa: ANN401 - any JSON value
    """What a file of a model holds, or ``default`` where there is none.

    Raises:
        UsageError: it is no JSON, or of another type than ``default``.
    """
    try:
        found = json.loads(path.read_bytes()) if path.is_file() else default
    except (ValueError, RecursionError):
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
        or re.search(r"Col(BERT|Pali|Qwen|Idefics|\w{0,20}VBert)", architectures)
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


def is_late_interaction(folder: Path) -> bool:
    """Whether a model's folder says that it makes a vector of every token; a damaged one says nothing."""
    try:
        return kind_of(folder) == "late interaction"
    except UsageError:
        return False


def require_kind(folder: Path, wanted: ModelKind) -> None:
    """Refuse a model of another kind than is wanted, which sentence-transformers would open with an untrained head.

    Raises:
        UsageError: naming what it is, and where it has its place.
    """
    try:
        kind = kind_of(folder)
    except UsageError:
        # Whoever loads it says what is damaged.
        return
    if kind == wanted or (wanted == "sparse" and _may_be_sparse(folder)):
        return
    trained = wanted in ("sparse", "late interaction")
    if not trained and (kind is None or (kind, wanted) == ("language model", "encoder")):
        return
    if kind is None or (trained and kind == "language model"):
        what = f"no {wanted} model by its files, so that what it makes would be that of an untrained head"
        belongs = None
    else:
        what, belongs = _IS[kind], _BELONGS.get(kind)
    instead = f"use it as {belongs}, or use" if belongs else "use"
    raise UsageError(f"{folder} is {what}: {instead} {_WANTED[wanted]}.")


def _may_be_sparse(folder: Path) -> bool:
    """Whether a folder says neither that it is a sparse model nor that it is another: who names it so is believed."""
    architectures = read_json(folder / "config.json", {}).get("architectures") or ()
    bare = not (folder / "modules.json").is_file()
    return bare and any(str(one).endswith("ForMaskedLM") for one in architectures)
