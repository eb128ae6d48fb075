"""Fields that the live version has got meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langshift.plugin.transfer.run import Run


def carry_mappings(run: Run) -> None:
    """Give the target each field that it lacks, before documents with it come and are mapped by guess."""

    def carry() -> None:
        there, here = (
            run.client.indices.get_mapping(index=index)[index]["mappings"].get("properties", {})
            for index in (run.source, run.target)
        )
        if lacking := _lacking(there, here):
            run.client.indices.put_mapping(index=run.target, body={"properties": lacking})

    run.ask(carry)


def _lacking(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the one mapping that the other lacks; of objects only what is lacking in them."""
    lacking: dict[str, Any] = {}
    for name, field in there.items():
        if name not in here:
            lacking[name] = field
        elif inner := _lacking(field.get("properties", {}), here[name].get("properties", {})):
            kind = {"type": "nested"} if field.get("type") == "nested" else {}
            lacking[name] = {**kind, "properties": inner}
    return lacking
