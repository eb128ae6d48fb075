"""Run the command line: in this process, which saves a second a call, or as the installed program."""

import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from langshift import entry, output

LANGSHIFT = Path(sys.executable).with_name("langshift")
PATIENCE = 300  # seconds
# What a command says every ten seconds: on a busy machine some do that are quick elsewhere.
_SO_FAR = re.compile(
    r"^(.*, (nothing yet|nothing more since the last line|[\d.,]+/s)(, .*)?|.*: [\d:]+ so far)\n", re.MULTILINE
)
#: What a terminal has whose width nobody knows.
USUAL_WIDTH = 80


class Done(NamedTuple):
    """A finished command.

    Attributes:
        returncode: its exit code.
        stdout: its output, and
        stderr: what it said beside that, both as text.
    """

    returncode: int
    stdout: str
    stderr: str


def langshift(*arguments, url=None, stdin=None, only=None, cwd=None, **variables):
    """Run a command to its end, with the program's own handling of errors, streams and exit codes.

    It runs in this process; from any thread but the first in one of its own, as environment and streams belong
    to the whole process. What is about processes (signals, ``ps``, exit codes as a shell sees them) calls
    ``program``.

    Args:
        arguments: after ``langshift``.
        url: becomes OPENSEARCH_URL, unless the tests have one given.
        stdin: bytes on standard input.
        only: the whole environment; this process's where none is given.
        cwd: the folder to run in.
        variables: further environment variables.
    """
    env = _environment(url, only, variables)
    if threading.current_thread() is not threading.main_thread():
        return _finished(arguments, env, stdin, cwd)
    with pytest.MonkeyPatch.context() as patch, _streams(env, stdin) as (out, err):
        patch.setattr(sys, "argv", [str(LANGSHIFT), *map(str, arguments)])
        # By which click would name the program after pytest.
        patch.setitem(sys.modules, "__main__", ModuleType("__main__"))
        if cwd is not None:
            patch.chdir(cwd)
        with pytest.raises(SystemExit) as ended:
            entry.main()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return Done(ended.value.code or 0, out.getvalue().decode(), err.getvalue().decode())


def program(*arguments, url=None, stdin=None, only=None, cwd=None, **variables):
    """Run the installed program to its end, in a process of its own; as ``langshift`` otherwise."""
    return _finished(arguments, _environment(url, only, variables), stdin, cwd)


@contextmanager
def started(*arguments, url=None, only=None, **variables):
    """The installed program under way; killed at the end where it still runs."""
    with subprocess.Popen(
        [LANGSHIFT, *map(str, arguments)],
        env=_environment(url, only, variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def refusal(done):
    """The one sentence with which a command refused, after checking that it said nothing else."""
    assert done.returncode in (1, 2), done
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("Error: ")
    return sentence.removeprefix("Error: ")


def _environment(url, only, variables):
    # Indices of tests that do not ask for it do without a calibration, see conftest.py.
    env = dict(os.environ if only is None else {"LANGSHIFT_NO_CALIBRATION": "1", **only})
    if url is not None and "OPENSEARCH_URL" not in os.environ:
        env["OPENSEARCH_URL"] = url
    return env | {name: str(value) for name, value in variables.items()}


@contextmanager
def _streams(env, stdin):
    """Streams and environment of a process, and the width that its tables have."""
    changed = {name: env.get(name) for name in {*os.environ, *env} if os.environ.get(name) != env.get(name)}
    with pytest.MonkeyPatch.context() as patch, CliRunner().isolation(stdin or b"", changed) as (out, err, *_):
        # What click's runner fixes here, and rich reads when it is imported, the environment says.
        patch.setattr(click.formatting, "FORCED_WIDTH", None)
        width = env.get("COLUMNS", "")
        for one in (output.out, output.err):
            patch.setattr(one, "_width", int(width) if width.isdigit() else USUAL_WIDTH)
        yield out, err


def _finished(arguments, env, stdin, cwd):
    done = subprocess.run(
        [LANGSHIFT, *map(str, arguments)],
        env=env,
        cwd=cwd,
        input=stdin or b"",
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    return Done(done.returncode, done.stdout.decode(), _SO_FAR.sub("", done.stderr.decode()))
