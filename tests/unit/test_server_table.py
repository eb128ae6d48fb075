"""The table of servers in docs/operations.md: what is put into it is what it says then, and all else stays."""

import pytest
import server_table
from server_checks import CHECKS
from server_kinds import ENGINES, UPGRADED

FINE = dict.fromkeys(server_table.COLUMNS, "yes")


@pytest.fixture
def page(tmp_path, monkeypatch):
    copy = tmp_path / "operations.md"
    copy.write_text(server_table.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(server_table, "PAGE", copy)
    return copy


def test_each_column_is_checked_and_each_server_has_a_row():
    assert set(server_table.COLUMNS) == set(CHECKS)
    assert {server for server, _ in server_table.read()} == {*ENGINES, UPGRADED}


def test_a_row_that_is_written_is_read_and_the_others_stay(page):
    before, text = server_table.read(), page.read_text()
    refused = {("3.6", "lucene"): FINE | {"adopt": "index audit: it has none, that is: no vectors.", "query": "400"}}
    server_table.write(refused)
    assert server_table.read() == before | refused
    assert "\n- 3.6, lucene, adopt: index audit: it has none, that is: no vectors.\n" in page.read_text()
    server_table.write({("3.6", "lucene"): before["3.6", "lucene"]})
    assert page.read_text() == text
