"""What ``langshift ingest`` does and prints."""

from __future__ import annotations

from pathlib import Path

from rich.progress import Progress, TaskID

from langshift.cluster import open_cluster
from langshift.console import counted, emit_json, note, out, progress, table
from langshift.ingest.detect import open_detector
from langshift.ingest.documents import open_corpus
from langshift.ingest.encoders import open_encoder
from langshift.ingest.load import load_checked
from langshift.ingest.making import Making, choose
from langshift.ingest.summary import STAGES, Summary
from langshift.plugin.template import text_language
from langshift.plugin.versions import check_name, unfinished


def run(
    corpus: str,
    name: str,
    encoder: str,
    vectors: Path | None,
    alpha: float | None,
    lid_model: Path | None,
    least_confidence: float,
    *,
    as_json: bool,
) -> None:
    """Check what was given, the whole corpus included, before anything is started; then load and tell."""
    check_name(name)
    making = choose(open_encoder(encoder), open_detector(lid_model), vectors, alpha, least_confidence)
    with progress() as shown:
        checking = shown.add_task("check", total=None, rate="")
        with open_corpus(corpus, lambda documents: shown.update(checking, completed=documents)) as checked:
            shown.update(checking, completed=checked.documents, total=checked.documents)
            client = open_cluster()
            for index in unfinished(client, name):
                note(f"{index} is unfinished: a load is making it, or one was killed; no search sees it.")
            summary = load_checked(client, checked, name, making, StageProgress(shown, checked.documents).update)
    if as_json:
        emit_json(summary.to_dict())
    else:
        _print(summary)
    for sentence in remarks(summary, making):
        note(sentence)


class StageProgress:
    """One line a stage: documents and documents a second of that stage's own time."""

    def __init__(self, shown: Progress, total: int) -> None:
        self._shown = shown
        self._tasks: dict[str, TaskID] = {stage: shown.add_task(stage, total=total, rate="") for stage in STAGES}
        self._seconds = dict.fromkeys(STAGES, 0.0)
        self._documents = dict.fromkeys(STAGES, 0)

    def update(self, stage: str, documents: int, seconds: float) -> None:
        """Add what a stage has just done."""
        self._seconds[stage] += seconds
        self._documents[stage] += documents
        rate = self._documents[stage] / max(self._seconds[stage], 1e-9)
        self._shown.update(self._tasks[stage], completed=self._documents[stage], rate=f"{rate:,.0f} documents/s")


def remarks(summary: Summary, making: Making) -> list[str]:
    """What a person should know of a load that went through, one sentence each."""
    told = []
    if summary.cut:
        told.append(
            f"{counted(summary.cut, 'text')} longer than the {summary.longest:,} characters that {making.encoder.id} "
            "reads: the vector stands for the beginning, word search finds all of it."
        )
    if summary.languages["und"]:
        told.append(f"{counted(summary.languages['und'], 'document')} without a clear language: not shifted.")
    for tag, count in summary.folded.most_common():
        told.append(f"{counted(count, 'document')} in {tag} counted to {text_language(tag)}, its macrolanguage.")
    if summary.without_vector:
        named = ", ".join(
            f"{tag} ({counted(count, 'document')})" for tag, count in summary.without_vector.most_common()
        )
        told.append(f"No language vector for {named}: not shifted.")
    if summary.replaced:
        replaced = counted(summary.replaced, "document")
        told.append(f"{replaced} took the place of one with the same _id, in the index or this corpus.")
    return told


def _print(summary: Summary) -> None:
    rows = [[tag, f"{count:,}"] for tag, count in summary.languages.most_common()]
    table(None, ["language", "documents"], rows, right={"documents"})
    rates = ", ".join(
        f"{stage} {summary.documents / max(summary.seconds[stage], 1e-9):,.0f}/s" for stage in STAGES if stage != "read"
    )
    out.print(f"Speed of each stage: {rates}.", soft_wrap=True)
    out.print(
        f"Indexed {counted(summary.documents, 'document')} into {summary.name} ({summary.index}), "
        f"{summary.shifted:,} of them shifted with alpha {summary.alpha:g}.",
        soft_wrap=True,
    )
