"""Files in SQuAD's layout, which XQuAD and MLQA share."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import orjson

from langshift.errors import UsageError


class Paragraph(NamedTuple):
    """A paragraph in one language: its text, question id -> question, and the article it is from."""

    context: str
    questions: dict[str, str]
    article: str | None


def read_squad(path: Path, name: str) -> list[Paragraph]:
    """The paragraphs of a file, in order.

    Args:
        path: the file.
        name: the collection's, for messages.

    Raises:
        UsageError: the file is none of this layout, has nothing in it, or has a text or question that is empty.
    """
    layout = f"{name}'s layout is data[].paragraphs[] with a context and qas[] of id and question"
    try:
        articles = orjson.loads(path.read_bytes())["data"]
        items = [(article.get("title"), item) for article in articles for item in article["paragraphs"]]
        asked = [[(qa["id"], qa["question"]) for qa in item["qas"]] for _, item in items]
        paragraphs = [
            Paragraph(item["context"], dict(qas), title if isinstance(title, str) else None)
            for (title, item), qas in zip(items, asked, strict=True)
        ]
    except orjson.JSONDecodeError as error:
        raise UsageError(
            f"{path} is not valid JSON ({error.msg} at character {error.pos + 1}): fetch the file again."
        ) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is not an {name} file: {layout}.") from error
    questions = [question for qas in asked for question in qas]
    texts = [item.context for item in paragraphs] + [text for question in questions for text in question]
    if not questions or not all(isinstance(text, str) and text.strip() for text in texts):
        raise UsageError(f"{path} has a paragraph or question without text, or none at all: {layout}.")
    if len({name for name, _ in questions}) != len(questions):
        raise UsageError(f"{path} has two questions of one id: fetch the file again.")
    return paragraphs
