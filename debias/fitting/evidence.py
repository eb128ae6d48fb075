"""What a file of language vectors keeps of its making, so that it can be judged later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from langshift.debias.fitting.alignment import Alignment, Suspect
from langshift.debias.fitting.reliability import Reliability

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
            _require(document, "pairs", "missing", kind=int)
            _require(document, "norm", "pivot_norm")
            _require(found, "split_half", "low", "high", "cosine", least=-1, most=1)
            _require(found, "noise")
            _require(pairs, "checked", kind=int)
            _require(pairs, "count", kind=int, most=pairs["checked"])
            _require(pairs, "sharpness", least=-np.inf)
            _require(pairs, "told", kind=bool)
            if found["enough"] is not None:
                _require(found, "enough", kind=int)
            worst = tuple(Suspect(str(one["place"]), str(one["fits"]), float(one["margin"])) for one in pairs["worst"])
            curve = tuple((int(step), float(cosine)) for step, cosine in found["curve"])
            parts = {
                "reliability": Reliability(**{**found, "curve": curve}),
                "alignment": Alignment(**{**pairs, "worst": worst}),
            }
            return cls(**{**document, **parts})
        except (KeyError, TypeError) as error:
            raise ValueError(str(error)) from error


def _require(
    document: Mapping[str, Any], *names: str, kind: type = float, least: float = 0, most: float = np.inf
) -> None:
    """Numbers of that kind between two bounds; JSON may have written a whole float as an integer."""
    kinds = (int, float) if kind is float else (kind,)
    for name in names:
        if type(document[name]) not in kinds or not least <= document[name] <= most:
            raise TypeError(name)


def _rounded(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return value
