"""An audit as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from langshift.debias.similarity import Floats
from langshift.evaluate.audit.audited import NEAREST, Audit
from langshift.evaluate.audit.judged import Gap, Judged
from langshift.evaluate.audit.offsets import Interval
from langshift.evaluate.audit.verdict import verdict


def document(audit: Audit) -> dict[str, Any]:
    """As ``langshift adopt --audit --json`` prints it."""
    old, making = audit.opened.old, audit.opened.making
    vectors = making.debias.vectors
    return {
        "old": {"name": old.name, "index": old.index, "uuid": old.uuid},
        "documents": audit.opened.reader.total,
        "with_vector": audit.opened.reader.bearing,
        "sample": len(audit.sample.tags),
        "unusable": audit.sample.unusable,
        "fingerprint": making.fingerprint().to_dict(),
        "vectors": vectors and {"pivot": vectors.pivot, "hash": vectors.hash, "source": vectors.source},
        "languages": [vars(mix) for mix in audit.mixes],
        "disagreements": [one.to_dict() for one in audit.disagreements],
        "queries": {
            "file": audit.asking.file,
            "total": audit.asking.total,
            "used": len(audit.asking.tags),
            "shifted": making.debias.shift_queries,
        },
        "reference": audit.reference,
        "spread": audit.spread,
        "shift": [_judged(one) for one in audit.judged],
        "similarity": {
            "queries": list(audit.rows.asked),
            "documents": list(audit.rows.languages),
            "pairs": audit.rows.pairs.astype(int).tolist(),
            "before": _numbers(audit.before),
            "after": _numbers(audit.after),
        },
        "nearest": {"documents": NEAREST, "languages": [near._asdict() for near in audit.near]},
        "verdict": [finding._asdict() for finding in verdict(audit)],
    }


def _judged(one: Judged) -> dict[str, Any]:
    fit = one.fit and {"cosine": one.fit.cosine, "there": one.fit.there._asdict()}
    return {**one._asdict(), "fit": fit, "gap": one.gap and _gap(one.gap)}


def _gap(gap: Gap) -> dict[str, Any]:
    found: dict[str, Interval] = vars(gap)
    return {name: interval._asdict() for name, interval in found.items()}


def _numbers(means: Floats) -> list[list[float | None]]:
    return [[None if np.isnan(mean) else mean for mean in row] for row in means.tolist()]
