"""The console over an index of chunks: hits are documents, each with its best passage, and more on demand."""

import re
from html import unescape

import pytest
from chunked_index import BREAD, PARAGRAPHS, paragraph_index
from console_process import serving_here


@pytest.fixture(scope="module")
def name(client, cluster_url, tmp_path_factory):
    with paragraph_index(client, cluster_url, tmp_path_factory.mktemp("corpus")) as made:
        yield made


@pytest.fixture(scope="module")
def long(client, cluster_url, tmp_path_factory):
    """The same with a document of more passages that are near than are looked at first."""
    parts = [f"Why does bread rise? Because of yeast, says baker {number}." for number in range(130)]
    with paragraph_index(client, cluster_url, tmp_path_factory.mktemp("long"), bakers=parts) as made:
        yield made


@pytest.fixture(scope="module")
def http(cluster_url, tmp_path_factory):
    with serving_here(url=cluster_url, home=tmp_path_factory.mktemp("home")) as served, served.client() as opened:
        yield opened


@pytest.fixture
def ask(http, name):
    def asked(path="/search", **values):
        given = {"q": BREAD, "left": name, "right": name, "once": "0"} | {
            n.replace("__", "."): v for n, v in values.items()
        }
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
    expected = {"harbour": "Passage 3 of 3", "brot": "Passage 2 of 2", "river": None}
    assert listed(answer, "left") == expected
    # No word of the question is in the other documents.
    assert found == (expected if mode != "lexical" else {"harbour": expected["harbour"]})


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_a_document_with_many_near_passages_hides_no_other(ask, long, mode):
    found = listed(ask(left__mode=mode, left=long), "left")
    assert set(found) == {*PARAGRAPHS, "bakers"}
    assert next(iter(found)) == "bakers"
    assert found["harbour"] == "Passage 3 of 3"


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
    assert re.search(r"rank [12], score 0\.\d{4}", said)
    assert all(f"As {when}" in said for when in ("indexed", "selected"))
    others = said.partition("The same in other languages")[2]
    assert others.count('class="badge"') == 2
    assert ask("/search/hit", id="nowhere").status_code == 404
