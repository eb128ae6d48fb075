"""Several nodes of one home, where none has to run: folders, settings, what is remembered, what is refused."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import psutil
import pytest

from langshift import embedded
from langshift.embedded.node import ServerHome, apart, heap, member_settings, single_node_settings
from langshift.errors import UsageError

# As the release before several nodes wrote it.
OLD_STATE = {
    "pid": None,
    "created": None,
    "ready": False,
    "port": 9207,
    "transport": 9307,
    "java": "/jdk/bin/java",
    "version": "3.6.0",
}


def place(home: Path) -> ServerHome:
    return ServerHome(home, home, None)


def three(home: Path) -> ServerHome:
    for name in ("node", "node-2", "node-3"):
        (home / name).mkdir(parents=True)
    return place(home)


def test_a_home_has_the_nodes_whose_folders_are_there(tmp_path: Path) -> None:
    assert place(tmp_path).size == 1
    (tmp_path / "node").mkdir()
    assert [member.name for member in place(tmp_path).nodes()] == ["langshift"]
    (tmp_path / "node-3").mkdir()  # the forming was cut off, or a folder was lost
    found = place(tmp_path).nodes()
    assert [member.name for member in found] == ["langshift", "langshift-2", "langshift-3"]
    assert [member.folder.name for member in found] == ["node", "node-2", "node-3"]
    assert [member.state_file.name for member in found] == ["server.json", "server-2.json", "server-3.json"]
    assert [member.console.name for member in found] == ["console.log", "console-2.log", "console-3.log"]


def test_a_state_file_of_the_release_before_is_the_first_node_s(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(json.dumps(OLD_STATE))
    one, two, _ = place(tmp_path).nodes(3)
    assert (one.state().port, one.state().transport, two.state().port) == (9207, 9307, None)
    one.state().write(one.state_file)
    assert json.loads((tmp_path / "server.json").read_text()) == OLD_STATE


def test_a_single_node_is_told_what_it_was_told_before() -> None:
    settings = single_node_settings(None, None)
    assert settings["discovery.type"] == "single-node"
    assert (settings["cluster.name"], settings["node.name"]) == ("langshift", "langshift")
    assert not [name for name in settings if name.startswith(("discovery.seed", "cluster.initial"))]


def test_only_the_first_node_begins_a_cluster_and_only_while_there_is_none(tmp_path: Path) -> None:
    def begins(name: str, *, forming: bool) -> object:
        settings = member_settings(name, tmp_path, None, None, forming=forming)
        assert "discovery.type" not in settings
        assert settings["network.host"] == "127.0.0.1"
        assert (settings["discovery.seed_hosts"], settings["discovery.seed_providers"]) == ([], ["file"])
        return settings.get("cluster.initial_cluster_manager_nodes")

    assert begins("langshift", forming=True) == ["langshift"]
    assert begins("langshift-2", forming=True) is None
    assert begins("langshift", forming=False) is None


def test_two_homes_have_two_names(tmp_path: Path) -> None:
    def name(home: Path) -> str:
        return str(member_settings("langshift", home, None, None, forming=True)["cluster.name"])

    assert name(tmp_path / "one") == name(tmp_path / "one") != name(tmp_path / "two")


def test_each_of_three_nodes_has_a_third_of_a_quarter_of_the_memory() -> None:
    assert [heap(gib << 30, 3) for gib in (2, 6, 8, 64)] == [(384, 384), (512, 512), (512, 682), (512, 700)]


def test_nodes_that_start_at_once_do_not_take_each_other_s_ports() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        first = one.getsockname()[1] - 1
        taken = first + 1
        one.listen()
        ports = apart([None, taken, first + 5], first)
    assert len(set(ports)) == 3
    assert taken not in ports
    assert ports[2] in (first + 5, *range(first + 6, first + 100))


def test_fewer_nodes_than_there_are_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = three(tmp_path / "home")
    monkeypatch.setattr(ServerHome, "of", lambda _: home)
    with pytest.raises(UsageError) as caught:
        embedded.up(home.home, 1)
    assert str(caught.value) == (
        f"The OpenSearch in {home.base} has its data spread over 3 nodes and cannot be reduced to 1: "
        "start it with `langshift up`, or set LANGSHIFT_HOME to another folder."
    )


def test_processes_that_are_gone_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = three(tmp_path / "home")
    monkeypatch.setattr(ServerHome, "of", lambda _: home)
    assert (
        embedded.why_not_running(home.home) == "The embedded OpenSearch is not running; start it with `langshift up`."
    )
    me = psutil.Process()
    for member in home.nodes():
        stale = {**OLD_STATE, "pid": me.pid, "created": me.create_time(), "ready": True}
        member.state_file.write_text(json.dumps(stale))
    assert embedded.status(home.home) is None
    assert embedded.why_not_running(home.home) == (
        f"The embedded OpenSearch is not running: its processes {me.pid}, {me.pid} and {me.pid} ended unexpectedly; "
        "start it again with `langshift up`; the end of its log:\n(the log is empty)"
    )
    told = embedded.places(home.home)
    assert told["data"] == str(home.base / "node" / "data")
    assert told["nodes"] == [
        {"name": name, "url": None, "pid": None, "running": False}
        for name in ("langshift", "langshift-2", "langshift-3")
    ]
