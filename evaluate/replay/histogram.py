"""Percentiles of times, from a High Dynamic Range histogram.

Coordinated omission: a client that waits for a slow answer asks nothing meanwhile, so the queries
that would have been slow too are never sent, and the percentiles look better than what users would
have met (Gil Tene). In open loop nothing is omitted: a query's time counts from when it was due. In
closed loop there is no time at which a query was due, so the times are as measured, and ``corrected``
gives beside them what queries that kept coming at the usual pace would have met.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from hdrh.histogram import HdrHistogram

PERCENTILES = (50, 90, 95, 99)
_LONGEST = 3_600_000_000  # microseconds: an hour
_DIGITS = 3

Percentiles = dict[str, float | None]
"""``p50``, ``p90``, ``p95`` and ``p99`` in milliseconds, to three digits; None where there is no time."""


def percentiles(times: Iterable[float]) -> Percentiles:
    """The percentiles of times.

    Args:
        times: milliseconds; what is longer than an hour counts as an hour.
    """
    histogram = _histogram()
    for time in times:
        histogram.record_value(_microseconds(time))
    return _read(histogram)


def corrected(times: Sequence[float], interval: float | None = None) -> Percentiles:
    """The percentiles as they would have been had queries kept coming while one was waited for.

    A time of at least two intervals counts also for the queries that did not come meanwhile: it is
    recorded again less one interval, less two, and so on.

    Args:
        times: milliseconds from sending to the answer, of one user after the other.
        interval: milliseconds between two queries; the median time if None, since that is the pace of
            users who ask again at once.
    """
    if not times:
        return _read(_histogram())
    usual = _microseconds(median(times) if interval is None else interval)
    histogram = _histogram()
    for time in times:
        recorded = _microseconds(time)
        if recorded >= 2 * usual > 0:
            histogram.record_corrected_value(recorded, usual)
        else:
            histogram.record_value(recorded)
    return _read(histogram)


def _histogram() -> HdrHistogram:
    return HdrHistogram(1, _LONGEST, _DIGITS)


def _microseconds(milliseconds: float) -> int:
    return min(round(milliseconds * 1000), _LONGEST)


def _read(histogram: HdrHistogram) -> Percentiles:
    if not histogram.get_total_count():
        return dict.fromkeys(f"p{p}" for p in PERCENTILES)
    found = histogram.get_percentile_to_value_dict(PERCENTILES)
    return {f"p{p}": histogram.get_lowest_equivalent_value(found[p]) / 1000 for p in PERCENTILES}
