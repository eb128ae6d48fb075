"""What the new version of an adopted index looks like: like the old one, with langshift's own fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from opensearchpy import OpenSearch

from langshift.errors import UsageError
from langshift.ingest.adopt.old import OldIndex
from langshift.ingest.making import Making
from langshift.plugin import index_shift, meta
from langshift.plugin.copied import copied_body
from langshift.plugin.engine import DERIVED, LUCENE, VectorField, engine_of
from langshift.plugin.fields import USUAL, Fields
from langshift.plugin.origin import Origin
from langshift.plugin.template import own_mappings

_FINAL = "final_pipeline"


def free_fields(
    old: OldIndex, vector: str, texts: Sequence[str], told: str | None, unmapped: Collection[str] = ()
) -> Fields:
    """The names of the new version's fields: langshift's own are called otherwise where the old index has them.

    Args:
        old: the index.
        vector: the field of vectors.
        texts: the fields of text.
        told: the field that names a document's language; None where there is none.
        unmapped: fields that documents have beside those that the mapping knows.

    Raises:
        UsageError: the other names are taken, too.
    """
    taken = {*old.mappings.get("properties", {}), *unmapped}

    def free(usual: str) -> str:
        for name in (usual, f"langshift_{usual}"):
            if name not in taken:
                return name
        raise UsageError(
            f"Index {old.index} has fields named {usual!r} and 'langshift_{usual}', and langshift needs one of these "
            "names: copy the index with _reindex, renaming one of them, and adopt that."
        )

    return Fields(vector, free(USUAL.language), free(USUAL.confidence), free(USUAL.stamp), tuple(texts), told)


def body_of(client: OpenSearch, old: OldIndex, fields: Fields, making: Making) -> dict[str, Any]:
    """The body of the new version, complete; see ``open_for_writing``."""
    body = copied_body(client, old.index)
    mappings, own = body["mappings"], own_mappings()["properties"]
    names = {fields.language: USUAL.language, fields.confidence: USUAL.confidence, fields.stamp: USUAL.stamp}
    mappings.setdefault("properties", {}).update({name: own[usual] for name, usual in names.items()})
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    mappings["_meta"] |= {
        meta.FINGERPRINT: making.fingerprint().to_dict(),
        "langshift_fields": fields.to_dict(),
        meta.ORIGIN: Origin("adopt", old.index, old.uuid, (), at).to_dict(),
        **index_shift.entries(making.debias),
    }
    keep_norms(body["settings"]["index"], engine_of(old.mappings, old.settings, fields.vector))
    return body


def keep_norms(settings: dict[str, Any], kept: VectorField | None) -> None:
    """Have vectors come back from the new version as they are written, by switching derived source off for faiss.

    What is read would have norm 1 otherwise, and a later change of alpha would be wrong without a word.

    Args:
        settings: of the new version, the part ``index``; changed in place.
        kept: how the old index keeps its vectors.
    """
    if kept is not None and kept.engine != LUCENE:
        settings.pop(DERIVED.rpartition(".")[0], None)
        settings[DERIVED] = False


def during_load(body: Mapping[str, Any]) -> dict[str, str]:
    """Settings of the new version that hold until it is loaded: its documents have been through the pipeline once."""
    return {_FINAL: "_none"} if _FINAL in body["settings"]["index"] else {}
