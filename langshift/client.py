"""Opening a cluster: clients made from the settings, and what a cluster must be for langshift to work with it."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from opensearchpy import Connection, OpenSearch, Urllib3AWSV4SignerAuth, Urllib3HttpConnection, exceptions
from opensearchpy.serializer import JSONSerializer
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from langshift import server_errors
from langshift.credentials import credentials, redact, register_secret
from langshift.errors import ClusterError, UsageError, require_extra
from langshift.files import replace_halves
from langshift.reporting import note
from langshift.response_checks import Redirected, WrongAnswer
from langshift.retry import RetryBudget, is_passing, retry_until_available, waiting_seconds
from langshift.settings import Settings
from langshift.transport import CheckedTransport, async_transport, host_address
from langshift.wording import join_words

if TYPE_CHECKING:
    from opensearchpy import AsyncOpenSearch


class Json(JSONSerializer):
    """Reads answers several times as fast as the client library does, which tells where they hold many vectors."""

    #: Every answer, of whatever request.
    reads_all = True

    def loads(self, s: str) -> Any:  # noqa: ANN401 - any JSON value
        """Read JSON; half a surrogate pair in it becomes a replacement character."""
        try:
            return orjson.loads(s)
        except orjson.JSONDecodeError:
            pass
        try:
            return orjson.loads(replace_halves(s, lambda _: "\ufffd"))
        except orjson.JSONDecodeError as error:
            raise exceptions.SerializationError(redact(s), error) from error


class _Connection(Urllib3HttpConnection):
    """Keeps passwords out of exceptions, and with that out of messages, logs and tracebacks; follows no redirect."""

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        send = self.pool.urlopen

        def urlopen(*request: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
            response = send(*request, redirect=False, **named)
            if location := response.headers.get("location"):
                require_no_redirect(self, response.status, location)
            return response

        self.pool.urlopen = urlopen

    def perform_request(self, *request: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
        """Send a request; all else is as the library has it.

        Raises:
            Redirected: the server names another address.
        """
        try:
            return super().perform_request(*request, **named)
        except exceptions.ConnectionError as error:
            raise (error.info if isinstance(error.info, Redirected) else error) from error.__cause__

    def _raise_error(self, status_code: int, raw_data: str | bytes, content_type: str | None = None) -> None:
        super()._raise_error(status_code, redacted_text(raw_data), content_type)


def require_no_redirect(connection: Connection, status: int, location: str) -> None:
    """Refuse an answer that names another address, which is asked for nothing: least of all with credentials.

    Raises:
        Redirected: naming its host.
    """
    if 300 <= status < 400:
        raise Redirected(f"{connection.host}{connection.url_prefix}", status, location)


def redacted_text(content: str | bytes) -> str:
    """What a server said, without passwords."""
    return redact(content if isinstance(content, str) else content.decode("utf-8", "surrogatepass"))


# Version 3 is what the tests run on.
OLDEST_VERSION = (3, 0)
REQUIRED_PLUGIN = "opensearch-knn"
#: What puts vectors and words together in the cluster; without it langshift does that.
HYBRID_PLUGIN = "opensearch-neural-search"
#: What ``require_extra`` is told before anything is searched asynchronously.
ASYNC_EXTRA = ("Searching asynchronously needs", "async", "aiohttp")


def open_cluster(settings: Settings | None = None) -> OpenSearch:
    """Open a client for the cluster of the settings, and check that langshift can work with it.

    Without ``OPENSEARCH_URL`` this is the embedded OpenSearch, which is started when needed.

    Args:
        settings: where the cluster is; read from the environment if None.

    Raises:
        ClusterError: unreachable, wrong password or certificate, too old, or without the k-NN plugin.
    """
    settings = settings or Settings.from_env()
    url = settings.url or embedded_url(settings)
    # A wrong address must not be tried again and again before it is said to be wrong.
    once = make_client(settings, url, retries=0)

    def check() -> None:
        number = cluster_version(once)
        check_version(once, number)
        check_plugins(once, number, plugins(once))

    anonymous = settings.username is None
    with once, server_errors.client_errors_as_langshift_errors(address(once), anonymous=anonymous):
        if (seconds := waiting_seconds()) is None:
            check()
        else:
            retry_until_available(check, RetryBudget(seconds), passes=_passes_at_first)
    return make_client(settings, url)


def _passes_at_first(error: BaseException) -> bool:
    """Whether trouble may pass at an address that was never reached before; one where nobody answers is wrong."""
    if isinstance(error, exceptions.ConnectionTimeout):
        return False
    if isinstance(error, exceptions.ConnectionError) and isinstance(error.info, HTTPError):
        return is_passing(error) and not isinstance(error.info, ConnectTimeoutError | NewConnectionError)
    return is_passing(error) or isinstance(error.__cause__, WrongAnswer)


def embedded_url(settings: Settings) -> str:
    """The address of the embedded OpenSearch, of several nodes the first that serves; started when needed."""
    from langshift import embedded

    return embedded.running_or_up(settings.home).url


# Seconds between two looks at what is being recovered, and between two times that a person is told; and how many looks
# in a row that find nothing under way tell that nothing is to come.
_LOOK, _TELL, _IDLE = 0.25, 10.0, 8


def await_recovery(client: OpenSearch, index: str | None = None) -> list[str]:
    """Wait as long as indices that lack shards are being recovered, however long that takes, and tell how far it is.

    Args:
        client: the cluster.
        index: the one that is needed; None for all.

    Returns:
        The indices that lack shards still, for which nothing is under way.
    """
    idle, told = 0, time.monotonic() + 1 - _TELL
    while True:
        health = client.cluster.health(index=index, params={"level": "indices"})
        red = sorted(name for name, one in health["indices"].items() if one["status"] == "red")
        recovering = [name for name in red if health["indices"][name]["initializing_shards"]]
        busy = recovering or health["number_of_in_flight_fetch"] or health["number_of_pending_tasks"]
        idle = 0 if busy else idle + 1
        if not red or idle == _IDLE:
            return red
        if recovering and time.monotonic() - told >= _TELL:
            told = time.monotonic()
            active = {"format": "json", "active_only": "true", "h": "stage,translog_ops_percent"}
            rows = client.cat.recovery(index=",".join(recovering), params=active)
            # Until it is known how many operations there are, -1.
            parts = (f"{one['stage']} {one['translog_ops_percent']}".partition(" -")[0] for one in rows)
            note(f"Waiting for {join_words(recovering)} to be recovered ({', '.join(parts)}) ...")
        time.sleep(_LOOK)


def search_recovered(client: OpenSearch, index: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Search an index; right after the start of its server, once it is recovered.

    Raises:
        ClusterError: it lacks shards, and none is being recovered.
    """
    try:
        return dict(client.search(index=index, body=body))
    except exceptions.TransportError as error:
        if error.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        if missing := await_recovery(client, index):
            raise ClusterError(missing_shards(missing)) from error
    return dict(client.search(index=index, body=body))


