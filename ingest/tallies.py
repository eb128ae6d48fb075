"""What a document counts under in the summary of a load."""

from __future__ import annotations

from langshift.debias.taken_back import is_shifted
from langshift.ingest.making import Making
from langshift.ingest.moving import Stamp, Told
from langshift.languages import UNDETERMINED, primary, text_language


class Tallies:
    """Names what a document counts under."""

    def __init__(self, making: Making) -> None:
        self._debias = making.debias
        known = making.debias.vectors
        self._needless = {known.pivot, UNDETERMINED} if known else set()
        self._moves = making.fingerprint().moves

    def of(self, told: Told, stamp: Stamp) -> list[str]:
        """The names for a document with a vector, such as ``language de`` and ``shifted``."""
        language = text_language(told.language)
        names = [f"language {language}"]
        if is_shifted(stamp):
            names.append("shifted")
        if language != primary(told.language):
            names.append(f"folded {primary(told.language)}")
        # Whatever its scale: a language that is left alone on purpose lacks no vector.
        if self._moves and language not in self._needless and self._debias.named(told.language) is None:
            names.append(f"without_vector {language}")
        return names
