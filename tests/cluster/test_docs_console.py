"""docs/console.md stays true: its commands run as they are shown, and its options are those that there are."""

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import LANGSHIFT
from console_process import serving

from langshift.evaluate.console.security import MOST_ADDRESS, MOST_BODY
from langshift.evaluate.serve_command import serve

FOLDER = Path(__file__).parents[2]
DOCUMENTS = [FOLDER / "docs" / "console.md", FOLDER / "README.md"]
TEXT = DOCUMENTS[0].read_text(encoding="utf-8")
USUAL = "127.0.0.1:8365"
# Whoever tests what is installed tries the extra; the other needs a machine of one's own.
NOT_RUN = ["pip install 'langshift[console]'", "ssh -L 8365:127.0.0.1:8365 search.example.org"]


def shown(document):
    """The commands of a document that have to do with the console, each with what it prints."""
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    told = "".join(block for block in blocks if "8365" in block)
    return [tuple(found.strip().partition("\n")[::2]) for found in told.split("$ ")[1:]]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_console_starts_as_it_is_shown(document, cluster_url, tmp_path):
    ((command, printed),) = [one for one in shown(document) if one[0] not in NOT_RUN]
    program, *words = shlex.split(command)
    assert program == "langshift"
    env = dict(os.environ, OPENSEARCH_URL=cluster_url, LANGSHIFT_HOME=str(tmp_path))
    # Somebody may use the usual port here.
    with subprocess.Popen([LANGSHIFT, *words, "--port", "0"], env=env, stdout=subprocess.PIPE) as process:
        told = process.stdout.readline().decode()
        process.send_signal(signal.SIGINT)
    assert re.sub(r"127\.0\.0\.1:\d+", USUAL, told).strip() == printed


def test_its_options_are_those_that_there_are():
    rows = dict(re.findall(r"^\| `(--[a-z]+)[^`]*` \| (.*) \|$", TEXT, re.MULTILINE))
    assert set(rows) == {option for one in serve.params for option in one.opts}
    usual = {one.opts[0]: one.default for one in serve.params}
    assert rows["--host"].startswith(f"where to listen, {usual['--host']} if not given")
    assert rows["--port"].startswith(f"{usual['--port']} if not given")
    assert f"127.0.0.1:{usual['--port']}" == USUAL


def test_its_limits_are_those_that_hold():
    assert f"Addresses of more than {MOST_ADDRESS >> 10} KiB and bodies of more than {MOST_BODY >> 10} KiB" in TEXT


def test_the_pages_that_it_names_are_those_of_the_navigation(cluster_url, tmp_path):
    with serving(url=cluster_url, home=tmp_path) as console, console.client() as http:
        page = http.get("/indices").text
    navigation = page.partition("<nav")[2].partition("</nav>")[0]
    found = {" ".join(words.split()) for words in re.findall(r"<a [^>]*>(.*?)</a>", navigation, re.DOTALL)}
    assert found <= set(re.findall(r"^### (.*)$", TEXT, re.MULTILINE))


def test_what_it_says_to_a_reverse_proxy_is_what_the_console_asks_for(cluster_url, tmp_path):
    """As nginx would send it on, whose empty headers are left out."""
    (host, origin) = re.search(r"Host +(\S+);.*console_origin \"(http:\S+)\";", TEXT, re.DOTALL).groups()
    with serving(url=cluster_url, home=tmp_path) as console, console.client() as http:
        port = console.url.rpartition(":")[2].strip("/")
        sent = {"host": host.replace("8365", port), "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
        assert http.get("/indices", headers=sent).status_code == 200
        own = {**sent, "origin": origin.replace("8365", port)}
        # Nothing runs: the form is read, and what it names is not there.
        assert http.post("/evaluations/cancel", data={"run": "x"}, headers=own).status_code == 400
        assert http.post("/evaluations/cancel", data={"run": "x"}, headers=sent).status_code == 403


def test_every_command_is_run_or_known_not_to_be():
    commands = [command for command, _ in shown(DOCUMENTS[0])]
    assert sorted({*commands} - {"langshift serve"}) == sorted(NOT_RUN)
