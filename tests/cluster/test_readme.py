"""The README stays true: its commands run, and print what it shows."""

import os
import re

import pytest
from readme import DATA, README, blocks, differences, run

BLOCKS = blocks(README.read_text(encoding="utf-8"))
NEEDS_DATA = [block for block in BLOCKS if "$XQUAD" in block.code]
ON_THEIR_OWN = [block for block in BLOCKS if block not in NEEDS_DATA]


def compare(some, tmp_path, cluster_url, index_name):
    # Not the names of the README: the cluster may be one that people use.
    def rename(code):
        return re.sub(r"(--index |search )(?=[a-z])", rf"\g<1>{index_name}-", code)

    def restore(printed):
        return printed.replace(f"{index_name}-", "")

    outputs = []
    for block in some:
        url = os.environ.get("OPENSEARCH_URL") or cluster_url
        printed = restore(run(block.code, tmp_path, rename, OPENSEARCH_URL=url))
        if block.shown is not None:
            assert differences(printed, block.shown) == []
        outputs.append(printed)
    return outputs


def test_index_search_and_fit(tmp_path, cluster_url, index_name):
    assert [block.shown is not None for block in ON_THEIR_OWN] == [True] * 4
    compare(ON_THEIR_OWN, tmp_path, cluster_url, index_name)


@pytest.mark.skipif(not (DATA / "xquad").is_dir(), reason=f"no XQuAD in {DATA}; LANGSHIFT_DATA names another place")
def test_the_papers_figures(tmp_path, cluster_url, index_name):
    english, others = compare(NEEDS_DATA, tmp_path, cluster_url, index_name)
    # What exact search gives, within what approximate search may cost.
    assert figures("nDCG@20", english) == pytest.approx([0.7802, 0.7850], abs=0.006)
    live, exact = figures("nDCG@20", others)[:2], figures("nDCG@20", others)[2:]
    assert live == pytest.approx([0.7166, 0.7224], abs=0.006)
    assert exact == pytest.approx([0.7802, 0.7850, 0.7293, 0.7405], abs=0.002)
    assert figures("LPR", others) == pytest.approx([0.554, 0.533, 0.472, 0.421], abs=0.006)


def figures(measure, printed):
    """The means of a measure, in the order of the tables."""
    return [float(figure) for figure in re.findall(rf"^{measure}\s+(\.\d+)", printed, re.MULTILINE)]


def test_the_comparison_notices_what_is_not_so():
    shown = "nDCG@20  .7802    1,190\nSpeed: encode 99/s, write 5/s.\ntook  2.0\n"
    assert differences(shown, shown) == []
    assert differences("nDCG@20 .7850 1,190\nSpeed: encode 7/s, write 1,000/s.\ntook 17.5\n", shown) == []
    assert differences(shown.replace(".7802", ".7700"), shown) == [
        "'nDCG@20  .7700    1,190' is shown as 'nDCG@20  .7802    1,190'"
    ]
    assert len(differences(shown.replace("1,190", "1,191"), shown)) == 1
    assert len(differences(shown.replace("took", "wall"), shown)) == 1
    assert differences(shown + "more\n", shown) == ["4 lines printed, 3 shown"]
