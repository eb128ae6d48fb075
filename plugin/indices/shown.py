"""What ``langshift index list`` and ``describe`` print."""

from __future__ import annotations

from collections.abc import Sequence

from rich.filesize import decimal

from langshift.cluster import open_cluster
from langshift.console import counted, emit_json, note, out, table
from langshift.languages import UNDETERMINED
from langshift.plugin.fingerprint import Fingerprint
from langshift.plugin.indices.description import Description, describe
from langshift.plugin.indices.listing import Version, all_versions
from langshift.plugin.indices.remarks import remarks
from langshift.plugin.pipeline import name_for

_UNKNOWN = "-"
_SHORT = 8


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


def first_lines(found: Description) -> list[str]:
    """What a version is and what it holds, in sentences."""
    one = found.version
    came = "".join(f", {told}" for told in _origin(one))
    unknown = found.share(UNDETERMINED)
    return [
        f"{one.version} is {_state(one)}{came}.",
        f"It holds {counted(found.documents, 'document')}, {unknown:.1%} of them in an unknown language (und), "
        f"{found.without_vector:,} without a vector.",
    ]


def _state(one: Version) -> str:
    told = {"live": f"what {one.name} stands for", "kept": f"a kept version of {one.name}"}
    return told.get(one.state, f"an unfinished version of {one.name}")


def in_words(made: Fingerprint) -> list[str]:
    """What made an index, in sentences."""
    norm = "of norm 1" if made.normalised else "of any norm"
    prefixes = [
        f"{prefix!r} before a {what}"
        for what, prefix in (("query", made.query_prefix), ("document", made.document_prefix))
        if prefix
    ]
    put = f", with {' and '.join(prefixes)}" if prefixes else ""
    revision = f" (revision {made.revision})" if made.revision else ""
    return [
        f"The encoder {made.encoder}{revision} made its vectors: {made.dimension} numbers each, {norm}{put}.",
        _moved(made),
        f"Languages were detected by {made.detector}; langshift {made.langshift} made it.",
    ]


def _moved(made: Fingerprint) -> str:
    if made.vectors is None:
        return "No document was shifted, and it has no language vectors."
    by = f"the language vectors {made.vectors}, towards {made.pivot}"
    if not made.moves:
        return f"No document was shifted (alpha 0); it has {by}."
    how = "shifted" if made.method == "shift" else f"moved by the method {made.method}"
    soft = ", by all languages that it may be in" if made.soft else ""
    return f"Each document was {how} by alpha {scales(made)} of {by}{soft}."


def scales(made: Fingerprint) -> str:
    """``0.6``, or ``0.6 (th 0.3)`` where single languages have scales of their own."""
    single = ", ".join(f"{tag} {alpha:g}" for tag, alpha in made.alphas.items())
    return f"{made.alpha:g}" + (f" ({single})" if single else "")


def storage(found: Description) -> list[str]:
    """How a version is kept, in sentences."""
    one, fields, kept = found.version, found.fields, found.vector
    how = "which is no field of vectors" if kept is None else f"engine {kept.engine}, {kept.space or 'a trained'} space"
    pipeline = "no default pipeline"
    if found.default_pipeline is not None:
        whose = "langshift's own" if found.default_pipeline == name_for(one.version) else "not langshift's"
        pipeline = f"the default pipeline {found.default_pipeline} ({whose})"
    expanded = f", expanded to {found.auto_expand_replicas}" if found.auto_expand_replicas else ""
    texts = f", texts in {', '.join(fields.texts)}" if fields.texts else ""
    return [
        f"Vectors are in {fields.vector} ({how}), languages in {fields.language}, stamps in {fields.stamp}{texts}.",
        f"It takes {_size(one)} in {counted(found.shards, 'shard')} with {counted(found.replicas, 'replica')} each"
        f"{expanded}; "
        f"it has {pipeline}; writes are {'blocked' if one.write_blocked else 'let in'}.",
    ]


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


def short_name(one: Version) -> str:
    """``v0001``: a version beside the name of its index."""
    return one.version.removeprefix(f"{one.name}-")


def held(one: Version) -> list[str]:
    """State, documents and size, in a table's words."""
    documents = _UNKNOWN if one.documents is None else f"{one.documents:,}"
    # A version that is kept is blocked as a rule, and nobody misses that.
    blocked = one.write_blocked and one.state == "live"
    return [f"{one.state}, blocked" if blocked else one.state, documents, _size(one)]


def short_scales(one: Version) -> str:
    """As ``scales``, and no longer than fits into a table."""
    made = one.fingerprint
    return scales(made) if len(made.alphas) < 2 else f"{made.alpha:g} ({len(made.alphas)} others)"


def _size(one: Version) -> str:
    return _UNKNOWN if one.bytes is None else decimal(one.bytes)


def _origin(one: Version) -> list[str]:
    """What made a version, and of what; empty where it does not say."""
    if one.origin is None:
        return []
    kind, other = one.origin["kind"], one.origin.get("from")
    if kind == "adopt":
        return [f"adopted from {other}" if other else "adopted"]
    told = f" {'in place of' if kind == 'load' else 'of'} {other}" if other else ""
    return [f"made by a {kind}{told}"]


def source(one: Version) -> str:
    """What made a version, in a table's words; what a load took the place of is the row above."""
    if one.origin is None:
        return _UNKNOWN
    kind, other = one.origin["kind"], one.origin.get("from")
    return kind if kind == "load" or not other else f"{kind} of {other.removeprefix(f'{one.name}-')}"
