"""The pages of indices."""

import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from opensearchpy.exceptions import AuthorizationException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import LangshiftError
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters, Group, grouped
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.languages import UNDETERMINED
from langshift.plugin import description
from langshift.plugin.inventory import listed
from langshift.plugin.native_nodes import plugin_nodes
from langshift.web.context import AppContext, context_of, page
from langshift.wording import pluralize

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
    letters, began = iter(DeadLetters(place.dead_letters)), time.monotonic()

    def first() -> Iterator[DeadLetter]:
        for number, letter in enumerate(letters, start=1):
            yield letter
            if number >= most or time.monotonic() - began > seconds:
                return

    try:
        groups, complete = grouped(first()), next(letters, None) is None
    except LangshiftError as error:
        return uncounted(error)
    except OSError as error:
        return DeadLetterSummary([], f"The dead letters cannot be read ({error.strerror}): make them readable.")
    if complete:
        return DeadLetterSummary(groups)
    message = f"Only the first {pluralize(sum(one.count for one in groups), 'dead letter')} were counted:"
    return DeadLetterSummary(groups, f"{message} `langshift dead-letters list --index {place.name}` counts them all.")


def uncounted(error: LangshiftError) -> DeadLetterSummary:
    """No letters, and why."""
    return DeadLetterSummary([], f"The dead letters cannot be counted: {error}")


_NONE: Final = "none"
# Field of a fingerprint -> what it is.
_LABELS: Final = {
    "encoder": "Encoder",
    "revision": "Revision of the encoder",
    "query_prefix": "Prefix of queries",
    "document_prefix": "Prefix of documents",
    "dimension": "Dimension of the vectors",
    "normalised": "Normalised by the encoder",
    "pivot": "Pivot language",
    "alpha": "Alpha (scale of the shift)",
    "alphas": "Alphas of individual languages",
    "gamma": "Gamma (share of what queries have in common, taken out)",
    "own": "Own (preference for the query's language)",
    "own_vectors": "Preference vectors (hash)",
    "vectors": "Language vectors (hash)",
    "detector": "Language detector",
    "langshift": "Version of langshift",
    "format": "Format of the metadata",
    "languages": "Detection limited to",
    "pooling": "Pooling in place of the model's own",
    "max_tokens": "Tokens read in place of the usual number",
}


def fingerprint_rows(made: Fingerprint) -> list[tuple[str, str]]:
    """Every field of a fingerprint: what it is, and its value in words."""
    return [(_LABELS.get(name, name), _format_value(name, value)) for name, value in made.to_dict().items()]


def _format_value(name: str, value: Any) -> str:  # noqa: ANN401 - any JSON
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "alphas":
        return ", ".join(f"{tag} {alpha:g}" for tag, alpha in value.items()) or _NONE
    if name.endswith("_prefix") and value:
        return repr(value)
    if isinstance(value, int | float):
        return f"{value:g}"
    if isinstance(value, list):
        value = ", ".join(value)
    return str(value) if value else _NONE


def indices(request: Request) -> Response:
    """Every version of every index."""
    return page(request, "indices.html", versions=listed(context_of(request).client), describe=description)


def index(request: Request) -> Response:
    """All about one version."""
    console = context_of(request)
    version, versions = description.chosen(console.client, request.path_params["name"])
    found = description.described(console.client, version, versions)
    return page(
        request,
        "index.html",
        this=version,
        versions=versions,
        found=found,
        describe=description,
        confidence=description.confidence(console.client, version.version, found.fields),
        documents=str(found.count),
        known=pluralize(len(found.languages.keys() - {UNDETERMINED}), "language"),
        fingerprint=fingerprint_rows(version.fingerprint),
        letters=_letters(console, version.name),
        plugin=plugin_nodes(console.client),
    )


def _letters(console: AppContext, name: str) -> DeadLetterSummary:
    """The dead letters of an index; who may not ask which cluster it is on sees all else."""
    try:
        place = LoadWorkspace.of(console.settings.home, console.client, name)
    except AuthorizationException as error:
        return uncounted(console.failure(error))
    return summarize_dead_letters(place)


ROUTES = [Route("/indices", indices), Route("/indices/{name}", index)]
