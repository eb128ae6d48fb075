"""The page of the papers' figures, one step past them: a gamma, as `vectors tune` recommends from NTREX alone."""

import re

from command_line import langshift
from reproduced import means, require_shown, rows

BLOCK = 5


def test_the_page_showed_what_its_commands_print(printed):
    require_shown(BLOCK, printed)


def test_every_language_finds_what_others_have(printed):
    """With the β of the index, and without: the last tables are those of the latter."""
    (first, everywhere), (_, in_others) = means("nDCG@20", printed), means("TLR@20", printed)
    assert first >= 0.75
    assert everywhere >= 0.81
    assert in_others >= 0.834
    languages = re.findall(r"^[a-z]{2} +(\.\d+) .* 1,190$", printed, re.MULTILINE)
    assert len(languages) == 16
    assert min(map(float, languages[8:])) >= 0.744


def test_readers_find_their_answer_and_the_right_page_first(printed):
    (own, without), (page, before), (readers, _) = (means(name, printed) for name in ("own@3", "P@1", "LPR"))
    assert own >= 0.94 > without
    assert page >= max(0.88, before - 0.005)
    assert readers >= 0.94


def highest(printed, count):
    """The highest nDCG@20 of a grid of so many settings."""
    grid = [row["nDCG@20"] for (heading, _), row in rows(printed).items() if heading == "xquad-all"]
    assert len(grid) == count
    return max(grid)


def test_no_setting_of_the_grid_finds_much_more(printed):
    _, found = means("nDCG@20", printed)
    assert highest(printed, 3 * 5) <= found + 0.01


def test_nor_does_one_of_the_whole_grid(printed, folder):
    """Alpha from 0 to 1 by .1, with gammas."""
    _, found = means("nDCG@20", printed)
    tenths = ",".join(f"{tenth / 10:g}" for tenth in range(11))
    grid = ("--alpha", tenths, "--gamma", "0,.9,.93,.95,.97,.98", "--measures", "nDCG@20", "--cache", "cache")
    done = langshift("evaluate", "offline", "xquad-all", *grid, cwd=folder)
    print(done.stdout)
    assert highest(done.stdout, 11 * 6) <= found + 0.01
