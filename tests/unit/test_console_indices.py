"""What the pages of indices say: rows of words, and dead letters counted for so long as a page may take."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from described_index import LIVE, MADE, RETUNE, WELL
from plain_index import PLAIN

from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.plugin import description
from langshift.plugin.description import Confidence, LanguageConfidence
from langshift.web.context import TEMPLATES
from langshift.web.indices import fingerprint_rows, summarize_dead_letters

SURE = Confidence(10, [1, 0, 0, 0, 0, 0, 0, 0, 2, 7], {"en": LanguageConfidence(6, 0.95, 0.0, 0.25)})


def shown(template, **context):
    """The texts of each row of a page's tables that is no heading."""
    page = TEMPLATES.get_template(template).render(cluster="", describe=description, **context)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page, re.DOTALL)
    cells = ([" ".join(re.sub("<.*?>", "", cell).split()) for cell in re.split("</t[hd]>", row)[:-1]] for row in rows)
    return [row for row, content in zip(cells, rows, strict=True) if 'scope="col"' not in content]


def overview(sure, versions=(LIVE,)):
    letters = SimpleNamespace(groups=[], remark=None)
    known = {"documents": "", "known": "", "fingerprint": [], "letters": letters, "plugin": None}
    return shown("index.html", this=LIVE, versions=versions, found=WELL, confidence=sure, **known)


def test_languages_come_with_how_sure_the_detector_was():
    rows = overview(SURE)
    assert rows[0] == ["en", "6", "66.7%", "0.950", "0.0%", "25.0%"]
    assert rows[1] == ["und", "3", "33.3%", "-", "-", "-"]


def test_the_confidence_is_told_in_tenths():
    told = [row for row in overview(SURE) if " to " in row[0]]
    assert [row[0] for row in told][::9] == ["0 to 0.1", "0.9 to 1"]
    assert [int(row[1]) for row in told] == list(SURE.bins)
    assert [row[2] for row in told] == ["10.0%", *["0.0%"] * 7, "20.0%", "70.0%"]
    assert not [row for row in overview(Confidence(0, [0] * 10, {})) if " to " in row[0]]


def test_every_field_of_a_fingerprint_is_told_in_words():
    told = dict(fingerprint_rows(replace(MADE, query_prefix="query: ", normalised=True)))
    assert len(told) == len(MADE.to_dict())
    assert told["Alphas of individual languages"] == "th 0.3, zh-TW 0"
    assert told["Prefix of queries"] == "'query: '"
    assert told["Prefix of documents"] == "none"
    assert told["Normalised by the encoder"] == "yes"
    assert told["Alpha (scale of the shift)"] == "0.6"
    assert "alpha" not in told, "a field without a name of its own"
    assert dict(fingerprint_rows(PLAIN))["Language vectors (hash)"] == "none"


def test_a_version_is_told_as_the_command_line_tells_it():
    live, other = shown("indices.html", versions=[LIVE, RETUNE])
    assert live[1:7] == ["v0001", "live", "9", "1.0 kB", MADE.encoder, "0.6 (2 others)"]
    assert live[7] == "2026-11-21"
    assert live[8] == "search"
    assert other[2] == "unfinished"
    assert not other[8], "what is unfinished is not searched"
    assert overview(SURE)[-1][6:] == ["-", "01234567"]
    plain = replace(LIVE, fingerprint=PLAIN, documents=None, bytes=None)
    assert shown("indices.html", versions=[plain])[0][3:7] == ["-", "-", PLAIN.encoder, "none"]
    assert overview(SURE, [plain])[-1][7] == "none"


@pytest.fixture
def place(tmp_path):
    made = LoadWorkspace(tmp_path / "news", "news")
    made.folder.mkdir()
    return made


def letter(line, reason="no text"):
    return DeadLetter("{}", line, None, "bad_line", reason, "read", "2026-11-21T00:00:00Z", "corpus.jsonl", line)


def test_dead_letters_are_counted_by_reason(place):
    DeadLetters(place.dead_letters).add([letter(1), letter(2, "no id"), letter(3)])
    found = summarize_dead_letters(place)
    assert [(one.reason, one.count) for one in found.groups] == [("no text", 2), ("no id", 1)]
    assert found.remark is None


def test_an_index_without_dead_letters_has_none(place):
    assert summarize_dead_letters(place) == ([], None)


@pytest.mark.parametrize("bound", [{"most": 2}, {"seconds": -1.0}])
def test_of_many_dead_letters_the_first_are_counted_and_that_is_said(place, bound):
    DeadLetters(place.dead_letters).add([letter(line) for line in range(1, 6)])
    found = summarize_dead_letters(place, **bound)
    count = bound.get("most", 1)
    assert [one.count for one in found.groups] == [count]
    assert found.remark == (
        f"Only the first {count} dead letter{'s' if count > 1 else ''} were counted: "
        "`langshift dead-letters list --index news` counts them all."
    )


def test_as_many_as_are_counted_at_most_are_all(place):
    DeadLetters(place.dead_letters).add([letter(1), letter(2)])
    assert summarize_dead_letters(place, most=2).remark is None


def test_a_file_that_holds_something_else_is_said_and_breaks_no_page(place):
    place.dead_letters.write_text("nonsense\n")
    found = summarize_dead_letters(place)
    assert found.groups == []
    assert found.remark.startswith(
        f"The dead letters cannot be counted: {place.dead_letters}, line 1, is not a valid dead letter"
    )


def test_a_file_that_cannot_be_read_is_said_and_breaks_no_page(place):
    place.dead_letters.mkdir()
    assert (
        summarize_dead_letters(place).remark == "The dead letters cannot be read (Is a directory): make them readable."
    )
