"""The files of OpenSearch: named by the lock file, downloaded, verified, and put together."""

import hashlib
import json
import logging
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import requests
from jgo.maven import MavenContext, PythonResolver

from langshift import reporting
from langshift.embedded.java import JAVA, compile_java
from langshift.errors import LangshiftError
from langshift.files import content_hash, link_or_copy

#: Our plugin, which refuses what web pages send to the embedded server.
GUARD = "langshift-guard"
GUARD_CLASS = "org.langshift.guard.GuardPlugin"
_GUARD_SOURCE = "GuardPlugin.java"


@dataclass(frozen=True)
class Artifact:
    """One file of the distribution.

    Attributes:
        coordinate: ``group:artifact:version``.
        packaging: ``jar``, or ``zip`` for a plugin that is unpacked.
        sha256: of the file, in hexadecimal.
        size: of the file, in bytes.
        folders: where it belongs, relative to the distribution; nowhere for the compiler of our own plugin.
    """

    coordinate: str
    packaging: str
    sha256: str
    size: int
    folders: tuple[str, ...]

    @property
    def filename(self) -> str:
        """Name of the file in ``lib/`` or in a module."""
        _, name, version = self.coordinate.split(":")
        return f"{name}-{version}.{self.packaging}"


@dataclass(frozen=True)
class ArtifactLock:
    """The lock file's content.

    Attributes:
        version: OpenSearch's version.
        artifacts: every file.
        digest: sha256 of the lock file and of our own plugin's source; a distribution carries it as its mark.
    """

    version: str
    artifacts: tuple[Artifact, ...]
    digest: str


@cache
def read_lock() -> ArtifactLock:
    """Read the lock file of the embedded OpenSearch."""
    return parse_lock((files("langshift.embedded") / "opensearch.lock.json").read_bytes())


def other_locks() -> list[ArtifactLock]:
    """The lock files of the other versions that our plugin is compiled against, the lowest first.

    They name what of their jars its sources need.
    """
    folder = Path(str(files("langshift.embedded")))
    return [parse_lock(file.read_bytes()) for file in sorted(folder.glob("opensearch-*.lock.json"))]


def parse_lock(data: bytes) -> ArtifactLock:
    """Read a lock file, as tools/lock_opensearch.py writes them."""
    document = json.loads(data)
    artifacts = tuple(Artifact(**{**entry, "folders": tuple(entry["folders"])}) for entry in document["artifacts"])
    return ArtifactLock(document["version"], artifacts, hashlib.sha256(data + guard_source()).hexdigest())


def matches(artifact: Artifact, file: Path) -> bool:
    """Whether the file is, byte for byte, the one that the lock file names."""
    return file.stat().st_size == artifact.size and content_hash(file) == artifact.sha256


MARK = "langshift.lock"
PLUGINS = "plugins"
PARTS = ("lib", "modules", PLUGINS, "agent")

# Module -> its plugin class and the module that it extends: the published jars do not carry these.
MODULES = {
    "analysis-common": ("org.opensearch.analysis.common.CommonAnalysisModulePlugin", "lang-painless"),
    "ingest-common": ("org.opensearch.ingest.common.IngestCommonModulePlugin", "lang-painless"),
    "lang-painless": ("org.opensearch.painless.PainlessModulePlugin", ""),
    "mapper-extras": ("org.opensearch.index.mapper.MapperExtrasModulePlugin", ""),
    "reindex": ("org.opensearch.index.reindex.ReindexModulePlugin", ""),
    "search-pipeline-common": ("org.opensearch.search.pipeline.common.SearchPipelineCommonModulePlugin", ""),
    "transport-grpc": ("org.opensearch.transport.grpc.GrpcPlugin", ""),
    "transport-netty4": ("org.opensearch.transport.Netty4ModulePlugin", ""),
}


def descriptor(module: str, version: str) -> str:
    """Return the ``plugin-descriptor.properties`` of a module."""
    classname, extends = MODULES[module]
    return _properties(version, module, f"OpenSearch module {module}", classname, extends)