def missing_shards(indices: Sequence[str]) -> str:
    """Say of indices that lack shards what that means, and what to do."""
    return (
        f"No node has all shards of {join_words(indices)}, and none is being recovered; GET "
        "/_cluster/allocation/explain says why. All other indices work; `langshift index drop NAME` removes an index."
    )


def make_client(
    settings: Settings, url: str, *, retries: int = 2, serializer: JSONSerializer | None = None
) -> OpenSearch:
    """A client for ``url`` with the settings' credentials; nothing is sent yet.

    Args:
        settings: the credentials.
        url: the cluster's address.
        retries: how often the client tries again by itself.
        serializer: reads answers; None for as JSON.

    Raises:
        UsageError: ``OPENSEARCH_CA_FILE`` holds no certificate.
        LangshiftError: requests are to be signed, but the extra or the credentials are missing.
    """
    return OpenSearch(
        transport_class=CheckedTransport,
        connection_class=_Connection,
        http_auth=Urllib3AWSV4SignerAuth(credentials(), *settings.signing) if settings.signing else None,
        serializer=serializer or Json(),
        **arguments(settings, url, retries=retries),
    )


def arguments(settings: Settings, url: str, *, retries: int = 2) -> dict[str, Any]:
    """What every kind of client is opened with.

    Raises:
        UsageError: ``OPENSEARCH_CA_FILE`` holds no certificate.
    """
    if settings.ca_file:
        try:
            ssl.create_default_context(cafile=settings.ca_file)
        except OSError as error:
            raise UsageError(
                f"OPENSEARCH_CA_FILE is set to {settings.ca_file}, which contains no valid certificate in PEM format."
            ) from error
    # Basic authentication in UTF-8, as OpenSearch reads it; the client library would send Latin-1.
    basic = None if settings.username is None else register_secret(settings.username, settings.password)
    return {
        "hosts": [url],
        "headers": {"authorization": f"Basic {basic}"} if basic else {},
        "verify_certs": settings.ssl_verify,
        "ca_certs": str(settings.ca_file) if settings.ca_file else None,
        "ssl_show_warn": False,
        "timeout": settings.timeout,
        "max_retries": retries,
        "retry_on_timeout": False,
        "retry_on_status": (429, 502, 503, 504),
        "pool_maxsize": 16,
    }


def cluster_version(client: OpenSearch) -> str | None:
    """The cluster's version, such as ``"3.6.0"``, or None where the user may not ask for it.

    Raises:
        ClusterError: what answers is not an OpenSearch.
    """
    try:
        info = client.info()
    except (WrongAnswer, exceptions.NotFoundError) as error:
        raise ClusterError(f"The server at {address(client)} is not an OpenSearch; check OPENSEARCH_URL.") from error
    except exceptions.AuthorizationException as error:
        # Many who may search may ask nothing else. Whatever says this has OpenSearch's security plugin.
        if not server_errors.lacks_permission(error):
            raise
        return None
    found, number = info["version"], str(info["version"]["number"])
    if found.get("distribution") != "opensearch":
        says = f"is not an OpenSearch (it reports version {number})"
        raise ClusterError(f"The server at {address(client)} {says}; check OPENSEARCH_URL.")
    return number


