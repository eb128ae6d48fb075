"""The page of the papers' figures with use-m, as in test_reproduction.py, beside which it runs."""

import pytest
from reproduced import means, require_exact, require_shown, run_blocks

NEAR = 0.002
BLOCK = 2


@pytest.fixture(scope="module")
def printed(folder, client, cluster_url, encoded_xquad, page_lock):
    """What the commands print, and the page shows from then on."""
    (found,) = run_blocks([BLOCK], folder, client, cluster_url, encoded_xquad, page_lock)
    return found


def test_the_page_showed_what_its_commands_print(printed):
    require_shown(BLOCK, printed)


def test_the_live_cluster_finds_what_exact_search_finds(printed):
    """Within what approximate search may cost."""
    assert means("nDCG@20", printed) == pytest.approx([0.7802, 0.7850], abs=0.006)


# As in test_reproduction.py; with Appendix G's detected languages.
EXACT = {
    ("xquad-en", "none nothing"): {"nDCG@20": 0.7802, "TLR@20": 0.8132, "LPR": 0.472},
    ("xquad-en", "shift documents"): {"nDCG@20": 0.7850, "TLR@20": 0.8218, "LPR": 0.421},
    ("xquad-en", "centering both sides"): {"nDCG@20": 0.7705, "TLR@20": 0.8047},
    ("xquad-en", "lir both sides"): {"nDCG@20": 0.7846, "TLR@20": 0.8199},
    ("xquad-en", "affine documents"): {"nDCG@20": 0.7872, "TLR@20": 0.8242, "LPR": 0.488},
    ("xquad-en", "shift detected"): {"LID": 1.0, "nDCG@20": 0.7850, "TLR@20": 0.8218},
    ("xquad-en", "shift detected:100"): {"LID": 0.998},
    ("xquad-en", "shift detected:50"): {"LID": 0.995},
    ("xquad-en", "shift detected:20"): {"LID": 0.944},
    ("xquad-de", "none"): {"nDCG@20": 0.7293, "TLR@20": 0.7600},
    ("xquad-de", "shift"): {"nDCG@20": 0.7405, "TLR@20": 0.7778},
    ("xquad-zh", "none"): {"nDCG@20": 0.7243, "TLR@20": 0.7593},
    ("xquad-zh", "shift"): {"nDCG@20": 0.7318, "TLR@20": 0.7715},
    ("xquad-all", "none nothing"): {"nDCG@20": 0.7166, "LPR": 0.554},
    ("xquad-all", "shift documents"): {"nDCG@20": 0.7224, "LPR": 0.533},
    # With this encoder, unlike with the paper's, queries are better left alone.
    ("xquad-all", "shift both sides"): {"nDCG@20": 0.7198, "LPR": 0.560},
    ("xquad-all", "affine documents"): {"nDCG@20": 0.7238, "LPR": 0.533},
    ("xquad-all", "affine both sides"): {"nDCG@20": 0.7215, "LPR": 0.564},
}


def test_exact_search_gives_the_figures_of_independent_code(printed):
    require_exact(printed, EXACT, NEAR)
