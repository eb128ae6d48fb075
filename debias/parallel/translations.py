"""Parallel text without what is no translation: copies of the pivot's text, and text in another language."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import langcodes
import numpy as np
from numpy.typing import NDArray

from langshift.debias.detector import CLOSE_PAIRS, LanguageDetector
from langshift.debias.parallel.columns import LeftOut, ParallelRows, ParallelText
from langshift.languages import macrolanguage, text_language

# A text is in another language with this posterior, if its own has less than that one and it is long enough: so 96 % of
# NTREX-128's lines are found in another language's file, and .6 % are taken for another in their own, as at .9.
_SURE, _OWN, _LEAST_BYTES = 0.5, 0.02, 20
_DIGITS = 0.25
# Of languages that are told apart less often in single sentences, and of relatives by CLDR, neither is another one.
_CLOSE, _FAR = 0.95, 60
# And of these, whose texts a detector takes for those of the language that it has seen most of.
_NEIGHBOURS = {
    "bg": "mk",
    "de": "bar frr gsw ksh lb nds pdc pfl",
    "en": "sco",
    "es": "an ast ext lad",
    "fa": "azb glk mzn",
    "fil": "bcl ceb ilo pag pam war",
    "fr": "frp oc pcd wa",
    "hi": "bh bho mai new",
    "id": "ban jv min su",
    "is": "fo",
    "it": "co eml fur lij lmo nap pms scn sc vec",
    "nl": "af fy li nds vls zea",
    "pl": "csb szl",
    "ru": "ba cv rue tt",
    "ur": "pnb skr",
}


class Translations(ParallelText):
    """Parallel text whose rows lack what is no translation; ``left_out`` counts that anew at each reading.

    A text is left out where it is the pivot's, but for upper and lower case, as untranslated lines, numbers and names
    are; or where the detector is sure that it is in another language, which it is asked for languages that it knows.
    A given vector is left out where it is the pivot's.
    """

    def __init__(
        self, source: ParallelText, pivots: Sequence[str], detector: LanguageDetector, *, keep_numbers: bool
    ) -> None:
        """Keep what goes together.

        Args:
            source: the parallel text.
            pivots: the languages that others are translations of.
            detector: tells the languages of texts.
            keep_numbers: whether texts without letters stay, as parts of passages.
        """
        self.shown, self.languages = source.shown, source.languages
        self.total, self.dimension = source.total, source.dimension
        self.left_out = {tag: LeftOut() for tag in source.languages}
        self._source, self._detector, self._keep_numbers = source, detector, keep_numbers
        self._pivots = [tag for tag in pivots if tag in source.languages]

    def batches(self, size: int) -> Iterator[ParallelRows]:
        """Read the rows; see ``ParallelText``."""
        for counts in self.left_out.values():
            counts.clear()
        for rows in self._source.batches(size):
            texts = {tag: self._translated(tag, rows.texts) for tag in rows.texts}
            vectors = {tag: self._other_vectors(tag, rows.vectors) for tag in rows.vectors}
            yield rows._replace(texts=texts, vectors=vectors)

    def _pivots_of(self, tag: str) -> list[str]:
        """The languages of which texts may be copies: of two pivots, the second's may be copies of the first's."""
        return self._pivots[: self._pivots.index(tag)] if tag in self._pivots else self._pivots

    def _translated(self, tag: str, texts: Mapping[str, Sequence[str]]) -> list[str]:
        kept, counts = list(texts[tag]), self.left_out[tag]
        for row, text in enumerate(kept):
            if not text or (self._keep_numbers and not any(map(str.isalpha, text))):
                continue
            if any(text.casefold() == texts[pivot][row].casefold() for pivot in self._pivots_of(tag)):
                counts.identical += 1
                kept[row] = ""
            elif other := self._other_language(tag, text):
                counts.detected[other] += 1
                kept[row] = ""
        return kept

    def _other_vectors(self, tag: str, vectors: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        kept = vectors[tag]
        for pivot in self._pivots_of(tag):
            # One number tells nearly all apart.
            rows = np.flatnonzero(kept[:, 0] == vectors[pivot][:, 0])
            rows = rows[(kept[rows] == vectors[pivot][rows]).all(axis=1)]
            if len(rows):
                self.left_out[tag].identical += len(rows)
                kept = kept.copy()
                kept[rows] = np.nan
        return kept

    def _other_language(self, tag: str, text: str) -> str | None:
        """The language that a text is surely in, where that is another one; None else."""
        own = text_language(tag)
        if own not in self._detector.known or len(text.encode()) < _LEAST_BYTES:
            return None
        # Codes and lists of figures are in no language.
        if sum(map(str.isdigit, text)) > _DIGITS * len(text):
            return None
        posteriors: dict[str, float] = {}
        for found, posterior in self._detector.posteriors(text).items():
            language = text_language(found)
            posteriors[language] = posteriors.get(language, 0.0) + posterior
        likeliest = max(posteriors, key=lambda language: posteriors[language], default=own)
        if _related(own, likeliest) or posteriors[likeliest] < _SURE or posteriors.get(own, 0.0) >= _OWN:
            return None
        return likeliest


_CLOSE_PAIRS = [{pair.one, pair.other} for pair in CLOSE_PAIRS if pair.sentences < _CLOSE]


@cache
def _related(one: str, other: str) -> bool:
    """Whether texts in one language may well be taken for texts in the other."""
    if one == other or {one, other} in _CLOSE_PAIRS or (macrolanguage(one) or one) == (macrolanguage(other) or other):
        return True
    if one in _NEIGHBOURS.get(other, "").split() or other in _NEIGHBOURS.get(one, "").split():
        return True
    return min(langcodes.tag_distance(one, other), langcodes.tag_distance(other, one)) < _FAR
