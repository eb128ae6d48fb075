"""What models want before queries and documents: by Table 5 of the paper of Shift, else what a model says itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Prefixes(NamedTuple):
    """What stands before every query, and before every document."""

    query: str
    document: str


_WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

# Name on Hugging Face -> prefixes (Table 5).
_TABLE = {
    "google/embeddinggemma-300m": Prefixes("task: search result | query: ", "title: none | text: "),
    "intfloat/multilingual-e5-large": Prefixes("query: ", "passage: "),
    "BAAI/bge-m3": Prefixes("", ""),
    "Qwen/Qwen3-Embedding-0.6B": Prefixes(_WEB_SEARCH, ""),
    "nvidia/llama-nemotron-embed-1b-v2": Prefixes("query: ", "passage: "),
    "Alibaba-NLP/gte-Qwen2-1.5B-instruct": Prefixes(_WEB_SEARCH, ""),
}
# A copy of a model carries its name without the organisation.
_FULL = {_name.rpartition("/")[2].lower(): _name for _name in _TABLE}
# Names that sentence-transformers itself looks for among a model's prompts, best first.
_QUERY, _DOCUMENT = ("query",), ("document", "passage", "corpus")


def full_name(written: str) -> str:
    """The model's name on Hugging Face, as far as ``written`` tells it: a path ends with the model's name.

    ``bge-m3`` and ``/models/bge-m3`` give ``BAAI/bge-m3`` of the table, ``/models/mine`` gives ``mine``, and
    ``someone/bge-m3`` is another model.
    """
    organisation, _, own = written.replace("\\", "/").rstrip("/").rpartition("/")
    if organisation and "/" not in organisation and not organisation.startswith((".", "~")):
        return f"{organisation}/{own}"
    return _FULL.get(own.lower(), own)


def prefixes(name: str, prompts: Mapping[str, str], trained_from: str) -> Prefixes:
    """The prefixes of a model: by its name, else its own prompts, else those of the model it was made from.

    Args:
        name: the model's name, with or without an organisation.
        prompts: prompts by their name, from the model's own configuration.
        trained_from: what the configuration names as the model's origin, or "".
    """
    if known := _FULL.get(name.rpartition("/")[2].lower()):
        return _TABLE[known]
    own = Prefixes(_first(prompts, _QUERY), _first(prompts, _DOCUMENT))
    if any(own):
        return own
    origin = _FULL.get(trained_from.rstrip("/").rpartition("/")[2].lower())
    return _TABLE[origin] if origin else own


def _first(prompts: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((prompts[name] for name in names if prompts.get(name)), "")
