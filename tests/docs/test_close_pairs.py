"""The table of close languages in docs/reference/languages.md is the code's, and what the detector does on NTREX."""

import re

import measure_pairs
import pytest
from documents import DATA, REFERENCE

from langshift.debias.detector import CLOSE_PAIRS


def test_the_table_is_the_codes():
    rows = re.findall(
        r"^\| [a-z]{2}, [a-z]{2} \| .*$", (REFERENCE / "languages.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert rows == [measure_pairs.row(pair) for pair in CLOSE_PAIRS]


@pytest.mark.skipif(not (DATA / "ntrex").is_dir(), reason="NTREX-128 is not there: LANGSHIFT_DATA names its folder.")
def test_the_figures_are_those_of_the_bundled_detector():
    for pair in CLOSE_PAIRS:
        found = measure_pairs.measured(pair, DATA / "ntrex", None)
        assert found in (None, pair)
