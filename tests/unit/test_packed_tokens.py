"""Vectors of tokens that an index keeps, as they are read; tests/evidence/models has those that torch packs."""

import pytest

from langshift.debias.encoders.token_vectors import unpack


@pytest.mark.parametrize("kept", ["", "AA==", "AAAA", "not base64!", "BQABAgM=", "é", None, 7, ["BQA="], {}])
def test_what_was_never_packed(kept):
    with pytest.raises(ValueError):  # noqa: PT011 - callers look at the type alone
        unpack(kept)
