"""Settings from the environment: which cluster, and where langshift keeps its files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

import platformdirs

from langshift.errors import UsageError
from langshift.files import PASSABLE, PRIVATE, ensure_folder, is_text

VERSION = version("langshift")
_NAMES = ("URL", "USERNAME", "PASSWORD", "SSL_VERIFY", "CA_FILE", "TIMEOUT", "AWS_REGION", "AWS_SERVICE")
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


class Signing(NamedTuple):
    """What requests are signed for.

    Attributes:
        region: region of AWS, such as ``"eu-central-1"``.
        service: ``"es"``, or ``"aoss"`` for OpenSearch Serverless.
    """

    region: str
    service: str


@dataclass(frozen=True)
class Settings:
    """Where the cluster is and how to open it.

    Attributes:
        url: address of the cluster without credentials; None means the embedded OpenSearch.
        username: user name, or None.
        password: password, or None; never part of ``repr``.
        ssl_verify: whether the server's certificate is checked.
        ca_file: certificate authority that signs the server's certificate, or None.
        timeout: seconds that one request may take.
        home: folder of the embedded OpenSearch and of what was downloaded for it.
        signing: what requests are signed for; None means that they are not signed.
    """

    url: str | None
    username: str | None
    password: str | None = field(repr=False)
    ssl_verify: bool
    ca_file: Path | None
    timeout: float
    home: Path
    signing: Signing | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Read the ``OPENSEARCH_*`` variables and ``LANGSHIFT_HOME``.

        Raises:
            UsageError: a variable whose value cannot be used, named with what it may hold.
        """
        env = os.environ if env is None else env
        for name in (*(f"OPENSEARCH_{name}" for name in _NAMES), "LANGSHIFT_HOME"):
            if not is_text(env.get(name, "")):
                raise UsageError(f"{name} contains bytes that are not valid UTF-8.")
        ca_file = env.get("OPENSEARCH_CA_FILE")
        settings = cls(
            url=None,
            username=env.get("OPENSEARCH_USERNAME") or None,
            password=env.get("OPENSEARCH_PASSWORD") or None,
            ssl_verify=_flag(env, "OPENSEARCH_SSL_VERIFY"),
            ca_file=Path(ca_file) if ca_file else None,
            timeout=_seconds(env, "OPENSEARCH_TIMEOUT"),
            home=_home(env),
            signing=_signing(env),
        )
        if settings.ca_file is not None and not settings.ca_file.is_file():
            raise UsageError(f"OPENSEARCH_CA_FILE is set to {settings.ca_file}, which is not a file.")
        if url := env.get("OPENSEARCH_URL"):
            settings = settings._with_url(url)
        if settings.signing is not None and settings.url is None:
            raise UsageError(
                "OPENSEARCH_AWS_REGION is set without OPENSEARCH_URL: set it to the address of the domain in AWS, "
                "or unset OPENSEARCH_AWS_REGION."
            )
        if settings.signing is not None and settings.username is not None:
            raise UsageError(
                "OPENSEARCH_AWS_REGION and a user name (OPENSEARCH_USERNAME, or in OPENSEARCH_URL) cannot be combined: "
                "unset the one that the cluster does not use."
            )
        return settings

    def _with_url(self, url: str) -> Settings:
        """Take credentials out of the address, so that printing it never shows them."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
            if any(character.isspace() for character in parts.netloc):
                raise ValueError(url)
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        if parts.scheme not in ("http", "https") or not host:
            raise UsageError(
                "OPENSEARCH_URL is not an address: it must look like https://host:9200 "
                "(http or https, a host, and a port unless it is the default)."
            )
        netloc = in_address(host) + ("" if port is None else f":{port}")
        return replace(
            self,
            url=urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", "")),
            username=unquote(parts.username) if parts.username else self.username,
            password=unquote(parts.password) if parts.password else self.password,
        )


def in_address(host: str) -> str:
    """A host as an address has it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def on_this_machine(host: str) -> bool:
    """Whether a host, such as ``localhost`` or ``[::1]``, is the machine itself, whatever its own name may be."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _flag(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "").strip().lower() or "true"
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise UsageError(f"{name} is {env[name]!r}, but it must be true or false.")


def _seconds(env: Mapping[str, str], name: str) -> float:
    text = env.get(name, "").strip() or "30"
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"{name} is {text!r}, but it must be a number of seconds above 0.")
    return seconds


def _signing(env: Mapping[str, str]) -> Signing | None:
    region, service = (env.get(f"OPENSEARCH_AWS_{name}", "").strip() for name in ("REGION", "SERVICE"))
    if service and service not in ("es", "aoss"):
        raise UsageError(f"OPENSEARCH_AWS_SERVICE is {service!r}, but it must be es, or aoss for Serverless.")
    if not region:
        if service:
            raise UsageError("OPENSEARCH_AWS_SERVICE is set without OPENSEARCH_AWS_REGION: set both, or neither.")
        return None
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", region):
        raise UsageError(f"OPENSEARCH_AWS_REGION is {region!r}, but it must be a region such as eu-central-1.")
    return Signing(region, service or "es")


def ensure_home(home: Path) -> None:
    """Make langshift's folder where it is missing, for the owner alone; root's is passable, as ``_home`` explains.

    Raises:
        OSError: it cannot be made.
    """
    as_root = sys.platform != "win32" and os.geteuid() == 0
    ensure_folder(home, PASSABLE if as_root else PRIVATE)


def _home(env: Mapping[str, str]) -> Path:
    """The folder for langshift's files, absolute.

    OpenSearch refuses to run as root and is then started as another user, who cannot reach
    root's own home: root's default is a folder of the system.
    """
    given = env.get("LANGSHIFT_HOME")
    if given:
        return Path(given).expanduser().absolute()
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/langshift")
    return Path(platformdirs.user_data_dir("langshift", appauthor=False))
