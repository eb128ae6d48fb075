"""The command doctor: what is installed and reachable, and what to do about what is not."""

from __future__ import annotations

import sys
from ipaddress import ip_address
from urllib.parse import urlsplit

import click

from langshift.commands import cluster_findings, findings
from langshift.commands.findings import Finding
from langshift.commands.langshift_options import JSON
from langshift.console import emit_json, out, table
from langshift.errors import UsageError
from langshift.settings import Settings


@click.command()
@JSON
def doctor(as_json: bool) -> None:
    """Say what is installed and reachable, and what to do about what is not.

    Nothing is started or changed. Exit code 0 if everything needed is there, else 1.

    \b
    Example:
      langshift doctor
    """
    report = examine()
    fine = all(finding.status != "missing" for finding in report)
    if as_json:
        emit_json({"ok": fine, "findings": [finding._asdict() for finding in report]})
    else:
        rows = [[f.section, f.name, f.status, f"{f.value}\n{f.remedy}".strip()] for f in report]
        table(None, ["part", "what", "status", "found"], rows)
        out.print("Everything needed is there." if fine else "Something needed is missing.")
    sys.exit(0 if fine else 1)


def examine() -> list[Finding]:
    """Look at everything; what cannot be looked at is a finding too."""
    report = findings.installed()
    try:
        settings = Settings.from_env()
    except UsageError as error:
        return [*report, Finding("settings", "environment", "missing", "not usable", str(error))]
    report += findings.embedded(settings)
    report += in_force(settings)
    return report + list(cluster_findings.ask(settings))


def in_force(settings: Settings) -> list[Finding]:
    """The settings as they are; a password is never shown."""
    address = settings.url or "not set: the embedded OpenSearch is used"
    seconds = f"{settings.timeout:g} s for one request"
    signing = settings.signing
    return [
        Finding("settings", "OPENSEARCH_URL", "ok", address),
        Finding("settings", "OPENSEARCH_USERNAME", "ok", settings.username or "not set"),
        _password(settings),
        _verification(settings),
        Finding("settings", "OPENSEARCH_CA_FILE", "ok", str(settings.ca_file or "not set")),
        Finding("settings", "OPENSEARCH_TIMEOUT", "ok", seconds),
        Finding("settings", "OPENSEARCH_AWS_REGION", "ok", signing.region if signing else "not set: no signing"),
        Finding("settings", "OPENSEARCH_AWS_SERVICE", "ok", signing.service if signing else "not set"),
    ]


def _password(settings: Settings) -> Finding:
    name, value = "OPENSEARCH_PASSWORD", "set" if settings.password else "not set"
    remedy = ""
    if settings.password and settings.signing:
        remedy = "Unset OPENSEARCH_PASSWORD: requests are signed, and it is not sent."
    elif settings.password and not settings.username:
        remedy = "Set OPENSEARCH_USERNAME too: without it the password is not sent."
    elif settings.username and not settings.password:
        remedy = "Set OPENSEARCH_PASSWORD too: an empty one is sent."
    elif settings.password and not _on_this_machine(settings.url):
        if urlsplit(settings.url or "").scheme == "http":
            remedy = "Use an https address: over http anybody on the way can read the password."
        elif not settings.ssl_verify:
            remedy = "Check certificates (OPENSEARCH_CA_FILE), or somebody on the way can read the password."
    return Finding("settings", name, "warning" if remedy else "ok", value, remedy)


def _verification(settings: Settings) -> Finding:
    used = "on" if settings.ssl_verify else "off"
    if urlsplit(settings.url or "http").scheme != "https":
        used += " (no TLS at an http address)" if settings.url else " (no TLS for the embedded OpenSearch)"
    return Finding("settings", "OPENSEARCH_SSL_VERIFY", "ok", used)


def _on_this_machine(url: str | None) -> bool:
    host = urlsplit(url or "http://localhost").hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
