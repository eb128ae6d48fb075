"""``langshift serve`` as a command: how it starts, what it refuses, and how it ends."""

import os
import signal
import socket
import threading
from contextlib import suppress

import httpx
import pytest
from command_line import langshift, refusal
from console_process import heading, sentence, serving

from langshift import errors


def nowhere():
    """An address at which nothing answers."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def refused(tmp_path, *arguments, **variables):
    return refusal(langshift("serve", *arguments, LANGSHIFT_HOME=str(tmp_path), OPENSEARCH_URL=nowhere(), **variables))


# Other tests end theirs by Ctrl-C.
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
def test_it_ends_when_it_is_stopped(cluster_url, tmp_path, by):
    with serving(url=cluster_url, home=tmp_path) as console:
        with console.client() as browser:
            assert browser.get("/indices").status_code == 200
            code, said = console.stop(by)
        assert (code, said) == (0, "The console has stopped.\n")
        with pytest.raises(httpx.ConnectError):
            httpx.get(console.url, trust_env=False)


def test_it_ends_while_a_page_waits_for_a_silent_cluster(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with serving(url=f"http://127.0.0.1:{silent.getsockname()[1]}", home=tmp_path) as console:
            waiting = threading.Thread(target=_get_nothing, args=(console.url,))
            waiting.start()
            asked, _ = silent.accept()
            with asked:
                code, said = console.stop()
                assert (code, said) == (0, "The console has stopped.\n")
        waiting.join()


def _get_nothing(url):
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"{url}indices", timeout=60, trust_env=False).raise_for_status()


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(tmp_path, "--port", port)
    assert said == f"Port {port} of 127.0.0.1 is in use: choose another --port, or 0 for any."


def test_hosts_that_are_none(tmp_path):
    said = refused(tmp_path, "--host", "no such host")
    assert said == "--host no such host: there is no host with that name or address."
    said = refused(tmp_path, "--host", "203.0.113.7")
    assert said == "--host 203.0.113.7 is not an address of this machine."
    assert refused(tmp_path, "--host", "") == "--host is empty: give an address of this machine."


def test_results_that_are_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    said = refused(tmp_path, "--results", tmp_path / "file")
    assert said == f"{tmp_path / 'file'} is not a folder that you may read: name another for --results."


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may read everything")
def test_a_results_folder_that_may_not_be_read(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir(mode=0o300)
    said = refused(tmp_path, "--results", folder)
    assert said == f"{folder} is not a folder that you may read: name another for --results."


@pytest.mark.parametrize("module", ["starlette", "uvicorn", "jinja2"])
def test_without_its_extra_it_says_how_to_get_it(tmp_path, monkeypatch, module):
    find = errors.find_spec
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == module else find(name))
    # Were it not refused, it would find no port, and end.
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused(tmp_path, "--port", taken.getsockname()[1])
    assert said == "`langshift serve` needs an extra: pip install 'langshift[console]'."


def test_a_cluster_that_is_away_at_the_start_is_waited_for(cluster_url, tmp_path):
    away = nowhere()
    with serving(url=away, home=tmp_path) as console, console.client() as browser:
        answer = browser.get("/indices?x=1")
        assert (answer.status_code, heading(answer)) == (503, "The cluster is not available")
        assert sentence(answer) == (
            f"The cluster at {away} cannot be reached: check that it is running and that OPENSEARCH_URL is its address "
            "(http or https, host, port)."
        )
        assert '<main id="main" tabindex="-1" data-refresh="3">' in answer.text
        assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in answer.text
        assert answer.headers["retry-after"] == "3"
        with _passing(away, cluster_url):
            answer = browser.get("/indices?x=1")
            assert (answer.status_code, "data-refresh" in answer.text) == (200, False)
        # Away once more, and back.
        assert browser.get("/indices").status_code == 503
        with _passing(away, cluster_url):
            assert browser.get("/indices").status_code == 200
        assert console.stop() == (0, "The console has stopped.\n")


class _passing:
    """A cluster that comes up at an address: what is sent there goes to the real one."""

    def __init__(self, url, cluster_url):
        self.here = tuple(url.removeprefix("http://").split(":"))
        host, _, port = cluster_url.partition("://")[2].rpartition(":")
        self.there = (host, int(port))
        self.lines = []

    def __enter__(self):
        self.listener = socket.create_server((self.here[0], int(self.here[1])))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(self.there)
            self.lines += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=pair, daemon=True).start()

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for line in self.lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()


def _pump(source, sink):
    with suppress(OSError):
        while part := source.recv(65536):
            sink.sendall(part)
