"""What a file of language vectors keeps of its making, so that it can be judged later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from langshift.ingest.fitting.alignment import Alignment, Suspect
from langshift.ingest.fitting.reliability import Reliability

_DIGITS = 4


@dataclass(frozen=True)
class Evidence:
    """The evidence of one language.

    Attributes:
        pairs: pairs of which the vector is the mean.
        missing: rows without a text in this language, in the pivot's, or in both.
        norm: mean norm of the language's embeddings.
        pivot_norm: mean norm of the pivot's embeddings.
        reliability: how far the pairs agree.
        alignment: which pairs look misaligned.
    """

    pairs: int
    missing: int
    norm: float
    pivot_norm: float
    reliability: Reliability
    alignment: Alignment

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, figures to four digits."""
        document: dict[str, Any] = _rounded(asdict(self))
        document["alignment"]["worst"] = [_rounded(suspect._asdict()) for suspect in self.alignment.worst]
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Evidence:
        """Read what ``to_json`` made.

        Raises:
            ValueError: it is something else.
        """
        try:
            found, pairs = document["reliability"], document["alignment"]
            _require_numbers(document, "pairs", "missing", "norm", "pivot_norm")
            _require_numbers(found, "split_half", "low", "high", "noise", "cosine")
            _require_numbers(pairs, "checked", "sharpness", "told", "count")
            if found["enough"] is not None:
                _require_numbers(found, "enough")
            worst = tuple(Suspect(str(one["place"]), str(one["fits"]), float(one["margin"])) for one in pairs["worst"])
            curve = tuple((int(step), float(cosine)) for step, cosine in found["curve"])
            parts = {
                "reliability": Reliability(**{**found, "curve": curve}),
                "alignment": Alignment(**{**pairs, "worst": worst}),
            }
            return cls(**{**document, **parts})
        except (KeyError, TypeError) as error:
            raise ValueError(str(error)) from error


def _require_numbers(document: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if not isinstance(document[name], int | float):
            raise TypeError(name)


def _rounded(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return value
