"""The steps of the construction of a test set.

Draw passages, have questions written on them, leave out those that the reranker does not confirm, have the others
translated; ``source`` is what is written as a dataset folder in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from langshift.debias.detector import LanguageDetector
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.convert.pool import JudgedQuestion, PoolSource
from langshift.evaluate.convert.snapshot import IndexSnapshot
from langshift.evaluate.datasets.annotations import Evidence
from langshift_lab.construct.contrast import SpanContrast
from langshift_lab.construct.passages import THIRDS, DrawnPassage, candidates, draw, passage
from langshift_lab.construct.questions import (
    REASONS,
    DraftQuestion,
    QuestionReply,
    Reason,
    question_prompt,
    read_draft,
    read_translation,
    translation_prompt,
    without_repeats,
)
from langshift_lab.convert.squad import count_tokens
from langshift_lab.generation.generators import Answer

#: Number of a question -> the question.
Drafts = Mapping[int, DraftQuestion]
#: Prompts -> the answer to each.
Generate = Callable[[Sequence[str]], Sequence[Answer]]


class QuestionTally:
    """How many questions the model was to write, and what became of them.

    Attributes:
        total: how many.
        dropped: why -> how many were left out.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.dropped: Counter[Reason] = Counter()

    def to_dict(self) -> dict[str, Any]:
        """As JSON, with every reason."""
        dropped = {reason: self.dropped[reason] for reason in REASONS}
        return {"prompts": self.total, "questions": self.total - sum(dropped.values()), "dropped": dropped}


def draw_passages(snapshot: IndexSnapshot, index: str, count: int, seed: int) -> list[DrawnPassage]:
    """Draw the passages that questions are asked on.

    Raises:
        UsageError: there are none.
    """
    drawn = draw(candidates(snapshot.documents()), count, seed)
    if not drawn:
        raise UsageError(
            f"{index} has no language with five documents of 300 characters or more (100 in scripts without spaces), "
            "so no test set can be made of it: write questions by hand, or name an index of longer documents."
        )
    return [passage(snapshot.document(one.id), one.third, seed) for one in drawn]


def write_questions(
    passages: Sequence[DrawnPassage], generate: Generate, detector: LanguageDetector, tally: QuestionTally
) -> list[DraftQuestion]:
    """Have a question written on each passage; leave out what is none, or was written on several.

    Args:
        passages: what is asked about.
        generate: gives the answers of the chat model.
        detector: not limited to some languages.
        tally: counts what is left out.

    Raises:
        LangshiftError: the model fails.
    """
    drafts: list[DraftQuestion] = []
    for one, answer in zip(passages, generate([question_prompt(one) for one in passages]), strict=True):
        found = read_draft(answer, one, detector)
        if isinstance(found, DraftQuestion):
            drafts.append(found)
        else:
            tally.dropped[found] += 1
    single = without_repeats(drafts)
    tally.dropped["repeated"] += len(drafts) - len(single)
    return single


def confirm(
    drafts: Sequence[DraftQuestion], contrast: SpanContrast, tally: QuestionTally, on_draft: Callable[[], None]
) -> Drafts:
    """Leave out the questions that the reranker does not confirm, and number the others from 1.

    Args:
        drafts: the questions.
        contrast: compares documents.
        tally: counts what is left out.
        on_draft: called after each question.

    Raises:
        LangshiftError: the reranker or a search fails, or no question is left.
    """
    confirmed = []
    for draft in drafts:
        reason = contrast.reason(draft)
        on_draft()
        if reason is None:
            confirmed.append(draft)
        else:
            tally.dropped[reason] += 1
    if not confirmed:
        why = "; ".join(f"{REASONS[reason]} ({count:,})" for reason, count in tally.dropped.most_common() if count)
        raise LangshiftError(
            f"None of the {tally.total:,} questions can be used, and nothing was written: {why}. Draw more documents "
            "with --count, or name another --generator or --rerank."
        )
    return dict(enumerate(confirmed, 1))


class Translation(NamedTuple):
    """A question in another language than its document's.

    Attributes:
        number: of the question that it is of.
        language: its primary tag.
        text: the question.
    """

    number: int
    language: str
    text: str


def translate(
    drafts: Drafts, languages: Sequence[str], generate: Generate, detector: LanguageDetector
) -> tuple[list[Translation], QuestionTally]:
    """Have questions translated; also return what was left out.

    Args:
        drafts: the questions.
        languages: primary tags of the languages that every question is to be in, beside its own.
        generate: gives the answers of the chat model.
        detector: not limited to some languages.

    Raises:
        LangshiftError: the model fails.
    """
    wanted = [
        Translation(number, language, draft.text)
        for number, draft in drafts.items()
        for language in languages
        if language != draft.passage.document.language
    ]
    tally, translations = QuestionTally(len(wanted)), list[Translation]()
    prompts = [translation_prompt(one.text, one.language) for one in wanted]
    for one, answer in zip(wanted, generate(prompts) if prompts else (), strict=True):
        found = read_translation(answer, one.text, one.language, detector)
        if isinstance(found, QuestionReply):
            translations.append(one._replace(text=found.text))
        else:
            tally.dropped[found] += 1
    return translations, tally


def thirds(drafts: Drafts) -> dict[str, int]:
    """Count the questions by the third of the document that the middle of their span is in."""
    sums = ((sum(one.span), 2 * len(one.passage.document.text)) for one in drafts.values())
    counts = Counter(middle * len(THIRDS) // length for middle, length in sums)
    return {name: counts[number] for number, name in enumerate(THIRDS)}


def source(index: str, snapshot: IndexSnapshot, drafts: Drafts, translations: Sequence[Translation]) -> PoolSource:
    """The test set as a collection: all documents of the index, the questions, and what answers them.

    Relevant are the document and, where it names a translation group, the documents of this group. Positions are those
    in the document itself; its span is the reference answer to the question in its own language.
    """
    groups = {draft.passage.document.group for draft in drafts.values()} - {None}
    tags, members = set[str](), dict[str | None, list[str]]()
    for one in snapshot.documents():
        tags |= {one.language} if one.language else set()
        if one.group in groups:
            members.setdefault(one.group, []).append(one.id)
    texts = {draft.passage.document.id: draft.passage.document.text for draft in drafts.values()}
    tokens = count_tokens(texts)

    def judged(number: int, language: str, text: str, *, translated: bool) -> JudgedQuestion:
        draft = drafts[number]
        document, (start, end) = draft.passage.document, draft.span
        evidence = Evidence((start + end) / 2 / len(document.text), tokens[document.id], draft.span)
        return JudgedQuestion(
            f"q{number:05}-{language}" if translated else f"q{number:05}",
            text,
            language,
            dict.fromkeys([document.id, *members.get(document.group, ())], 1),
            document.group,
            document.group or document.id,
            {document.id: evidence},
            [] if translated else [document.text[start:end]],
        )

    own = [
        judged(number, draft.passage.document.language or "", draft.text, translated=False)
        for number, draft in drafts.items()
    ]
    others = [judged(number, language, text, translated=True) for number, language, text in translations]
    return PoolSource(Path(index), sorted(tags), [*own, *others], snapshot.passages)
