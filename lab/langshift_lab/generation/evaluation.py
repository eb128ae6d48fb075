"""Conditions of a RAG evaluation: what each answer was generated from, its figures, and what is written of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from scipy.stats import entropy

from langshift.debias.detector import LanguageDetector
from langshift.evaluate.compare.findings import basis
from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery, clusters, gather
from langshift.evaluate.datasets.texts import DatasetLanguages, read_texts
from langshift.evaluate.measures.distributions import aligned, mean, shannon_distance, shares_of, smoothed_divergence
from langshift.evaluate.replay.requests import QueryResult
from langshift.files import json_lines, write_bytes, write_json
from langshift.ingest.documents import Document
from langshift.languages import UNDETERMINED
from langshift_lab.generation.generators import Answer, answer_prompt
from langshift_lab.generation.rag import (
    COHERENCE,
    PRESENT,
    RECALL,
    Context,
    Figures,
    compare_conditions,
    correlation,
    gold_passages,
    oracle_languages,
    split_by_language,
    summary,
    summary_by_language,
)
from langshift_lab.generation.scoring import coherence, contains, exact_match, token_f1, trigram_recall

RAG, ANSWERS = "rag.json", "answers.jsonl"
#: Prompts -> the answer to each; None where there is no generator.
Generate = Callable[[Sequence[str]], Sequence[Answer]]


class GeneratedAnswer(NamedTuple):
    """One answer, and what it was generated from.

    Attributes:
        query: the query.
        split: the documents' language where each language has an answer of its own (``language-wise``); else None.
        documents: ids of the documents that the passages are of, the best first.
        passages: their texts.
        prompt: what the generator was given; None without one.
        answer: what it wrote; None without one.
        figures: the answer's measures, and whether a reference stands in the passages.
    """

    query: DatasetQuery
    split: str | None
    documents: Sequence[str]
    passages: Sequence[str] = ()
    prompt: str | None = None
    answer: Answer | None = None
    figures: Mapping[str, float | None] = {}

    def to_dict(self) -> dict[str, Any]:
        """As a line of ``answers.jsonl``."""
        return {
            "query": self.query.id,
            "language": self.query.language,
            "documents_in": self.split,
            "documents": list(self.documents),
            "prompt": self.prompt and sha256(self.prompt.encode()).hexdigest()[:16],
            "answer": self.answer and self.answer.text,
            "finish": self.answer and self.answer.finish,
            "measures": dict(self.figures),
        }


@dataclass(frozen=True)
class ContextResult:
    """What one context came to.

    Attributes:
        context: the context.
        answers: in the order of the queries; of ``language-wise`` one for each language of a query's documents.
        left_out: queries that have reference answers, but not this context.
    """

    context: Context
    answers: Sequence[GeneratedAnswer]
    left_out: int

    @property
    def figures(self) -> dict[str, Figures]:
        """Query id -> its figures.

        Of several answers to a query the one of the best 3-gram recall counts, the first of these on ties; a
        reference is present where it is in what any of them was generated from.
        """
        found: dict[str, Figures] = {}
        for query, answers in gather((one.query.id, one) for one in self.answers).items():
            best = max(answers, key=lambda one: one.figures.get(RECALL) or 0.0)
            present = [one.figures[PRESENT] or 0.0 for one in answers if PRESENT in one.figures]
            found[query] = {**best.figures, **({PRESENT: max(present)} if present else {})}
        return found

    @property
    def recalls(self) -> dict[str, dict[str, float]]:
        """Query id -> language of the documents -> 3-gram recall; of ``language-wise`` alone."""
        split: dict[str, dict[str, float]] = {}
        for one in self.answers:
            if one.split is not None and (recall := one.figures.get(RECALL)) is not None:
                split.setdefault(one.query.id, {})[one.split] = recall
        return split

    def counts(self) -> dict[str, int]:
        """How the answers ended: how many there are, are empty, were cut off, were refused."""
        texts = [one.answer for one in self.answers if one.answer is not None]
        return {
            "asked": len(texts),
            "empty": sum(not one.text for one in texts),
            "cut_off": sum(one.finish == "length" for one in texts),
            "refused": sum(one.finish in ("content_filter", "refusal") for one in texts),
        }


@dataclass(frozen=True)
class RagEvaluation:
    """Contexts of a dataset's queries, with the answers generated from them.

    Attributes:
        dataset: with reference answers.
        languages: of its queries and documents.
        ranked: query id -> documents that were found for it with their scores, the best first.
        conditions: the contexts, in the order in which they were given.
    """

    dataset: Dataset
    languages: DatasetLanguages
    ranked: Mapping[str, Sequence[tuple[str, float]]]
    conditions: Sequence[ContextResult]

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        contexts: Sequence[Context],
        found: Mapping[str, QueryResult],
        generate: Generate | None,
        detector: LanguageDetector,
    ) -> "RagEvaluation":
        """Gather the passages of each context, have answers generated from them, and score these.

        Args:
            dataset: with reference answers; queries without any are not asked.
            contexts: which passages answers are generated from.
            found: query id -> what a search found for it; needed by contexts that search.
            generate: gives the answers; None scores what was found alone.
            detector: of the languages of answers; not limited to some.

        Raises:
            UsageError: a line of the dataset that cannot be read.
            LangshiftError: the generator fails.
        """
        languages = DatasetLanguages.of(dataset)
        asked = [
            query._replace(language=languages.queries[query.id])
            for query in dataset.queries
            if query.id in dataset.answers
        ]
        # What the index has and the dataset has not, has no text here.
        ranked = {query: [hit for hit in result.hits if hit[0] in dataset.documents] for query, result in found.items()}
        drafts = [
            [
                GeneratedAnswer(query, split, documents)
                for query in asked
                for split, documents in _split(context, query, dataset, languages, ranked.get(query.id, ())).items()
            ]
            for context in contexts
        ]
        texts = read_texts(dataset, {name for draft in chain(*drafts) for name in draft.documents})
        for context, condition in zip(contexts, drafts, strict=True):
            for number, draft in enumerate(condition):
                places = found[draft.query.id].places if context.search_depth else {}
                passages = [passage_text(texts[name], places.get(name)) for name in draft.documents]
                prompt = generate and answer_prompt(draft.query.text, passages, draft.query.language or UNDETERMINED)
                condition[number] = draft._replace(passages=passages, prompt=prompt)
        answers = iter(generate([draft.prompt or "" for draft in chain(*drafts)]) if generate else ())
        conditions = []
        for context, condition in zip(contexts, drafts, strict=True):
            scored = [_scored(draft, next(answers, None), dataset, detector) for draft in condition]
            left_out = len(asked) - len({draft.query.id for draft in condition})
            conditions.append(ContextResult(context, scored, left_out))
        return cls(dataset, languages, ranked, conditions)

    def to_dict(self) -> dict[str, Any]:
        """All figures, as ``rag.json`` has them."""
        by = clusters(self.dataset)
        tests = compare_conditions({str(one.context): one.figures for one in self.conditions}, by.of)
        return {
            "queries": {
                "asked": len(self.dataset.answers),
                "without_answers": len(self.dataset.queries) - len(self.dataset.answers),
            },
            "conditions": {str(one.context): self._condition(one) for one in self.conditions},
            "test": {**basis(by), "correction": "Holm"},
            "differences": [
                {"before": before, "after": after, "measure": measure, **test.to_dict()}
                for (before, after, measure), test in tests.items()
            ],
        }

    def _condition(self, condition: ContextResult) -> dict[str, Any]:
        figures, languages = condition.figures, self.languages.queries
        return {
            **summary(figures),
            "left_out": condition.left_out,
            "answers": condition.counts(),
            "by_language": summary_by_language(figures, languages),
            "correlation": self._correlation(condition, figures),
            "oracle": self._oracle(condition),
        }

    def _correlation(self, condition: ContextResult, figures: Mapping[str, Figures]) -> dict[str, Any] | None:
        """Of the mean score of what was retrieved with the 3-gram recall of the answer."""
        recalls = {query: recall for query, one in figures.items() if (recall := one.get(RECALL)) is not None}
        if condition.context.kind != "retrieved" or not recalls:
            return None
        scores = {query: [score for _, score in self._top(condition, query)] for query in recalls}
        return correlation(scores, recalls)._asdict()

    def _oracle(self, condition: ContextResult) -> dict[str, Any] | None:
        """Languages of the best answers beside those of as many documents as were retrieved, by query language."""
        recalls, languages = condition.recalls, self.languages.queries
        if not recalls:
            return None
        shares = gather(
            (
                languages[query] or UNDETERMINED,
                shares_of(self.languages.documents[name] or UNDETERMINED for name, _ in self._top(condition, query)),
            )
            for query in recalls
        )
        rows: dict[str, dict[str, Any]] = {}
        for language, oracle in oracle_languages(recalls, languages).items():
            retrieved = mean(shares[language])
            pair = aligned(retrieved, oracle, self.languages.documents.values())
            rows[language] = {
                "queries": len(shares[language]),
                "retrieved": retrieved,
                "oracle": oracle,
                "JS": shannon_distance(pair),
                "KL": smoothed_divergence(pair),
                "entropy_retrieved": float(entropy(pair[0])),
                "entropy_oracle": float(entropy(pair[1])),
            }
        names = ("JS", "KL", "entropy_retrieved", "entropy_oracle")
        means = {name: fmean(row[name] for row in rows.values()) for name in names}
        return {**means, "all_zero": sum(not any(one.values()) for one in recalls.values()), "by_language": rows}

    def _top(self, condition: ContextResult, query: str) -> Sequence[tuple[str, float]]:
        return self.ranked[query][: condition.context.depth]

    def write(self, folder: Path, document: Mapping[str, Any]) -> None:
        """Write ``answers.jsonl`` of each context to a folder of its own, then ``rag.json``, each whole or not at all.

        Args:
            folder: where to; made for the owner alone, as the files are.
            document: the content of ``rag.json``.
        """
        for condition in self.conditions:
            rows = json_lines(one.to_dict() for one in condition.answers)
            write_bytes(folder / condition.context.folder / ANSWERS, rows, private=True)
        write_json(folder / RAG, document, private=True)


def _split(
    context: Context,
    query: DatasetQuery,
    dataset: Dataset,
    languages: DatasetLanguages,
    ranked: Sequence[tuple[str, float]],
) -> Mapping[str | None, Sequence[str]]:
    """The documents of each answer; none where the context does not exist for the query."""
    if context.kind == "none":
        return {None: ()}
    ranking = [name for name, _ in ranked]
    if context.kind == "language-wise":
        return dict[str | None, Sequence[str]](split_by_language(ranking, languages.documents, context.depth).items())
    gold = context.kind != "retrieved"
    chosen = gold_passages(context, query, dataset, languages.documents) if gold else ranking[: context.depth]
    return {None: chosen} if chosen else {}


def passage_text(document: Document, place: tuple[int, int] | None) -> str:
    """The text of a document, or of the passage of it that was found, below the title as in LAURA."""
    text = document.text if place is None else document.text[slice(*place)]
    return "\n".join(filter(None, (document.title, text)))


def _scored(
    draft: GeneratedAnswer, answer: Answer | None, dataset: Dataset, detector: LanguageDetector
) -> GeneratedAnswer:
    references, language = dataset.answers[draft.query.id], draft.query.language
    figures: dict[str, float | None] = {}
    if draft.passages:
        figures[PRESENT] = float(any(contains(text, references, language) for text in draft.passages))
    if answer is not None:
        coherent = coherence(answer.text, language, detector)
        figures |= {
            RECALL: trigram_recall(answer.text, references),
            "containment": float(contains(answer.text, references, language)),
            "exact match": float(exact_match(answer.text, references, language)),
            "F1": token_f1(answer.text, references, language),
            COHERENCE: None if coherent is None else float(coherent),
        }
    return draft._replace(answer=answer, figures=figures)
