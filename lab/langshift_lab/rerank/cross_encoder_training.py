"""Training a cross-encoder by LAURA's loss: a positive passage among a few others (LAURA, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.datasets.texts import read_texts
from langshift.retrieval.rerank.cross_encoder import find_reranker, load_cross_encoder
from langshift.retrieval.rerank.rerankers import TextReranker
from langshift_lab.rerank.pools import Array, Mask, Scorer, TrainingPool

#: The articles or groups are dealt out into so many parts; what the first is asked is kept for judging.
PARTS: Final = 5
#: LAURA trained on 17,360 questions.
QUESTIONS: Final = 20_000
#: Of the questions kept for judging.
JUDGED: Final = 1_000
_BATCH: Final = 8
_SEED: Final = 25


class TrainingQuery(NamedTuple):
    """A question with passages.

    Attributes:
        words: the question.
        positives: texts of passages that are worth something for its answer, at least one.
        negatives: texts of others that were found, at least one.
    """

    words: str
    positives: Sequence[str]
    negatives: Sequence[str]


@dataclass(frozen=True)
class CrossEncoderTraining:
    """How a cross-encoder is trained; LAURA's values.

    Attributes:
        epochs: how often each positive passage is learnt from.
        negatives: how many others stand beside it each time, drawn anew: 1 for BGE's reranker, 7 for Qwen's.
        learning_rate: of AdamW.
    """

    epochs: int = 5
    negatives: int = 1
    learning_rate: float = 6e-6


def listwise_loss(scores: Any, lengths: Sequence[int]) -> Any:  # noqa: ANN401 - tensors of torch, which may be missing
    """Eq. 1 for each list, averaged: ``L = -s(d⁺) + ln Σ exp s(d)`` over the positive ``d⁺`` and its negatives.

    Args:
        scores: of all lists, one after the other, the positive of each first, shape (sum of lengths,).
        lengths: of the lists.

    Returns:
        A tensor without dimensions.
    """
    import torch

    losses = [torch.logsumexp(part, 0) - part[0] for part in torch.split(scores, list(lengths))]
    return torch.stack(losses).mean()


def fit_cross_encoder(
    name: str,
    queries: Sequence[TrainingQuery],
    folder: Path,
    how: CrossEncoderTraining,
    *,
    on_list: Callable[[], None] = lambda: None,
) -> list[float]:
    """Train a cross-encoder, and write it to a folder that ``st:`` opens.

    The same model, questions and machine give the same weights.

    Args:
        name: ``st:NAME_OR_PATH``, the model to begin with.
        queries: what it is trained on; each positive passage is learnt from once an epoch.
        folder: where it is written in the end.
        how: epochs, negatives, and learning rate.
        on_list: called after each positive passage.

    Returns:
        The mean loss of each epoch, as it was while the model learnt.

    Raises:
        UsageError: there is no such model, or nothing to learn from.
        LangshiftError: the extra is not installed, or the model cannot be fetched.
    """
    lists = [(query, positive) for query in queries for positive in query.positives]
    if not lists:
        raise UsageError("No question has positive and other passages among its candidates: give another index.")
    model: Any = load_cross_encoder(find_reranker(name.partition(":")[2]))
    import torch
    from sentence_transformers.util import batch_to_device

    optimizer = torch.optim.AdamW(model.parameters(), lr=how.learning_rate)
    chance, losses = np.random.default_rng(_SEED), []
    with torch.random.fork_rng():
        torch.manual_seed(_SEED)
        for _ in range(how.epochs):
            model.train()
            total, order = 0.0, chance.permutation(len(lists)).tolist()
            for start in range(0, len(order), _BATCH):
                batch = [lists[place] for place in order[start : start + _BATCH]]
                texts = [[positive, *_drawn(query.negatives, how.negatives, chance)] for query, positive in batch]
                pairs = [(query.words, text) for (query, _), some in zip(batch, texts, strict=True) for text in some]
                scores = model(batch_to_device(model.preprocess(pairs), model.device))["scores"].reshape(-1)
                loss = listwise_loss(scores, [len(some) for some in texts])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) * len(batch)
                for _ in batch:
                    on_list()
            losses.append(total / len(lists))
    model.eval()
    model.save_pretrained(str(folder), create_model_card=False)
    return losses


def _drawn(texts: Sequence[str], count: int, chance: np.random.Generator) -> list[str]:
    """Some of the texts, as they come from chance."""
    return [texts[place] for place in chance.permutation(len(texts))[:count].tolist()]


def training_queries(lists: Sequence[tuple[TrainingPool, Mask]], passages: Mapping[str, str]) -> list[TrainingQuery]:
    """Lists of candidates in words.

    Args:
        lists: candidates, and which are positive.
        passages: id -> text; candidates without any, which the dataset lacks, are left out.
    """
    found = []
    for pool, positive in lists:
        texts: tuple[list[str], list[str]] = [], []
        for name, which in zip(pool.documents, positive.tolist(), strict=True):
            if name in passages:
                texts[not which].append(passages[name])
        if all(texts):
            found.append(TrainingQuery(pool.words, *texts))
    return found


def held_out(pools: Sequence[TrainingPool]) -> list[TrainingPool]:
    """The candidates of questions that are not learnt from, and that a model is judged by."""
    return [pool for pool in pools if not pool.part][:JUDGED]


def candidate_passages(dataset: Dataset, pools: Iterable[TrainingPool]) -> dict[str, str]:
    """Id -> text of the candidates that the dataset has, as searches give them to rerankers."""
    documents = read_texts(dataset, {name for pool in pools for name in pool.documents})
    return {name: ". ".join(filter(None, (text.title, text.text))) for name, text in documents.items()}


def text_scorer(reranker: TextReranker, passages: Mapping[str, str]) -> Scorer:
    """The scores of a reranker that reads texts; each passage is read once for a question.

    What the dataset lacks is behind all that it has.
    """
    known: dict[str, dict[str, float]] = {}

    def scores(pool: TrainingPool) -> Array:
        of_query = known.setdefault(pool.query, {})
        new = [name for name in pool.documents if name in passages and name not in of_query]
        given: NDArray[np.float64] = reranker.scores(pool.words, [passages[name] for name in new])
        of_query.update(zip(new, given.tolist(), strict=True))
        return np.array([of_query.get(name, -np.inf) for name in pool.documents])

    return scores
