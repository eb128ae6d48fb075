"""Indexing a corpus: each of its lines is then on the server or in the dead letters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol

from opensearchpy import OpenSearch

from langshift.debias.encoders import is_given
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.bulk import journal_store
from langshift.ingest.bulk.chunks import COUNT
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.delivery import Courier
from langshift.ingest.bulk.journal import Ledger
from langshift.ingest.bulk.verification import Checked, check
from langshift.ingest.bulk.writer import UNDELIVERED, open_stream
from langshift.ingest.config import Making
from langshift.ingest.documents import Embeddings, Read, Source
from langshift.ingest.progress import OnStage, Summary, unwatched
from langshift.ingest.resume import DOCUMENTS, USUAL, LoadKind, LoadOptions, OpenedLoad, broken_off, open_load
from langshift.ingest.sources import open_source
from langshift.output import counted, note
from langshift.plugin import version_writer
from langshift.plugin.pipelines import follow_load
from langshift.plugin.versions import Target
from langshift.retry import Patience, ahead, waited_out

_BATCH = 256
_BATCH_BYTES = 8 << 20
_REPAIRS = 3  # rounds
_NAMED = 10  # ids in a message
_LOST = "lost"  # the journal's name for lines that the server had confirmed, and lost


class Watch(Protocol):
    """Somebody who looks on."""

    def begin(self, total: int | None, handled: int) -> None:
        """The load begins: lines of the input, None where nobody knows, and how many of them are handled."""

    def update(self, *, handled: int, documents: int, retries: int, dead: int, at_once: int) -> None:
        """Lines handled, documents written, requests sent again, and dead letters of this run; requests at once."""


class LoadRun:
    """One run of a load."""

    def __init__(
        self,
        client: OpenSearch,
        source: Source,
        making: Making,
        on_stage: OnStage,
        options: LoadOptions,
        watch: Watch | None,
        opened: OpenedLoad,
        kind: LoadKind,
    ) -> None:
        self._client, self._source, self._making, self._watch = client, source, making, watch
        self._opened, self._journal, self._patience = opened, opened.journal, options.patience
        self._kind = kind
        place = opened.place
        self._summary = Summary(
            place.name,
            "",
            making.fingerprint(),
            corpus=source.shown,
            longest=making.encoder.longest,
            resumed=opened.resumed,
            dead_letters=str(place.dead_letters),
            log=str(place.log),
        )
        self._on_stage = on_stage
        self._letters = DeadLetters(place.dead_letters)
        self._ledger = Ledger(self._journal, self._letters, source.shown, opened.base, self._settled)
        for first, last in self._journal.fact(_LOST) or ():
            self._ledger.lost.add(first, last)
        self._courier: Courier | None = None

    def run(self) -> Summary:
        """Load, check and publish."""
        target = self._opened.target
        if target is None:
            return self._done_before()
        self._summary.index = target.index
        try:
            if self._watch:
                self._watch.begin(self._source.total, self._opened.resumed)
            self._write(target)
            checked = self._checked(target)
            waited_out(lambda: follow_load(self._client, target, self._making.debias), Patience(self._patience))
            live = waited_out(lambda: version_writer.publish(self._client, target), Patience(self._patience))
        except (Exception, KeyboardInterrupt) as error:
            if (told := broken_off(self._client, self._source, self._journal, target, error)) is error:
                raise
            raise told from error
        # An earlier run may have made the version, and have been killed when it was published.
        if self._journal.fact("created"):
            self._drop_letters_of_versions_before()
        if live != target.index:
            note(f"{target.name} stands for {live} by now, which has the documents of {target.index} too.")
        self._summary.present = checked.documents
        tallies = self._journal.tallies()
        self._summary.count(tallies)
        kept = {"index": target.index, "uuid": target.uuid, "tallies": tallies, "present": checked.documents}
        last = self._opened.base + self._journal.last_line()
        self._journal.finish({**kept, "last": last, "repaired": self._summary.repaired})
        return self._summary

    def _drop_letters_of_versions_before(self) -> None:
        """Sent again, they would bring back what this version has left behind."""
        try:
            self._letters.keep(lambda letter: letter.version is None or letter.version >= self._opened.base)
        except UsageError as error:
            # A line that somebody has broken by hand; the documents are all there.
            note(str(error))

    def _done_before(self) -> Summary:
        assert self._journal.finished is not None  # noqa: S101 - what `open_load` found
        _, kept = self._journal.finished
        self._summary.count(kept["tallies"])
        self._summary.index, self._summary.present = kept["index"], kept["present"]
        self._summary.repaired, self._summary.resumed = kept["repaired"], self._summary.lines
        note(f"This load into {self._summary.name} was complete before: there is nothing to go on with.")
        return self._summary

    def _write(self, target: Target) -> None:
        """Write every line that the journal does not have."""
        likely = journal_store.likely(self._source.total)
        maker = self._kind.maker(
            self._making,
            self._ledger,
            self._opened.base,
            lambda line: journal_store.rank(line) <= likely and self._journal.wants(line),
            self._stage,
        )
        with open_stream(self._client, target, self._ledger.settle, self._patience, self._doubtful()) as stream:
            self._courier = stream.courier
            for batch in ahead(self._batches()):
                for item in maker.items(batch):
                    stream.send(item)
                stream.flush_if_idle()
        self._stage("write", 0, stream.courier.limit.seconds)

    def _doubtful(self) -> int:
        """The last line that an earlier run may have sent without the journal's knowing; 0 in a first run."""
        if not self._opened.goes_on:
            return 0
        return self._journal.last_line() + UNDELIVERED * COUNT

    def _batches(self) -> Iterator[list[Read]]:
        batch: list[Read] = []
        size, begun = 0, time.perf_counter()
        for read in self._source.read(self._journal.handled()):
            batch.append(read)
            size += len(read.original) if isinstance(read.original, bytes) else 0
            if len(batch) >= _BATCH or size >= _BATCH_BYTES:
                self._stage("read", len(batch), time.perf_counter() - begun)
                yield batch
                batch, size, begun = [], 0, time.perf_counter()
        if batch:
            self._stage("read", len(batch), time.perf_counter() - begun)
            yield batch

    def _checked(self, target: Target) -> Checked:
        """The final check; what was lost is written once more where that is possible."""
        base = None if self._kind.keeps_versions else self._opened.base
        for left in reversed(range(_REPAIRS + 1)):
            checked = waited_out(lambda: check(self._client, target, self._journal, base), Patience(self._patience))
            lost = [*checked.missing, *checked.differing]
            if not lost:
                if checked.surplus:
                    note(
                        f"{target.index} holds {counted(checked.surplus, 'document')} that this load did not write: "
                        "somebody else has written to it."
                    )
                return checked
            self._forget(sorted(line for _, line in lost))
            told = f"The final check found that the cluster has lost {_named(lost)} that it had confirmed"
            # In an index that people use, somebody may have deleted them.
            if not left or not target.created or not self._source.resumable:
                raise LangshiftError(f"{told}.")
            note(f"{told}: writing them once more.")
            self._summary.repaired += len(lost)
            self._write(target)
        raise AssertionError

    def _forget(self, lines: list[int]) -> None:
        """Have lines written once more, by this run or another, without counting them again."""
        for line in lines:
            self._ledger.lost.add(line, line)
        # Noted first: a line that is noted and not forgotten is as it was.
        self._journal.set_fact(_LOST, self._ledger.lost.ranges())
        self._journal.forget(lines)

    def _stage(self, stage: str, documents: int, seconds: float) -> None:
        self._summary.seconds[stage] += seconds
        self._on_stage(stage, documents, seconds)

    def _settled(self, lines: int) -> None:
        courier = self._courier
        self._summary.retries = courier.retries if courier else 0
        self._on_stage("write", lines, 0.0)
        if self._watch:
            ledger = self._ledger
            self._watch.update(
                handled=ledger.handled,
                documents=ledger.handled - ledger.dead,
                retries=self._summary.retries,
                dead=ledger.dead,
                at_once=courier.limit.at_once if courier else 0,
            )


