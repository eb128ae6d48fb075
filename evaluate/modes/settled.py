"""Settings replayed side by side, each tested against the first: over all queries, and by slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langshift.evaluate.clusters import Clusters, clusters
from langshift.evaluate.compare.comparing import changed
from langshift.evaluate.compare.significance import Tested, paired_tests
from langshift.evaluate.compare.slices import slices
from langshift.evaluate.dataset import Dataset
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.replay import Replay
from langshift.ingest.searching.options import written


@dataclass(frozen=True)
class Row:
    """One index in one setting.

    Attributes:
        name: the setting as options, after the index where there are several.
        replay: what was found.
        tests: measure -> test against the first row; empty in the first row, and without what cannot be paired.
        sliced: slice -> test of the first measure against the first row, over its queries; empty in the first row.
    """

    name: str
    replay: Replay
    tests: Mapping[str, Tested]
    sliced: Mapping[str, Tested]

    @property
    def folder(self) -> str:
        """What its folder is called: the name without blanks, ``hybrid-prefer-language-0.02``."""
        return self.name.replace(": ", "-").replace(" --", "-").replace(" ", "-")


@dataclass(frozen=True)
class Settled:
    """All rows.

    Attributes:
        dataset: what was replayed.
        rows: in the order asked for, the settings of the first index first.
        primary: the measure that slices are judged by: the first of which more, or less, is better.
        clusters: which queries belong together.
        slices: slice -> its queries.
    """

    dataset: Dataset
    rows: Sequence[Row]
    primary: str | None
    clusters: Clusters
    slices: Mapping[str, Sequence[str]]

    def mean(self, row: Row, part: str) -> float | None:
        """The figure of the primary measure over the queries of a slice."""
        return None if self.primary is None else row.replay.scores[self.primary].over(self.slices[part]).mean


def settle(dataset: Dataset, found: Sequence[Replay]) -> Settled:
    """Test every replay against the first.

    Two families of tests are corrected, each for itself: measures times later rows, and slices times later rows.
    """
    first = found[0]
    together = clusters(dataset)
    primary = next((name for name in first.scores if parse_measure(name).family.direction != "report"), None)
    parts = slices(dataset.qrels, first.languages, first.documents) if primary else {}
    changes = {
        (name, place): changed(before, one.scores[name])
        for place, one in enumerate(found)
        for name, before in first.scores.items()
        if place
    }
    by_slice = {
        (part, place): {
            query: change for query in queries if (change := changes[primary, place].get(query)) is not None
        }
        for part, queries in parts.items()
        for place in range(1, len(found))
        if primary
    }
    tested, sliced = paired_tests(changes, together.of), paired_tests(by_slice, together.of)
    several = len({one.index for one in found}) > 1
    rows = [
        Row(
            (f"{one.index}: " if several else "") + written(one.setting),
            one,
            {name: test for (name, where), test in tested.items() if where == place},
            {part: test for (part, where), test in sliced.items() if where == place},
        )
        for place, one in enumerate(found)
    ]
    return Settled(dataset, rows, primary, together, parts)
