"""Whether the fields of an index are what they are said to be: vectors, texts, languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langshift.errors import UsageError
from langshift.ingest.adopt.old import OldIndex
from langshift.plugin.engine import engine_of

_TEXTS = {"text", "keyword", "match_only_text", "wildcard", "constant_keyword"}
_SPACE = "cosinesimil"


def require_fields(old: OldIndex, vector: str, texts: Sequence[str], language: str | None) -> None:
    """Refuse fields that are not there, or hold something else.

    Args:
        old: the index.
        vector: the field of vectors.
        texts: the fields of text.
        language: the field that names a document's language; None where there is none.

    Raises:
        UsageError: saying what the field is, and what could be given.
    """
    _require_vector(old, vector)
    for text in texts:
        _require_string(old, text, "--text-field")
    if language is not None:
        _require_string(old, language, "--language-field")


def dimension_of(old: OldIndex, vector: str) -> int:
    """The length of a field's vectors."""
    return int(_mapped(old.mappings, vector)["dimension"])


def _require_vector(old: OldIndex, name: str) -> None:
    found, index = _mapped(old.mappings, name), old.index
    if not found:
        raise UsageError(f"Index {index} has no field {name!r}: {_vectors_there(old)}.")
    if found.get("type") != "knn_vector":
        kind = found.get("type", "object")
        raise UsageError(f"The field {name!r} of {index} is of type {kind}, not knn_vector: {_vectors_there(old)}.")
    if nested := next((part for part in _parents(name) if _mapped(old.mappings, part).get("type") == "nested"), None):
        raise UsageError(
            f"The field {name!r} of {index} is inside the nested field {nested!r}: only a document's own vector can "
            "be shifted, so give each part of a text a document of its own."
        )
    kind = str(found.get("data_type", "float")).lower()
    if "dimension" not in found or kind != "float":
        told = f"are of the data type {kind}" if "dimension" in found else "are those of a trained model"
        raise UsageError(f"The vectors in {name!r} of {index} {told}: only vectors of floats can be shifted.")
    kept = engine_of(old.mappings, old.settings, name)
    assert kept is not None  # noqa: S101 - it is a knn_vector
    if kept.space != _SPACE:
        raise UsageError(
            f"The vectors in {name!r} of {index} are compared by {kept.space}: langshift searches and measures by the "
            f"cosine, and shifted vectors differ in length. Copy the index with _reindex into one whose mapping says "
            f'"space_type": "{_SPACE}" (nothing is encoded again), and adopt that.'
        )


def _require_string(old: OldIndex, name: str, option: str) -> None:
    found = _mapped(old.mappings, name)
    if not found:
        raise UsageError(f"Index {old.index} has no field {name!r}: give {option} one that its documents hold.")
    kind = found.get("type", "object")
    if kind not in _TEXTS:
        raise UsageError(f"The field {name!r} of {old.index} is of type {kind}: give {option} a text or keyword field.")


def _mapped(mappings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What the mapping says of a field; empty where it says nothing."""
    found: Mapping[str, Any] = mappings
    for part in name.split("."):
        found = found.get("properties", {}).get(part, {})
    return found


def _parents(name: str) -> Iterator[str]:
    """``a`` and ``a.b`` of ``a.b.c``."""
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts)))


def _vectors_there(old: OldIndex) -> str:
    names = sorted(_vectors(old.mappings, ""))
    if not names:
        return "it has no knn_vector field, so there is nothing to shift"
    return f"its knn_vector {'field is' if len(names) == 1 else 'fields are'} {', '.join(names)}"


def _vectors(part: Mapping[str, Any], place: str) -> Iterator[str]:
    for name, found in part.get("properties", {}).items():
        if found.get("type") == "knn_vector":
            yield f"{place}{name}"
        yield from _vectors(found, f"{place}{name}.")
