"""Writing down what became of each line: dead letters first, then the journal."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Literal

from langshift.ingest.bulk.acknowledged import Acknowledged, Sampled
from langshift.ingest.bulk.dead_letter import DeadLetter
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.item import Original, Outcome
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.lines import Lines

Stage = Literal["read", "encode", "write"]

#: Before the name of a result where the journal counts them over all runs of a load.
RESULT = "result "


class Ledger:
    """What became of the lines of a load; may be called from several threads.

    A line counts as handled when the journal has it. A dead letter is on the disk before that, so that a process
    that dies in between writes it once more rather than never.

    Attributes:
        results: lines by what became of them in this run: the server's word (``created`` …), ``superseded``, ``dead``.
        lost: lines that were settled before and that the server has lost: they are counted already.
    """

    def __init__(
        self, journal: Journal, letters: DeadLetters, corpus: str, base: int, on_settled: Callable[[int], None]
    ) -> None:
        """Open a ledger.

        Args:
            journal: a journal that holds a begun load.
            letters: the dead letters.
            corpus: how messages name the input.
            base: the version that line 0 would have.
            on_settled: called after each change with the number of lines.
        """
        self.results: Counter[str] = Counter()
        self._journal, self._letters = journal, letters
        self._corpus, self._base = corpus, base
        self._on_settled = on_settled
        self.lost = Lines()
        self._refused: list[DeadLetter] = []
        self._lock = threading.Lock()

    @property
    def dead(self) -> int:
        """Dead letters of this run."""
        return self.results["dead"]

    @property
    def handled(self) -> int:
        """Lines handled in this run."""
        return self.results.total()

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        """Write down what the server said.

        Raises:
            LangshiftError: the dead letters or the journal cannot be written; then nothing counts as handled.
        """
        dead = [outcome for outcome in outcomes if outcome.state == "dead"]
        letters = [self._letter(o.item.line, o.item.id, o.type, o.reason, o.item.original, "write") for o in dead]
        rows = [
            Acknowledged(o.item.line, o.item.id, o.item.operation if o.state == "done" else o.state) for o in outcomes
        ]
        sampled = [
            Sampled(o.item.line, o.item.id, o.item.vector)
            for o in outcomes
            if o.item.vector is not None and o.state == "done"
        ]
        new = [o for o in outcomes if o.item.line not in self.lost]
        results = Counter(o.result if o.state == "done" else o.state for o in new)
        tallies = Counter(tally for o in new if o.state == "done" for tally in o.item.tallies)
        self._write(letters, rows, sampled, results, tallies)

    def refuse(self, line: int, identifier: str | None, kind: str, why: str, original: Original, stage: Stage) -> None:
        """Take a line that never becomes a document; ``flush`` writes it down. Both are for one thread alone.

        Args:
            line: where the input has it.
            identifier: the document's ``_id``, where that is known.
            kind: the error's type.
            why: the error in words.
            original: the line as the input has it.
            stage: where it was found out.
        """
        self._refused.append(self._letter(line, identifier, kind, why, original, stage))

    def flush(self) -> None:
        """Write down what was refused, all at once: each writing waits for the disk.

        Raises:
            LangshiftError: the dead letters or the journal cannot be written; then nothing counts as handled.
        """
        letters, self._refused = self._refused, []
        if letters:
            rows = [Acknowledged(letter.line, letter.id or "", "dead") for letter in letters]
            results = Counter(dead=sum(letter.line not in self.lost for letter in letters))
            self._write(letters, rows, [], results, Counter())

    def _write(
        self,
        letters: Sequence[DeadLetter],
        rows: Sequence[Acknowledged],
        sampled: Sequence[Sampled],
        results: Counter[str],
        tallies: Counter[str],
    ) -> None:
        counted = {**tallies, **{f"{RESULT}{name}": n for name, n in results.items()}}
        with self._lock:
            self._letters.add(letters)
            self._journal.acknowledge(rows, sampled, counted)
            self.results += results
        self._on_settled(results.total())

    def _letter(
        self, line: int, identifier: str | None, kind: str, why: str, original: Original, stage: Stage
    ) -> DeadLetter:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return DeadLetter(original, line, identifier, kind, why, stage, now, self._corpus, self._base + line)
