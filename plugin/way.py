"""How documents of one version become those of another with another shift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opensearchpy import OpenSearch

from langshift.debias.fingerprint import Fingerprint
from langshift.plugin import meta
from langshift.plugin import script as shift_script
from langshift.plugin.fields import Fields
from langshift.plugin.index_shift import expected, of_meta
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.stamps import agreeing
from langshift.plugin.transfer.plan import Way


def shift_way(client: OpenSearch, old: IndexShift, new: IndexShift, fields: Fields) -> Way:
    """The way from one shift to another, with its script on the cluster.

    Args:
        client: the cluster.
        old: how the documents are shifted.
        new: how they are to be.
        fields: the names of their fields.
    """
    return Way(
        script=shift_script.install(client),
        params=shift_script.params(old, new, fields, pipeline=False),
        expected=expected(old, new, fields),
        vector_field=fields.vector,
        stamp_field=fields.stamp,
        stray={"bool": {"filter": [agreeing(old, fields)], "must_not": [agreeing(new, fields)]}},
    )


def shift_of(kept: Mapping[str, Any], index: str, other: IndexShift | None) -> IndexShift:
    """How the documents of a version are shifted, also of one that holds no vectors since an earlier langshift made it.

    Args:
        kept: the version's whole ``_meta``.
        index: its name, for the message.
        other: vectors that may be those of the version; None where there are none.

    Raises:
        ClusterError: it was moved by another method, or its language vectors cannot be had.
    """
    if other is not None and meta.VECTORS not in kept and meta.FINGERPRINT in kept:
        made = Fingerprint.from_dict(kept[meta.FINGERPRINT])
        if made.method == "shift" and made.vectors == other.hash:
            return IndexShift.of(made, other.vectors)
        if made.method == "shift" and not made.moves:
            # There is nothing to take back.
            return IndexShift.of(made, {})
    return of_meta(kept, index)
