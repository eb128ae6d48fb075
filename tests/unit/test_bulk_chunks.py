"""Chunks: by count, by bytes, and never with a delete beside another operation on its document."""

from hypothesis import given
from hypothesis import strategies as st

from langshift.ingest.bulk.chunks import Chunker
from langshift.ingest.bulk.item import Chunk, Item


def gathered(items, **limits):
    chunker = Chunker(**limits)
    chunks = [chunk for item in items if (chunk := chunker.add(item)) is not None]
    return chunks + [chunk for chunk in [chunker.take()] if chunk is not None]


OPERATIONS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["index", "delete"]), st.integers(1, 40)))


@given(OPERATIONS)
def test_all_come_through_in_order_within_the_limits(operations):
    items = [Item(n, name, op, b"x" * size, b"") for n, (name, op, size) in enumerate(operations)]
    chunks = gathered(items, count=4, size=50)
    assert [item for chunk in chunks for item in chunk.items] == items
    for chunk in chunks:
        assert 1 <= len(chunk) <= 4
        assert len(chunk.body) <= 50
        for name in chunk.deleted:
            assert [item.id for item in chunk.items].count(name) == 1


def test_an_item_beyond_the_size_is_a_chunk_of_its_own():
    items = [Item(n, str(n), "index", b"x" * size, b"") for n, size in enumerate((10, 500, 10))]
    assert [len(chunk.body) for chunk in gathered(items, size=50)] == [10, 500, 10]


def test_nothing_gathered_is_no_chunk():
    assert Chunker().take() is None


def test_halves():
    items = [Item(n, str(n), "index", bytes([n]), b"") for n in range(5)]
    first, second = Chunk(items).halves()
    assert (first.body, second.body) == (b"\0\1", b"\2\3\4")
