"""Two answers of a search as JSON that are to be the same."""

import pytest


def require_same(one, other, path="", within=1e-6):
    """The same fields in the same order, numbers to a millionth if nothing else is said."""
    if isinstance(other, dict):
        assert list(one) == list(other) or path.endswith((".source", ".legs")), path
        assert set(one) == set(other), path
        for name in other:
            require_same(one[name], other[name], f"{path}.{name}", within)
    elif isinstance(other, list):
        assert len(one) == len(other), path
        for place, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            require_same(mine, theirs, f"{path}[{place}]", within)
    elif isinstance(other, float) or isinstance(one, float):
        assert one == pytest.approx(other, rel=within, abs=within), path
    else:
        assert one == other, path