def _named(lost: list[tuple[str, int]]) -> str:
    """``2 documents (_id 'a', 'b')``; of many the first."""
    ids = ", ".join(repr(identifier) for identifier, _ in lost[:_NAMED])
    return f"{counted(len(lost), 'document')} (_id {ids}{', ...' if len(lost) > _NAMED else ''})"


def load(
    client: OpenSearch,
    corpus: str,
    name: str,
    making: Making,
    on_stage: OnStage = unwatched,
    options: LoadOptions = USUAL,
) -> Summary:
    """Index a corpus; each of its lines is then on the server or in the dead letters.

    Args:
        client: the cluster.
        corpus: path of a JSONL file (plain, gzip or zstd) or a Parquet file, or ``-`` for standard input.
        name: the index's name, an alias over its versions.
        making: encoder, method, language vectors, scales and detector.
        on_stage: called after each batch of each stage with the documents and seconds of that batch.
        options: how it is done.

    Raises:
        UsageError: the input cannot be used, or the index exists; nothing is changed.
        FingerprintError: the index holds vectors of another making; it is as it was.
        LangshiftError: the load broke off; unless nothing was written, it can be gone on with.
    """
    embeddings: Embeddings = "needed" if is_given(making.encoder.id) else "refused"
    with open_source(corpus, embeddings=embeddings) as source:
        return load_source(client, source, name, making, on_stage, options)


def load_source(
    client: OpenSearch,
    source: Source,
    name: str,
    making: Making,
    on_stage: OnStage = unwatched,
    options: LoadOptions = USUAL,
    watch: Watch | None = None,
    kind: LoadKind = DOCUMENTS,
) -> Summary:
    """Index a source that is open; see ``load``."""
    with open_load(client, source, name, making, options, kind) as opened:
        return LoadRun(client, source, making, on_stage, options, watch, opened, kind).run()
