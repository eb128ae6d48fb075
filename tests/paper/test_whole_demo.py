"""The demo, whole, and what docs/demo.md shows of it."""

import re

import pytest
from demo_run import demo_document, demo_names
from documents import DEMO, blocks

from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER


@pytest.mark.usefixtures("cluster_env")
def test_the_page_shows_what_the_demo_finds(client, tmp_path):
    """Within what approximate search and other processors change."""
    with demo_names(client) as names:
        document = demo_document(names, load_dataset(FOLDER), tmp_path)
    (shown,) = [block.text for block in blocks(DEMO) if block.mark == "demo output"]
    rows = re.findall(r"^(\w+) +([\d,]+) +((?:\S+ → \S+ +\S+ *){3})$", shown, re.MULTILINE)
    assert [language for language, _, _ in rows] == [*document["plain"]["by_language"], "all"]
    for language, queries, cells in rows:
        before, after = (document[name]["by_language"].get(language, document[name]) for name in ("plain", "shifted"))
        assert queries == f"{before['queries']['nDCG@20']:,}"
        figures = [float(figure) for pair in re.findall(r"(\S+) → (\S+)", cells) for figure in pair]
        expected = [side["measures"][name] for name in ("nDCG@20", "TLR@20", "SLR@20") for side in (before, after)]
        # Two questions, of 88 in a language.
        two = 2.01 / before["queries"]["nDCG@20"]
        assert figures == pytest.approx(expected, abs=max(0.015, two))
