"""Signals end a command in order; what one leaves that is killed is told with the command that finishes it."""

import json
import os
import pty
import re
import select
import shlex
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from itertools import repeat

import pytest
from command_line import LANGSHIFT, PATIENCE, langshift, started
from faults import delayed
from given_data import write_lines
from retuned_index import note, require_tidy
from shifted_index import Corpus, language_vectors, saved

from langshift.plugin.cluster_check import check_cluster
from langshift.settings import Settings

RESUMED = "{} stays available; run the same command to resume where this one stopped."


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path)


@pytest.fixture
def name(index_name, corpus, cluster_url, tmp_path):
    """An index that can be retuned."""
    known = saved(tmp_path, language_vectors(alpha=0.5))
    load = ("ingest", corpus.path, "--index", index_name, "--encoder", "given", "--vectors", known)
    assert langshift(*load, url=cluster_url).returncode == 0
    return index_name


def is_blocked(client, index):
    settings = client.indices.get_settings(index=index)[index]["settings"]["index"]
    return settings.get("blocks", {}).get("write") == "true"


def last_word(done):
    """The sentence with which a load failed."""
    assert done.returncode == 1, done
    return done.stderr.splitlines()[-1].removeprefix("Error: ")


@contextmanager
def blocking(client, proxy, name, *command):
    """A retune or rollback by a process of its own, at the moment when nobody can write to the live version."""
    (live,) = client.indices.get_alias(name=name)
    proxy.inject("/_mget", repeat(delayed(20)))
    with started(*(command or ("retune", name, "--alpha", "0.25")), OPENSEARCH_URL=proxy.url) as process:
        latest = time.monotonic() + PATIENCE
        while not is_blocked(client, live):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < latest
            time.sleep(0.05)
        # Every note that a clean-up writes takes long.
        proxy.inject("/_mapping", repeat(delayed(0.3)))
        yield process, live
    proxy.clear()


@pytest.mark.parametrize("signals", [["SIGHUP"], ["SIGTERM"], ["SIGINT"], ["SIGHUP", "SIGTERM", "SIGHUP", "SIGINT"]])
def test_a_retune_that_is_stopped_lets_writers_in_again_however_often_it_is_told(client, proxy, name, signals):
    with blocking(client, proxy, name) as (process, live):
        for one in signals:
            process.send_signal(getattr(signal, one))
            time.sleep(0.2)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, said
    assert [line for line in said.decode().splitlines() if line] == [RESUMED.format(name), "Interrupted."]
    assert not is_blocked(client, live)
    client.index(index=name, id="more", body={"language": "de"})
    (told,) = [
        one for one in check_cluster(Settings.from_env({"OPENSEARCH_URL": proxy.url})) if one.name == f"index {name}"
    ]
    assert (told.status, told.value) == ("warning", "is not finished")
    assert told.remedy.startswith(f"The retune of {name} to {name}-v0002, which began at 20")
    finished = re.search(r" was interrupted: finish it with `langshift (.*?)`, or abandon it", told.remedy)[1]
    assert finished == f"retune {name} --alpha 0.25"
    done = langshift(*shlex.split(finished), url=proxy.url)
    assert done.returncode == 0, done
    require_tidy(client, name)


def test_a_terminal_that_is_closed_stops_a_retune_in_order(client, proxy, name):
    proxy.inject("/_mget", repeat(delayed(20)))
    arguments = [str(LANGSHIFT), "retune", name, "--alpha", "0.25"]
    pid, screen = pty.fork()
    if not pid:
        os.execve(arguments[0], arguments, {**os.environ, "TERM": "xterm", "OPENSEARCH_URL": proxy.url})
    latest = time.monotonic() + PATIENCE
    while not is_blocked(client, f"{name}-v0001"):
        assert time.monotonic() < latest
        # Else the progress that it draws fills the terminal's buffer.
        if select.select([screen], [], [], 0.05)[0]:
            os.read(screen, 1 << 16)
    os.close(screen)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert not is_blocked(client, f"{name}-v0001")


