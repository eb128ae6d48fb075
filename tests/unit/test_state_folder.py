"""The folder of a load's state on a disk that is full."""

import subprocess
import sys

import pytest

pytest.importorskip("pyarrow", reason="needs the extra parquet")

CODE = """
import resource, sys
from langshift.errors import LangshiftError
from langshift.ingest.parts.folder import StateFolder
folder = StateFolder(sys.argv[1], 1)
folder.put("dead/a.jsonl", b"before")
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))
for name in ("dead/a.jsonl", "dead/b.jsonl"):
    try:
        folder.put(name, bytes(5_000))
    except LangshiftError as error:
        print(error)
"""


def test_a_full_disk_is_told_and_leaves_what_was_there(tmp_path):
    state = tmp_path / "state"
    done = subprocess.run([sys.executable, "-c", CODE, str(state)], text=True, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == 2 * [
        f"The state {state} cannot be written (File too large): free space on the disk."
    ]
    assert [one.name for one in (state / "dead").iterdir()] == ["a.jsonl"]
    assert (state / "dead" / "a.jsonl").read_bytes() == b"before"
