"""What a retune makes of an index: from what the index says of itself, and what is asked for, to the new shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from langshift.debias.debias import Debias, recommended
from langshift.debias.vectors import LanguageVectors
from langshift.errors import ClusterError, UsageError
from langshift.plugin import meta
from langshift.plugin.index_shift import entries
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.versions import LiveIndex
from langshift.plugin.way import shift_of
from langshift.settings import VERSION


@dataclass(frozen=True)
class Wanted:
    """What is asked for.

    Attributes:
        alpha: scale of all languages, which forgets those of single ones; None leaves what the index has, or takes
            what ``vectors`` recommends.
        alphas: scales of single languages, by tag, set on top of that.
        vectors: a file of other language vectors; None for the index's own.
    """

    alpha: float | None = None
    alphas: Mapping[str, float] = field(default_factory=dict)
    vectors: Path | None = None


class Retuning(NamedTuple):
    """What a retune does.

    Attributes:
        old: how the documents are shifted.
        new: how they are to be.
        meta: what the new version keeps under ``_meta``.
        changes: whether anything does.
    """

    old: IndexShift
    new: IndexShift
    meta: dict[str, Any]
    changes: bool


def planned(index: LiveIndex, kept: Mapping[str, Any], wanted: Wanted) -> Retuning:
    """Put together what a retune does.

    Args:
        index: the live version.
        kept: its whole ``_meta``.
        wanted: what is asked for.

    Raises:
        UsageError: what is asked for cannot be had from this index, or the file cannot be read.
        ClusterError: the index's shift cannot be taken back.
        FingerprintError: the vectors were fitted with another encoder.
    """
    made = index.fingerprint
    given = _given(index, wanted.vectors)
    theirs = None if given is None else IndexShift(given.hash, given.pivot, given.vectors)
    old = shift_of(kept, index.index, theirs)
    _require_posteriors(index, kept, old)
    new = _new(index, old, given, wanted)
    fingerprint = replace(
        made, pivot=new.pivot, vectors=new.hash, alpha=new.alpha, alphas=dict(new.alphas), langshift=VERSION
    )
    told = {**kept, meta.FINGERPRINT: fingerprint.to_dict(), meta.VECTORS: new.to_dict()}
    if given is not None:
        told.pop(meta.QUERIES, None)
        told.update(entries(Debias(given, "shift", new.alpha, new.alphas)))
    differs = given is not None and any(told.get(part) != kept.get(part) for part in (meta.VECTORS, meta.QUERIES))
    return Retuning(old, new, told, differs or bool(made.differences(fingerprint)))


def _given(index: LiveIndex, path: Path | None) -> LanguageVectors | None:
    """The vectors of the file that is asked for."""
    if path is None:
        return None
    given, made = LanguageVectors.load(path), index.fingerprint
    given.require_made_by(made.to_dict(), str(path))
    if made.soft and given.hash != made.vectors:
        raise UsageError(
            f"Index {index.name} was shifted softly, and its documents keep how probable their languages are only for "
            "the vectors that it was made with: leave --vectors out, or index the corpus again with them."
        )
    return given


def _require_posteriors(index: LiveIndex, kept: Mapping[str, Any], old: IndexShift) -> None:
    """Refuse a soft index of an earlier langshift, which kept no posteriors of languages that did not move.

    Raises:
        ClusterError: there are such languages.
    """
    still = [tag for tag in sorted(old.vectors) if not old.scale(tag)]
    if index.fingerprint.soft and meta.VECTORS not in kept and still:
        raise ClusterError(
            f"Index {index.name} was shifted softly by an earlier langshift ({index.fingerprint.langshift}), whose "
            f"documents do not keep how probable languages of scale 0 are ({', '.join(still)}), so it cannot be "
            "retuned: index the corpus again."
        )


def _new(index: LiveIndex, old: IndexShift, given: LanguageVectors | None, wanted: Wanted) -> IndexShift:
    base = old if given is None else recommended(given)
    alpha, alphas = (base.alpha, base.alphas) if wanted.alpha is None else (wanted.alpha, {})
    vectors = old.vectors if given is None else given.vectors
    if not vectors and (alpha or wanted.alphas):
        raise UsageError(
            f"Index {index.name} was made without language vectors, so nothing can be shifted: "
            "give some with --vectors."
        )
    for tag in wanted.alphas:
        if tag not in vectors:
            raise UsageError(
                f"There is no language vector for {tag} to scale: --alpha-for takes {', '.join(sorted(vectors))}."
            )
    scales = {tag: scale for tag, scale in sorted({**alphas, **wanted.alphas}.items()) if scale != alpha}
    if given is None:
        return replace(old, alpha=alpha, alphas=scales)
    return IndexShift(given.hash, given.pivot, given.vectors, alpha, scales)
