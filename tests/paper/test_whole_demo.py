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
    for way, words in {"plain": "plain", "paper": "the paper's shift", "shifted": "as recommended"}.items():
        *figures, tag, share = re.search(rf"^{words} +(.+)$", shown, re.MULTILINE)[1].split()
        most = document[way]["most_shown"]["MostShown@20"]
        expected = [document[way]["measures"][name] for name in ("nDCG@20", "TLR@20", "SLR@20")] + [most["shown"]]
        assert [float(figure) for figure in (*figures, share)] == pytest.approx(expected, abs=0.015)
        assert way == "plain" or tag == most["language"]
    # No language crowds the others out, and what is lost in the own language can be had back.
    recommended, preferred = (document[way]["measures"] for way in ("shifted", "preferred"))
    assert recommended["nDCG@20"] >= 0.412
    assert recommended["TLR@20"] >= 0.438
    assert recommended["MostShown@20"] <= 0.17
    assert preferred["SLR@20"] >= 0.78
    assert preferred["nDCG@20"] >= 0.385
    assert [language for language, _, _ in rows] == [*document["plain"]["by_language"], "all"]
    for language, queries, cells in rows:
        before, after = (document[name]["by_language"].get(language, document[name]) for name in ("plain", "shifted"))
        assert queries == f"{before['queries']['nDCG@20']:,}"
        figures = [float(figure) for pair in re.findall(r"(\S+) → (\S+)", cells) for figure in pair]
        expected = [side["measures"][name] for name in ("nDCG@20", "TLR@20", "SLR@20") for side in (before, after)]
        # Two questions, of 88 in a language.
        two = 2.01 / before["queries"]["nDCG@20"]
        assert figures == pytest.approx(expected, abs=max(0.015, two))
