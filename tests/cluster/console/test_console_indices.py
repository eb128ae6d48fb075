"""The console's pages of indices, as a browser gets them."""

import re
import uuid
from html import unescape
from itertools import takewhile

import pytest
from adopted_index import adopted
from command_line import langshift
from console_process import heading, sentence, serving_here
from plain_index import PLAIN, made
from searched import drop, make_index

from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.plugin import version_writer
from langshift.plugin.description import confidence
from langshift.plugin.metadata import USUAL

HOSTILE = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("console")


@pytest.fixture(scope="module")
def browser(cluster_url, home):
    with serving_here(url=cluster_url, home=home) as console, console.client() as opened:
        yield opened


@pytest.fixture(scope="module")
def name(client, home, tmp_path_factory):
    """An index of six documents, and of two that a stranger has written to it: of a hostile and of no language."""
    chosen = f"langshift-test-{uuid.uuid4().hex[:8]}"
    make_index(client, tmp_path_factory.mktemp("corpus") / "corpus.jsonl", chosen)
    client.index(index=chosen, id="odd", body={"language": HOSTILE, "language_confidence": 0.25}, refresh=True)
    client.index(index=chosen, id="none", body={"text": {"und": "?"}}, refresh=True)
    place = LoadWorkspace.of(home, client, chosen)
    place.make()
    letter = DeadLetter("{}", 3, HOSTILE, "bad_line", f"{HOSTILE} is no date", "write", "2026-11-21", "c.jsonl", 3)
    DeadLetters(place.dead_letters).add([letter, letter._replace(line=4, version=4, reason="no text")])
    yield chosen
    drop(client, chosen)


def test_every_version_of_every_index_is_listed(browser, name):
    answer = browser.get("/indices")
    assert answer.status_code == 200
    assert heading(answer) == "Indices"
    for address in (f"/indices/{name}", f"/indices/{name}-v0001", f"/search?left={name}"):
        assert f'href="{address}"' in answer.text


def _without_size(text):
    return re.sub(r"takes up [\d.]+ \w+", "takes up some kB", text)


def test_an_index_is_described_in_the_words_of_the_command_line(browser, cluster_url, name):
    answer = browser.get(f"/indices/{name}")
    assert answer.status_code == 200
    assert heading(answer) == name
    told = langshift("index", "describe", name, url=cluster_url)
    # What an index takes up may change between the two, by a merge or where an older commit goes away.
    shown = _without_size(unescape(answer.text))
    # The tables follow after an empty line.
    for line in takewhile(str.strip, told.stdout.splitlines()):
        assert f"<li>{_without_size(line)}</li>" in shown
    remarks = [line for line in told.stderr.splitlines() if line]
    assert remarks
    for line in remarks:
        assert f"<li>{line}</li>" in shown


def test_a_hostile_tag_and_a_hostile_letter_are_shown_as_text(browser, name):
    answer = browser.get(f"/indices/{name}")
    assert "<script>alert" not in answer.text
    assert f">{ESCAPED}</span>" in answer.text
    assert f"(<bdi>{ESCAPED}</bdi>)" in answer.text


def test_dead_letters_of_the_index_are_told_by_reason(browser, name):
    answer = browser.get(f"/indices/{name}")
    assert '<td class="reason">no text</td>' in answer.text
    assert '<td class="reason">... is no date</td>' in answer.text
    assert f"langshift ingest --dead-letters --index {name}" in answer.text


def test_the_detectors_confidence_is_what_the_documents_carry(client, browser, name):
    found = confidence(client, f"{name}-v0001", USUAL)
    # The one without a language tells none either.
    assert found.documents == 7
    assert found.bins[2] == 1
    assert sum(found.bins) == 7
    assert found.languages[HOSTILE] == (1, 0.25, 1.0, 1.0)
    assert set(found.languages) == {"en", "de", "th", HOSTILE}
    assert "7 documents by the detector's confidence" in browser.get(f"/indices/{name}").text


def test_an_index_without_confidence_says_so(client, browser, index_name):
    target = made(client, index_name, documents=3)
    client.indices.refresh(index=target.index)
    answer = browser.get(f"/indices/{index_name}")
    assert answer.status_code == 200
    assert "No document records how sure the detector was of its language." in answer.text
    assert "There are no dead letters of" in answer.text


def test_a_version_has_a_page_of_its_own(client, browser, index_name):
    made(client, index_name)
    version_writer.publish(client, version_writer.open_for_writing(client, index_name, PLAIN, if_exists="new-version"))
    answer = browser.get(f"/indices/{index_name}-v0001")
    assert heading(answer) == f"{index_name}-v0001"
    assert f"{index_name}-v0001 is a kept version of {index_name}" in answer.text
    assert f'href="/indices/{index_name}-v0002"' in answer.text


def test_an_adopted_index_is_described_by_its_own_fields(client, cluster_url, browser, tmp_path):
    old = f"langshift-test-{uuid.uuid4().hex[:8]}"
    with adopted(client, cluster_url, old, tmp_path) as name:
        answer = browser.get(f"/indices/{name}")
        assert answer.status_code == 200
        assert f"{name}-v0001 is the version that {name} points to, adopted from {old}." in answer.text
        assert '<tr><th scope="row">headline</th><td>own</td><td class="number">200</td></tr>' in answer.text
        assert "in 4 languages" in " ".join(answer.text.split())
        assert "200 documents by the detector's confidence" in answer.text


def test_an_index_that_is_not_there_has_no_page(browser):
    answer = browser.get("/indices/nothing-of-that-name")
    assert answer.status_code == 404
    assert sentence(answer) == "There is no index nothing-of-that-name: choose one from the list of indices."


def test_what_cannot_be_a_name_is_refused(browser):
    answer = browser.get("/indices/%3Cb%3E*")
    assert answer.status_code == 400
    assert sentence(answer).startswith("'<b>*' is not a valid index name")
    assert "<b>*" not in answer.text


def test_an_index_of_somebody_else_has_no_page_and_is_as_one_that_is_missing(client, browser, index_name):
    client.indices.create(index=index_name, body={"aliases": {f"{index_name}-alias": {}}})
    for name in (index_name, f"{index_name}-alias"):
        answer = browser.get(f"/indices/{name}")
        assert answer.status_code == 404
        assert sentence(answer) == f"There is no index {name}: choose one from the list of indices."
