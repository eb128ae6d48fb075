"""What an index keeps of its calibration, and what is known of one that was never calibrated."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Final, NamedTuple

from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin import meta
from langshift.plugin.versions import LiveIndex
from langshift.retrieval.calibration.calibration import Calibration
from langshift.retrieval.calibration.groups import has_groups, measured_priors
from langshift.retrieval.calibration.spread import measured_spread
from langshift.retrieval.trust import Trust

# Adopted indices may allow no more than some hundred documents a request.
_SPREAD_DOCUMENTS: Final = 200
_GROUPED_DOCUMENTS: Final = 300
# An index that has grown or shrunk by as much is another one.
_MUCH: Final = 2


def trust_of(client: OpenSearch, index: LiveIndex) -> Trust:
    """The index's own part of the rule of anchored search: calibrated, else what a sample tells at once.

    That is the spread, and the priors where the index has translation groups; words have their usual worth.

    Raises:
        ClusterError: what the index keeps cannot be read.
    """
    kept = _kept(client, index)
    if kept is not None:
        return kept.trust
    spread = measured_spread(client, index, _SPREAD_DOCUMENTS)
    return Trust(spread, priors=measured_priors(client, index, _GROUPED_DOCUMENTS) if has_groups(client, index) else {})


def remarks_on(client: OpenSearch, index: LiveIndex, trust: Trust) -> list[str]:
    """What a searcher should know of a calibration; empty where all is as it should be.

    Args:
        client: the cluster.
        index: the index.
        trust: as ``trust_of`` gives it.

    Raises:
        ClusterError: what the index keeps cannot be read.
    """
    if not trust.calibrated:
        return [f"{index.name} is not calibrated for anchored search, so usual figures are used: {_command(index)}."]
    kept = _kept(client, index)
    changed = [] if kept is None else _changed(kept, index)
    if not changed:
        return []
    return [f"{index.name} was calibrated for anchored search with {' and '.join(changed)}: {_again(index)}."]


def keep(client: OpenSearch, index: LiveIndex, calibration: Calibration) -> None:
    """Keep a calibration in the index's mapping, with what it was measured with and came to."""
    measured = {
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "questions": calibration.questions,
        "found": round(calibration.found, 4),
        "deceived": round(calibration.deceived, 4),
        "measured_with": measured_with(index),
    }
    meta.change(client, index.index, {meta.ANCHORS: {**calibration.trust.to_dict(), **measured}})


def measured_with(index: LiveIndex) -> dict[str, Any]:
    """What a calibration holds for: the shift of the documents, and about as many of them."""
    made = index.fingerprint
    return {
        "alpha": made.alpha,
        "alphas": dict(made.alphas),
        "vectors": made.vectors,
        "method": made.method,
        "documents": index.documents,
    }


class _Kept(NamedTuple):
    """A calibration as an index keeps it.

    Attributes:
        trust: the calibration.
        measured_with: as ``measured_with`` gave it then; empty if it is not there.
        documents: how many the index had then.
    """

    trust: Trust
    measured_with: Mapping[str, Any]
    documents: int


def _kept(client: OpenSearch, index: LiveIndex) -> _Kept | None:
    """What an index keeps of its calibration; None if it was never calibrated.

    Raises:
        ClusterError: it cannot be read.
    """
    kept = meta.read(client, index.index).get(meta.ANCHORS)
    if kept is None:
        return None
    try:
        then = kept.get("measured_with", {})
        return _Kept(Trust.from_dict(kept), then, int(then.get("documents", 0)))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        raise ClusterError(
            f"The calibration in the mapping of {index.index} (_meta.{meta.ANCHORS}) cannot be read: {_again(index)}."
        ) from None


def _changed(kept: _Kept, index: LiveIndex) -> list[str]:
    now, then = measured_with(index), kept.measured_with
    changed = []
    if any(then.get(name) != now[name] for name in ("vectors", "method")):
        changed.append("other language vectors")
    elif (then.get("alpha"), then.get("alphas")) != (now["alpha"], now["alphas"]):
        same = then.get("alpha") == now["alpha"]
        told = "other alphas of single languages" if same else f"alpha {then.get('alpha')}, not {now['alpha']}"
        changed.append(told)
    if not kept.documents / _MUCH <= index.documents <= kept.documents * _MUCH:
        changed.append(f"{kept.documents:,} documents, not {index.documents:,}")
    return changed


def _command(index: LiveIndex) -> str:
    return f"`langshift anchors calibrate {index.name}`"


def _again(index: LiveIndex) -> str:
    return f"{_command(index)} measures again"
