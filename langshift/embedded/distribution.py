"""Assemble the distribution: the folder of jars, modules and plugins that every node shares."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from langshift.embedded.lock import Artifact, Lock

MARK = "langshift.lock"
PARTS = ("lib", "modules", "plugins", "agent")

# Module -> its plugin class and the module that it extends: the published jars do not carry these.
MODULES = {
    "analysis-common": ("org.opensearch.analysis.common.CommonAnalysisModulePlugin", "lang-painless"),
    "ingest-common": ("org.opensearch.ingest.common.IngestCommonModulePlugin", "lang-painless"),
    "lang-painless": ("org.opensearch.painless.PainlessModulePlugin", ""),
    "mapper-extras": ("org.opensearch.index.mapper.MapperExtrasModulePlugin", ""),
    "reindex": ("org.opensearch.index.reindex.ReindexModulePlugin", ""),
    "search-pipeline-common": (
        "org.opensearch.search.pipeline.common.SearchPipelineCommonModulePlugin",
        "",
    ),
    "transport-grpc": ("org.opensearch.transport.grpc.GrpcPlugin", ""),
    "transport-netty4": ("org.opensearch.transport.Netty4ModulePlugin", ""),
}


def descriptor(module: str, version: str) -> str:
    """Return the ``plugin-descriptor.properties`` of a module."""
    classname, extends = MODULES[module]
    lines = {
        "name": module,
        "description": f"OpenSearch module {module}",
        "version": version,
        "opensearch.version": version,
        "java.version": "21",
        "classname": classname,
        "extended.plugins": extends,
        "has.native.controller": "false",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def is_assembled(lock: Lock, folder: Path) -> bool:
    """Whether ``folder`` holds the distribution that this lock file describes."""
    mark = folder / MARK
    return mark.is_file() and mark.read_text(encoding="utf-8") == lock.digest


def assemble(lock: Lock, downloads: Mapping[Artifact, Path], folder: Path) -> None:
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
        _open_to_all(building)
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
        building.replace(folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _fill(lock: Lock, downloads: Mapping[Artifact, Path], target: Path) -> None:
    for artifact in lock.artifacts:
        for name in artifact.folders:
            folder = target / name
            folder.mkdir(parents=True, exist_ok=True)
            if artifact.packaging == "zip":
                with zipfile.ZipFile(downloads[artifact]) as archive:
                    archive.extractall(folder)
            else:
                _link(downloads[artifact], folder / artifact.filename)
    for module in MODULES:
        text = descriptor(module, lock.version)
        (target / "modules" / module / "plugin-descriptor.properties").write_text(text, encoding="utf-8")
    # Without it the agent forbids the sockets over which several nodes find each other.
    policy = (files("langshift.embedded") / "assets" / "transport-netty4.policy").read_bytes()
    (target / "modules" / "transport-netty4" / "plugin-security.policy").write_bytes(policy)
    (target / MARK).write_text(lock.digest, encoding="utf-8")


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)


def _open_to_all(folder: Path) -> None:
    """Readable by everyone, whatever the umask: root starts the server as another user."""
    for path in (folder, *folder.rglob("*")):
        wanted = 0o755 if path.is_dir() else 0o644
        if path.stat().st_mode & 0o777 != wanted:
            path.chmod(wanted)
