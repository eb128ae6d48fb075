"""The page of the papers' figures, one step past them: both sides as `vectors tune` recommends, from NTREX alone."""

import re

import pytest
from reproduced import means, require_shown, run_blocks

BLOCK = 4


@pytest.fixture(scope="module")
def printed(tmp_path_factory, client, cluster_url, xquad, e5_small, page_lock):  # noqa: ARG001 - which knows the texts
    """What the commands print, and the page shows from then on."""
    folder = tmp_path_factory.mktemp("reproduction-both")
    (found,) = run_blocks([BLOCK], folder, client, cluster_url, xquad, page_lock)
    return found


def test_the_page_showed_what_its_commands_print(printed):
    require_shown(BLOCK, printed)


def test_every_language_finds_what_others_have(printed):
    (everywhere,), (in_others,) = means("nDCG@20", printed), means("TLR@20", printed)
    assert everywhere >= 0.805
    assert in_others >= 0.82
    languages = re.findall(r"^[a-z]{2} +(\.\d+) .* 1,190$", printed, re.MULTILINE)
    assert len(languages) == 8
    assert min(map(float, languages)) >= 0.74


def test_no_setting_of_the_grid_finds_much_more(printed):
    """The whole grid, alpha and gamma by .1, is in `make evidence`."""
    (found,) = means("nDCG@20", printed)
    grid = printed[printed.index("gamma") :]
    assert max(float(figure) for figure in re.findall(r"(?<!\d)\.\d{4}\b", grid)) <= found + 0.01
