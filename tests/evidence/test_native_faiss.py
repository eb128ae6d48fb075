"""The plugin's searches beside langshift's own with Faiss, drawn at random: the same hits and scores."""

from collections import Counter

import pytest
from native_faiss import KEPT, KINDS, OTHERS, agreement, written

#: Searches of each index, of which there are six of each way to keep vectors: 1,000 in each mode.
TIMES = 700


@pytest.mark.parametrize("kept", {**KEPT, **OTHERS})
def test_it_finds_what_langshift_finds(faiss, kept):
    counts, apart = Counter(), []
    for kind in KINDS:
        for shards in (1, 3):
            index = written(faiss, kept, kind, shards)
            compared = agreement(faiss, index, kept, kind, seed=shards)
            compared.compare(TIMES)
            counts += compared.counts
            apart += [(kind, shards, *one) for one in compared.apart]
            faiss.indices.delete(index=index)
    print(f"\n{kept}: {len(apart)} apart of " + ", ".join(f"{n:,} {what}" for what, n in counts.most_common()))
    for one in apart:
        print(*one)
    # How far the bits of numbers lead is another thing for each k, of which langshift's own search asks for others.
    assert len(apart) <= (counts["all"] * 0.01 if kept in ("faiss-on-disk", "mode on_disk") else 0)
