"""A real OpenSearch with the security plugin: TLS, users, roles; the plugin is compiled from its sources."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import trustme
import urllib3
from cryptography.x509 import load_pem_x509_certificate
from opensearchpy import OpenSearch
from tls_proxy import Authority

from langshift.client import make_client
from langshift.embedded.cluster import launch, log_end, prepared, terminate
from langshift.embedded.java import choose_java
from langshift.embedded.node import COMMON, ServerHome
from langshift.embedded.state import is_alive
from langshift.settings import Settings

ROOT = Path(__file__).parents[2]
#: The compiled plugin and its configuration; beside the project, as it is no part of it.
BUILT = ROOT.parent / "shared" / "servers" / "security-3.6.0"
DOCUMENT = ROOT / "docs" / "reference" / "permissions.md"
#: Every user's.
PASSWORD = "grün:s3cret/@%ß猫"
START_SECONDS = 300
SECURITY = "_plugins/_security"
# Every permission that a request is granted is written to the log.
_AUDIT = """
_meta: {type: audit, config_version: 2}
config:
  enabled: true
  audit:
    {enable_rest: false, enable_transport: true, disabled_rest_categories: [], disabled_transport_categories: [],
     log_request_body: false, resolve_bulk_requests: false, resolve_indices: false, ignore_users: [],
     ignore_requests: []}
  compliance: {enabled: false}
