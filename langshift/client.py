"""Opening a cluster: clients made from the settings, and what a cluster must be for langshift to work with it."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

import orjson
from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth, Urllib3HttpConnection, exceptions
from opensearchpy.serializer import JSONSerializer

from langshift import server_errors
from langshift.credentials import credentials, redact, register_secret
from langshift.errors import ClusterError, UsageError, require_extra
from langshift.files import replace_halves
from langshift.settings import Settings, in_address

if TYPE_CHECKING:
    from opensearchpy import AsyncOpenSearch, AsyncTransport


class Json(JSONSerializer):
    """Reads answers several times as fast as the client library does, which tells where they hold many vectors."""

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
    """Keeps passwords out of exceptions, and with that out of messages, logs and tracebacks."""

    def _raise_error(self, status_code: int, raw_data: str | bytes, content_type: str | None = None) -> None:
        super()._raise_error(status_code, redacted_text(raw_data), content_type)


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
    try:
        number = cluster_version(once)
        check_version(once, number)
        check_plugins(once, number, plugins(once))
    except exceptions.OpenSearchException as error:
        raise server_errors.failure(error, address(once), anonymous=settings.username is None) from error
    finally:
        once.close()
    return make_client(settings, url)


def embedded_url(settings: Settings) -> str:
    """The address of the embedded OpenSearch, of several nodes the first that serves; started when needed."""
    from langshift import embedded

    return embedded.any_node(settings.home).url


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
        transport_class=server_errors.NotFoundRetryTransport,
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
        "pool_maxsize": 16,
    }


def cluster_version(client: OpenSearch) -> str | None:
    """The cluster's version, such as ``"3.6.0"``, or None where the user may not ask for it.

    Raises:
        ClusterError: what answers is not an OpenSearch.
    """
    try:
        info = client.info()
    except (exceptions.SerializationError, exceptions.NotFoundError):
        info = None
    except exceptions.AuthorizationException as error:
        # Many who may search may ask nothing else. Whatever says this has OpenSearch's security plugin.
        if not server_errors.lacks_permission(error):
            raise
        return None
    found = info.get("version") if isinstance(info, dict) else None
    found = found if isinstance(found, dict) else {}
    number = str(found.get("number", ""))
    if found.get("distribution") != "opensearch":
        says = f" (it reports version {number})" if number else ""
        raise ClusterError(f"The server at {address(client)} is not an OpenSearch{says}; check OPENSEARCH_URL.")
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
    host: dict[str, Any] = client.transport.hosts[0]
    scheme = "https" if host.get("use_ssl") or host.get("scheme") == "https" else "http"
    prefix = f"/{host['url_prefix'].strip('/')}" if host.get("url_prefix") else ""
    return f"{scheme}://{in_address(host['host'])}:{host.get('port', 9200)}{prefix}"


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

    class Connection(AsyncHttpConnection):
        """Keeps passwords out of exceptions, and tells trouble with TLS from a cluster that cannot be reached."""

        async def perform_request(self, *request: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
            try:
                return await super().perform_request(*request, **named)
            except exceptions.ConnectionError as error:
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
        transport_class=_retry_transport(),
        connection_class=Connection,
        http_auth=Signer(credentials(), *settings.signing) if settings.signing else None,
        serializer=Json(),
        **arguments(settings, url),
    )


def _retry_transport() -> type[AsyncTransport]:
    from opensearchpy import AsyncTransport

    class RetryTransport(AsyncTransport):
        """Lets a 404 for an index through only where the index is gone, as the other client does."""

        async def perform_request(self, method: str, url: str, params: Any = None, *rest: Any, **named: Any) -> Any:  # noqa: ANN401 - the library's
            for _ in range(server_errors.TRIES):
                try:
                    return await super().perform_request(method, url, params and dict(params), *rest, **named)
                except exceptions.NotFoundError as error:
                    index = server_errors.missing_index_name(error)
                    if index is None or await self._is_gone(index):
                        raise
                    unknown = server_errors.not_known_yet(index)
                await asyncio.sleep(server_errors.PAUSE)
            raise unknown

        async def _is_gone(self, index: str) -> bool:
            try:
                answer = await super().perform_request(*server_errors.index_exists_request(index))
                return server_errors.leaves_out(answer, index)
            except server_errors.NO_ANSWER:
                return True

    return RetryTransport
