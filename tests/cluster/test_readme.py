"""The README stays true: its commands run, and print what it shows."""

import os
import re
from itertools import takewhile

import pytest
from readme import DATA, README, blocks, differences, run

from langshift.plugin import pipeline
from langshift.plugin.indices import dropping
from langshift.plugin.merged_template import Template

BLOCKS = blocks(README.read_text(encoding="utf-8"))
NEEDS_DATA = [block for block in BLOCKS if "$XQUAD" in block.code]
NAME = re.compile(
    r"""(--index |--name |index="|(?:adopt|search|retune|rollback|describe|drop|install|verify) )([a-z][a-z-]*)\b"""
)
ON_THEIR_OWN = [block for block in BLOCKS if block not in NEEDS_DATA]


def compare(some, tmp_path, cluster_url, index_name, articles=None):
    # Not the names of the README: the cluster may be one that people use. For a longer name than `articles`, tables
    # would be broken into lines elsewhere.
    def rename(code):
        return NAME.sub(lambda found: found[1] + ours(found[2]), code)

    def ours(name):
        return name.replace("articles", articles) if name in ("articles", "old-articles") else f"{index_name}-{name}"

    def restore(printed):
        return printed.replace(f"{index_name}-", "").replace(articles or "articles", "articles")

    outputs = []
    for block in some:
        url = os.environ.get("OPENSEARCH_URL") or cluster_url
        printed = restore(run(block.code, tmp_path, rename, OPENSEARCH_URL=url))
        if block.shown is not None:
            assert differences(printed, block.shown) == []
        outputs.append(printed)
    return outputs


@pytest.fixture
def articles(client, index_name):
    """The ending of ``index_name``; what a test has named by that alone is removed afterwards."""
    name = index_name[-len("articles") :]
    yield name
    dropping.drop_all(client, name)
    client.indices.delete(index=f"old-{name}", params={"ignore_unavailable": "true"})
    pipeline.forget(client, f"{name}-v0001")


def test_index_search_and_fit(tmp_path, cluster_url, index_name, articles):
    assert all(block.shown is not None for block in ON_THEIR_OWN)
    compare(ON_THEIR_OWN, tmp_path, cluster_url, index_name, articles)


def test_the_template_is_one(tmp_path):
    (shown,) = re.findall(r"```json\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "own.json"
    path.write_text(shown)
    template = Template.read(path)
    assert template.mappings["properties"]["text"]["properties"]["ja"] == {"analyzer": "kuromoji"}
    assert template.settings == {"number_of_shards": 2}


@pytest.mark.skipif(not (DATA / "xquad").is_dir(), reason=f"no XQuAD in {DATA}; LANGSHIFT_DATA names another place")
def test_the_papers_figures(tmp_path, cluster_url, index_name):
    english, others = compare(NEEDS_DATA, tmp_path, cluster_url, index_name)
    # What exact search gives, within what approximate search may cost.
    assert figures("nDCG@20", english) == pytest.approx([0.7802, 0.7850], abs=0.006)
    assert figures("nDCG@20", others) == pytest.approx([0.7166, 0.7224], abs=0.006)
    assert figures("LPR", others) == pytest.approx([0.554, 0.533], abs=0.006)
    found = exact(others)
    for row, expected in EXACT.items():
        assert found[row] == pytest.approx(expected, abs=0.002), row


# Dataset and beginning of a row -> nDCG@20 and the measure beside it, by independent code.
EXACT = {
    ("xquad-en", "none nothing"): [0.7802, 0.8132],
    ("xquad-en", "shift documents"): [0.7850, 0.8218],
    ("xquad-en", "centering both"): [0.7705, 0.8047],
    ("xquad-en", "lir both"): [0.7846, 0.8199],
    ("xquad-en", "affine documents"): [0.7872, 0.8242],
    ("xquad-en", "shift detected"): [0.7850, 0.8218],
    ("xquad-de", "none"): [0.7293, 0.7600],
    ("xquad-de", "shift"): [0.7405, 0.7778],
    ("xquad-de", "affine"): [0.7440, 0.7825],
    ("xquad-all", "none nothing"): [0.7166, 0.7720],
    ("xquad-all", "shift documents"): [0.7224, 0.7797],
    ("xquad-all", "affine documents"): [0.7238, 0.7814],
}


def exact(printed):
    """The first two figures of every row of the tables of exact search, by dataset and the row's first words."""
    found, dataset = {}, None
    for line in printed.splitlines():
        heading = re.match(r"(\S+): .* exact search", line)
        dataset = heading[1] if heading else dataset
        words = line.split()
        measured = [float(word) for word in words if re.fullmatch(r"\.\d{4}", word)]
        if dataset and measured:
            found[dataset, " ".join(list(takewhile(str.isalpha, words))[:2])] = measured[:2]
    return found


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
    assert differences("hash 19312964b33ce025\n", "hash dfe712fe0fb8e7a7\n") == []
    assert len(differences("hash none\n", "hash dfe712fe0fb8e7a7\n")) == 1
    assert len(differences(shown.replace("1,190", "1,191"), shown)) == 1
    assert len(differences(shown.replace("took", "wall"), shown)) == 1
    changes = "th 1,190 .121 de -.013, th +.013, ru +.012\n"
    assert differences("th 1,190 .121 de -.013, ru +.013, es -.012\n", changes) == []
    assert len(differences(changes.replace("de -.013", "de -.023"), changes)) == 1
    far = "es 1,190 .217 es -.038, de -.029, ru +.020\n"
    assert len(differences(far.replace("es -.038", "zh -.038"), far)) == 1
    assert differences(shown + "more\n", shown) == ["4 lines printed, 3 shown"]