def _properties(version: str, name: str, description: str, classname: str, extends: str = "") -> str:
    lines = {
        "name": name,
        "description": description,
        "version": version,
        "opensearch.version": version,
        "java.version": JAVA,
        "classname": classname,
        "extended.plugins": extends,
        "has.native.controller": "false",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def is_assembled(lock: ArtifactLock, folder: Path) -> bool:
    """Whether ``folder`` holds the distribution that this lock file describes."""
    mark = folder / MARK
    return mark.is_file() and mark.read_text(encoding="utf-8") == lock.digest


def assemble(lock: ArtifactLock, downloads: Mapping[Artifact, Path], folder: Path) -> None:
    """Build the distribution beside ``folder`` and put it in place whole.

    Args:
        lock: the lock file.
        downloads: the checked file of each artifact.
        folder: where the distribution belongs; another lock file's one is replaced.
    """
    for left in folder.parent.glob(f".{folder.name}.*"):  # by one that was killed
        shutil.rmtree(left)
    building = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _fill(lock, downloads, building)
        # Readable by everyone, whatever the umask: root starts the server as another user.
        for path in (building, *building.rglob("*")):
            wanted = 0o755 if path.is_dir() else 0o644
            if path.stat().st_mode & 0o777 != wanted:
                path.chmod(wanted)
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
        building.replace(folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _fill(lock: ArtifactLock, downloads: Mapping[Artifact, Path], target: Path) -> None:
    for artifact in lock.artifacts:
        for name in artifact.folders:
            folder = target / name
            folder.mkdir(parents=True, exist_ok=True)
            if artifact.packaging == "zip":
                with zipfile.ZipFile(downloads[artifact]) as archive:
                    archive.extractall(folder)
            else:
                link_or_copy(downloads[artifact], folder / artifact.filename)
    for module in MODULES:
        text = descriptor(module, lock.version)
        (target / "modules" / module / "plugin-descriptor.properties").write_text(text, encoding="utf-8")
    # Without it the agent forbids the sockets over which several nodes find each other.
    policy = (files("langshift.embedded") / "assets" / "transport-netty4.policy").read_bytes()
    (target / "modules" / "transport-netty4" / "plugin-security.policy").write_bytes(policy)
    for artifact in lock.artifacts:
        if not artifact.folders:  # the compiler
            folder = target / PLUGINS / GUARD
            compile_guard(downloads[artifact], target / "lib", folder)
            text = _properties(lock.version, GUARD, "Refuses requests of foreign web pages", GUARD_CLASS)
            (folder / "plugin-descriptor.properties").write_text(text, encoding="utf-8")
    (target / MARK).write_text(lock.digest, encoding="utf-8")


TRIES = 3
PARALLEL = 8
PAUSE = 0.5  # seconds before the second try, and as many more before each further one
TIMEOUT = 30  # seconds without a byte

Advance = Callable[[int], Any]


def download(lock: ArtifactLock, folder: Path, remote_repos: dict[str, str] | None = None) -> dict[Artifact, Path]:
    """Have every artifact of the lock file in ``folder``, checked.

    Args:
        lock: what to fetch.
        folder: where files are kept; those already there are checked, not fetched again.
        remote_repos: name to address of the repositories to fetch from; None for the usual one.

    Returns:
        The checked file of each artifact.

    Raises:
        LangshiftError: an artifact cannot be fetched, or what comes is not what the lock file names.
    """
    # Its warning about a wrong checksum is not news: every file is checked here.
    logging.getLogger("jgo").setLevel(logging.CRITICAL)
    logging.getLogger("urllib3").setLevel(logging.CRITICAL)
    have = {artifact: file for artifact in lock.artifacts if (file := _cached(artifact, folder))}
    missing = [artifact for artifact in lock.artifacts if artifact not in have]
    if not missing:
        return have
    size = sum(artifact.size for artifact in missing)
    reporting.note(f"Downloading OpenSearch {lock.version} ({size / 1e6:.0f} MB, only needed once) to {folder} ...")
    with reporting.download("OpenSearch", size) as advance, ThreadPoolExecutor(PARALLEL) as pool:

        def fetch(artifact: Artifact) -> Path:
            return _fetch(artifact, folder, remote_repos, advance)

        try:
            have.update(zip(missing, pool.map(fetch, missing), strict=True))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return have


def _cached(artifact: Artifact, folder: Path) -> Path | None:
    """The file of an earlier download if it is whole; a broken one is removed."""
    file: Path = _locate(artifact, MavenContext(repo_cache=folder)).cached_path
    if not file.is_file():
        return None
    if matches(artifact, file):
        return file
    file.unlink()
    return None


def _locate(artifact: Artifact, context: Any) -> Any:  # noqa: ANN401 - jgo carries no types
    group, name, version = artifact.coordinate.split(":")
    return context.project(group, name).at_version(version).artifact(packaging=artifact.packaging)


def _fetch(artifact: Artifact, folder: Path, repos: dict[str, str] | None, advance: Advance) -> Path:
    """Fetch one artifact and check it, at most ``TRIES`` times."""
    reason = ""
    for turn in range(TRIES):
        time.sleep(turn * PAUSE)
        received = 0

        def count(size: int) -> None:
            nonlocal received
            received += size
            advance(size)

        @contextmanager
        def follow(_name: str, _size: int) -> Iterator[Advance]:
            yield count

        resolver = PythonResolver(progress_callback=follow)
        remote = _locate(
            artifact, MavenContext(resolver=resolver, repo_cache=folder, remote_repos=repos, timeout=TIMEOUT)
        )
        remote.cached_path.unlink(missing_ok=True)
        try:
            file: Path = remote.resolve()
            if matches(artifact, file):
                advance(artifact.size - received)
                return file
            reason = "the file received does not match langshift's lock file (its SHA-256 differs)"
        except requests.RequestException as error:
            reason = next(words for kind, words in _WHY.items() if isinstance(error, kind))
        except (RuntimeError, ValueError, IndexError):  # jgo's, for answers that it did not expect
            reason = "the repository did not provide it"
        # A part or a wrong file must not look like a whole one to a later start.
        remote.cached_path.unlink(missing_ok=True)
        advance(-received)
    raise LangshiftError(
        f"{artifact.coordinate}, a part of the embedded OpenSearch, could not be downloaded "
        f"in {TRIES} attempts: {reason}; try again later, or set OPENSEARCH_URL to your own cluster."
    )


# The first kind that fits -> why a repository did not give a file.
_WHY: dict[type[requests.RequestException], str] = {
    requests.Timeout: f"no answer within {TIMEOUT} seconds",
    requests.exceptions.ChunkedEncodingError: "the connection was interrupted",
    requests.exceptions.ContentDecodingError: "the connection was interrupted",
    requests.exceptions.SSLError: "the repository's certificate could not be verified",
    requests.RequestException: "the repository could not be reached",
}


def guard_source() -> bytes:
    """The source of our plugin, in Java."""
    return (files("langshift.embedded") / "assets" / _GUARD_SOURCE).read_bytes()


def compile_guard(compiler: Path, libraries: Path, folder: Path) -> None:
    """Compile our plugin into a new folder.

    Args:
        compiler: the jar of the Eclipse compiler.
        libraries: OpenSearch's jars.
        folder: made for the plugin's jar.

    Raises:
        LangshiftError: the compiler cannot be run, or refuses the source.
    """
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        classes, source = Path(place, "classes"), Path(place, _GUARD_SOURCE)
        source.write_bytes(guard_source())
        try:
            compile_java(
                f"{GUARD}, a part of the embedded OpenSearch,", compiler, libraries.glob("*.jar"), source, classes
            )
        except LangshiftError as error:
            raise LangshiftError(f"{error}; set OPENSEARCH_URL to your own cluster.") from None
        with zipfile.ZipFile(folder / f"{GUARD}.jar", "w") as jar:
            for file in sorted(classes.rglob("*.class")):
                jar.write(file, file.relative_to(classes))
