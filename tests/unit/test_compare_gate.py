"""Conditions under which a comparison fails: what is read, what is held against what, and what is said."""

from __future__ import annotations

import pytest

from langshift.errors import UsageError
from langshift.evaluate.compare.gate import Condition, check_condition, parse_condition

HOW = (
    "write 'SLR@20 < -0.01' for the change from the first run (or the baseline) to the last, 'value nDCG@20 < 0.7' for "
    "the last run's figure itself, and 'SLR@20 in de < -0.01' or 'in any' for the queries in one language or in any"
)
BEFORE = {("SLR@20", None): 0.95, ("SLR@20", "de"): 0.9, ("SLR@20", "th"): 1.0}
AFTER = {("SLR@20", None): 0.94, ("SLR@20", "de"): 0.93, ("SLR@20", "th"): 0.95}


def verdict(text, before=BEFORE):
    figures = None if before is None else lambda name, language: before.get((name, language))
    found = check_condition(
        parse_condition(text), ["de", "th"], lambda name, language: AFTER.get((name, language)), figures
    )
    return found.failed, found.says


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SLR@20 < -0.01", (True, "SLR@20", None, "<", -0.01)),
        ("  change   SLR@20<=-.01 ", (True, "SLR@20", None, "<=", -0.01)),
        ("value nDCG@20 < 0.7", (False, "nDCG@20", None, "<", 0.7)),
        ("value Lang_nDCG(same=3, other=1)@20 >= 1", (False, "Lang_nDCG(same=3,other=1)@20", None, ">=", 1.0)),
        ("SLR@20 in any > +5.", (True, "SLR@20", "any", ">", 5.0)),
        ("SLR@20 < -1e-3", (True, "SLR@20", None, "<", -0.001)),
        ("LPR in de > .1", (True, "LPR", "de", ">", 0.1)),
    ],
)
def test_what_is_read(text, expected):
    found = parse_condition(text)
    assert found == Condition(" ".join(text.split()), *expected)


@pytest.mark.parametrize(
    "text",
    ["", "SLR@20", "SLR@20 <", "SLR@20 = 1", "SLR@20 < one", "< 1", "SLR@20 < 1 in de", "a b < 1"],
)
def test_what_cannot_be_read(text):
    with pytest.raises(UsageError) as caught:
        parse_condition(text)
    assert str(caught.value) == f"--fail-if {text!r} is not a valid condition: {HOW}."


def test_an_unknown_measure():
    with pytest.raises(UsageError) as caught:
        parse_condition("slr@20 < 0")
    assert str(caught.value).startswith("'slr@20' is not a known measure: use nDCG@k, ")


@pytest.mark.parametrize(
    ("text", "failed", "says"),
    [
        ("SLR@20 < -0.02", False, "SLR@20 changes by -.0100, from .9500 to .9400."),
        ("SLR@20 < -0.005", True, "SLR@20 changes by -.0100, from .9500 to .9400 (fails if 'SLR@20 < -0.005')."),
        ("value SLR@20 < 0.94", False, "SLR@20 is .9400."),
        ("value SLR@20 <= 0.94", True, "SLR@20 is .9400 (fails if 'value SLR@20 <= 0.94')."),
        ("SLR@20 in de < 0", False, "SLR@20 for queries in de changes by +.0300, from .9000 to .9300."),
        # The mean may hide a loss; `in any` does not.
        (
            "SLR@20 in any < -0.03",
            True,
            "SLR@20 for queries in th changes by -.0500, from 1.0000 to .9500 (fails if 'SLR@20 in any < -0.03').",
        ),
        (
            "SLR@20 in any < -0.06",
            False,
            "SLR@20 for queries in de changes by +.0300, from .9000 to .9300; "
            "SLR@20 for queries in th changes by -.0500, from 1.0000 to .9500.",
        ),
        # What has no figure cannot pass.
        ("TLR@20 < -0.5", True, "TLR@20 has no figure in the last run (fails if 'TLR@20 < -0.5')."),
        ("value TLR@20 < 0", True, "TLR@20 has no figure in the last run (fails if 'value TLR@20 < 0')."),
    ],
)
def test_what_is_said(text, failed, says):
    assert verdict(text) == (failed, says)


def test_a_figure_that_was_missing_before():
    said = "SLR@20 has no figure to compare with (fails if 'SLR@20 < -0.5')."
    assert verdict("SLR@20 < -0.5", before={}) == (True, said)


def test_a_change_of_nothing():
    assert verdict("SLR@20 < 0", before=AFTER) == (False, "SLR@20 is unchanged at .9400.")
    said = "SLR@20 changes by less than .0001 (fails if 'SLR@20 < 0')."
    assert verdict("SLR@20 < 0", before={("SLR@20", None): 0.94001}) == (True, said)


def test_a_language_in_which_nothing_is_asked():
    with pytest.raises(UsageError) as caught:
        verdict("SLR@20 in fr < 0")
    assert str(caught.value) == (
        "--fail-if 'SLR@20 in fr < 0': there are no queries in 'fr'; the queries are in de, th."
    )


def test_a_change_with_nothing_to_change_from():
    assert verdict("value SLR@20 < 0.5", before=None) == (False, "SLR@20 is .9400.")
    with pytest.raises(UsageError) as caught:
        verdict("SLR@20 < 0.5", before=None)
    assert str(caught.value) == (
        "--fail-if 'SLR@20 < 0.5' is about a change, but there is only one run: give two, or --baseline FILE, "
        "or write 'value SLR@20 < 0.5' for the figure itself."
    )
