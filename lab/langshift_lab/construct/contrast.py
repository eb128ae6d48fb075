"""Whether a question's span is what answers it, and nothing else in the index: by a reranker."""

from __future__ import annotations

from typing import Final

from langshift.retrieval.rerank.rerankers import TextReranker
from langshift.retrieval.result import Hit
from langshift.retrieval.searcher import Searcher
from langshift.sentences import Span
from langshift_lab.construct.questions import DraftQuestion, Reason, longest_span

#: So many of the best hits of a search that are not the document are looked at.
RIVALS: Final = 10
# Of translations of the document there may be as many again.
_HITS: Final = 3 * RIVALS


class SpanContrast:
    """Compares documents with and without a span, and with those that a search finds."""

    def __init__(self, searcher: Searcher, reranker: TextReranker) -> None:
        self._searcher, self._reranker = searcher, reranker

    def reason(self, draft: DraftQuestion) -> Reason | None:
        """Why a question is left out; None where the span answers it, and no other document does.

        A text is worth what the best of its windows is worth to the reranker, which reads no more than some hundred
        tokens: else what stands at the end of a document could never be what answers.

        Raises:
            LangshiftError: the reranker or the search fails.
        """
        document = draft.passage.document
        cuts = windows(len(document.text), document.language)
        whole = [document.text[slice(*cut)] for cut in cuts]
        without = [without_span(document.text, cut, draft.span) for cut in cuts]
        # Most windows hold nothing of the span, and are the same.
        texts = list(dict.fromkeys([*whole, *without]))
        scores = self._scores(draft.text, document.title, texts)
        worth = max(scores[text] for text in whole)
        if worth <= max(scores[text] for text in without):
            return "not_preferred"
        for rival in self._rivals(draft):
            texts = [rival.text[slice(*cut)] for cut in windows(len(rival.text), rival.language)]
            if max(self._scores(draft.text, rival.title, texts).values()) >= worth:
                return "answered_elsewhere"
        return None

    def _scores(self, question: str, title: str, texts: list[str]) -> dict[str, float]:
        # As a search has documents reranked.
        given = self._reranker.scores(question, [". ".join(filter(None, (title, text))) for text in texts])
        return dict(zip(texts, given.tolist(), strict=True))

    def _rivals(self, draft: DraftQuestion) -> list[Hit]:
        """The best of a search, less the document and its translations; of a document in chunks its best passage."""
        document = draft.passage.document
        found = self._searcher.search(draft.text, language=document.language, size=_HITS, fields=[])
        others = (
            hit
            for hit in found.hits
            if hit.id != document.id and (document.group is None or hit.group != document.group)
        )
        return list(others)[:RIVALS]


def windows(length: int, language: str | None) -> list[Span]:
    """The parts of a text that a reranker reads one by one: each overlaps the next by half, so none cuts every span.

    Args:
        length: of the text.
        language: which says how long a span may be; a window is twice as long.
    """
    step = longest_span(language)
    return [(start, min(start + 2 * step, length)) for start in range(0, max(length - step, 1), step)]


def without_span(text: str, window: Span, span: Span) -> str:
    """A window of a text, less what it holds of a span."""
    start, end = window
    first, last = (min(max(place, start), end) for place in span)
    return text[start:first] + text[last:end]
