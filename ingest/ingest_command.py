"""What ``langshift ingest`` does and prints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.progress import Progress, TaskID

from langshift.cluster import open_cluster
from langshift.console import counted, emit_json, note, out, progress, table
from langshift.ingest.detect import open_detector
from langshift.ingest.documents import Embeddings, open_corpus
from langshift.ingest.encoders import Brought, is_given, open_encoder
from langshift.ingest.load import load_checked
from langshift.ingest.making import Making, choose
from langshift.ingest.summary import STAGES, Summary
from langshift.plugin.fingerprint import Fingerprint
from langshift.plugin.template import text_language
from langshift.plugin.versions import check_name, unfinished


@dataclass(frozen=True)
class Options:
    """The command's options.

    Attributes:
        corpus: a file, or ``-`` for standard input.
        name: the index.
        encoder: how it is asked for.
        trust_remote_code: whether to run code that comes with a model.
        vectors: a file of language vectors; None for those shipped.
        alpha: scale of all languages; None for what the vectors recommend.
        method: how documents are moved.
        soft: whether by all languages that each may be in.
        lid_model: a fastText model; None for the bundled one.
        least_confidence: a detection below this makes a document ``und``.
        as_json: whether to print JSON.
    """

    corpus: str
    name: str
    encoder: str
    trust_remote_code: bool
    vectors: Path | None
    alpha: float | None
    method: str
    soft: bool
    lid_model: Path | None
    least_confidence: float
    as_json: bool


def run(options: Options) -> None:
    """Check what was given, the whole corpus included, before anything is started; then load and tell."""
    name = options.name
    check_name(name)
    # Vectors that come with the corpus are known when it is read, everything else before.
    making = None if is_given(options.encoder) else _making(options, None)
    embeddings: Embeddings = "refused" if making else "needed"
    with progress() as shown:
        checking = shown.add_task("check", total=None, rate="")
        with open_corpus(
            options.corpus, lambda documents: shown.update(checking, completed=documents), embeddings=embeddings
        ) as checked:
            shown.update(checking, completed=checked.documents, total=checked.documents)
            making = making or _making(options, checked.brought)
            client = open_cluster()
            for index in unfinished(client, name):
                note(f"{index} is unfinished: a load is making it, or one was killed; no search sees it.")
            summary = load_checked(client, checked, name, making, StageProgress(shown, checked.documents).update)
    if options.as_json:
        emit_json(summary.to_dict())
    else:
        _print(summary)
    for sentence in remarks(summary, making):
        note(sentence)


def _making(options: Options, brought: Brought | None) -> Making:
    return choose(
        open_encoder(options.encoder, trust_remote_code=options.trust_remote_code, brought=brought),
        open_detector(options.lid_model),
        options.vectors,
        options.alpha,
        options.least_confidence,
        method=options.method,
        soft=options.soft,
    )


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
        unclear = counted(summary.languages["und"], "document")
        fate = "shifted by whatever languages they may be in" if summary.made.soft else f"not {_verb(summary.made)}"
        told.append(f"{unclear} without a clear language: {fate}.")
    for tag, count in summary.folded.most_common():
        told.append(f"{counted(count, 'document')} in {tag} counted to {text_language(tag)}, its macrolanguage.")
    if summary.without_vector:
        named = ", ".join(
            f"{tag} ({counted(count, 'document')})" for tag, count in summary.without_vector.most_common()
        )
        fate = f"not {_verb(summary.made)}" + (" by their own language" if summary.made.soft else "")
        what = "language vector" if summary.made.method == "shift" else "map"
        told.append(f"No {what} for {named}: {fate}.")
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
        f"{summary.shifted:,} of them {moved_in_words(summary.made)}.",
        soft_wrap=True,
    )


def moved_in_words(made: Fingerprint) -> str:
    """How the documents of an index were moved, such as ``shifted with alpha 1 (fr .5)``."""
    how = "softly " if made.soft else ""
    alphas = ", ".join(f"{tag} {alpha:g}" for tag, alpha in made.alphas.items())
    return f"{how}{_verb(made)} with alpha {made.alpha:g}{f' ({alphas})' if alphas else ''}"


def _verb(made: Fingerprint) -> str:
    return "shifted" if made.method == "shift" else "mapped"
