"""What an audit's figures mean, in words, by rules with stated thresholds."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from langshift.debias.encoder_languages import unread_in_words
from langshift.debias.encoders.base import is_given
from langshift.debias.fitting.reliability import NEGLIGIBLE
from langshift.debias.similarity import Floats
from langshift.evaluate.audit import audit as auditing
from langshift.evaluate.audit.audit import Audit, Interval, LanguageFinding, SimilarityGap
from langshift.evaluate.audit.nearness import NEAREST
from langshift.evaluate.compare.verdict import Verdict, own_language, unjudged
from langshift.wording import format_score, pluralize

#: Where less of what a shift takes is there, the means lie further apart after it.
HALF = 0.5
# Smaller cosines are shown as 0.
_SEEN = 0.0005


def gap_in_words(gap: SimilarityGap, reference: str) -> str:
    """As ``lie .120 (.100 to .140) further from queries in en than those in en; the shift removes .090 of that``."""
    sign, then, change = (_sign(found) for found in (gap.before, gap.after, gap.change))
    after = f"they lie {format_score(abs(gap.after.value), 3)} {_further(then)} them"
    if not sign:
        lie = f"lie about as near to queries in {reference} as those in {reference}"
        return f"{lie}; after the shift {after}" if then else f"{lie}, before and after the shift"
    if not change:
        takes = "has no effect that the sample would show"
    elif change != sign:
        takes = f"increases that by {format_score(abs(gap.change.value), 3)}"
    elif then == -sign:
        takes = f"removes more than that: after it, {after}"
    else:
        takes = f"removes {_with_bounds(gap.change, sign)} of that"
    lie = f"lie {_with_bounds(gap.before, sign)} {_further(sign)} queries in {reference} than those in {reference}"
    return f"{lie}; the shift {takes}"


def _sign(found: Interval) -> int:
    """1 or -1 where all of the interval lies there, far enough to be seen, else 0."""
    return 1 if found.low >= _SEEN else -1 if found.high <= -_SEEN else 0


def _further(sign: int) -> str:
    return "further from" if sign > 0 else "nearer to"


def _with_bounds(found: Interval, sign: int = 1, digits: int = 3) -> str:
    low, high = sorted((sign * found.low, sign * found.high))
    return f"{format_score(sign * found.value, digits)} ({format_score(low, digits)} to {format_score(high, digits)})"


# A gap that is smaller than this part of what similarities differ by anyway changes hardly any ranking.
LITTLE = 0.1
# Nor does chance give a language so much more or less of the nearest documents.
LITTLE_SHARE = 0.05
#: Languages that a sentence or a table counts up.
LISTED = 8


class AuditFinding(NamedTuple):
    """One sentence on what the sample shows.

    Attributes:
        kind: of the whole ``too_few``, ``unmoved``, ``not_fitting``, ``little_to_gain``, ``unsure`` or ``fits``; of
            single languages ``gap``, ``misfit``, ``negligible``, ``unread``, ``no_vector``, ``not_judged``.
        languages: those that it is about.
        text: the sentence.
    """

    kind: str
    languages: list[str]
    text: str


def verdict(audit: Audit) -> Verdict:
    """Whether to shift, as far as vectors alone can say: where they fit, only judged queries show what is gained."""
    whole = _whole(audit)
    if whole.kind == "fits":
        shares = [(near.before, near.after) for near in audit.near]
        found = own_language(*map(fmean, zip(*shares, strict=True))) if shares else ""
        return unjudged(found, _MEASURE if audit.opened.own else f"{_ADOPT}{_MEASURE}")
    return Verdict("too few" if whole.kind in ("too_few", "unsure") else "do not shift", whole.text)


def findings(audit: Audit) -> list[AuditFinding]:
    """What the figures mean: first of the whole, then of single languages, the most frequent first."""
    whole = _whole(audit)
    findings = [whole, *_gaps(audit)]
    for one in audit.judged:
        findings += _of_vector(one, audit.reference, misfits=whole.kind != "not_fitting")
    said = unread_in_words(audit.opened.pipeline.encoder.id, audit.unread)
    findings += [AuditFinding("unread", list(audit.unread), f"Of the sample, {text}") for text in said]
    return [*findings, *_left_out(audit)]


_ADOPT = "adopt the index with --alpha 0 and then "
_MEASURE = (
    "run `langshift retune NAME --alpha A --gate DATASET`, which replays judged queries before and after the shift "
    "(`langshift dataset make NAME DATASET` has titles ask where nobody has judged any)"
)


def _whole(audit: Audit) -> AuditFinding:
    debias, compared = audit.opened.pipeline.debias, [one for one in audit.judged if one.gap]
    shares = [one.share for one in audit.judged if one.vector]
    if debias.vectors is None or not any(shares):
        why = "alpha is 0" if shares else "none is in a language that has a vector"
        why = why if debias.vectors else "there are no language vectors"
        text = (
            f"Do not shift it: that would change nothing, because no document of the sample would be shifted ({why})."
        )
        return AuditFinding("unmoved", [], text)
    if not compared:
        return AuditFinding("too_few", [], f"Too few documents to tell: {_too_few(audit)}.")
    fits = [(one, one.fit) for one in compared if one.fit and one.share >= NEGLIGIBLE]
    wrong = [one for one, fit in fits if fit.there.high < HALF]
    if 2 * _documents(wrong) > _documents([one for one, _ in fits]):
        return _not_fitting(audit, wrong)
    if _little_to_gain(audit, compared):
        text = (
            "Do not shift it: there is little to gain, because no language's documents lie much nearer to queries "
            "than another's, compared with how much similarities vary anyway (standard deviation "
            f"{format_score(audit.spread or 0, 3)})."
        )
        return AuditFinding("little_to_gain", [], text)
    sure = [one.language for one, fit in fits if fit.there.low > HALF]
    if not sure:
        text = (
            "Too few documents to tell: the sample does not show whether the language vectors fit, so draw more of "
            "them with --sample."
        )
        return AuditFinding("unsure", [], text)
    text = f"The language vectors fit: most of what the shift removes is present in documents in {', '.join(sure)}."
    return AuditFinding("fits", sure, text)


def _too_few(audit: Audit) -> str:
    queries = f"{auditing.FEWEST_QUERIES} queries in one of them"
    what = f"this takes at least {auditing.FEWEST} documents in each of two languages and {queries}"
    there = ", ".join(f"{one.documents:,} in {one.language}" for one in audit.judged[:LISTED])
    return f"{what}; the sample has {there}" if there else f"{what}; no document has a clear language"


def _not_fitting(audit: Audit, wrong: Sequence[LanguageFinding]) -> AuditFinding:
    pipeline, field = audit.opened.pipeline, audit.opened.fields.vector
    shown = ", ".join(f"{one.language} {format_score(one.fit.there.value, 2)}" for one in wrong if one.fit)
    what = f"the vectors in {field!r} were not built with {pipeline.encoder.id}, or the language vectors do not fit"
    if is_given(pipeline.encoder.id):
        what = f"the language vectors do not fit the vectors in {field!r}"
    text = (
        f"Do not shift it: {what}, because less than half of what the shift would remove is present ({shown}; 1 would "
        "be all of it), so name the encoder that the vectors were built with, or fit language vectors with it on "
        "parallel text, with `langshift vectors fit`."
    )
    return AuditFinding("not_fitting", [one.language for one in wrong], text)


def _little_to_gain(audit: Audit, compared: Sequence[LanguageFinding]) -> bool:
    level = LITTLE * (audit.spread or 0.0)
    gaps = all(one.gap is not None and abs(one.gap.before.value) < level for one in compared)
    return gaps and all(abs(near.before - near.even) < LITTLE_SHARE for near in audit.near)


def _gaps(audit: Audit) -> Iterator[AuditFinding]:
    said: dict[str, list[str]] = {}
    for one in audit.judged:
        if one.gap is not None:
            said.setdefault(gap_in_words(one.gap, str(audit.reference)), []).append(one.language)
    for text, languages in said.items():
        yield AuditFinding("gap", languages, f"Documents in {', '.join(languages)} {text}.")


def _of_vector(one: LanguageFinding, reference: str | None, *, misfits: bool) -> Iterator[AuditFinding]:
    """That a vector is negligible, or that too little of what it takes from documents is there, or perhaps."""
    language = one.language
    if one.vector is not None and 0 < one.share < NEGLIGIBLE:
        text = f"The vector of {language} is only {one.share:.1%} as long as embeddings, so the effect is negligible."
        yield AuditFinding("negligible", [language], text)
    elif one.fit is not None and misfits and one.fit.there.low <= HALF:
        there = f"{_with_bounds(one.fit.there, digits=2)} of what the shift removes is present"
        text = f"The vector of {language} may not fit: {there}, and it is of use only where more than half is present."
        if one.fit.there.high < HALF:
            text = (
                f"The vector of {language} does not fit: {there}, less than half, so documents in {language} and "
                f"{reference} lie further apart on average after the shift."
            )
        yield AuditFinding("misfit", [language], text)


def _left_out(audit: Audit) -> Iterator[AuditFinding]:
    vectors = audit.opened.pipeline.debias.vectors
    without = [one for one in audit.judged if vectors and one.vector is None and one.language != vectors.pivot]
    if without:
        shown = ", ".join(f"{one.language} ({pluralize(one.documents, 'document')})" for one in without)
        text = f"No language vector for {shown}: these documents are not shifted by language."
        yield AuditFinding("no_vector", [one.language for one in without], text)
    few = [one.language for one in audit.judged if one.gap is None and one.language != audit.reference]
    if few and audit.reference is not None:
        text = f"Fewer than {auditing.FEWEST} documents, and so not judged: {', '.join(few)}."
        yield AuditFinding("not_judged", few, text)


def _documents(judged: Sequence[LanguageFinding]) -> int:
    return sum(one.documents for one in judged)


def document(audit: Audit) -> dict[str, Any]:
    """Return it as ``langshift index audit --json`` prints it."""
    index, pipeline = audit.opened.reader.old, audit.opened.pipeline
    vectors = pipeline.debias.vectors
    return {
        "name": index.name,
        "index": index.index,
        "uuid": index.uuid,
        "documents": audit.opened.reader.total,
        "with_vector": audit.opened.reader.bearing,
        "sample": len(audit.sample.tags),
        "unusable": audit.sample.unusable,
        "fingerprint": pipeline.fingerprint().to_dict(),
        "vectors": vectors and {"pivot": vectors.pivot, "hash": vectors.hash, "source": vectors.source},
        "languages": [mix._asdict() for mix in audit.mixes],
        "disagreements": [one._asdict() for one in audit.disagreements],
        "queries": {"file": audit.queries.file, "total": audit.queries.total, "used": len(audit.queries.tags)},
        "reference": audit.reference,
        "spread": audit.spread,
        "unread": dict(audit.unread),
        "shift": [asdict(one) for one in audit.judged],
        "similarity": {
            "queries": list(audit.nearness.rows.queries),
            "documents": list(audit.nearness.rows.documents),
            "pairs": audit.nearness.rows.pairs.astype(int).tolist(),
            "before": _numbers(audit.nearness.before),
            "after": _numbers(audit.nearness.after),
        },
        "nearest": {"documents": NEAREST, "languages": [near._asdict() for near in audit.near]},
        "findings": [finding._asdict() for finding in findings(audit)],
        "verdict": verdict(audit).to_dict(),
    }


def _numbers(means: Floats) -> list[list[float | None]]:
    return [[None if np.isnan(mean) else mean for mean in row] for row in means.tolist()]
