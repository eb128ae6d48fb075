"""What the console's search pages keep between requests."""

from types import SimpleNamespace

import pytest

from langshift.evaluate.console.search.cache import Gathered, Kept


def test_what_was_used_longest_ago_is_kept_no_longer():
    kept = Kept(2)
    made = [kept.of(key, lambda key=key: key.upper()) for key in ("a", "b", "a", "c")]
    assert made == ["A", "B", "A", "C"]
    assert [kept.get(key) for key in ("a", "b", "c")] == ["A", None, "C"]


def test_what_is_to_be_fresh_is_made_again():
    kept = Kept()
    assert [kept.of("a", lambda: 1), kept.of("a", lambda: 2), kept.of("a", lambda: 3, fresh=True)] == [1, 1, 3]
    assert kept.get("a") == 3


@pytest.mark.parametrize(
    ("shiftable", "lacks", "fixed"),
    [
        (None, {}, None),
        (None, {"lexical": "Too many words."}, None),
        (None, {"dense": "There is no encoder."}, "There is no encoder."),
        ("It keeps no vectors.", {"dense": "There is no encoder."}, "It keeps no vectors."),
    ],
)
def test_alpha_stays_where_the_index_or_the_query_has_nothing_to_move(shiftable, lacks, fixed):
    assert Gathered(SimpleNamespace(shiftable=shiftable), SimpleNamespace(lacks=lacks)).fixed == fixed
