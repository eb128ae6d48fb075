"""What the pages of indices show, as rows of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from langshift.debias.fingerprint import Fingerprint
from langshift.plugin.confidence import BINS, Confidence, Sureness
from langshift.plugin.description import Description, held, short_name, short_scales, source
from langshift.plugin.listing import Version

_NONE: Final = "none"
_HASH: Final = 8
# Field of a fingerprint -> what it is.
_LABELS: Final = {
    "encoder": "Encoder",
    "revision": "Revision of its weights",
    "query_prefix": "Text before a query",
    "document_prefix": "Text before a document",
    "dimension": "Numbers in a vector",
    "normalised": "The encoder's vectors have norm 1",
    "pivot": "Pivot language",
    "alpha": "Alpha, the scale of the shift",
    "alphas": "Alphas of single languages",
    "vectors": "Language vectors (hash)",
    "detector": "Language detector",
    "langshift": "Made by langshift",
    "method": "Method",
    "soft": "Moved by all languages that a document may be in",
}


class VersionRow(NamedTuple):
    """A version in a table.

    Attributes:
        name: its index.
        version: its own name.
        short: ``v0001``.
        live: whether the name stands for it.
        unfinished: whether it is being made.
        state: in words.
        documents: in words, as all that follows.
        size: on disk.
        encoder: that made it.
        alpha: with how many languages have others.
        made: day.
        exactly: when it was made, ISO 8601.
        by: what made it.
        vectors: beginning of the hash of its language vectors.
    """

    name: str
    version: str
    short: str
    live: bool
    unfinished: bool
    state: str
    documents: str
    size: str
    encoder: str
    alpha: str
    made: str
    exactly: str
    by: str
    vectors: str


class LanguageRow(NamedTuple):
    """A language in a table.

    Attributes:
        tag: its tag.
        documents: how many.
        share: of all documents, 0 to 1.
        sure: how sure the detector was; None where that is not known.
    """

    tag: str
    documents: int
    share: float
    sure: Sureness | None


class Bin(NamedTuple):
    """A tenth of the detector's confidence.

    Attributes:
        name: such as ``0.9 to 1``.
        documents: how many.
        share: of those that tell it, 0 to 1.
    """

    name: str
    documents: int
    share: float


def version_rows(versions: Sequence[Version]) -> list[VersionRow]:
    """The versions as they are listed."""
    return [_row(one) for one in versions]


def language_rows(found: Description, sure: Confidence) -> list[LanguageRow]:
    """The languages, most frequent first."""
    return [
        LanguageRow(tag, count, found.share(tag), sure.languages.get(tag)) for tag, count in found.languages.items()
    ]


def bins(sure: Confidence) -> list[Bin]:
    """The detector's confidence in tenths, lowest first; empty where no document tells it."""
    if not sure.documents:
        return []
    names = [f"{number / BINS:g} to {(number + 1) / BINS:g}" for number in range(BINS)]
    return [Bin(name, count, count / sure.documents) for name, count in zip(names, sure.bins, strict=True)]


def fingerprint_rows(made: Fingerprint) -> list[tuple[str, str]]:
    """Every field of a fingerprint: what it is, and its value in words."""
    return [(_LABELS.get(name, name), _told(name, value)) for name, value in made.to_dict().items()]


def _row(one: Version) -> VersionRow:
    state, documents, size = held(one)
    made = one.fingerprint
    return VersionRow(
        name=one.name,
        version=one.version,
        short=short_name(one),
        live=one.state == "live",
        unfinished=one.state == "unfinished",
        state=state,
        documents=documents,
        size=size,
        encoder=made.encoder,
        alpha=short_scales(one) if made.vectors is not None else _NONE,
        made=one.made[:10],
        exactly=one.made,
        by=source(one),
        vectors=_NONE if made.vectors is None else made.vectors[:_HASH],
    )


def _told(name: str, value: Any) -> str:  # noqa: ANN401 - any JSON
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "alphas":
        return ", ".join(f"{tag} {alpha:g}" for tag, alpha in value.items()) or _NONE
    if name.endswith("_prefix") and value:
        return repr(value)
    if isinstance(value, int | float):
        return f"{value:g}"
    return str(value) if value else _NONE
