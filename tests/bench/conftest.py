"""What several benchmarks measure on."""

from dataclasses import replace

import pytest
from command_line import langshift
from documents import DATA

from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER

QUERIES = 600
LANGUAGES = "ar,de,en,es,ru,th,tr,zh"


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
