"""Another pipeline that runs before the shift, such as one that makes the vectors, and what it does to stamps."""

from __future__ import annotations

from typing import Any, NamedTuple

from langshift.plugin.fields import Fields

# Tells a pipeline that was there before from one that was asked for with --after.
_WAS_DEFAULT = "the default pipeline before langshift's"
_BEFORE = "langshift_before"
# A vector that was made anew is raw, whatever the stamp says that came with the document.
_DROP_STAMP = f"""\
def at(def doc, List path) {{
  for (String name : path) {{
    doc = doc instanceof Map ? doc.get(name) : null;
  }}
  return doc;
}}
def before = ctx.remove('{_BEFORE}');
def now = at(ctx, params.vector);
def holder = at(ctx, params.within);
if (now != null && !now.equals(before) && holder instanceof Map) {{
  holder.remove(params.stamp);
}}
"""


class First(NamedTuple):
    """The pipeline that runs before the shift.

    Attributes:
        name: its name.
        was_default: whether it was the version's default pipeline before, and becomes that again by ``remove``.
    """

    name: str
    was_default: bool


def steps(first: First, fields: Fields) -> list[dict[str, Any]]:
    """The processors that run it, and remove the stamp of a document whose vector it has made."""
    *within, stamp = fields.stamp.split(".")
    params = {"vector": fields.vector.split("."), "within": within, "stamp": stamp}
    kept = {"source_field": fields.vector, "target_field": _BEFORE, "ignore_missing": True, "override_target": True}
    return [
        {"copy": kept},
        {"pipeline": {"name": first.name, **({"description": _WAS_DEFAULT} if first.was_default else {})}},
        {"script": {"source": _DROP_STAMP, "params": params}},
    ]


def found_in(processors: list[dict[str, Any]]) -> First | None:
    """What runs before the shift, by the processors of a pipeline of langshift's."""
    for step in processors:
        if "pipeline" in step:
            return First(step["pipeline"]["name"], step["pipeline"].get("description") == _WAS_DEFAULT)
    return None
