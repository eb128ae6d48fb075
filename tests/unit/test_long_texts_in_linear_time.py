"""Expressions over texts from outside: however they are made, 100 KB are looked at within two seconds."""

import time

import pytest

from langshift.errors import UsageError
from langshift.evaluate.datasets.logs import QueryLog
from langshift.ingest.bulk.dead_letters import kind_of
from langshift.ingest.bulk.response import reason
from langshift.plugin.index_templates import _fits
from langshift.server_errors import missing_permissions

LONG = 100_000


@pytest.fixture(autouse=True)
def quick():
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("unit", [" ", "a", "[a", "[a]", "took ", "[", "\t "])
def test_lines_of_slow_logs(unit, tmp_path):
    path = tmp_path / "slow.log"
    path.write_text(f"[t][WARN ][index.search.slowlog.query] {unit * (LONG // len(unit))} source[{{}}]\n")
    with pytest.raises(UsageError, match="line 1, is not as a search slow log has it"):
        list(QueryLog(path).lines())


@pytest.mark.parametrize("unit", [" ", "\n", "at [Source: ", " at [Source: a] "])
def test_reasons_of_a_cluster(unit):
    error = {"reason": "refused", "caused_by": {"reason": "no number" + unit * (LONG // len(unit))}}
    assert reason(error) == "refused (no number)"


def test_where_a_parser_stood_is_left_out_of_a_reason():
    error = {"reason": "refused", "caused_by": {"reason": "no number\n at [Source: REDACTED; byte offset: #11]; again"}}
    assert reason(error) == "refused (no number; again)"


@pytest.mark.parametrize("unit", [" 'a", ' "a', " `a", " «a", "value [", "... ", "1.", " ", "'", "date field ["])
def test_kinds_of_dead_letters(unit, letter):
    assert len(kind_of(letter(unit * (LONG // len(unit)) + "!"))) < 400


def test_a_value_that_is_cut_is_of_the_kind_of_one_that_is_not(letter):
    assert kind_of(letter("cannot take 'abc' of 12")) == "cannot take ... of ..."
    assert kind_of(letter("cannot take 'abc")) == "cannot take ..."
    assert kind_of(letter("it's a value [x y] of the field 'title'")) == "it's a value ... of the field 'title'"


@pytest.fixture
def letter():
    from langshift.ingest.bulk.dead_letters import DeadLetter

    def made(reason):
        return DeadLetter._make({"reason": reason}.get(name) for name in DeadLetter._fields)

    return made


def test_refusals_for_want_of_rights():
    assert missing_permissions("no permissions for [" * (LONG // 20)) is None
    found = missing_permissions(f"no permissions for [a] and User [name={'x' * LONG}")
    assert found is None or found.permissions == ("a",)


def test_patterns_of_index_templates():
    assert not _fits("a" * 250, {"index_patterns": ["*a" * 30 + "b"]})
    assert _fits("news-[1]?", {"index_patterns": ["n*-[1]?"]})
    assert not _fits("news-1x", {"index_patterns": ["n*-[1]?"]})
