"""What ``langshift adopt --audit`` does."""

from __future__ import annotations

from pathlib import Path

from langshift.cluster import open_cluster
from langshift.console import emit_json
from langshift.evaluate.audit.audited import audit
from langshift.evaluate.audit.document import document
from langshift.evaluate.audit.shown import show
from langshift.ingest.adopt.adopting import Asked, open_old

#: Documents that are drawn where nothing else is asked for.
SAMPLE = 2000


def run_audit(asked: Asked, size: int, queries: Path | None, patience: float, *, as_json: bool) -> None:
    """Look at a sample of an index, and tell what a shift would change; nothing is written."""
    with open_cluster() as client, open_old(client, asked, patience) as opened:
        found = audit(opened, size, queries)
        if as_json:
            emit_json(document(found))
        else:
            show(found)
