"""Questions in two halves by their articles, so that what is tuned on one is reported on passages that it never saw."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.convert.common import Chosen
from langshift.evaluate.convert.pool import JudgedQuestion, PoolSource


def halved(read: Callable[..., PoolSource]) -> Callable[..., PoolSource]:
    """How a format reads its collection, and ``split_by_article`` for ``halves`` of its questions."""

    def reading(folder: Path, languages: Chosen, *, split_by_article: bool = False, **own: Any) -> PoolSource:  # noqa: ANN401 - the format's own
        source = read(folder, languages, **own)
        return source._replace(parts=partial(halves, source)) if split_by_article else source

    return reading


def halves(source: PoolSource, questions: Sequence[JudgedQuestion]) -> dict[str, list[JudgedQuestion]]:
    """The questions of even (``dev``) and of odd articles (``test``), numbered as they first come in the source.

    Raises:
        UsageError: a question without an article, or one article only.
    """
    if any(one.article is None for one in questions):
        raise UsageError(
            f"{source.where} has questions without an article, so they cannot be split: leave --split-by-article out."
        )
    numbers = {article: number for number, article in enumerate(dict.fromkeys(one.article for one in source.questions))}
    parts = enumerate(("dev", "test"))
    halves = {name: [one for one in questions if numbers[one.article] % 2 == odd] for odd, name in parts}
    if not all(halves.values()):
        raise UsageError(f"{source.where} has questions on only one article, so they cannot be split in two.")
    return halves
