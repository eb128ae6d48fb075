"""What the chat model is sent and what is taken of its answers: a question, and the words that answer it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from json import JSONDecoder
from typing import Any, Final, Literal, NamedTuple

from langshift.debias.detector import LanguageDetector
from langshift.evaluate.datasets.check import too_many_words
from langshift.languages import UNSPACED_WORD_LENGTHS
from langshift.normal_form import normal_form
from langshift.sentences import Span
from langshift_lab.construct.passages import DrawnPassage
from langshift_lab.generation.generators import Answer
from langshift_lab.generation.scoring import coherence, folded

#: Why a question is left out.
Reason = Literal[
    "refused", "unreadable", "span_not_found", "wrong_language", "repeated", "not_preferred", "answered_elsewhere"
]
#: The same for a person, in the order in which it is looked for.
REASONS: Final[Mapping[Reason, str]] = {
    "refused": "the model refused, or found nothing to ask about",
    "unreadable": "the answer has no question that can be used",
    "span_not_found": "its span is not once, word for word, in the third of the text",
    "wrong_language": "it is in another language",
    "repeated": "the question was asked about another document, too",
    "not_preferred": "the reranker does not prefer the document with the span to that without",
    "answered_elsewhere": "another document answers as well",
}
#: How long an answer of the model may be, in tokens.
MOST_TOKENS: Final = 512
# The longest span, in characters: half of what a reranker reads at once, so that it reads each span whole.
_LONGEST: Final = 600
_LONGEST_UNSPACED: Final = 200


def longest_span(language: str | None) -> int:
    """How many characters a span may have in a language."""
    return _LONGEST_UNSPACED if language in UNSPACED_WORD_LENGTHS else _LONGEST


def question_prompt(passage: DrawnPassage) -> str:
    """Return the prompt for a question on a passage, and the span of the passage that answers it."""
    document = passage.document
    title = f"Title: {document.title}\n\n" if document.title else ""
    return (
        "Write one question that a person who does not know the passage below might type into a search, and that the "
        "passage answers.\n"
        f"- Write it in the language of the passage ({document.language}).\n"
        "- Do not mention the passage, its document or its author.\n"
        "- Give the answer as one continuous piece of the passage, usually a sentence, copied word for word, of at "
        f"most {longest_span(document.language)} characters.\n"
        'Reply with one JSON object and nothing else: {"question": "...", "answer": "..."}. If the passage answers no '
        'question, reply {"question": null}.\n\n'
        f"{title}Passage:\n{passage.text}"
    )


def translation_prompt(question: str, language: str) -> str:
    """Return the prompt for a question in another language, named by its tag."""
    return (
        f"Translate the question below into the language with the tag {language}, as a person who speaks it would "
        'type it into a search. Reply with one JSON object and nothing else: {"question": "..."}.\n\n'
        f"Question: {question}"
    )


class QuestionReply(NamedTuple):
    """A question that a model wrote.

    Attributes:
        text: the question, with single spaces.
        content: the whole object that it is in.
    """

    text: str
    content: Mapping[str, Any]


class DraftQuestion(NamedTuple):
    """A question on a passage.

    Attributes:
        passage: the passage.
        text: the question, with single spaces.
        span: the characters of the document's text that answer it, the end exclusive.
    """

    passage: DrawnPassage
    text: str
    span: Span


def read_draft(answer: Answer, passage: DrawnPassage, detector: LanguageDetector) -> DraftQuestion | Reason:
    """The question in an answer of the model, or why there is none.

    Args:
        answer: to ``question_prompt``.
        passage: what it is on.
        detector: not limited to some languages.
    """
    found = _read_question(answer, passage.document.language, detector)
    if not isinstance(found, QuestionReply):
        return found
    words = found.content.get("answer")
    if not isinstance(words, str) or not words.strip():
        return "unreadable"
    span = find_span(words, passage)
    return "span_not_found" if span is None else DraftQuestion(passage, found.text, span)


def read_translation(
    answer: Answer, question: str, language: str, detector: LanguageDetector
) -> QuestionReply | Reason:
    """The translated question in an answer of the model, or why there is none.

    Args:
        answer: to ``translation_prompt``.
        question: what was to be translated.
        language: into which language.
        detector: not limited to some languages.
    """
    found = _read_question(answer, language, detector)
    same = isinstance(found, QuestionReply) and folded(found.text) == folded(question)
    return "wrong_language" if same else found


def _read_question(answer: Answer, language: str | None, detector: LanguageDetector) -> QuestionReply | Reason:
    """The question in an answer of the model, or why there is none."""
    if answer.finish in ("content_filter", "refusal") or not answer.text:
        return "refused"
    content = _read_object(answer.text)
    if content is None:
        return "unreadable"
    question = content["question"]
    if question is None:
        return "refused"
    text = " ".join(normal_form(question).split()) if isinstance(question, str) else ""
    if not any(map(str.isalpha, text)) or too_many_words(text):
        return "unreadable"
    # A question that is too short to detect its language is not held to be in another one.
    return "wrong_language" if coherence(text, language, detector) is False else QuestionReply(text, content)


_DECODER: Final = JSONDecoder(strict=False)


def _read_object(text: str) -> dict[str, Any] | None:
    """The first JSON object with a question: models write fences and explanations around it."""
    # From each brace it is read anew.
    for begin in re.finditer(r"\{", text[:50_000]):
        try:
            found, _ = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "question" in found:
            return found
    return None


def find_span(words: str, passage: DrawnPassage) -> Span | None:
    """Where words stand in the passage, whatever the white space between them.

    Returns:
        The characters in the document's text; None where they do not stand in the passage, stand more than once in the
        document, which leaves open where the answer is, are too long, or are all of the text.
    """
    text = passage.document.text
    parts = normal_form(words).split()
    # What is too long is not looked for, which may take as often its length as the text is long.
    if not 0 < sum(map(len, parts)) <= longest_span(passage.document.language):
        return None
    found = [one.span() for one in re.finditer(r"\s+".join(map(re.escape, parts)), text)]
    if len(found) != 1:
        return None
    start, end = found[0]
    within = passage.start <= start and end <= passage.end
    fits = end - start <= longest_span(passage.document.language) and end - start < len(text.strip())
    return (start, end) if within and fits else None


def without_repeats(drafts: Sequence[DraftQuestion]) -> list[DraftQuestion]:
    """The questions that were asked once alone: the others are answered by several documents, or by none."""
    times = Counter(folded(one.text) for one in drafts)
    return [one for one in drafts if times[folded(one.text)] == 1]
