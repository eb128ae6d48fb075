"""``langshift serve`` as a process of its own, and pages that it answered."""

import json
import os
import re
import signal
import subprocess
from contextlib import contextmanager
from html import unescape

import httpx
from command_line import LANGSHIFT


class Served:
    """A console that runs.

    Attributes:
        process: its process.
        url: its address, without the token.
        token: where it has one.
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
        self.token = document.get("token")
        self.opened = document["url"]
        self.url = document["url"].partition("?")[0]

    def client(self, **headers):
        """A client whose requests look as a person's who opens the address."""
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)

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


def heading(answer):
    """The heading of a page."""
    return _text(re.search(r"<h1>(.*?)</h1>", answer.text, re.DOTALL)[1])


def sentence(answer):
    """What a page says did not work."""
    return _text(re.search(r'<p class="note trouble" role="alert">(.*?)</p>', answer.text, re.DOTALL)[1])


def _text(content):
    return " ".join(unescape(re.sub(r"<[^>]*>", "", content)).split())
