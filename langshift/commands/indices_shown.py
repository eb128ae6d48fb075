"""What ``langshift index list`` and ``describe`` print."""

from __future__ import annotations

from collections.abc import Sequence

from langshift.cluster import open_cluster
from langshift.console import emit_json, note, out, table
from langshift.plugin.description import (
    _SHORT,
    _UNKNOWN,
    Description,
    describe,
    first_lines,
    held,
    in_words,
    short_name,
    short_scales,
    source,
    storage,
)
from langshift.plugin.listing import Version, all_versions
from langshift.plugin.remarks import remarks


def run_list(*, as_json: bool) -> None:
    """Print one row for each version."""
    found = all_versions(open_cluster())
    if as_json:
        emit_json({"versions": [one.to_dict() for one in found]})
    elif found:
        _list(found)
    else:
        note("There is no index of langshift's: make one with `langshift ingest CORPUS --index NAME`.")


def run_describe(name: str, *, as_json: bool) -> None:
    """Print all about one version.

    Raises:
        UsageError: ``name`` cannot be an index's name.
        ClusterError: there is no such index, or it is not langshift's.
    """
    found = describe(open_cluster(), name)
    told = remarks(found)
    if as_json:
        emit_json({**found.to_dict(), "remarks": told})
        return
    lines = [*first_lines(found), *in_words(found.version.fingerprint), *storage(found)]
    for line in lines:
        out.print(line, soft_wrap=True, markup=False)
    _beside(found.versions)
    _languages(found)
    if found.fields.texts:
        texts = [[one.field, one.analyzer, f"{one.documents:,}"] for one in found.texts]
        table("\nText fields", ["field", "analyzer", "documents"], texts, right={"documents"})
    for remark in told:
        note(remark)


def _list(versions: Sequence[Version]) -> None:
    columns = ["name", "version", "state", "documents", "size", "encoder", "alpha", "made"]
    rows = [
        [one.name, short_name(one), *held(one), one.fingerprint.encoder, short_scales(one), one.made[:10]]
        for one in versions
    ]
    table(None, columns, rows, right={"documents", "size"}, whole=set(columns) - {"name", "encoder", "alpha"})


def _beside(versions: Sequence[Version]) -> None:
    columns = ["version", "state", "documents", "size", "alpha", "made", "by"]
    rows = [[short_name(one), *held(one), short_scales(one), one.made[:10], source(one)] for one in versions]
    if len({one.fingerprint.vectors for one in versions}) > 1:
        # The beginning of the hash, which tells vectors apart.
        columns.append("vectors")
        rows = [[*row, (one.fingerprint.vectors or _UNKNOWN)[:_SHORT]] for row, one in zip(rows, versions, strict=True)]
    table("\nVersions", columns, rows, right={"documents", "size"}, whole=set(columns) - {"alpha", "by"})


def _languages(found: Description) -> None:
    """One row for each language, with its text fields, where an index has the usual ones."""
    filled = {one.field: one for one in found.texts}
    usual = [] if found.fields.texts else ["title", "text"]
    figures = ["documents", "share", *usual]
    tags = [*found.languages, *sorted({one.partition(".")[2] for one in filled if usual} - set(found.languages))]
    rows = []
    for tag in tags:
        row = [tag, f"{found.languages.get(tag, 0):,}", f"{found.share(tag):.1%}"]
        if usual:
            there = [filled.get(f"{root}.{tag}") for root in usual]
            row += ["0" if one is None else f"{one.documents:,}" for one in there]
            row.append(", ".join(sorted({one.analyzer for one in there if one is not None})) or _UNKNOWN)
        rows.append(row)
    columns = ["language", *figures, *(["analyzer"] if usual else [])]
    table("\nDocuments by language", columns, rows, right=set(figures))
