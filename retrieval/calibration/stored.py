"""What an index keeps of its calibration: stored, read, and the mode that ``auto`` stands for by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Annotated, Any, Final

import msgspec
from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin import metadata
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.anchored import AnchorModel
from langshift.retrieval.calibration.fit import (
    CalibratedMode,
    Calibration,
    has_groups,
    measured_priors,
    measured_spread,
)
from langshift.retrieval.settings import RECOMMENDED, ModeChoice, SearchSettings

# Adopted indices may allow no more than some hundred documents a request.
_MEASURED_DOCUMENTS: Final = 200
_GROUPED_DOCUMENTS: Final = 300
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
# An index that has grown or shrunk by as much is another one.
_MUCH: Final = 2


@dataclass(frozen=True)
class StoredCalibration:
    """What an index keeps under ``_meta.langshift_anchors``.

    Attributes:
        trust: what of the rule of ``anchored`` is the index's own.
        mode: the best mode for the index; None where an earlier version of langshift measured, which compared none.
        lexical_weight: the share of words at which ``hybrid`` loses nothing; None where there is none.
        measured_with: what it holds for, see ``measured_with``.
    """

    trust: AnchorModel
    mode: CalibratedMode | None
    lexical_weight: float | None
    measured_with: Mapping[str, Any]

    @classmethod
    def of_index(cls, index: IndexInfo) -> StoredCalibration | None:
        """The calibration of an index; None where it was never calibrated.

        Raises:
            ClusterError: it cannot be read.
        """
        values = index.calibration
        if values is None:
            return None
        try:
            then = values.get("measured_with", {})
            then = {**then, "documents": int(then.get("documents", 0))}
            mode = msgspec.convert(values.get("mode"), CalibratedMode | None)
            weight = msgspec.convert(values.get("lexical_weight"), _Share | None)
            if mode == "hybrid" and weight is None:
                raise ValueError("hybrid is the best mode, and has no weight")
            return cls(AnchorModel.from_dict(values), mode, weight, then)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise ClusterError(
                f"The calibration in the mapping of {index.index} (_meta.{metadata.ANCHORS}) cannot be read: "
                f"{_command(index)} again."
            ) from None

    def outdated(self, index: IndexInfo) -> str | None:
        """Why it does not hold for the index as it is now, as the rest of a sentence about that; None where it does."""
        if self.mode is None:
            return "was calibrated by an earlier version of langshift"
        changed = _changed(self.measured_with, measured_with(index))
        return f"was calibrated with {' and '.join(changed)}" if changed else None


def store_calibration(client: OpenSearch, index: IndexInfo, calibration: Calibration) -> None:
    """Keep a calibration in the index's mapping, with what it was measured with and came to."""
    measured = {
        "mode": calibration.mode,
        "lexical_weight": calibration.lexical_weight,
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "questions": calibration.questions,
        "found": round(calibration.found, 4),
        "deceived": round(calibration.deceived, 4),
        "measured_with": measured_with(index),
    }
    metadata.change(client, index.index, {metadata.ANCHORS: {**calibration.trust.to_dict(), **measured}})


def measured_with(index: IndexInfo) -> dict[str, Any]:
    """What a calibration holds for: the shift of the documents, and about as many of them."""
    made = index.fingerprint
    return {
        "alpha": made.alpha,
        "alphas": dict(made.alphas),
        "gamma": made.gamma,
        "vectors": made.vectors,
        "method": made.method,
        "documents": index.documents,
    }


def _changed(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What became another than ``measured_with`` was when the index was calibrated."""
    changed = []
    if any(then.get(name) != now[name] for name in ("vectors", "method")):
        changed.append("different language vectors")
    else:
        scales = [name for name in ("alpha", "gamma") if then.get(name) != now[name]]
        changed += [f"{name} {then.get(name)} (now {now[name]})" for name in scales]
        if "alpha" not in scales and then.get("alphas") != now["alphas"]:
            changed.append("different alphas for individual languages")
    if not then["documents"] / _MUCH <= now["documents"] <= then["documents"] * _MUCH:
        changed.append(f"{then['documents']:,} documents (now {now['documents']:,})")
    return changed


def trust_of(client: OpenSearch, index: IndexInfo) -> AnchorModel:
    """The index's own part of the rule of anchored search: calibrated, else what a sample tells at once.

    That is the spread, and the priors where the index has translation groups; all else is as usual.

    Raises:
        ClusterError: what the index keeps cannot be read.
    """
    calibration = StoredCalibration.of_index(index)
    if calibration is not None:
        return calibration.trust
    spread = measured_spread(client, index, _MEASURED_DOCUMENTS)
    return AnchorModel(
        spread, priors=measured_priors(client, index, _GROUPED_DOCUMENTS) if has_groups(client, index) else {}
    )


def resolve_auto(index: IndexInfo, setting: SearchSettings = RECOMMENDED) -> ModeChoice:
    """The mode that ``auto`` stands for in an index: what its calibration found to be best, as long as that holds.

    It is ``dense`` where the index was never calibrated, or is no longer what was measured: shifted otherwise, or with
    less than half or more than twice as many documents.

    Args:
        index: what is searched.
        setting: in the mode ``auto``.
    """
    dense = replace(setting, mode="dense")
    try:
        stored = StoredCalibration.of_index(index)
    except ClusterError as error:
        return ModeChoice(dense, "default", str(error))
    if stored is None:
        unusable, again = "is not calibrated, so mode anchored uses default values and auto is dense", ""
    elif outdated := stored.outdated(index):
        unusable, again = f"{outdated}, so mode auto is dense", " again"
    else:
        return _calibrated(index, setting, stored)
    remedy = f": {_command(index)}{again}" if index.calibratable else ""
    return ModeChoice(dense, "default", f"{index.name} {unusable}{remedy}.")


def _calibrated(index: IndexInfo, setting: SearchSettings, stored: StoredCalibration) -> ModeChoice:
    figures = {
        "anchored": f" (strength {stored.trust.strength:g})",
        "hybrid": f" (lexical weight {stored.lexical_weight})",
    }
    mode, weight = stored.mode or "dense", stored.lexical_weight
    if mode == "hybrid" and weight is not None:
        setting = replace(setting, lexical_weight=weight)
    reason = f"Mode {mode}{figures.get(mode, '')}, which calibration found to be best for {index.name}."
    return ModeChoice(replace(setting, mode=mode), "calibration", reason)


def _command(index: IndexInfo) -> str:
    return f"run `langshift anchors calibrate {index.name}`"
