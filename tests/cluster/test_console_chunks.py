"""The console over an index of chunks: hits are documents, each with its best passage, and more on demand."""

import re
import uuid
from html import unescape

import pytest
from chunked_index import BREAD, PARAGRAPHS, ingest_paragraphs
from console_process import serving
from searched import drop


@pytest.fixture(scope="module")
def name(client, cluster_url, tmp_path_factory):
    made = f"langshift-test-{uuid.uuid4().hex[:8]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENSEARCH_URL", cluster_url)
        ingest_paragraphs(tmp_path_factory.mktemp("corpus"), made)
    yield made
    drop(client, made)


@pytest.fixture(scope="module")
def http(cluster_url, tmp_path_factory):
    with serving(url=cluster_url, home=tmp_path_factory.mktemp("home")) as served, served.client() as opened:
        yield opened


@pytest.fixture
def ask(http, name):
    def asked(path="/search", **values):
        given = {"q": BREAD, "left": name, "right": name} | {n.replace("__", "."): v for n, v in values.items()}
        return http.get(path, params=given)

    return asked


def listed(answer, place="right"):
    """Document -> what a list says of its passage, best first."""
    found = answer.text.partition(f'aria-labelledby="{place}-heading"')[2].partition("</section>")[0]
    hits = re.findall(r'<li class="hit[^"]*" data-id="([^"]*)">(.*?)</li>', found, re.DOTALL)
    said = {document: re.search(r"Passage \d+ of \d+", hit) for document, hit in hits}
    assert len(said) == len(hits)
    return {document: None if found is None else found[0] for document, found in said.items()}


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid", "balanced", "anchored"])
def test_each_document_is_listed_once_with_its_best_passage(ask, mode):
    answer = ask(right__mode=mode, left__mode="dense", left__alpha=0.5)
    assert answer.status_code == 200
    found = listed(answer)
    assert next(iter(found.items())) == ("harbour", "Passage 3 of 3")
    expected = {"harbour": "Passage 3 of 3", "brot": "Passage 2 of 2", "river": None}
    if mode != "lexical":
        assert found == expected
        assert listed(answer, "left") == expected


def test_all_passages_of_a_document_the_best_first(ask):
    link = re.search(r'href="(/search/passages\?[^"]*)"', ask().text)
    assert link is not None
    answer = ask("/search/passages", side="right", id="harbour")
    shown = re.findall(r'class="change">(passage \d of 3), characters ([\d,]+)-([\d,]+)<', answer.text)
    assert shown[0][0] == "passage 3 of 3"
    assert sorted(one for one, _, _ in shown) == ["passage 1 of 3", "passage 2 of 3", "passage 3 of 3"]
    for text in PARAGRAPHS["harbour"]:
        assert text in unescape(answer.text)
    assert ask("/search/passages", id="nowhere").status_code == 404


def test_why_is_told_of_the_best_passage(ask):
    answer = ask("/search/hit", side="right", id="harbour", right__mode="dense", right__alpha=0.5)
    assert answer.status_code == 200
    said = unescape(answer.text)
    assert "Its best passage here: passage 3 of 3, characters" in said
    assert PARAGRAPHS["harbour"][2] in said
    assert PARAGRAPHS["harbour"][0] not in said
    assert "rank 1, score" in said
    assert all(f"As {when}" in said for when in ("indexed", "selected"))
    others = said.partition("The same in other languages")[2]
    assert others.count('class="badge"') == 2
    assert ask("/search/hit", id="nowhere").status_code == 404
