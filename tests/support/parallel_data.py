"""Parallel text read whole, and what is refused about it."""

import pytest

from langshift.debias.parallel import open_parallel
from langshift.errors import LangshiftError, UsageError


def read(path, languages=None, *, size=3, **options):
    """The places, and the texts (or vectors) by language, of all rows."""
    source = open_parallel(path, languages, **options)
    places, rows = [], {tag: [] for tag in source.languages}
    for batch in source.batches(size):
        assert 0 < len(batch.places) <= size
        held = batch.texts or batch.vectors
        assert sorted(held) == source.languages
        places.extend(batch.places)
        for tag, column in held.items():
            assert len(column) == len(batch.places)
            rows[tag].extend(column)
    assert source.total in (None, len(places))
    return places, rows


def refusal(path, languages=None, *, of=UsageError, **options):
    """The sentence with which parallel text is refused, when it is opened or when it is read."""
    with pytest.raises(LangshiftError) as refused:
        read(path, languages, **options)
    assert type(refused.value) is of
    return str(refused.value)
