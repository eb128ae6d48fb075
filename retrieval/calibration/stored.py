"""What an index keeps of its calibration, and what is known of one that was never calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final, NamedTuple

from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin import metadata
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.anchor_model import AnchorModel
from langshift.retrieval.calibration.fit import has_groups, measured_priors, measured_spread


class LanguageCalibration(NamedTuple):
    """What the questions of one language came to.

    Attributes:
        language: primary tag.
        questions: how many.
        found: the share whose own document is trusted most.
        deceived: the mean trust in documents of the language where none of them can be right; the prior counts as 0
            at most there.
        prior: log-odds that what is sought is there in this language.
    """

    language: str
    questions: int
    found: float
    deceived: float
    prior: float


class FirstHits(NamedTuple):
    """How often the first hit is right.

    Attributes:
        questions: how many were asked.
        dense: share of those that a search by vectors alone answers.
        anchored: share of those that an anchored search answers.
        chance: the probability that chance alone makes the latter fall as far below the former.
    """

    questions: int
    dense: float
    anchored: float
    chance: float


@dataclass(frozen=True)
class Calibration:
    """A calibration, and what it was measured by.

    Attributes:
        trust: what of the rule is the index's own.
        languages: by language.
        there: first hits as the index is: the documents that the questions were cut out of.
        hidden: first hits with these hidden: their translations; None where there are none.
        fitted: ``k`` as it was fitted, where that was lowered because something would have been lost; else None.
        lost: whether anchored search loses against dense even with the lowest ``k``.
    """

    trust: AnchorModel
    languages: Sequence[LanguageCalibration]
    there: FirstHits
    hidden: FirstHits | None
    fitted: float | None = None
    lost: bool = False

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(one.questions for one in self.languages)

    @property
    def found(self) -> float:
        """The share of all questions whose own document is trusted most."""
        return sum(one.found * one.questions for one in self.languages) / self.questions

    @property
    def deceived(self) -> float:
        """The mean trust in documents of the question's language where none of them can be right."""
        return sum(one.deceived * one.questions for one in self.languages) / self.questions

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            **self.trust.to_dict(),
            "fitted_words": self.trust.words if self.fitted is None else self.fitted,
            "lost": self.lost,
            "questions": self.questions,
            "found": self.found,
            "deceived": self.deceived,
            "languages": [one._asdict() for one in self.languages],
            "first_hits": {
                "there": self.there._asdict(),
                "hidden": None if self.hidden is None else self.hidden._asdict(),
            },
        }


# Adopted indices may allow no more than some hundred documents a request.
_MEASURED_DOCUMENTS: Final = 200
_GROUPED_DOCUMENTS: Final = 300
# An index that has grown or shrunk by as much is another one.
_MUCH: Final = 2


def trust_of(client: OpenSearch, index: IndexInfo) -> AnchorModel:
    """The index's own part of the rule of anchored search: calibrated, else what a sample tells at once.

    That is the spread, and the priors where the index has translation groups; words have their usual worth.

    Raises:
        ClusterError: what the index keeps cannot be read.
    """
    calibration = _read_calibration(client, index)
    if calibration is not None:
        return calibration.trust
    spread = measured_spread(client, index, _MEASURED_DOCUMENTS)
    return AnchorModel(
        spread, priors=measured_priors(client, index, _GROUPED_DOCUMENTS) if has_groups(client, index) else {}
    )


def remarks_on(client: OpenSearch, index: IndexInfo, trust: AnchorModel) -> list[str]:
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
    calibration = _read_calibration(client, index)
    changed = [] if calibration is None else _changed(calibration, index)
    if not changed:
        return []
    return [f"{index.name} was calibrated for anchored search with {' and '.join(changed)}: {_again(index)}."]


def store_calibration(client: OpenSearch, index: IndexInfo, calibration: Calibration) -> None:
    """Keep a calibration in the index's mapping, with what it was measured with and came to."""
    measured = {
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
        "vectors": made.vectors,
        "method": made.method,
        "documents": index.documents,
    }


class _StoredCalibration(NamedTuple):
    """A calibration as an index keeps it.

    Attributes:
        trust: the calibration.
        measured_with: as ``measured_with`` gave it then; empty if it is not there.
        documents: how many the index had then.
    """

    trust: AnchorModel
    measured_with: Mapping[str, Any]
    documents: int


def _read_calibration(client: OpenSearch, index: IndexInfo) -> _StoredCalibration | None:
    """What an index keeps of its calibration; None if it was never calibrated.

    Raises:
        ClusterError: it cannot be read.
    """
    values = metadata.read_metadata(client, index.index).get(metadata.ANCHORS)
    if values is None:
        return None
    try:
        then = values.get("measured_with", {})
        return _StoredCalibration(AnchorModel.from_dict(values), then, int(then.get("documents", 0)))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        raise ClusterError(
            f"The calibration in the mapping of {index.index} (_meta.{metadata.ANCHORS}) cannot be read: "
            f"{_again(index)}."
        ) from None


def _changed(calibration: _StoredCalibration, index: IndexInfo) -> list[str]:
    now, then = measured_with(index), calibration.measured_with
    changed = []
    if any(then.get(name) != now[name] for name in ("vectors", "method")):
        changed.append("other language vectors")
    elif (then.get("alpha"), then.get("alphas")) != (now["alpha"], now["alphas"]):
        same = then.get("alpha") == now["alpha"]
        difference = "other alphas of single languages" if same else f"alpha {then.get('alpha')}, not {now['alpha']}"
        changed.append(difference)
    if not calibration.documents / _MUCH <= index.documents <= calibration.documents * _MUCH:
        changed.append(f"{calibration.documents:,} documents, not {index.documents:,}")
    return changed


def _command(index: IndexInfo) -> str:
    return f"`langshift anchors calibrate {index.name}`"


def _again(index: IndexInfo) -> str:
    return f"{_command(index)} measures again"
