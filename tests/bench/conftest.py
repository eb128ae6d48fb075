"""What several benchmarks measure on."""

from contextlib import nullcontext
from dataclasses import replace

import psutil
import pytest
from command_line import langshift
from documents import DATA

from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER

QUERIES = 600
LANGUAGES = "ar,de,en,es,ru,th,tr,zh"


@pytest.fixture(scope="session")
def quick_java():
    """No other server than users have: that of the tests starts sooner, and never compiles its code for speed."""
    return lambda **_: nullcontext()


@pytest.fixture
def processor(cluster_url):
    """A function that gives the seconds of processor time that the server has taken; where it is not ours, 0."""
    port = int(cluster_url.rpartition(":")[2])
    found = [process for process in psutil.process_iter() if port in ports(process)]

    def seconds():
        return sum(sum(process.cpu_times()[:2]) for process in found)

    return seconds


def ports(process):
    try:
        return [c.laddr.port for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    except psutil.Error:
        return []


@pytest.fixture
def dataset(tmp_path):
    """XQuAD, else the demo's corpus, with questions in every language of it, thinned out to about ``QUERIES``."""
    folder = FOLDER
    if (DATA / "xquad").is_dir():
        folder = tmp_path / "xquad8"
        made = langshift(
            *("dataset", "convert", "xquad", DATA / "xquad", folder, "--languages", LANGUAGES, "--multilingual-queries")
        )
        assert made.returncode == 0, made.stderr
    whole = load_dataset(folder)
    # The step shares no factor with the number of languages, so that all of them stay.
    step = len(whole.queries) // QUERIES // 2 * 2 + 1
    return replace(whole, queries=whole.queries[::step])
