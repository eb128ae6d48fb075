"""What a server says of its models: their names, and which weights they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langshift.debias.encoders.prefixes import Prefixes, full_name, prefixes
from langshift.debias.encoders.server import Server
from langshift.errors import UsageError

_MOST = 64
# Ollama's, which stands where none is given.
_TAG = ":latest"


class Served(NamedTuple):
    """A model on a server.

    Attributes:
        model: its name there.
        revision: what the server says of its weights, the same after every restart; else the name.
        prefixes: what it wants before queries and documents.
        most: how many texts the server takes in a request.
        others: all models that the server lists.
    """

    model: str
    revision: str
    prefixes: Prefixes
    most: int
    others: Sequence[str]


def find(server: Server, root: str, wanted: str | None) -> Served:
    """Find a model on a server, or its only one.

    Args:
        server: the server.
        root: its address.
        wanted: the model's name; None for the only one.

    Raises:
        UsageError: no name where there is not just one model.
        LangshiftError: the server cannot be reached, refuses the key, or fails.
    """
    models = _entries(server.get("/v1/models", needed=wanted is None), "data")
    listed = {entry["id"]: entry for entry in models if isinstance(entry.get("id"), str)}
    # TEI serves one model, and tells of it here.
    info = server.get("/info") if not any("root" in entry for entry in listed.values()) else None
    info = info if isinstance(info, dict) and isinstance(info.get("model_id"), str) else {}
    names = list(listed) or [info["model_id"]] if listed or info else []
    if wanted is None and len(names) != 1:
        told = f"it has {', '.join(names)}" if names else "it does not say which it has"
        raise UsageError(f"{server.shown} needs the name of a model, and {told}: write http:{root}#MODEL.")
    model = wanted or names[0]
    if info and _own_name(model) != _own_name(info["model_id"]):
        raise UsageError(f"{server.shown} has the model {info['model_id']}, not {model}: write http:{root}#MODEL.")
    entry = listed.get(model) or listed.get(model + _TAG, {})
    most = info.get("max_client_batch_size")
    # What stands behind a name that the server was told to show.
    own = str(entry.get("root") or info.get("model_id") or model)
    return Served(
        model,
        _revision(server, model, entry, info),
        prefixes(full_name(own.removesuffix(_TAG).replace(":", "-")), {}, ""),
        min(most, _MOST) if isinstance(most, int) and most > 0 else _MOST,
        names,
    )


def _own_name(model: str) -> str:
    """Without an organisation or a folder."""
    return model.rstrip("/").rpartition("/")[2].lower()


def _revision(server: Server, model: str, entry: Mapping[str, Any], info: Mapping[str, Any]) -> str:
    """Whatever says most of the weights: TEI's commit, Ollama's digest, what vLLM has loaded; else the name."""
    found = info.get("model_sha") or entry.get("root") or entry.get("digest")
    if not found and entry.get("owned_by") == "library":
        tags = _entries(server.get("/api/tags"), "models")
        found = next((tag.get("digest") for tag in tags if tag.get("name") in (model, model + _TAG)), None)
    return str(found or model)


def _entries(answer: Any, name: str) -> list[dict[str, Any]]:  # noqa: ANN401 - any JSON value
    """The objects in a list of an answer; none where it is not as it should be."""
    entries = answer.get(name) if isinstance(answer, dict) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
