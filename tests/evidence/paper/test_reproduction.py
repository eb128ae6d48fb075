"""The page of the papers' figures with e5-small: what its commands print must be what it showed before.

Its figures are those of independent code.
"""

import json
import re

import numpy as np
import pytest
from command_line import langshift
from reproduced import means, require_exact, require_shown, run_blocks

NEAR = 0.002
ENGLISH, OTHERS = BLOCKS = range(2)


@pytest.fixture(scope="module")
def printed(folder, client, cluster_url, xquad, e5_small, page_lock):  # noqa: ARG001 - which knows the texts
    """What the commands of each block print, and the page shows from then on."""
    return run_blocks(BLOCKS, folder, client, cluster_url, xquad, page_lock)


@pytest.mark.parametrize("number", BLOCKS)
def test_the_page_showed_what_its_commands_print(number, printed):
    require_shown(number, printed[number])


def test_the_live_cluster_finds_what_exact_search_finds(printed):
    """Within what approximate search may cost."""
    english, others = printed
    assert means("nDCG@20", english) == pytest.approx([0.693, 0.868], abs=0.006)
    assert means("nDCG@20", others) == pytest.approx([0.535, 0.764], abs=0.006)
    assert means("LPR", others) == pytest.approx([0.998, 0.777], abs=0.006)
    # The share of the first 20 in the question's language: English, and the mean of all.
    shares = re.findall(r"^([a-z]{2}) +1,190 +\S+ +\S+ +(\.\d+) → (\.\d+)", others, re.MULTILINE)
    own = {language: (float(before), float(after)) for language, before, after in shares}
    assert own["en"] == pytest.approx((0.58, 0.13), abs=0.01)
    assert np.mean(list(own.values()), axis=0) == pytest.approx((0.74, 0.22), abs=0.02)


# Dataset and row of a table of exact search -> what independent code measured: Appendix C's methods beside the base,
# other pivots, Appendix J's queries that are shifted, too.
EXACT = {
    ("xquad-en", "none nothing"): {"nDCG@20": 0.6927, "TLR@20": 0.6689, "SLR@20": 1.0, "LPR": 0.997},
    ("xquad-en", "shift documents"): {"nDCG@20": 0.8685, "TLR@20": 0.8857, "SLR@20": 0.981, "LPR": 0.637},
    ("xquad-de", "none"): {"nDCG@20": 0.6345, "TLR@20": 0.6102, "SLR@20": 0.996, "LPR": 0.997},
    ("xquad-de", "shift"): {"nDCG@20": 0.8266, "TLR@20": 0.8459, "SLR@20": 0.967, "LPR": 0.674},
    ("xquad-th", "none"): {"nDCG@20": 0.4483, "TLR@20": 0.3691, "SLR@20": 0.997, "LPR": 0.999},
    ("xquad-th", "shift"): {"nDCG@20": 0.7340, "TLR@20": 0.7483, "SLR@20": 0.974, "LPR": 0.850},
    ("xquad-zh", "none"): {"nDCG@20": 0.2756, "TLR@20": 0.0643, "SLR@20": 0.998, "LPR": 1.0},
    ("xquad-zh", "shift"): {"nDCG@20": 0.6790, "TLR@20": 0.6916, "SLR@20": 0.995, "LPR": 0.984},
    ("xquad-all", "none nothing"): {"nDCG@20": 0.5346, "TLR@20": 0.4723, "SLR@20": 0.996, "LPR": 0.998},
    ("xquad-all", "shift documents"): {"nDCG@20": 0.7639, "TLR@20": 0.7759, "SLR@20": 0.972, "LPR": 0.777},
    ("xquad-all", "shift both sides"): {"nDCG@20": 0.7747, "TLR@20": 0.7898, "SLR@20": 0.971, "LPR": 0.777},
    ("xquad-all", "centering both sides"): {"nDCG@20": 0.7996, "TLR@20": 0.8189, "SLR@20": 0.971},
    ("xquad-all", "lir both sides"): {"nDCG@20": 0.8012, "TLR@20": 0.8205, "SLR@20": 0.972},
}


def test_exact_search_gives_the_figures_of_independent_code(printed):
    require_exact(printed[OTHERS], EXACT, NEAR)


# Beyond what the page shows, with what its commands have left behind.


def asked(*arguments, cwd):
    done = langshift("evaluate", *arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.usefixtures("printed")
@pytest.mark.parametrize("pivot", ["en", "de"])
def test_the_gain_is_significant_and_is_the_same_with_vectors_that_ship(pivot, folder):
    data, exact = f"xquad-{pivot}", ["--pivot", pivot, "--alpha", 1, "--cache", "cache"]
    of_pivot = ["--vectors", "e5-small.safetensors", "--output", f"rows-{pivot}"]
    rows = asked("offline", data, "--method", "none,shift", *of_pivot, *exact, cwd=folder)["rows"]
    assert [row["queries"]["nDCG@20"] for row in rows] == [1190, 1190]
    compared = asked("compare", f"rows-{pivot}/none", f"rows-{pivot}/shift", cwd=folder)
    assert (compared["test"]["clustered_by"], compared["test"]["clusters"]) == ("article", 48)
    (tested,) = compared["sections"]["cross-language"]["TLR@20"]["tests"]
    assert tested["significant"]
    expected = EXACT[data, "shift documents" if pivot == "en" else "shift"]
    gain = expected["TLR@20"] - EXACT[data, "none nothing" if pivot == "en" else "none"]["TLR@20"]
    assert tested["difference"] == pytest.approx(gain, abs=NEAR)
    # Those that come with langshift are of the same text.
    shipped = asked("offline", data, *exact, cwd=folder)["measures"]
    for name in ("nDCG@20", "TLR@20", "SLR@20"):
        assert shipped[name] == pytest.approx(expected[name], abs=NEAR)


@pytest.mark.usefixtures("printed")
def test_questions_in_the_pivot_language_are_the_same_shifted_or_not(folder):
    options = ["--vectors", "e5-small.safetensors", "--shift-queries", "never,always", "--measures", "nDCG@20"]
    rows = asked("offline", "xquad-all", *options, "--cache", "cache", cwd=folder)["rows"]
    assert [row["shift_queries"] for row in rows] == [False, True]
    assert rows[0]["by_language"]["en"] == rows[1]["by_language"]["en"]
    assert rows[0]["by_language"]["de"] != rows[1]["by_language"]["de"]
