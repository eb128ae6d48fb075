"""Numbers on the command line."""

import pytest

from langshift.options import FiniteRange, Share


@pytest.mark.parametrize("kind", [FiniteRange(0), FiniteRange(0, min_open=True), Share()])
@pytest.mark.parametrize("told", ["nan", "inf", "-inf", "-1"])
def test_a_number_that_is_none_or_has_no_end_is_out_of_every_range(kind, told):
    with pytest.raises(Exception, match="is not in the range"):
        kind.convert(told, None, None)


def test_a_number_in_the_range_is_taken():
    assert FiniteRange(0).convert("1e9", None, None) == 1e9
    assert Share().convert("1", None, None) == 1.0
