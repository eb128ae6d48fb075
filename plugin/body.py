"""What the ingest pipeline of a version consists of."""

from __future__ import annotations

from typing import Any

from langshift.plugin import script as shift_script
from langshift.plugin.fields import Fields
from langshift.plugin.first import First, steps
from langshift.plugin.shift_index_shift import IndexShift
from langshift.settings import VERSION

# A stamp of one language may be merged, as a part of a document, with one of several, whose names must not stay.
_NAME_ONE = """\
def stamp = ctx;
for (String name : params.stamp) {
  stamp = stamp instanceof Map ? stamp.get(name) : null;
}
if (stamp instanceof Map && stamp.languages == null) {
  stamp.languages = null;
  stamp.alphas = null;
}
"""


def name_for(index: str) -> str:
    """How the pipeline of a version is called."""
    return f"langshift-{index}"


def body(
    index: str, shift: IndexShift, fields: Fields, first: First | None, script: str, *, soft: bool = False
) -> dict[str, Any]:
    """The body of ``PUT /_ingest/pipeline/langshift-<version>``.

    Args:
        index: the version.
        shift: how its documents are shifted.
        fields: the names of its fields.
        first: what runs before the shift.
        script: id of the stored script.
        soft: whether stamps of the index may name several languages.
    """
    before = [] if first is None else steps(first, fields)
    # A document is taken as it is: nothing was done to it that would have to be taken back.
    own = {"script": {"id": script, "params": shift_script.params(shift, shift, fields, pipeline=True)}}
    after = [{"script": {"source": _NAME_ONE, "params": {"stamp": fields.stamp.split(".")}}}] if soft else []
    return {"description": _description(index, shift), "processors": [*before, own, *after]}


def shift_step(found: dict[str, Any]) -> dict[str, Any] | None:
    """The processor of a pipeline's body that shifts; None where none does."""
    for step in found.get("processors", []):
        if str(step.get("script", {}).get("id")).startswith(shift_script.PREFIX):
            return dict(step)
    return None


def _description(index: str, shift: IndexShift) -> str:
    if shift.hash is None:
        how = "there are no language vectors, so nothing moves"
    else:
        single = ", ".join(f"{tag} {alpha:g}" for tag, alpha in sorted(shift.alphas.items()))
        how = f"alpha {shift.alpha:g}{f' ({single})' if single else ''}, language vectors {shift.hash}"
    return f"Shifts documents for {index} by their language: {how}. Made by langshift {VERSION}."
