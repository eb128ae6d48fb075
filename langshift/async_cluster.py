"""The asynchronous client of a cluster, for services: opened as the other one is, with the same errors."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from opensearchpy.exceptions import ConnectionError as UnreachableError
from opensearchpy.exceptions import NotFoundError, SSLError

from langshift.cluster import Json, arguments, hidden
from langshift.errors import LangshiftError
from langshift.missing_index import NO_ANSWER, PAUSE, TRIES, leaves_out, named, not_known_yet, question
from langshift.settings import Settings
from langshift.signing import credentials

if TYPE_CHECKING:
    from opensearchpy import AsyncOpenSearch, AsyncTransport


def make_async_client(settings: Settings, url: str) -> AsyncOpenSearch:
    """An asynchronous client for ``url`` with the settings' credentials; nothing is sent yet.

    Args:
        settings: the credentials.
        url: the cluster's address.

    Raises:
        UsageError: ``OPENSEARCH_CA_FILE`` holds no certificate.
        LangshiftError: an extra is missing, or the credentials to sign with.
    """
    require_extra()
    import aiohttp
    from opensearchpy import AsyncHttpConnection, AsyncOpenSearch, AWSV4SignerAsyncAuth

    class Connection(AsyncHttpConnection):
        """Keeps passwords out of exceptions, and tells trouble with TLS from a cluster that cannot be reached."""

        async def perform_request(
            self,
            method: str,
            url: str,
            params: Mapping[str, Any] | None = None,
            body: bytes | None = None,
            timeout: float | None = None,
            ignore: Collection[int] = (),
            headers: Mapping[str, str] | None = None,
        ) -> Any:  # noqa: ANN401 - the library's
            try:
                return await super().perform_request(method, url, params, body, timeout, ignore, headers)
            except UnreachableError as error:
                if isinstance(error.info, aiohttp.ClientSSLError | aiohttp.ClientConnectorCertificateError):
                    raise SSLError("N/A", str(error.info), error.info) from error
                raise

        def _raise_error(self, status_code: int, raw_data: str | bytes, content_type: str | None = None) -> None:
            told = hidden(raw_data)
            # The library does not say what kind of words they are, and so would not read them.
            super()._raise_error(status_code, told, content_type or ("application/json" if told[:1] == "{" else None))

    class Signer(AWSV4SignerAsyncAuth):
        """Tells credentials that cannot be renewed as the other client does."""

        def __call__(
            self, method: str, url: str, body: str | bytes | None = None, headers: dict[str, str] | None = None
        ) -> dict[str, str]:
            try:
                return super().__call__(method, url, body, headers)
            except Exception as error:
                raise UnreachableError("N/A", str(error), error) from error

    signing = settings.signing
    return AsyncOpenSearch(
        transport_class=_sure_transport(),
        connection_class=Connection,
        http_auth=Signer(credentials(), signing.region, signing.service) if signing else None,
        serializer=Json(),
        **arguments(settings, url),
    )


def _sure_transport() -> type[AsyncTransport]:
    from opensearchpy import AsyncTransport

    class SureTransport(AsyncTransport):
        """Lets a 404 for an index through only where the index is gone, as the other client does."""

        async def perform_request(
            self,
            method: str,
            url: str,
            params: Mapping[str, Any] | None = None,
            body: Any = None,  # noqa: ANN401 - the library's
            timeout: float | None = None,
            ignore: Collection[int] = (),
            headers: Mapping[str, str] | None = None,
        ) -> Any:  # noqa: ANN401 - the library's
            for _ in range(TRIES):
                try:
                    given = params and dict(params)
                    return await super().perform_request(method, url, given, body, timeout, ignore, headers)
                except NotFoundError as error:
                    index = named(error)
                    if index is None or await self._is_gone(index):
                        raise
                    unknown = not_known_yet(index)
                await asyncio.sleep(PAUSE)
            raise unknown

        async def _is_gone(self, index: str) -> bool:
            try:
                return leaves_out(await super().perform_request(*question(index)), index)
            except NO_ANSWER:
                return True

    return SureTransport


def require_extra() -> None:
    """Say what to install where there is no asynchronous client.

    Raises:
        LangshiftError: the extra is missing.
    """
    if importlib.util.find_spec("aiohttp") is None:
        raise LangshiftError("Searching asynchronously needs an extra: pip install 'langshift[async]'.")
