"""How much of a reference answer stands in a generated one: character 3-gram recall (LAURA, Eq. 2)."""

import unicodedata
from collections import Counter
from collections.abc import Sequence

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
