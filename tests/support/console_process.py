"""``langshift serve``, in a process of its own or in this one, and pages that it answered."""

import json
import os
import re
import signal
import subprocess
import threading
from contextlib import contextmanager
from html import unescape
from queue import Queue

import httpx
import pytest
import uvicorn
from command_line import LANGSHIFT

from langshift.commands.serve import serve
from langshift.web import app

# As they are where no console runs in this process.
_RUN, _RUN_SERVER = app.run, uvicorn.Server.run


class Console:
    """A console that runs.

    Attributes:
        opened: its address, with the token.
        url: its address, without the token.
        token: where it has one.
    """

    def __init__(self, opened, token=None):
        self.opened, self.url, self.token = opened, opened.partition("?")[0], token

    def client(self, **headers):
        """A client whose requests look as a person's who opens the address."""
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)


class Served(Console):
    """One in a process of its own.

    Attributes:
        process: its process.
    """

    def __init__(self, process):
        self.process = process
        told = b""
        while True:
            line = process.stdout.readline()
            assert line, "langshift serve ended" if process.stderr is None else process.stderr.read().decode()
            told += line
            if line == b"}\n":
                break
        document = json.loads(told)
        super().__init__(document["url"], document.get("token"))

    def stop(self, by=signal.SIGINT):
        """End it; its code and what it wrote to standard error."""
        self.process.send_signal(by)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said.decode()


@contextmanager
def serving(*arguments, home, url=None, **variables):
    """A console on a free port, with the langshift home ``home``; ``url`` becomes OPENSEARCH_URL. Ended at the end."""
    env = dict(os.environ, LANGSHIFT_HOME=str(home), **variables)
    if url is not None:
        env["OPENSEARCH_URL"] = url
    command = [LANGSHIFT, "serve", "--port", "0", "--json", *map(str, arguments)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield Served(process)
        finally:
            process.kill()


@contextmanager
def serving_here(*arguments, home, url=None, **variables):
    """The same in a thread of this process, which saves starting one, and loading an encoder once more.

    What is set for it holds for all of the process until it ends: where a test runs commands beside it that need other
    settings, or asks how the console ends or what it says, it has a process of its own.
    """
    variables |= {"LANGSHIFT_HOME": home} | ({} if url is None else {"OPENSEARCH_URL": url})
    started, servers = Queue(), []

    def run_server(server, sockets):
        servers.append(server)
        _RUN_SERVER(server, sockets)

    def show(opened, token):
        started.put(Console(opened, token))

    def go():
        try:
            serve.main(["--port", "0", *map(str, arguments)], "langshift serve", standalone_mode=False)
        except BaseException as error:
            started.put(error)
            raise

    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, str(value))
        patch.setattr(uvicorn.Server, "run", run_server)
        patch.setattr(app, "run", lambda host, port, results, _, *more: _RUN(host, port, results, show, *more))
        # A process would end then.
        patch.setattr(app, "_leave_soon", lambda: None)

        thread = threading.Thread(target=go, name="langshift serve")
        thread.start()
        console = started.get(timeout=60)
        assert isinstance(console, Console), console
        try:
            yield console
        finally:
            servers[0].should_exit = True
            thread.join()


def heading(answer):
    """The heading of a page."""
    return _text(re.search(r"<h1>(.*?)</h1>", answer.text, re.DOTALL)[1])


def sentence(answer):
    """What a page says did not work."""
    return _text(re.search(r'<p class="note trouble" role="alert">(.*?)</p>', answer.text, re.DOTALL)[1])


def _text(content):
    return " ".join(unescape(re.sub(r"<[^>]*>", "", content)).split())
