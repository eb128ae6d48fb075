"""What a load did, over all its runs, and how long its last run took by stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langshift.debias.fingerprint import Fingerprint
from langshift.ingest.bulk.ledger import RESULT

STAGES = ("read", "detect", "encode", "shift", "write")

# Called with a stage's name, and the documents and seconds that it has just spent.
OnStage = Callable[[str, int, float], None]


def unwatched(stage: str, documents: int, seconds: float) -> None:
    """Nobody looks on."""


@dataclass
class Summary:
    """What a load did; all but ``seconds``, ``retries`` and ``resumed`` over all its runs.

    Attributes:
        name: the alias.
        index: the version that was written.
        made: how the documents' vectors are made.
        corpus: how messages name the input.
        lines: lines of the input that were documents, deletes or dead letters.
        documents: lines that wrote a document.
        present: documents of this load that the final check found on the server.
        replaced: lines whose document took the place of one of the same ``_id``.
        superseded: lines that wrote nothing, since the index holds a later version of the document.
        deleted: lines that deleted a document.
        dead: lines that went to the dead letters.
        repaired: documents that the cluster had confirmed and lost, and that were written once more.
        languages: documents by language, ``und`` included.
        shifted: documents whose vector was moved.
        cut: documents longer than the encoder reads, by ``longest`` characters.
        longest: characters of a text that the encoder reads.
        folded: documents by language that counts to its macrolanguage (``arz`` to ``ar``).
        without_vector: documents by language that has no language vector and is not the pivot, where others
            are moved.
        vectorless: documents without a vector, which an adopted index may hold.
        resumed: lines that earlier runs had handled.
        retries: requests that were sent again in this run.
        seconds: time spent in each stage of this run; stages overlap.
        dead_letters: the file of dead letters.
        log: the log.
    """

    name: str
    index: str
    made: Fingerprint
    corpus: str = ""
    lines: int = 0
    documents: int = 0
    present: int = 0
    replaced: int = 0
    superseded: int = 0
    deleted: int = 0
    dead: int = 0
    repaired: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    shifted: int = 0
    cut: int = 0
    longest: int | None = None
    folded: Counter[str] = field(default_factory=Counter)
    without_vector: Counter[str] = field(default_factory=Counter)
    vectorless: int = 0
    resumed: int = 0
    retries: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    dead_letters: str = ""
    log: str = ""

    def count(self, tallies: Mapping[str, int]) -> None:
        """Take over what the journal has counted."""
        results = {name.removeprefix(RESULT): n for name, n in tallies.items() if name.startswith(RESULT)}
        self.lines = sum(results.values())
        self.replaced, self.superseded = results.get("updated", 0), results.get("superseded", 0)
        self.deleted, self.dead = results.get("deleted", 0), results.get("dead", 0)
        for kind in ("languages", "folded", "without_vector"):
            prefix = f"{'language' if kind == 'languages' else kind} "
            found = {name.removeprefix(prefix): n for name, n in tallies.items() if name.startswith(prefix)}
            setattr(self, kind, Counter(found))
        self.documents = self.languages.total()
        self.shifted, self.cut = tallies.get("shifted", 0), tallies.get("cut", 0)
        self.vectorless = tallies.get("vectorless", 0)

    def to_dict(self) -> dict[str, Any]:
        """As ``langshift ingest --json`` prints it; ``alphas``, ``method``, ``soft``, ``vectorless`` if not usual."""
        counted = {name: dict(value) if isinstance(value, dict) else value for name, value in vars(self).items()}
        counted.pop("made")
        if not self.vectorless:
            counted.pop("vectorless")
        making: dict[str, Any] = {"alpha": self.made.alpha}
        if self.made.alphas:
            making["alphas"] = dict(self.made.alphas)
        if self.made.method != "shift":
            making["method"] = self.made.method
        if self.made.soft:
            making["soft"] = True
        return {"name": counted.pop("name"), "index": counted.pop("index"), **making, **counted}
