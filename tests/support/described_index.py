"""What could be said of an index, for tests of the words in which it is said."""

from dataclasses import replace

from plain_index import PLAIN

from langshift.plugin.description import Description
from langshift.plugin.index_body import VectorField
from langshift.plugin.inventory import Version
from langshift.plugin.metadata import USUAL
from langshift.plugin.shift_script import StampCounts

MADE = replace(PLAIN, vectors="0123456789abcdef", pivot="en", alpha=0.6, alphas={"th": 0.3, "zh-TW": 0.0})
LIVE = Version(
    name="news",
    version="news-v0001",
    uuid="u1",
    state="live",
    documents=9,
    bytes=1000,
    fingerprint=MADE,
    made="2026-11-21T17:03:43+00:00",
    write_blocked=False,
    origin=None,
    unfinished=None,
    blocks=None,
)
RETUNE = replace(LIVE, version="news-v0002", state="unfinished", unfinished="retune", blocks="news-v0001")
WELL = Description(
    version=LIVE,
    versions=[LIVE],
    fields=USUAL,
    entries=9,
    languages={"en": 6, "und": 3},
    without_vector=0,
    stamps=StampCounts(9, 0, 0, 0),
    masked="",
    vector=VectorField("lucene", "cosinesimil", derived=True),
    texts=[],
    default_pipeline=None,
    shards=1,
    replicas=0,
    auto_expand_replicas=None,
)
