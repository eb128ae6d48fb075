"""What README.md and docs say of options, limits, pages, extras and pictures is so."""

import re
import shlex
import subprocess
import sys
from importlib.metadata import metadata
from itertools import pairwise

import pytest
import yaml
from console_process import serving_here
from documents import CONSOLE, DOCUMENTS, README, SCALE, SERVICE, blocks, console_commands
from screenshots import IMAGES, MOST_BYTES, PICTURES

from langshift.cli import root
from langshift.commands.serve import serve
from langshift.web.security import MOST_ADDRESS

TEXT = CONSOLE.read_text(encoding="utf-8")
MOST_TOGETHER = 900_000
# A first page that is longer is not read.
MOST_WORDS = 1_200
# Shorter than this says no more than the file's name.
LEAST_WORDS = 5


@pytest.fixture(scope="module")
def console(cluster_url, tmp_path_factory):
    with serving_here(url=cluster_url, home=tmp_path_factory.mktemp("home")) as running:
        yield running


def test_the_first_page_is_short():
    assert len(README.read_text(encoding="utf-8").split()) <= MOST_WORDS


def test_its_options_are_those_that_there_are():
    pages = TEXT + SERVICE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(--[a-z-]+)[^`]*` \| (.*) \|$", pages, re.MULTILINE))
    assert set(rows) == {option for one in serve.params for option in one.opts}
    usual = {one.opts[0]: one.default for one in serve.params}
    assert rows["--host"].startswith(f"where to listen, {usual['--host']} if not given")
    assert rows["--port"].startswith(f"{usual['--port']} if not given")
    assert (usual["--host"], usual["--port"]) == ("127.0.0.1", 8365)


def test_its_limit_is_the_one_that_holds():
    assert f"Addresses of more than {MOST_ADDRESS >> 10} KiB are refused" in TEXT


def test_the_pages_that_it_names_are_those_of_the_navigation(console):
    with console.client() as http:
        page = http.get("/indices").text
    navigation = page.partition("<nav")[2].partition("</nav>")[0]
    found = {" ".join(words.split()) for words in re.findall(r"<a [^>]*>(.*?)</a>", navigation, re.DOTALL)}
    assert found
    assert found <= set(re.findall(r"^### (.*)$", TEXT, re.MULTILINE))


def test_what_it_says_to_a_reverse_proxy_is_what_the_console_asks_for(console):
    """As nginx would send it on, whose empty headers are left out."""
    (host,) = re.search(r"proxy_set_header +Host +(\S+);", TEXT).groups()
    with console.client() as http:
        port = console.url.rpartition(":")[2].strip("/")
        sent = {"host": host.replace("8365", port), "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
        assert http.get("/indices", headers=sent).status_code == 200
        foreign = {**sent, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
        assert http.get("/indices", headers=foreign).status_code == 403


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_extras_that_it_names_are_there(document):
    named = re.findall(r"""pip install ['"](?:langshift|\.)\[([\w-]+)\]['"]""", document.read_text(encoding="utf-8"))
    assert set(named) <= set(metadata("langshift").get_all("Provides-Extra"))


def test_the_job_for_kubernetes_runs_a_command_that_there_is():
    (shown,) = [block.text for block in blocks(SCALE) if block.kind == "yaml"]
    job = yaml.safe_load(shown)
    program, name, *options = shlex.split(job["spec"]["entrypoint"])
    command = root.get_command(None, name)
    given = command.make_context(name, [*options]).params
    assert (program, given["corpus"], given["name"]) == ("langshift", ("s3://bucket/corpus/*.parquet",), "news")
    (workers,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    # As many workers as the command has, each with what it asks for.
    asked = dict(pairwise(options))
    assert {str(workers[count]) for count in ("replicas", "minReplicas", "maxReplicas")} == {asked["--workers"]}
    (container,) = workers["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == asked["--gpus-per-worker"]


def test_packages_are_installed_in_a_virtual_environment():
    pages = 0
    for document in DOCUMENTS:
        commands = [command for command, _ in console_commands(document)]
        if installing := [place for place, command in enumerate(commands) if command.startswith("pip install")]:
            assert commands[installing[0] - 1].startswith("python3 -m venv .venv && . .venv/bin/activate"), document
            pages += 1
    assert pages == 3


def test_what_is_for_use_as_a_library_is_had_from_the_import_alone():
    code = "import langshift; print([name for name in langshift.__all__ if getattr(langshift, name) is None])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def pictures():
    """(Document, alt text, file) of every picture that a document shows."""
    return [
        (document, words, (document.parent / place).resolve())
        for document in DOCUMENTS
        for words, place in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", document.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(("document", "words", "file"), pictures(), ids=lambda one: getattr(one, "name", None))
def test_a_picture_is_there_and_described_for_who_does_not_see_it(document, words, file):
    assert file.is_file(), f"{document.name} shows {file.name}, which is not there"
    assert len(words.split()) >= LEAST_WORDS


def test_pictures_are_small_and_all_of_them_are_shown():
    sizes = {file: file.stat().st_size for file in IMAGES.iterdir()}
    assert {file.name for file in sizes} == {f"{picture.name}.png" for picture in PICTURES}
    assert set(sizes) <= {file for _, _, file in pictures()}
    assert max(sizes.values()) <= MOST_BYTES
    assert sum(sizes.values()) <= MOST_TOGETHER
