"""Run a program to its end and measure it: wall time, processor time and peak memory of its process.

``python measured_process.py PROGRAM [ARGUMENT ...]`` is the small process in between. A process is counted as large
as the one that started it was, and the tests' own is larger than what is measured.
"""

import json
import os
import resource
import subprocess
import sys
import time


def measured(*command, **variables):
    """Run a program to its end.

    Args:
        command: the program and its arguments.
        variables: further environment variables.

    Returns:
        What it printed, stripped, and ``wall`` (seconds), ``cpu`` (seconds, in user and system mode) and
        ``megabytes`` (the most memory it held).
    """
    done = subprocess.run(
        [sys.executable, "-S", "-E", __file__, *map(str, command)],
        env=os.environ | {name: str(value) for name, value in variables.items()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *printed, figures = done.stdout.splitlines()
    return "\n".join(printed), json.loads(figures)


def main(*command):
    """Run a program, then print its figures on a line of their own, as JSON."""
    began = time.perf_counter()
    code = subprocess.run(command, check=False).returncode
    wall, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    # Kibibytes on Linux, bytes on macOS.
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"wall": wall, "cpu": used.ru_utime + used.ru_stime, "megabytes": peak / 1e6}))
    sys.exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
