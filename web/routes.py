"""The pages ``/indices`` and ``/indices/{name}``."""

from __future__ import annotations

from opensearchpy.exceptions import AuthorizationException
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from langshift.console import counted
from langshift.errors import ClusterError
from langshift.ingest.bulk.place import LoadPlace
from langshift.languages import UNDETERMINED
from langshift.plugin.confidence import confidence
from langshift.plugin.description import chosen, described, first_lines, in_words, storage
from langshift.plugin.listing import Version, all_versions
from langshift.plugin.remarks import remarks
from langshift.web.context import Console, console_of
from langshift.web.letters import Letters, letters, uncounted
from langshift.web.overview import bins, fingerprint_rows, language_rows, version_rows
from langshift.web.pages import page


def indices(request: Request) -> Response:
    """Every version of every index."""
    found = version_rows(all_versions(console_of(request).client))
    return page(request, "indices.html", versions=found)


def index(request: Request) -> Response:
    """All about one version."""
    console = console_of(request)
    version, versions = known(console, request.path_params["name"])
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
        documents=counted(found.documents, "document"),
        known=counted(len(found.languages.keys() - {UNDETERMINED}), "language"),
        unknown=found.share(UNDETERMINED),
        confidence=sure,
        bins=bins(sure),
        fingerprint=fingerprint_rows(version.fingerprint),
        versions=version_rows(versions),
        letters=_letters(console, version.name),
    )


def _letters(console: Console, name: str) -> Letters:
    """The dead letters of an index; who may not ask which cluster it is on sees all else."""
    try:
        place = LoadPlace.of(console.settings.home, console.client, name)
    except AuthorizationException as error:
        return uncounted(console.failure(error))
    return letters(place)


def known(console: Console, name: str) -> tuple[Version, list[Version]]:
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
