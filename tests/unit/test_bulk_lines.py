"""Lines: the same as a set of numbers, in a few ranges."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langshift.ingest.bulk.lines import Lines

NUMBERS = st.integers(min_value=1, max_value=40)
STEPS = st.lists(st.tuples(NUMBERS, st.integers(min_value=0, max_value=12)), max_size=40)


@given(steps=STEPS)
def test_lines_hold_what_a_set_would_hold(steps):
    lines, model = Lines(), set()
    for first, length in steps:
        lines.add(first, first + length)
        model.update(range(first, first + length + 1))
        assert len(lines) == len(model)
    assert {line for line in range(60) if line in lines} == model
    ranges = lines.ranges()
    assert [line for first, last in ranges for line in range(first, last + 1)] == sorted(model)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(ranges))


def test_lines_that_come_in_disorder_end_as_one_range():
    lines = Lines()
    for first in (*range(1, 10_001, 20), *range(11, 10_001, 20)):
        lines.add(first, first + 9)
    assert lines.ranges() == [(1, 10_000)]
    assert len(lines) == 10_000


def test_a_range_that_runs_backwards_is_refused():
    lines = Lines()
    with pytest.raises(ValueError, match=r"^3 to 2 is no range\.$"):
        lines.add(3, 2)
    assert lines.ranges() == []