def test_what_a_killed_retune_leaves_is_told_where_it_matters(client, cluster_url, proxy, name, corpus, tmp_path):
    more = write_lines(tmp_path / "more.jsonl", [corpus.line("de-0")])
    known = tmp_path / "v.safetensors"
    append = ("ingest", more, "--index", name, "--encoder", "given", "--vectors", known, "--if-exists", "append")
    with blocking(client, proxy, name) as (process, live):
        running = f"is still running, as process {process.pid} of this machine."
        settings = Settings.from_env({"OPENSEARCH_URL": cluster_url})
        found = [one.remedy for one in check_cluster(settings) if one.name == f"index {name}"]
        block = f"Nothing can be written to {live}: the retune to {name}-v0002 has blocked it for its last step."
        assert found[0] == block
        assert found[1].endswith(running)
        said = last_word(langshift(*append, "--patience", "2", url=cluster_url, LANGSHIFT_HOME=tmp_path / "one"))
        assert said.startswith(f"{block} The retune of {name} to ")
        assert running in said
        process.kill()
        process.wait()
    began = time.monotonic()
    said = last_word(langshift(*append, url=cluster_url, LANGSHIFT_HOME=tmp_path / "two"))
    assert time.monotonic() - began < 60
    assert re.fullmatch(
        re.escape(f"{block} The retune of {name} to {name}-v0002, which began at ")
        + "20.{23}"
        + re.escape(
            f", was interrupted: finish it with `langshift retune {name} --alpha 0.25`, or abandon it with `langshift "
            f"index drop {name} --version {name}-v0002`. Then run this command again."
        ),
        said,
    )
    described = langshift("index", "describe", name, url=cluster_url).stderr
    assert block in described
    assert f"abandon it with `langshift index drop {name} --version {name}-v0002`" in described
    assert langshift("index", "drop", name, "--version", f"{name}-v0002", "--yes", url=cluster_url).returncode == 0
    assert not is_blocked(client, live)
    assert langshift(*append, url=cluster_url).returncode == 0


def test_a_rollback_that_is_stopped_or_killed_is_told_and_finished(client, cluster_url, proxy, name):
    assert langshift("retune", name, "--alpha", "0.25", url=cluster_url).returncode == 0
    with blocking(client, proxy, name, "rollback", name) as (process, live):
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE) == 130
    assert not is_blocked(client, live)
    assert note(client, name) is None
    with blocking(client, proxy, name, "rollback", name) as (process, live):
        process.kill()
        process.wait()
    found = check_cluster(Settings.from_env({"OPENSEARCH_URL": cluster_url}))
    _, told = (one.remedy for one in found if one.name == f"index {name}")
    assert told.endswith(f" was interrupted: finish it with `langshift rollback {name}`.")
    assert langshift("rollback", name, url=cluster_url).returncode == 0
    assert list(client.indices.get_alias(name=name)) == [f"{name}-v0001"]


def test_a_block_of_somebody_else_is_told_to_who_appends(client, cluster_url, name, corpus, tmp_path):
    more = write_lines(tmp_path / "more.jsonl", [corpus.line("de-0")])
    append = ("ingest", more, "--index", name, "--encoder", "given", "--vectors", tmp_path / "v.safetensors")
    client.indices.put_settings(index=f"{name}-v0001", body={"index.blocks.write": True})
    said = last_word(langshift(*append, "--if-exists", "append", "--patience", "1", url=cluster_url))
    assert said == (
        f"Index {name}-v0001 has the block index.blocks.write, so nothing can be written to it: remove it with `PUT "
        f'/{name}-v0001/_settings` and {{"index.blocks.write": null}}, then run the command again.'
    )
    rows = json.loads(langshift("doctor", "--json", url=cluster_url).stdout)["findings"]
    (row,) = (row for row in rows if row["name"] == f"index {name}")
    assert (row["status"], row["value"]) == ("warning", "takes no writes")


COMMANDS = [
    ("search", "news", "words"),
    ("retune", "news", "--alpha", "1"),
    ("rollback", "news"),
    ("index", "drop", "news", "--yes"),
    ("pipeline", "install", "news"),
    ("anchors", "calibrate", "news"),
    ("adopt", "old", "--name", "news", "--vector-field", "v", "--text-field", "t", "--encoder", "given"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_end_of_the_terminal_ends_every_command_in_order(command):
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        started(*command, OPENSEARCH_URL=f"http://127.0.0.1:{silent.getsockname()[1]}") as process,
    ):
        silent.settimeout(PATIENCE)
        asked, _ = silent.accept()
        with asked:
            process.send_signal(signal.SIGHUP)
            out, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, b"")
    assert said.decode().splitlines()[-1] == "Interrupted."


def test_below_nohup_the_end_of_the_terminal_changes_nothing(client, proxy, name):
    proxy.inject("/_mget", [delayed(1)])
    command = shlex.join([str(LANGSHIFT), "retune", name, "--alpha", "0.25"])
    with subprocess.Popen(
        ["/bin/sh", "-c", f"trap '' HUP; exec {command}"],
        env={**os.environ, "OPENSEARCH_URL": proxy.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        while note(client, name) is None:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(signal.SIGHUP)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert list(client.indices.get_alias(name=name)) == [f"{name}-v0002"]
