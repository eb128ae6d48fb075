"""What docs/demo.md shows of a demo."""

import re

import pytest
from documents import DEMO, blocks

COLUMNS = ("P@1", "LPR", "own@1", "own@3", "nDCG@20", "TLR@20", "SLR@20")
WORDS = {"plain": "plain", "paper": "the paper's shift", "shifted": "as recommended"}


def require_page_shows(document):
    """Fail where a demo found something else than the page shows, but for what search and processors change."""
    (shown,) = [block.text for block in blocks(DEMO) if block.mark == "demo output"]
    rows = re.findall(r"^(\w+) +([\d,]+) +((?:\S+ → \S+ +\S+ *){3})$", shown, re.MULTILINE)
    for way, words in WORDS.items():
        *figures, tag, share = re.search(rf"^{words} +(.+)$", shown, re.MULTILINE)[1].split()
        most = document[way]["most_shown"]["MostShown@20"]
        expected = [document[way]["measures"][name] for name in COLUMNS] + [most["shown"]]
        assert [float(figure) for figure in (*figures, share)] == pytest.approx(expected, abs=0.015), (way, expected)
        assert way == "plain" or tag == most["language"]
    # More pages are found than without a shift, and most are shown in the question's language.
    recommended = document["shifted"]["measures"]
    for name, least in (("P@1", 0.385), ("LPR", 0.56), ("own@3", 0.46), ("nDCG@20", 0.36), ("TLR@20", 0.35)):
        assert recommended[name] >= least, (name, recommended[name])
    assert recommended["MostShown@20"] <= 0.19, recommended["MostShown@20"]
    assert [language for language, _, _ in rows] == [*document["plain"]["by_language"], "all"]
    for language, queries, cells in rows:
        before, after = (document[name]["by_language"].get(language, document[name]) for name in ("plain", "shifted"))
        assert queries == f"{before['queries']['nDCG@20']:,}"
        figures = [float(figure) for pair in re.findall(r"(\S+) → (\S+)", cells) for figure in pair]
        expected = [side["measures"][name] for name in ("nDCG@20", "TLR@20", "SLR@20") for side in (before, after)]
        # Two questions, of 88 in a language.
        two = 2.01 / before["queries"]["nDCG@20"]
        assert figures == pytest.approx(expected, abs=max(0.015, two)), (language, expected)
