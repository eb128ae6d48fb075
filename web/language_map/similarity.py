"""How near questions of one language are to documents of another, on average."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from langshift.web.language_map.sampling import Drawn

Matrix = NDArray[np.float64]


def unit(vectors: NDArray[np.floating]) -> Matrix:
    """Rows at length 1, shape (n, dimension), float64; zeros stay zeros."""
    raised = vectors.astype(np.float64)
    lengths = np.linalg.norm(raised, axis=1, keepdims=True)
    made: Matrix = np.divide(raised, lengths, out=np.zeros_like(raised), where=lengths > 0)
    return made


def answering(asked: Sequence[Drawn], documents: Sequence[Drawn]) -> NDArray[np.bool_]:
    """Which documents may answer a question: the one that it was cut out of, and its translations.

    Args:
        asked: the document of each question.
        documents: what questions are compared with.

    Returns:
        Shape (questions, documents).
    """
    ids = np.array([[one.id == other.id for other in documents] for one in asked], bool)
    groups = [[one.group is not None and one.group == other.group for other in documents] for one in asked]
    found: NDArray[np.bool_] = (ids | np.array(groups, bool)).reshape(len(asked), len(documents))
    return found


def mean_similarities(
    questions: NDArray[np.floating],
    documents: NDArray[np.floating],
    asked_in: Sequence[str],
    written_in: Sequence[str],
    languages: Sequence[str],
    left_out: NDArray[np.bool_],
) -> Matrix:
    """The mean cosine of the questions of each language with the documents of each.

    Args:
        questions: vectors, shape (questions, dimension).
        documents: vectors, shape (documents, dimension).
        asked_in: language of each question.
        written_in: language of each document.
        languages: of the rows and of the columns.
        left_out: pairs that do not count, shape (questions, documents).

    Returns:
        Shape (languages, languages): rows are questions, columns documents; NaN where there is no pair.
    """
    counted = (~left_out).astype(np.float64)
    cosines = (unit(questions) @ unit(documents).T) * counted
    rows, columns = _members(asked_in, languages), _members(written_in, languages)
    sums, pairs = rows @ cosines @ columns.T, rows @ counted @ columns.T
    means: Matrix = np.divide(sums, pairs, out=np.full_like(sums, np.nan), where=pairs > 0)
    return means


def lead(similarities: Matrix) -> float | None:
    """How much nearer documents of the question's own language are than those of others, on average.

    The mean over languages of the similarity within a language, less that to each of the other languages; None where
    there is no language of which both are known.

    Args:
        similarities: as ``mean_similarities`` gives them.
    """
    differences = []
    for place, row in enumerate(similarities):
        others = np.delete(row, place)
        known = others[~np.isnan(others)]
        if known.size and not np.isnan(row[place]):
            differences.append(float(row[place] - known.mean()))
    return float(np.mean(differences)) if differences else None


def _members(tags: Sequence[str], languages: Sequence[str]) -> Matrix:
    """Shape (languages, tags): 1 where a tag is that language."""
    return np.array([[tag == language for tag in tags] for language in languages], np.float64).reshape(
        len(languages), len(tags)
    )
