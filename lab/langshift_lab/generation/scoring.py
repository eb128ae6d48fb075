"""Measures of one answer against its references: 3-gram recall, containment, exact match, F1, and its language."""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

from langshift.debias.detector import LOOKALIKES, LanguageDetector
from langshift.languages import UNDETERMINED, UNSPACED_WORD_LENGTHS, text_language

#: An answer with fewer letters is undecided: on short answers detection is right for two in three only.
LEAST_LETTERS = 20
#: The detector's least posterior for an answer to count as being in a language.
LEAST_CONFIDENCE = 0.7

# Of languages without spaces between words a token is a character.
_CHARACTERS = re.compile(r"[!-~]+|\S")
# As MLQA's evaluation removes them: in Arabic wherever the two letters stand, in a word, too.
_ARTICLES = {
    "en": re.compile(r"\b(a|an|the)\b"),
    "es": re.compile(r"\b(un|una|unos|unas|el|la|los|las)\b"),
    "de": re.compile(r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b"),
    "vi": re.compile(r"\b(của|là|cái|chiếc|những)\b"),
    "ar": re.compile("ال"),
}


def normalise(text: str, language: str | None) -> str:
    """Return a text as answers are compared: NFKC, casefolded, without punctuation and articles, single spaces.

    Articles are those that MLQA's evaluation removes (en, es, de, vi, ar). A text of which nothing
    would remain, such as ``the`` or ``+``, keeps its punctuation and articles, so that no reference is empty.
    In a language written without spaces every character stands alone, but for runs of ASCII, such as numbers.

    Args:
        text: an answer or a passage.
        language: primary tag of the question; None where it is not known.
    """
    plain = folded(text)
    kept = "".join(one for one in plain if one not in string.punctuation and unicodedata.category(one)[0] != "P")
    if language in _ARTICLES:
        kept = _ARTICLES[language].sub(" ", kept)
    kept = kept if kept.strip() else plain
    return " ".join(_CHARACTERS.findall(kept) if language in UNSPACED_WORD_LENGTHS else kept.split())


def contains(text: str, references: Sequence[str], language: str | None) -> bool:
    """Return whether a reference is a substring of a text, both normalised.

    For an answer this is containment; for the passages found, "answer string present in what was found".
    """
    within = normalise(text, language)
    return any(normalised in within for one in references if (normalised := normalise(one, language)))


def exact_match(answer: str, references: Sequence[str], language: str | None) -> bool:
    """Return whether an answer equals a reference, both normalised (SQuAD). An empty answer equals none."""
    normalised = normalise(answer, language)
    return bool(normalised) and any(normalised == normalise(one, language) for one in references)


def token_f1(answer: str, references: Sequence[str], language: str | None) -> float:
    """Return SQuAD's F1 over multisets of tokens of normalised texts, 0 to 1; the best of several references'.

    ``F1 = 2 |A ∩ R| / (|A| + |R|)`` for the tokens A of the answer and R of the reference.
    """
    ours = Counter(normalise(answer, language).split())
    theirs = [Counter(normalise(one, language).split()) for one in references]
    return max((2 * (ours & one).total() / ((ours + one).total() or 1) for one in theirs), default=0.0)


def coherence(answer: str, language: str | None, detector: LanguageDetector) -> bool | None:
    """Return whether an answer is in the question's language, or None where that is undecided.

    Undecided: fewer than 20 letters, a posterior below .7, a language that is hard to tell from the
    question's (``debias.detector.HARD_PAIRS``), or a question of unknown language. Undecided answers are
    counted on their own, as neither coherent nor not.

    Args:
        answer: as the model wrote it.
        language: primary tag of the question's language.
        detector: not limited to some languages, since an answer may be in any.
    """
    letters = sum(character.isalpha() for character in answer)
    if language in (None, UNDETERMINED) or letters < LEAST_LETTERS:
        return None
    found, confidence = detector.detect(answer)
    detected, wanted = text_language(found), text_language(language)
    if detected == wanted and confidence >= LEAST_CONFIDENCE:
        return True
    if found == UNDETERMINED or confidence < LEAST_CONFIDENCE or detected in LOOKALIKES.get(wanted, ()):
        return None
    return False


_LENGTH = 3


def trigram_recall(answer: str, references: Sequence[str]) -> float:
    """Return the recall of a reference's character 3-grams in an answer, 0 to 1; the best of several references'.

    ``|C_answer ∩ C_reference| / |C_reference|`` over multisets (LAURA, Eq. 2), of texts in NFKC, casefolded, with
    single spaces. A reference of fewer than three characters is one gram.
    """
    text = folded(answer)
    return max((_recall(text, folded(one)) for one in references), default=0.0)


def _recall(answer: str, reference: str) -> float:
    length = min(_LENGTH, len(reference))
    wanted = _grams(reference, length)
    return (wanted & _grams(answer, length)).total() / wanted.total() if wanted else 0.0


def _grams(text: str, length: int) -> Counter[str]:
    return Counter(text[start : start + length] for start in range(len(text) - length + 1) if length)


def folded(text: str) -> str:
    """A text in NFKC, casefolded, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
