"""What the pages of the console share: the cluster, what is open on it, folders, templates."""

import os
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final, Generic, TypeVar, cast

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from langshift import embedded
from langshift.client import make_client, open_cluster
from langshift.credentials import redact
from langshift.debias.encoders.base import Encoder
from langshift.errors import LangshiftError, UnavailableError
from langshift.evaluate.report.writers import environment
from langshift.languages import direction
from langshift.plugin.versions import check_name
from langshift.reporting import note
from langshift.retrieval.question import USUAL_OPTIONS
from langshift.retrieval.service import VersionedSearcher
from langshift.server_errors import failure
from langshift.settings import VERSION, Settings

T = TypeVar("T")
# What is known of so many indices is kept; encoders are shared, so one costs next to nothing.
_MOST_OPEN: Final = 32


class AppContext:
    """What the pages share; safe to use from several threads.

    Attributes:
        settings: where the cluster is.
        results: the folder with what replays wrote.
    """

    def __init__(self, settings: Settings, results: Path) -> None:
        """Nothing is opened yet."""
        self.settings, self.results = settings, results
        self._lock = Lock()
        self._client: OpenSearch | None = None
        self._started = False
        self._opened = LruCache[VersionedSearcher](_MOST_OPEN)
        self._encoders: dict[str, Encoder] = {}
        self._shared: dict[type, Any] = {}

    @property
    def client(self) -> OpenSearch:
        """The cluster, opened at first use; the embedded one is started then, but never a second time.

        Raises:
            ClusterError: it cannot be reached, or langshift cannot work with it.
        """
        with self._lock:
            if self._client is not None:
                return self._client
        made = self._open()
        with self._lock:
            if self._client is None:
                self._client, self._started = made, True
            client = self._client
        if client is not made:
            made.close()
        return client

    def _open(self) -> OpenSearch:
        if self.settings.url or not self._started:
            return open_cluster(self.settings)
        # Who stopped it wants it stopped: a page that waits for it must not start it again.
        server = embedded.status(self.settings.home)
        if server is None:
            raise UnavailableError(
                "The embedded OpenSearch is no longer running: `langshift doctor` shows why, "
                "`langshift up` starts it again."
            )
        return make_client(self.settings, server.url)

    def failure(self, error: LangshiftError | OpenSearchException) -> LangshiftError:
        """An error with a sentence for a person: langshift's own, or made of what the client library raised."""
        if isinstance(error, LangshiftError):
            return error
        return failure(error, self.settings.url, anonymous=self.settings.username is None)

    def lost(self) -> None:
        """What is open is opened again at its next use: the embedded OpenSearch may come back at another address."""
        with self._lock:
            # Requests under way may still use it: it is not closed, but left to them.
            self._client, self._opened = None, LruCache(_MOST_OPEN)

    def opened(self, name: str) -> VersionedSearcher:
        """An index, an alias or a version, kept open.

        Raises:
            UsageError: that cannot be an index's name.
            ClusterError: there is no such index of langshift's.
            FingerprintError: the encoder installed here is not the one that made it.
        """
        # Where the cluster is lost meanwhile, what is opened here goes with what was open on it.
        return self._opened.of(name, lambda: self._open_index(name))

    def _open_index(self, name: str) -> VersionedSearcher:
        check_name(name)
        return VersionedSearcher(self.client, name, USUAL_OPTIONS, self._encoders)

    def shared(self, kind: type[T], make: Callable[[], T]) -> T:
        """The console's one object of a kind, made at first use."""
        with self._lock:
            if kind not in self._shared:
                self._shared[kind] = make()
            return cast(T, self._shared[kind])

    def close(self) -> None:
        """Close the connection to the cluster."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()


def context_of(request: Request) -> AppContext:
    """The console that a request came to."""
    return cast(AppContext, request.app.state.console)


FOLDER: Final = Path(__file__).parent
# Seconds after which a page that waits for the cluster asks again.
_AGAIN: Final = 3


TEMPLATES: Final = environment(FOLDER / "templates")
TEMPLATES.globals.update(direction=direction, version=VERSION)


def page(
    request: Request, template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **context: object
) -> HTMLResponse:
    """A page.

    Args:
        request: what is answered; templates see it as ``request``.
        template: such as ``search.html``, in ``templates``.
        status: of HTTP.
        headers: more than those that every answer has.
        **context: what the template fills in; all of it is escaped but what ``drawn`` made.
    """
    url = context_of(request).settings.url
    text = TEMPLATES.get_template(template).render(request=request, cluster=url or "embedded OpenSearch", **context)
    return HTMLResponse(text, status_code=status, headers=headers)


def note_unexpected(error: Exception, where: str = "") -> None:
    """Tell whoever runs the console, in one line, of an error that nobody thought of.

    Args:
        error: what was raised.
        where: what was asked, with a colon and a space behind it.
    """
    note(redact(f"Error: {where}{type(error).__name__}: {' '.join(str(error).split())[:300]}"))
    if os.environ.get("LANGSHIFT_DEBUG"):
        note(redact("".join(traceback.format_exception(error))))


def error_page(
    request: Request,
    status: int,
    sentence: str,
    *,
    heading: str = "The request failed",
    again: bool = False,
    bare: bool = False,
) -> HTMLResponse:
    """A page for what could not be done.

    Args:
        request: what is answered.
        status: of HTTP.
        sentence: for a person: what, where and what to do.
        heading: of the page.
        again: whether the page asks for its address again until that answers otherwise.
        bare: whether the page is for somebody who may know nothing of this console.
    """
    headers = {"retry-after": str(_AGAIN)} if again else None
    context = {"heading": heading, "sentence": sentence, "seconds": _AGAIN if again else None, "bare": bare}
    return page(request, "error.html", status=status, headers=headers, **context)


class LruCache(Generic[T]):
    """The values that were used last, by key; safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        """The value; None where it is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def of(self, key: Hashable, make: Callable[[], T], *, fresh: bool = False) -> T:
        """The value that is kept, else, or where a fresh one is wanted, one that is made."""
        found = None if fresh else self.get(key)
        if found is not None:
            return found
        made = make()
        with self._lock:
            if fresh:
                self._values[key] = made
            # Of several that were made at once the first is kept.
            found = self._values.setdefault(key, made)
            self._values.move_to_end(key)
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        return found
