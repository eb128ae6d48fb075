"""Which questions and translations a pool takes."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from langshift.errors import UsageError
from langshift.evaluate.convert.languages import pick
from langshift.evaluate.convert.source import Question, Source


def pivots(source: Source, wanted: Sequence[str]) -> list[str | None]:
    """The tags of the languages that are to ask.

    Raises:
        UsageError: nobody asks in one of them.
    """
    asked = {question.language: question.language for question in source.questions if question.language}
    tags = []
    for language in wanted:
        if (tag := pick(asked, language)) is None:
            names = ", ".join(sorted(asked)) or "none whose language it names"
            raise UsageError(f"{source.where} has no questions in the language {language!r}: it has {names}.")
        tags.append(tag)
    return list(dict.fromkeys(tags))


def rank(group: str, language: str) -> bytes:
    """Where a language stands among those of its group that ``keep`` chooses from; nothing else matters for it."""
    return blake2b(f"{group}\n{language}".encode(), digest_size=16).digest()


def unique(source: Source, questions: list[Question]) -> list[Question]:
    """The questions, those of a shared id told apart by their language.

    Raises:
        UsageError: two questions in one language have one id.
    """
    if len({one.id for one in questions}) < len(questions):
        questions = [one._replace(id=f"{one.id}-{one.language}") for one in questions]
    seen: set[str] = set()
    for one in questions:
        if one.id in seen:
            raise UsageError(f"{source.where} has two questions of the id {one.id!r}: fetch it again.")
        seen.add(one.id)
    return questions


def halves(source: Source, asked: Sequence[Question]) -> dict[str, list[Question]]:
    """The questions of even and of odd articles, articles numbered as they first come in the whole source.

    Raises:
        UsageError: a question without an article, or one article only.
    """
    if any(one.article is None for one in asked):
        raise UsageError(
            f"{source.where} names no article for its questions, so they cannot be split: leave --split-by-article out."
        )
    numbers: dict[str | None, int] = {}
    for one in source.questions:
        numbers.setdefault(one.article, len(numbers))
    halves = {
        name: [one for one in asked if numbers[one.article] % 2 == odd] for odd, name in enumerate(("dev", "test"))
    }
    if not all(halves.values()):
        raise UsageError(f"{source.where} has questions on one article only, so they cannot be split in two.")
    return halves
