"""What an audit's figures mean, in words, by rules with stated thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from langshift.console import counted
from langshift.debias.encoders import is_given
from langshift.debias.fitting.check import NEGLIGIBLE
from langshift.evaluate.audit.audited import NEAREST, Audit
from langshift.evaluate.audit.judged import FEWEST, FEWEST_QUERIES, Judged
from langshift.evaluate.audit.words import HALF, fine, gap_in_words, misfit_in_words, short

# A gap that is smaller than this part of what similarities differ by anyway changes hardly any ranking.
LITTLE = 0.1
# Nor does chance give a language so much more or less of the nearest documents.
LITTLE_SHARE = 0.05
# Languages that a sentence counts up.
_LISTED = 8


class Finding(NamedTuple):
    """One sentence of the verdict.

    Attributes:
        kind: of the whole ``too_few``, ``unmoved``, ``not_fitting``, ``little_to_gain``, ``unsure`` or ``fits``; then
            ``nearest``; of single languages ``gap``, ``misfit``, ``negligible``, ``no_vector``, ``not_judged``; at
            last ``measure``.
        languages: those that it is about.
        text: the sentence.
    """

    kind: str
    languages: list[str]
    text: str


def verdict(audit: Audit) -> list[Finding]:
    """What the figures mean: first of the whole, then of single languages, the most frequent first."""
    whole = _whole(audit)
    told = [whole, *_nearest(audit), *_gaps(audit)]
    for one in audit.judged:
        told += _of_vector(one, audit.reference, misfits=whole.kind != "not_fitting")
    return [*told, *_left_out(audit), _MEASURE]


_MEASURE = Finding(
    "measure",
    [],
    "Similarity is not relevance, and languages that are written about other things differ without any bias: what a "
    "shift does to answers, only queries with judgements tell. Adopt the index with --alpha 0: "
    "`langshift retune --alpha A --gate DATASET --fail-if CONDITION` then measures before and after.",
)


def _whole(audit: Audit) -> Finding:
    debias, compared = audit.opened.making.debias, [one for one in audit.judged if one.gap]
    if debias.vectors is None or not any(one.share for one in audit.judged if one.vector):
        return Finding("unmoved", [], f"No document of the sample would be moved: {_why_unmoved(audit)}.")
    if not compared:
        return Finding("too_few", [], f"Nothing can be compared: {_too_few(audit)}.")
    fits = [(one, one.fit) for one in compared if one.fit and one.share >= NEGLIGIBLE]
    wrong = [one for one, fit in fits if fit.there.high < HALF]
    if 2 * _documents(wrong) > _documents([one for one, _ in fits]):
        return _not_fitting(audit, wrong)
    if _little_to_gain(audit, compared):
        return Finding(
            "little_to_gain",
            [],
            "There is little to gain: documents in no language lie much nearer to queries than those in another, "
            f"beside what similarities differ by anyway (standard deviation {fine(audit.spread or 0)}).",
        )
    sure = [one.language for one, fit in fits if fit.there.low > HALF]
    if not sure:
        text = "Whether the language vectors fit, the sample does not tell: draw more documents with --sample."
        return Finding("unsure", [], text)
    text = f"The language vectors fit: most of what the shift takes away is there, in {', '.join(sure)}."
    return Finding("fits", sure, text)


def _why_unmoved(audit: Audit) -> str:
    debias = audit.opened.making.debias
    if debias.vectors is None:
        return "there are no language vectors"
    if any(one.vector for one in audit.judged):
        return "the scale is 0"
    return "none is in a language that has a vector"


def _too_few(audit: Audit) -> str:
    what = f"it takes {FEWEST} documents in each of two languages, and {FEWEST_QUERIES} queries in one of these"
    there = ", ".join(f"{one.documents:,} in {one.language}" for one in audit.judged[:_LISTED])
    return f"{what}, and there are {there}" if there else f"{what}, and no document has a clear language"


def _not_fitting(audit: Audit, wrong: Sequence[Judged]) -> Finding:
    making, field = audit.opened.making, audit.opened.fields.vector
    shown = ", ".join(f"{one.language} {short(one.fit.there.value)}" for one in wrong if one.fit)
    if is_given(making.encoder.id):
        what = f"The language vectors do not fit the vectors in {field!r}"
    else:
        what = f"The vectors in {field!r} are not {making.encoder.id}'s, or the language vectors do not fit"
    return Finding(
        "not_fitting",
        [one.language for one in wrong],
        f"{what}: of what the shift would take away, less than half is there ({shown}; 1 would be all). Do not shift "
        "by them: name the encoder that made the vectors, or fit language vectors on parallel text that it encodes, "
        "with `langshift vectors fit`.",
    )


def _little_to_gain(audit: Audit, compared: Sequence[Judged]) -> bool:
    level = LITTLE * (audit.spread or 0.0)
    gaps = all(one.gap is not None and abs(one.gap.before.value) < level for one in compared)
    return gaps and all(abs(near.before - near.even) < LITTLE_SHARE for near in audit.near)


def _nearest(audit: Audit) -> Iterator[Finding]:
    if audit.near:
        even, before, after = (
            sum(getattr(near, name) for near in audit.near) / len(audit.near) for name in ("even", "before", "after")
        )
        text = (
            f"Of the {NEAREST} nearest documents, {before:.1%} are in the query's language, mean over languages, and "
            f"{after:.1%} after the shift; in an even mix they would be {even:.1%}."
        )
        yield Finding("nearest", [], text)


def _gaps(audit: Audit) -> Iterator[Finding]:
    said: dict[str, list[str]] = {}
    for one in audit.judged:
        if one.gap is not None:
            said.setdefault(gap_in_words(one.gap, str(audit.reference)), []).append(one.language)
    for text, languages in said.items():
        yield Finding("gap", languages, f"Documents in {', '.join(languages)} {text}.")


def _of_vector(one: Judged, reference: str | None, *, misfits: bool) -> Iterator[Finding]:
    language = one.language
    if one.vector is not None and 0 < one.share < NEGLIGIBLE:
        text = f"The vector of {language} is {one.share:.1%} as long as embeddings: nothing to gain, nothing to lose."
        yield Finding("negligible", [language], text)
    elif one.fit is not None and misfits and one.fit.there.low <= HALF:
        yield Finding("misfit", [language], misfit_in_words(language, str(reference), one.fit))


def _left_out(audit: Audit) -> Iterator[Finding]:
    vectors = audit.opened.making.debias.vectors
    without = [one for one in audit.judged if vectors and one.vector is None and one.language != vectors.pivot]
    if without:
        shown = ", ".join(f"{one.language} ({counted(one.documents, 'document')})" for one in without)
        text = f"No language vector for {shown}: they stay as they are."
        yield Finding("no_vector", [one.language for one in without], text)
    few = [one.language for one in audit.judged if one.gap is None and one.language != audit.reference]
    if few and audit.reference is not None:
        text = f"Fewer than {FEWEST} documents, of which nothing is said: {', '.join(few)}."
        yield Finding("not_judged", few, text)


def _documents(judged: Sequence[Judged]) -> int:
    return sum(one.documents for one in judged)