def check_version(client: OpenSearch, number: str | None) -> None:
    """Raise a ClusterError for a version that is too old; None (unknown) passes."""
    if number is not None and version_tuple(number) < OLDEST_VERSION:
        raise ClusterError(
            f"The cluster at {address(client)} runs OpenSearch {number}, "
            f"but langshift needs {OLDEST_VERSION[0]}.{OLDEST_VERSION[1]} or later."
        )


def check_plugins(client: OpenSearch, number: str | None, names: set[str] | None) -> None:
    """Raise a ClusterError where the k-NN plugin is missing; None (unknown) passes."""
    if names is not None and REQUIRED_PLUGIN not in names:
        raise ClusterError(
            f"The cluster at {address(client)} has no k-NN plugin: run bin/opensearch-plugin install "
            f"org.opensearch.plugin:{REQUIRED_PLUGIN}:{number or 'VERSION'}.0 on every node and restart it."
        )


def plugins(client: OpenSearch) -> set[str] | None:
    """Names of the plugins that every node has, or None where the user may not list them."""
    try:
        rows = client.cat.plugins(format="json", h="name,component")
    except exceptions.AuthorizationException:
        return None
    by_node: dict[str, set[str]] = {}
    for row in rows:
        by_node.setdefault(row["name"], set()).add(row["component"])
    return set.intersection(*by_node.values()) if by_node else set()


def version_tuple(number: str) -> tuple[int, ...]:
    """``"3.6.0"`` as ``(3, 6, 0)``; what is no number counts as 0."""
    return tuple(int(part) if part.isdigit() else 0 for part in number.split("-")[0].split("."))


def address(client: OpenSearch) -> str:
    """The address that the client talks to, without credentials."""
    return host_address(client.transport.hosts[0])


def make_async_client(settings: Settings, url: str) -> AsyncOpenSearch:
    """An asynchronous client for ``url`` with the settings' credentials; nothing is sent yet.

    Args:
        settings: the credentials.
        url: the cluster's address.

    Raises:
        UsageError: ``OPENSEARCH_CA_FILE`` holds no certificate.
        LangshiftError: an extra is missing, or the credentials to sign with.
    """
    require_extra(*ASYNC_EXTRA)
    import aiohttp
    from opensearchpy import AsyncHttpConnection, AsyncOpenSearch, AWSV4SignerAsyncAuth

    class AsyncConnection(AsyncHttpConnection):
        """As ``_Connection``; and tells trouble with TLS from a cluster that cannot be reached."""

        async def _create_aiohttp_session(self) -> None:
            await super()._create_aiohttp_session()
            self.session = _Unredirected(self, self.session)

        async def perform_request(self, *request: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
            try:
                return await super().perform_request(*request, **named)
            except exceptions.ConnectionError as error:
                if isinstance(error.info, Redirected):
                    raise error.info from error
                if isinstance(error.info, aiohttp.ClientSSLError | aiohttp.ClientConnectorCertificateError):
                    raise exceptions.SSLError("N/A", str(error.info), error.info) from error
                raise

        def _raise_error(self, status_code: int, raw_data: str | bytes, content_type: str | None = None) -> None:
            redacted = redacted_text(raw_data)
            # The library does not say what kind of words they are, and so would not read them.
            super()._raise_error(
                status_code, redacted, content_type or ("application/json" if redacted[:1] == "{" else None)
            )

    class Signer(AWSV4SignerAsyncAuth):
        """Tells credentials that cannot be renewed as the other client does."""

        def __call__(self, *request: Any, **named: Any) -> dict[str, str]:  # noqa: ANN401 - the library's
            try:
                return super().__call__(*request, **named)
            except Exception as error:
                raise exceptions.ConnectionError("N/A", str(error), error) from error

    return AsyncOpenSearch(
        transport_class=async_transport(),
        connection_class=AsyncConnection,
        http_auth=Signer(credentials(), *settings.signing) if settings.signing else None,
        serializer=Json(),
        **arguments(settings, url),
    )


class _Unredirected:
    """An aiohttp session as the client library uses it, which would follow redirects by itself."""

    def __init__(self, connection: Connection, session: Any) -> None:  # noqa: ANN401 - aiohttp's
        self._connection, self._session = connection, session

    @asynccontextmanager
    async def request(self, *request: Any, **named: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - aiohttp's
        """Send a request."""
        async with self._session.request(*request, allow_redirects=False, **named) as response:
            if location := response.headers.get("location"):
                require_no_redirect(self._connection, response.status, location)
            yield response

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()
