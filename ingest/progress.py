"""What is told of a load: how far it is, its summary, its remarks."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from opensearchpy import OpenSearch

from langshift.debias.detector import HARD_PAIRS
from langshift.debias.encoder_languages import unread_in_words
from langshift.debias.fingerprint import Fingerprint
from langshift.ingest.bulk.chunked import IN_CHUNKS
from langshift.ingest.bulk.journal import RESULT
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.chunking import CHARACTERS
from langshift.ingest.config import EmbeddingPipeline
from langshift.languages import text_language
from langshift.plugin.inventory import TranslatedPages
from langshift.plugin.transfer import state
from langshift.plugin.versions import unfinished
from langshift.wording import pluralize

#: What the tally of an example begins with of what is no language tag.
NO_TAG = "no tag such as "
# By how much two β differ that find other documents.
_WORTH_SAYING = 0.002


class LoadProgress(Protocol):
    """Is told how far a load is."""

    def update(self, handled: int, retries: int, dead: int, at_once: int) -> None:
        """Take how far it is; called after each answer, from any thread.

        Args:
            handled: lines handled so far.
            retries: requests that were sent again.
            dead: dead letters.
            at_once: requests that may be under way at once.
        """

    def add_encoded(self, documents: int, seconds: float) -> None:
        """Take how long a batch of documents took to encode."""


class LoadObserver(Protocol):
    """Looks on while a load runs."""

    def begin(self, place: LoadWorkspace, total: int | None, handled: int) -> LoadProgress:
        """A load begins.

        Args:
            place: where it keeps its files.
            total: how many lines it has; None where that is not known.
            handled: how many of them an earlier run has handled.
        """


STAGES = ("read", "detect", "encode", "shift", "write")

# Called with a stage's name, and the documents and seconds that it has just spent.
OnStage = Callable[[str, int, float], None]


def no_progress(stage: str, documents: int, seconds: float) -> None:
    """Nobody looks on."""


@dataclass
class LoadSummary:
    """What a load did; all but ``seconds``, ``retries`` and ``resumed`` over all its runs.

    Attributes:
        name: the alias.
        index: the version that was written; empty where the load has left none.
        made: how the documents' vectors are made.
        corpus: how messages name the input.
        lines: lines of the input that were documents, deletes or dead letters.
        documents: lines that wrote a document.
        present: documents of this load that the final check found on the server.
        chunks: the chunks of those, in an index of chunks; else 0.
        replaced: lines whose document took the place of one of the same ``_id``.
        superseded: lines that wrote nothing, since the index holds a later version of the document.
        deleted: lines that deleted a document.
        not_found: lines that would have deleted one that was not there.
        resent: lines that were sent again as their answer was lost, into an index that held documents before: whether
            the first delivery has replaced, or deleted, one of those is not known.
        updated: lines that changed some fields of a document.
        encoded_again: those of them whose text was encoded again, or that brought another vector.
        dead: lines that went to the dead letters.
        repaired: documents that the cluster had confirmed and lost, and that were written once more.
        languages: documents, or their chunks, by language, ``und`` included; likewise in what follows.
        lookalikes: documents by language where it was detected, and is hard to tell from another.
        shifted: documents whose vector was moved.
        translations: how far the whole index is translated; None where no page is there in several languages.
        unread: documents of the whole index by language, where the encoder does not read that.
        cut: documents longer than the encoder reads, by ``longest`` characters.
        long: documents, not in chunks, that are longer than a window of the encoder, as far as their characters tell.
        longest: characters of a text that the encoder reads.
        folded: documents by language that counts to its macrolanguage (``arz`` to ``ar``).
        without_vector: documents by language that has no language vector and is not the pivot, where others
            are moved.
        vectorless: documents without a vector, which an adopted index may hold.
        parentless: chunks of an adopted index that named no document, and became documents of their own.
        no_tag: documents with something that is no language tag in a field that names their language.
        no_tag_example: such a value, with its field.
        resumed: lines that earlier runs had handled.
        retries: requests that were sent again in this run.
        seconds: time spent in each stage of this run; stages overlap.
        dead_letters: the file of dead letters, or their folder.
        log: the log.
        published: whether the alias stands for the version.
        state: the folder that the load keeps its journal in; empty for one of this machine's.
    """

    name: str
    index: str
    made: Fingerprint
    corpus: str = ""
    lines: int = 0
    documents: int = 0
    present: int = 0
    chunks: int = 0
    replaced: int = 0
    superseded: int = 0
    deleted: int = 0
    not_found: int = 0
    resent: int = 0
    updated: int = 0
    encoded_again: int = 0
    dead: int = 0
    repaired: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    lookalikes: Counter[str] = field(default_factory=Counter)
    shifted: int = 0
    cut: int = 0
    long: int = 0
    translations: TranslatedPages | None = None
    unread: dict[str, int] = field(default_factory=dict)
    longest: int | None = None
    folded: Counter[str] = field(default_factory=Counter)
    without_vector: Counter[str] = field(default_factory=Counter)
    vectorless: int = 0
    parentless: int = 0
    no_tag: int = 0
    no_tag_example: str = ""
    resumed: int = 0
    retries: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    dead_letters: str = ""
    log: str = ""
    published: bool = True
    state: str = ""

    def count(self, tallies: Mapping[str, int]) -> None:
        """Take over what the journal has counted."""

        def counted(prefix: str) -> Counter[str]:
            return Counter({name.removeprefix(prefix): n for name, n in tallies.items() if name.startswith(prefix)})

        results = counted(RESULT)
        self.lines, self.replaced, self.superseded = results.total(), results["updated"], results["superseded"]
        self.deleted, self.not_found, self.dead = results["deleted"], results["not_found"], results["dead"]
        self.resent = results["resent"]
        self.updated, self.encoded_again = results["update"], tallies.get("encoded", 0)
        self.languages, self.folded = counted("language "), counted("folded ")
        self.without_vector, self.documents = counted("without_vector "), tallies.get(IN_CHUNKS, self.languages.total())
        self.lookalikes = counted("detected ")
        self.shifted, self.cut, self.long = (tallies.get(name, 0) for name in ("shifted", "cut", "long"))
        self.vectorless, self.no_tag = tallies.get("vectorless", 0), tallies.get("no tag", 0)
        self.parentless = tallies.get("parentless", 0)
        self.no_tag_example = next(iter(counted(NO_TAG)), "")

    @property
    def in_chunks(self) -> int:
        """How many chunks the documents that were written were cut into; 0 where each is one entry."""
        return self.languages.total() if self.chunks else 0

    def to_dict(self) -> dict[str, Any]:
        """As ``langshift ingest --json`` prints it; of how documents are made, some only where it is not usual."""
        counted = {name: dict(value) if isinstance(value, dict) else value for name, value in vars(self).items()}
        counted.pop("made")
        unusual = ("chunks", "resent", "long", "vectorless", "parentless", "no_tag", "no_tag_example", "state")
        if self.translations is not None:
            counted["translations"] = self.translations._asdict()
        for name in (*unusual, "lookalikes", "translations"):
            if not counted[name]:
                counted.pop(name)
        made, alphas = self.made, {"alphas": dict(self.made.alphas)} if self.made.alphas else {}
        head = {"name": counted.pop("name"), "index": counted.pop("index") or None}
        return {**head, "alpha": made.alpha, **alphas, "gamma": made.gamma, "own": made.own, **counted}


def last_line(summary: LoadSummary) -> str:
    """That nothing was lost, or what is left to do: where each line of the input is."""
    chunks = f" in {pluralize(summary.chunks, 'chunk')}" if summary.chunks else ""
    parts = [f"{pluralize(summary.present, 'document')}{chunks} on the server, checked"]
    if summary.replaced:
        parts.append(f"{summary.replaced:,} replaced an earlier one with the same _id")
    if summary.updated:
        again = f", {summary.encoded_again:,} of them encoded again" if summary.encoded_again else ""
        parts.append(f"{pluralize(summary.updated, 'document')} updated{again}")
    if summary.deleted:
        parts.append(f"{summary.deleted:,} deleted")
    if summary.not_found:
        absent = "a document that was" if summary.not_found == 1 else "documents that were"
        parts.append(f"{pluralize(summary.not_found, 'delete')} of {absent} not there")
    if summary.resent:
        parts.append(f"{summary.resent:,} sent again after a lost answer, so whether they replaced one is not known")
    if summary.dead:
        parts.append(pluralize(summary.dead, "dead letter"))
    why = f" ({dead_letters_say(summary.name, summary.state)})" if summary.dead else ""
    all_ = "The 1 line of {} is" if summary.lines == 1 else f"All {summary.lines:,} lines of {{}} are"
    return f"{all_.format(summary.corpus)} accounted for: {', '.join(parts)}{why}."


def dead_letters_say(name: str, state: str = "") -> str:
    """Where to read why documents of an index went to the dead letters, which may be in the state of a load."""
    return f"langshift dead-letters list {f'--state {state}' if state else f'--index {name}'} shows why"


def unfinished_versions(client: OpenSearch, name: str) -> list[str]:
    """A sentence for each version of an index that another command is making, or has left."""
    sentences = []
    for index, meta in unfinished(client, name).items():
        transfer = state.transfer_note_from_metadata(meta)
        by = "load" if transfer is None else transfer[0]
        sentences.append(f"{index} is unfinished: a {by} is still writing it or was interrupted; no search uses it.")
    return sentences


def remarks(summary: LoadSummary, pipeline: EmbeddingPipeline) -> list[str]:
    """What a person should know of a load that went through, one sentence each."""
    sentences = []
    if summary.cut:
        sentences.append(
            f"{pluralize(summary.cut, 'text')} longer than the {summary.longest:,} characters that "
            f"{pipeline.encoder.id} reads: the vector covers only the beginning, lexical search all of it."
        )
    if summary.long:
        limit = f"{pipeline.encoder.id} reads at once" if pipeline.encoder.window else f"{CHARACTERS:,} characters"
        long = f"{pluralize(summary.long, 'text')} longer than {limit}"
        sentences.append(f"{long}: with --chunk auto, every place in them can be found.")
    if summary.no_tag:
        where = "" if summary.no_tag_example.endswith(" in language") else ", where the field language names none"
        sentences.append(
            f"{pluralize(summary.no_tag, 'document')} with a language that is not a language tag, such as "
            f"{summary.no_tag_example}: detected{where}."
        )
    sentences += unread_in_words(summary.made.encoder, summary.unread)
    noun = "chunk" if summary.in_chunks else "document"
    if summary.languages["und"]:
        unclear = pluralize(summary.languages["und"], noun)
        sentences.append(f"{unclear} without a clear language: not shifted by language.")
    sentences += [
        f"{pair.one} and {pair.other} are hard to tell apart: {_percent(pair.sentences)} of 100 single sentences are "
        f"taken for another language, and {_percent(pair.texts)} of 100 texts of three. If the corpus has only one of "
        "the two, name its languages with --languages."
        for pair in HARD_PAIRS
        if summary.lookalikes[pair.one] and summary.lookalikes[pair.other]
    ]
    for tag, count in summary.folded.most_common():
        sentences.append(f"{pluralize(count, noun)} in {tag} counted as {text_language(tag)}, its macrolanguage.")
    if summary.translations is not None:
        sentences += _translated(summary, summary.translations, pipeline)
    if summary.without_vector:
        most = summary.without_vector.most_common()
        named = ", ".join(f"{tag} ({pluralize(count, noun)})" for tag, count in most)
        nor = ", nor moved towards queries in it" if summary.made.own else ""
        sentences.append(f"No language vector for {named}: not shifted by language{nor}.")
    later = "left out: the index has a later version of the document, from this corpus or elsewhere"
    counted = (
        (summary.superseded, "line", later),
        (summary.repaired, "document", "that the cluster had confirmed but lost: written again"),
    )
    sentences += [f"{pluralize(count, noun)} {what}." for count, noun, what in counted if count]
    return sentences


def _translated(summary: LoadSummary, found: TranslatedPages, pipeline: EmbeddingPipeline) -> Iterator[str]:
    """How far an index is translated, what to ask then, and the β for it where it has less."""
    yield f"Translated: {found.in_words}. A search that collapses on {found.field} shows each page once."
    known, own = pipeline.debias.vectors, summary.made.own
    if known is None or not pipeline.default_own:
        return
    fits = known.recommended_own(found.share)
    # What somebody has set higher is wanted so.
    if own <= known.recommended_own() and fits >= own + _WORTH_SAYING:
        yield (
            f"With so many translations, --own {fits:g} shows readers more in their own language than {own:g}: "
            f"`langshift retune {summary.name} --own {fits:g}`."
        )


def _percent(right: float) -> int:
    return round(100 * (1 - right))
