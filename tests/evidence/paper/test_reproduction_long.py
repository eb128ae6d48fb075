"""The page of the papers' figures, long documents: XQuAD's articles cut, whole and as chunks, measured as in PosIR."""

import re

import pytest
from reproduced import require_shown, run_blocks

ENGLISH, POOLED, ENGLISH_E5, POOLED_E5 = BLOCKS = range(6, 10)
COLUMNS = ("nDCG@10", "PSI@10", "floor", "95 %", "worst", "best", "EvidenceHit@10")


@pytest.fixture(scope="module")
def printed(folder, client, cluster_url, xquad, e5_small, page_lock):  # noqa: ARG001 - which knows the texts
    """What the commands of each block print, and the page shows from then on."""
    return dict(zip(BLOCKS, run_blocks(BLOCKS, folder, client, cluster_url, xquad, page_lock), strict=True))


@pytest.mark.parametrize("number", BLOCKS)
def test_the_page_showed_what_its_commands_print(number, printed):
    require_shown(number, printed[number])


def figures(printed):
    """Index -> column -> figure, of the tables by the place of the evidence."""
    rows = re.findall(r"(?m)^(articles\S+)((?: +-| +\d?\.\d{4}){7})$", printed)
    return {
        name: {
            column: None if cell == "-" else float(cell) for column, cell in zip(COLUMNS, cells.split(), strict=True)
        }
        for name, cells in rows
    }


def test_chunks_find_what_stands_anywhere_in_a_document(printed):
    found = figures(printed[ENGLISH])
    cut, whole, paragraphs, auto = (found[f"articles-{name}"] for name in ("cut", "whole", "chunks", "auto"))
    # Exact search in NumPy.
    assert cut["nDCG@10"] == pytest.approx(0.826, abs=0.004)
    assert whole["nDCG@10"] == pytest.approx(0.882, abs=0.004)
    assert paragraphs["nDCG@10"] == pytest.approx(0.952, abs=0.004)
    assert paragraphs["nDCG@10"] >= 0.94
    assert abs(auto["nDCG@10"] - paragraphs["nDCG@10"]) <= 0.02
    for chunks in (paragraphs, auto):
        assert chunks["worst"] >= 0.92 * chunks["best"]
        assert chunks["EvidenceHit@10"] > 0.8
    # A cut text is biased beyond chance, far more than one vector of the whole.
    assert cut["PSI@10"] > cut["95 %"]
    assert cut["PSI@10"] > 2 * whole["PSI@10"]
    assert cut["EvidenceHit@10"] is whole["EvidenceHit@10"] is None


@pytest.mark.parametrize(
    ("number", "prefix"), [(POOLED, "articles8"), (ENGLISH_E5, "articles-e5"), (POOLED_E5, "articles8-e5")]
)
def test_so_they_do_with_other_encoders_and_in_a_pool_of_languages(number, prefix, printed):
    found = figures(printed[number])
    cut, whole, paragraphs = (found[f"{prefix}-{name}"] for name in ("cut", "whole", "chunks"))
    assert paragraphs["nDCG@10"] > max(cut["nDCG@10"], whole["nDCG@10"])
    assert paragraphs["PSI@10"] < cut["PSI@10"]
    assert paragraphs["worst"] / paragraphs["best"] > max(cut["worst"] / cut["best"], 0.85)
