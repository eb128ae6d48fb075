"""What ``langshift anchors calibrate`` does and prints."""

from __future__ import annotations

from langshift.cluster import open_cluster
from langshift.console import counted, emit_json, note, out, table
from langshift.debias.encoders import is_given
from langshift.errors import UsageError
from langshift.plugin.versions import LiveIndex, live
from langshift.retrieval.calibration.calibrating import calibrate, require_languages
from langshift.retrieval.calibration.calibration import Calibration, FirstHits
from langshift.retrieval.calibration.known import keep
from langshift.retrieval.opening import SearchOptions
from langshift.retrieval.questions import Asker
from langshift.retrieval.trust import USUAL_WORDS


def run(name: str, sample: int, options: SearchOptions, *, as_json: bool) -> None:
    """Calibrate an index, keep that in its mapping, and print it.

    Raises:
        UsageError: the index's encoder makes no vectors of queries.
        ClusterError: there is no such index, it is not finished, or it cannot be calibrated.
    """
    client = open_cluster()
    index = live(client, name)
    require_languages(index)
    _require_queries(index, options)
    calibration = calibrate(client, Asker(client, index, options, {}), sample)
    keep(client, index, calibration)
    if as_json:
        emit_json({"index": index.index, **calibration.to_dict()})
    else:
        _show(index, calibration)
    for sentence in remarks(index.name, calibration):
        note(sentence)


def _require_queries(index: LiveIndex, options: SearchOptions) -> None:
    encoder = options.encoder or index.fingerprint.encoder
    if is_given(encoder):
        raise UsageError(
            f"The encoder {encoder} of {index.name} makes no vectors of questions, since its model is not here, and a "
            "calibration asks questions: anchored search goes on with usual figures."
        )


def _show(index: LiveIndex, calibration: Calibration) -> None:
    rows = [
        [one.language, f"{one.questions:,}", f"{one.found:.3f}", f"{one.deceived:.3f}", f"{one.prior:+.2f}"]
        for one in calibration.languages
    ]
    columns = ["language", "questions", "found", "deceived", "prior"]
    table(None, columns, rows, right=set(columns[1:]))
    trust = calibration.trust
    for sentence in (
        "",
        "found: the share of questions whose own document is trusted most. deceived: how far others of its language",
        "are trusted where it is hidden, at a prior of 0 at most. prior: log-odds that what is sought is there in this",
        "language, by the translation groups, less 2: above 0 only where nearly everything is there.",
        "",
        f"{index.index}: words k {trust.words:g} (usual {USUAL_WORDS:g}), spread of cosines {trust.spread:.4f}, from "
        f"{counted(calibration.questions, 'question')}.",
        f"The first hit is the question's own document: {_told(calibration.there)}.",
    ):
        out.print(sentence, soft_wrap=True)
    hidden = calibration.hidden
    told = "no translations are known." if hidden is None else f"a translation of it: {_told(hidden)}."
    out.print(f"Where that is hidden, {told}", soft_wrap=True)


def _told(first: FirstHits) -> str:
    return f"dense {first.dense:.3f}, anchored {first.anchored:.3f} of {counted(first.questions, 'question')}"


def remarks(name: str, calibration: Calibration) -> list[str]:
    """What a person should know of a calibration of the index ``name`` beside its figures."""
    if calibration.fitted is None:
        return []
    words, fitted = calibration.trust.words, calibration.fitted
    if calibration.lost:
        return [
            f"Anchored search of {name} loses translations that dense search finds, even with the lowest k "
            f"({words:g}; {fitted:g} was fitted): where documents are often not there in the searcher's language, "
            "search with --mode dense."
        ]
    return [
        f"With the fitted k of {fitted:g} anchored search of {name} would lose translations that dense search finds, "
        f"so k is {words:g}, the highest that was tried at which nothing is lost."
    ]
