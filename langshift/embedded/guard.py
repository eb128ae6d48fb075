"""The plugin that refuses what web pages send to the embedded server: our Java, compiled into the distribution."""

import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path

from langshift.embedded.java import compile_java
from langshift.errors import LangshiftError

GUARD = "langshift-guard"
GUARD_CLASS = "org.langshift.guard.GuardPlugin"
_SOURCE = "GuardPlugin.java"


def guard_source() -> bytes:
    """The plugin's source, in Java."""
    return (files("langshift.embedded") / "assets" / _SOURCE).read_bytes()


def compile_guard(compiler: Path, libraries: Path, folder: Path) -> None:
    """Compile the plugin into a new folder.

    Args:
        compiler: the jar of the Eclipse compiler.
        libraries: OpenSearch's jars.
        folder: made for the plugin's jar.

    Raises:
        LangshiftError: the compiler cannot be run, or refuses the source.
    """
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        classes, source = Path(place, "classes"), Path(place, _SOURCE)
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
