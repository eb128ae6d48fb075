"""The pages of indices."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from opensearchpy.exceptions import AuthorizationException
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError, LangshiftError
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters, Group, grouped
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.languages import UNDETERMINED
from langshift.output import pluralize
from langshift.plugin.description import (
    BINS,
    Confidence,
    Description,
    LanguageConfidence,
    chosen,
    confidence,
    described,
    first_lines,
    held,
    in_words,
    remarks,
    short_name,
    short_scales,
    source,
    storage,
)
from langshift.plugin.inventory import Version, all_versions
from langshift.web.context import AppContext, context_of, page

_MOST: Final = 10_000
# Seconds: a letter holds its document, and may be large.
_LONGEST: Final = 2.0


class DeadLetterSummary(NamedTuple):
    """Dead letters of one index.

    Attributes:
        groups: by what was wrong, the most frequent first.
        remark: what is not shown and why; None where all is.
    """

    groups: list[Group]
    remark: str | None = None


def summarize_dead_letters(place: LoadWorkspace, most: int = _MOST, seconds: float = _LONGEST) -> DeadLetterSummary:
    """The dead letters of a place, the first ones where there are many.

    Args:
        place: of the loads into the index.
        most: how many are counted at most.
        seconds: after which no further one is counted.
    """
    reading = _Reading(DeadLetters(place.dead_letters), most, seconds)
    try:
        groups = grouped(reading)
    except LangshiftError as error:
        return uncounted(error)
    except OSError as error:
        return DeadLetterSummary([], f"The dead letters cannot be read ({error.strerror}): see to it that they can be.")
    if reading.all:
        return DeadLetterSummary(groups)
    message = f"Only the first {pluralize(reading.count, 'dead letter')} were counted:"
    return DeadLetterSummary(groups, f"{message} `langshift dead-letters list --index {place.name}` counts all.")


def uncounted(error: LangshiftError) -> DeadLetterSummary:
    """No letters, and why."""
    return DeadLetterSummary([], f"The dead letters cannot be counted: {error}")


class _Reading:
    """Iterates over letters until there were enough of them.

    Attributes:
        count: how many there were.
        all: whether there are no more.
    """

    def __init__(self, found: DeadLetters, most: int, seconds: float) -> None:
        self._found, self._most, self._seconds = found, most, seconds
        self.count, self.all = 0, True

    def __iter__(self) -> Iterator[DeadLetter]:
        began = time.monotonic()
        for letter in self._found:
            if self.count and (self.count >= self._most or time.monotonic() - began > self._seconds):
                self.all = False
                return
            self.count += 1
            yield letter


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
    sure: LanguageConfidence | None


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
    return [(_LABELS.get(name, name), _format_value(name, value)) for name, value in made.to_dict().items()]


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


def _format_value(name: str, value: Any) -> str:  # noqa: ANN401 - any JSON
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "alphas":
        return ", ".join(f"{tag} {alpha:g}" for tag, alpha in value.items()) or _NONE
    if name.endswith("_prefix") and value:
        return repr(value)
    if isinstance(value, int | float):
        return f"{value:g}"
    return str(value) if value else _NONE


def indices(request: Request) -> Response:
    """Every version of every index."""
    found = version_rows(all_versions(context_of(request).client))
    return page(request, "indices.html", versions=found)


def index(request: Request) -> Response:
    """All about one version."""
    console = context_of(request)
    version, versions = resolve_version(console, request.path_params["name"])
    found = described(console.client, version, versions)
    sure = confidence(console.client, version.version, found.fields)
    languages = language_rows(found, sure)
    return page(
        request,
        "index.html",
        this=version,
        description=found,
        sentences=[*first_lines(found), *in_words(version.fingerprint), *storage(found)],
        remarks=remarks(found),
        languages=languages,
        most=max((one.share for one in languages), default=1.0) or 1.0,
        documents=pluralize(found.documents, "document"),
        known=pluralize(len(found.languages.keys() - {UNDETERMINED}), "language"),
        unknown=found.share(UNDETERMINED),
        confidence=sure,
        bins=bins(sure),
        fingerprint=fingerprint_rows(version.fingerprint),
        versions=version_rows(versions),
        letters=_letters(console, version.name),
    )


def _letters(console: AppContext, name: str) -> DeadLetterSummary:
    """The dead letters of an index; who may not ask which cluster it is on sees all else."""
    try:
        place = LoadWorkspace.of(console.settings.home, console.client, name)
    except AuthorizationException as error:
        return uncounted(console.failure(error))
    return summarize_dead_letters(place)


def resolve_version(console: AppContext, name: str) -> tuple[Version, list[Version]]:
    """The version that a name means, and all versions of its index.

    Raises:
        UsageError: it cannot be an index's name.
        HTTPException: there is no such index of langshift's (404).
    """
    client = console.client
    try:
        return chosen(client, name)
    except ClusterError as error:
        raise HTTPException(404, str(error)) from error


ROUTES = [Route("/indices", indices), Route("/indices/{name}", index)]
