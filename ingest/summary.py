"""What a load did, counted and timed by stage."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langshift.plugin.fingerprint import Fingerprint

STAGES = ("read", "detect", "encode", "shift", "write")

# Called with a stage's name, and the documents and seconds that it has just spent.
OnStage = Callable[[str, int, float], None]


def unwatched(stage: str, documents: int, seconds: float) -> None:
    """Nobody looks on."""


@dataclass
class Summary:
    """What a load did.

    Attributes:
        name: the alias.
        index: the version that was written.
        made: how the documents' vectors are made.
        documents: documents read and written.
        replaced: those that took the place of an entry with the same ``_id``.
        languages: documents by language, ``und`` included.
        shifted: documents whose vector was moved.
        cut: documents longer than the encoder reads, by ``longest`` characters.
        longest: characters of a text that the encoder reads.
        folded: documents by language that counts to its macrolanguage (``arz`` to ``ar``).
        without_vector: documents by language that has no language vector and is not the pivot, where others
            are moved.
        seconds: time spent in each stage.
    """

    name: str
    index: str
    made: Fingerprint
    documents: int = 0
    replaced: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    shifted: int = 0
    cut: int = 0
    longest: int | None = None
    folded: Counter[str] = field(default_factory=Counter)
    without_vector: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))

    def to_dict(self) -> dict[str, Any]:
        """As ``langshift ingest --json`` prints it; ``alphas``, ``method`` and ``soft`` where not the usual."""
        counted = {name: dict(value) if isinstance(value, dict) else value for name, value in vars(self).items()}
        counted.pop("made")
        making: dict[str, Any] = {"alpha": self.made.alpha}
        if self.made.alphas:
            making["alphas"] = dict(self.made.alphas)
        if self.made.method != "shift":
            making["method"] = self.made.method
        if self.made.soft:
            making["soft"] = True
        return {"name": counted.pop("name"), "index": counted.pop("index"), **making, **counted}

    @contextmanager
    def timed(self, stage: str, on_stage: OnStage, size: int | None = None) -> Iterator[list[int]]:
        """Count the time of the block to a stage; a block that finds its size appends it."""
        begun = time.perf_counter()
        count: list[int] = [] if size is None else [size]
        yield count
        seconds = time.perf_counter() - begun
        self.seconds[stage] += seconds
        on_stage(stage, count[0], seconds)
