"""Run the installed command line as a person would, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

LANGSHIFT = Path(sys.executable).with_name("langshift")


def langshift(*arguments, url=None, stdin=None, **variables):
    """The finished process, its output as text; ``url`` becomes OPENSEARCH_URL."""
    env = dict(os.environ, **variables)
    if url is not None and "OPENSEARCH_URL" not in os.environ:
        env["OPENSEARCH_URL"] = url
    done = subprocess.run(
        [LANGSHIFT, *map(str, arguments)], env=env, input=stdin or b"", capture_output=True, check=False, timeout=300
    )
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def refusal(done):
    """The one sentence with which a command refused, after checking that it said nothing else."""
    assert done.returncode in (1, 2), done
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("Error: ")
    return sentence.removeprefix("Error: ")
