"""Settings replayed side by side, each tested against the first: over all queries, and by slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langshift.evaluate.compare.comparing import changed
from langshift.evaluate.compare.significance import Tested, paired_tests
from langshift.evaluate.compare.slices import slices
from langshift.evaluate.datasets.clusters import Clusters, clusters
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.replay.replayed import Replay
from langshift.retrieval.options import written


@dataclass(frozen=True)
class Row:
    """One index in one setting.

    Attributes:
        name: the setting as options, after the index where there are several.
        replay: what was found.
        tests: measure -> test against the first row; empty in the first row, and without what cannot be paired.
        sliced: slice -> measure -> test against the first row, over the slice's queries; empty in the first row.
    """

    name: str
    replay: Replay
    tests: Mapping[str, Tested]
    sliced: Mapping[str, Mapping[str, Tested]]

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
        directed: the measures of which more, or less, is better: what slices are judged by.
        clusters: which queries belong together.
        slices: slice -> its queries; empty where every query has an answer in its language.
    """

    dataset: Dataset
    rows: Sequence[Row]
    directed: Sequence[str]
    clusters: Clusters
    slices: Mapping[str, Sequence[str]]

    def mean(self, row: Row, part: str, name: str) -> float | None:
        """The figure of a measure over the queries of a slice."""
        return row.replay.scores[name].over(self.slices[part]).mean


def settle(dataset: Dataset, found: Sequence[Replay]) -> Settled:
    """Test every replay against the first.

    Two families of tests are corrected, each for itself: measures times later rows over all queries, and measures
    of which more, or less, is better times slices times later rows.
    """
    first = found[0]
    together = clusters(dataset)
    directed = [name for name in first.scores if parse_measure(name).family.direction != "report"]
    parts = slices(dataset.qrels, first.languages, first.documents) if directed else {}
    changes = {
        (name, place): changed(before, one.scores[name])
        for place, one in enumerate(found)
        for name, before in first.scores.items()
        if place
    }
    judged = {key: change for key, change in changes.items() if key[0] in directed}
    tested, sliced = paired_tests(changes, together.of), paired_tests(_parts(judged, parts), together.of)
    several = len({one.index for one in found}) > 1
    rows = [
        Row(
            (f"{one.index}: " if several else "") + written(one.setting),
            one,
            {name: test for (name, where), test in tested.items() if where == place},
            {
                part: {name: test for (of, name, where), test in sliced.items() if (of, where) == (part, place)}
                for part in (parts if place else ())
            },
        )
        for place, one in enumerate(found)
    ]
    return Settled(dataset, rows, directed, together, parts)


def _parts(
    changes: Mapping[tuple[str, int], Mapping[str, float]], slices: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str, int], dict[str, float]]:
    """Slice, measure and row -> the differences of the slice's queries."""
    return {
        (part, name, place): {query: change[query] for query in queries if query in change}
        for part, queries in slices.items()
        for (name, place), change in changes.items()
    }