"""


class SecuredCluster:
    """One node with the security plugin.

    Attributes:
        url: its address.
        authority: who signed its certificate.

    Args:
        home: a langshift home, of which it takes the distribution and the plugins, and in which its files are.
        folder: where certificates are written.
        quick_java: within its context servers start that live for the tests only.
    """

    def __init__(self, home: Path, folder: Path, quick_java: Callable[[], AbstractContextManager[None]]) -> None:
        self.authority, self._numbers = Authority.made(folder), itertools.count()
        place = ServerHome.of(home)
        shutil.copytree(BUILT / "opensearch-security", place.node.installed / "opensearch-security")
        self._node, self._administrator = place.node, self.authority.ca.issue_cert("admin", common_name="admin")
        node = self.authority.ca.issue_cert("localhost", "127.0.0.1", common_name="node")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"https://localhost:{port}"
        distribution, java = prepared(place), choose_java(place.account)
        self._node.lay_out(distribution, self._settings(port, node), place.account)
        # Of plugins that look at every request there may be one.
        (self._node.folder / "plugins" / "langshift-guard").unlink()
        config = self._node.config
        shutil.copytree(BUILT / "config", config / "opensearch-security")
        audit = config / "opensearch-security" / "audit.yml"
        audit.write_text(_AUDIT, encoding="utf-8")
        node.private_key_pem.write_to_path(config / "node.key")
        (config / "node.pem").write_bytes(b"".join(one.bytes() for one in node.cert_chain_pems))
        self.authority.ca.cert_pem.write_to_path(config / "ca.pem")
        if place.account is not None:
            for path in (config, *config.rglob("*")):
                place.account.own(path)
        certificate = folder / "admin.pem"
        self._administrator.private_key_and_cert_chain_pem.write_to_path(certificate)
        self._http = urllib3.PoolManager(ca_certs=str(self.authority.file), cert_file=str(certificate))
        with quick_java():
            self._process: psutil.Process = launch(self._node, java, place.account)
        self._wait()
        # The role that the plugin gives to everybody has permissions on the cluster.
        self.ask("PUT", f"{SECURITY}/api/rolesmapping/own_index", {"users": []})
        self.set_user("administrator", ["all_access"])

    def stop(self) -> None:
        """Stop the node."""
        terminate(self._process)

    def user_of(self, role: Mapping[str, Any]) -> str:
        """The name of a new user who may do what a role says."""
        name = f"user-{next(self._numbers)}"
        self.set_role(name, role)
        return name

    def used(self, user: str) -> set[str]:
        """The permissions that a user's requests have needed and had."""
        wanted = f'"audit_request_effective_user":"{user}"'
        lines = (line for line in self._node.log.read_text(encoding="utf-8").splitlines() if wanted in line)
        noted = (json.loads(line[line.index("{") :]) for line in lines)
        return {one["audit_request_privilege"] for one in noted if one["audit_category"] == "GRANTED_PRIVILEGES"}

    def set_role(self, name: str, body: Mapping[str, Any]) -> None:
        """Make or change a role, and a user of the same name who has it and no other."""
        self.ask("PUT", f"{SECURITY}/api/roles/{name}", body)
        self.set_user(name, [name])

    def set_user(self, name: str, roles: Sequence[str]) -> None:
        """Make or change a user with these roles."""
        body = {"password": PASSWORD, "opendistro_security_roles": list(roles)}
        self.ask("PUT", f"{SECURITY}/api/internalusers/{name}", body)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What the cluster answers the administrator, who may do all.

        Raises:
            AssertionError: it refuses.
        """
        content = None if body is None else json.dumps(body)
        answer = self._http.request(
            method, f"{self.url}/{path}", body=content, headers={"Content-Type": "application/json"}, retries=False
        )
        assert answer.status < 300, answer.data.decode()
        return json.loads(answer.data)

    def environment(self, user: str) -> dict[str, str]:
        """The settings of a user."""
        return {
            "OPENSEARCH_URL": self.url,
            "OPENSEARCH_USERNAME": user,
            "OPENSEARCH_PASSWORD": PASSWORD,
            "OPENSEARCH_CA_FILE": str(self.authority.file),
        }

    @contextmanager
    def settings_of(self, user: str) -> Iterator[None]:
        """Within it commands of this process are that user's."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment(user).items():
                patch.setenv(name, value)
            yield

    def client(self, user: str) -> OpenSearch:
        """A client of a user."""
        return make_client(Settings.from_env(self.environment(user)), self.url)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            assert is_alive(self._process), log_end(self._node)
            assert time.monotonic() < deadline, log_end(self._node)
            try:
                self.ask("GET", f"{SECURITY}/authinfo")
            except (AssertionError, urllib3.exceptions.HTTPError):
                time.sleep(0.5)
            else:
                return

    def _settings(self, port: int, node: trustme.LeafCert) -> dict[str, Any]:
        ssl = "plugins.security.ssl"
        pem = {"pemcert_filepath": "node.pem", "pemkey_filepath": "node.key", "pemtrustedcas_filepath": "ca.pem"}
        return {
            **COMMON,
            "cluster.name": "secured",
            "node.name": "secured",
            "discovery.type": "single-node",
            "http.port": port,
            **{f"{ssl}.{layer}.{name}": file for layer in ("transport", "http") for name, file in pem.items()},
            f"{ssl}.transport.enforce_hostname_verification": False,
            f"{ssl}.http.enabled": True,
            f"{ssl}.http.clientauth_mode": "OPTIONAL",
            "plugins.security.allow_default_init_securityindex": True,
            "plugins.security.authcz.admin_dn": [_name(self._administrator)],
            "plugins.security.nodes_dn": [_name(node)],
            "plugins.security.audit.type": "log4j",
            "plugins.security.audit.config.log4j.level": "INFO",
            "plugins.security.system_indices.enabled": True,
        }


def _name(certificate: trustme.LeafCert) -> str:
    """Whom a certificate is of, as the plugin's settings write it."""
    return load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes()).subject.rfc4514_string()


def everything_but(*permissions: str) -> dict[str, Any]:
    """A role that may do all but this."""
    lacking = "|".join(re.escape(one).replace("/", r"\/") for one in permissions)
    allowed = [f"/^(?!(?:{lacking})$).*$/" if lacking else "*"]
    return {
        "cluster_permissions": allowed,
        "index_permissions": [{"index_patterns": ["*"], "allowed_actions": allowed}],
    }


def documented_roles(name: str) -> dict[str, dict[str, Any]]:
    """The roles of the documentation, for another index: searching, loading, everything, and listing."""
    text = DOCUMENT.read_text(encoding="utf-8")
    blocks = [
        json.loads(block.replace('"old-news"', f'"{name}-old"').replace('"news', f'"{name}'))
        for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    ]
    roles = dict(zip(("searching", "loading", "everything"), blocks, strict=True))
    every = json.loads(re.search(r"^`({.*})`$", text, re.MULTILINE)[1])
    searching = roles["searching"]
    return {**roles, "listing": {**searching, "index_permissions": [*searching["index_permissions"], every]}}
