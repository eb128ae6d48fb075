"""What is shown of a hit's text: a part of it that says why it was found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.similarity import with_norm_1
from langshift.errors import UsageError
from langshift.plugin.metadata import FieldNames
from langshift.retrieval import dsl
from langshift.retrieval.plans import Body, SearchPlan
from langshift.retrieval.question import SearchQuery
from langshift.sentences import joined, sentence_spans, within_bmp

#: Makes vectors of texts, shape (texts, dimension), float32.
Encode = Callable[[Sequence[str]], NDArray[np.float32]]


# Characters of a snippet; a sentence is not broken for a few more.
_LENGTH: Final = 160
# What the server puts around a word of the query; of its own accord it takes control characters away.
_OPEN, _CLOSE = "<mark>", "</mark>"
# Of a longer text the server looks at so many characters.
_MOST_ANALYZED: Final = 100_000
# Bytes of all texts of an answer that are encoded: some 750 tokens, .7 s of one core for `e5-small`.
_MOST_ENCODED: Final = 3_000


@dataclass(frozen=True)
class Snippet:
    """What is shown of a hit's text; in an index of chunks, of its best passage.

    Attributes:
        text: a part of it, as it stands there: text, not HTML.
        marks: where words of the query stand in that: the first character of each place and the one after its last,
            counted from 0 in Unicode code points.
        by: whether ``words`` of the query stand there, or ``meaning`` says that it is nearest to the query; else it
            is the ``beginning`` of the text.
    """

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    by: Literal["words", "meaning", "beginning"] = "beginning"


class ShownText(NamedTuple):
    """What a snippet is made of.

    Attributes:
        language: primary tag, or ``und``.
        text: of the hit.
    """

    language: str
    text: str


#: Entry -> what its snippet is made of.
Texts = Mapping[str, ShownText]


def highlight_body(question: SearchQuery, texts: Texts, fields: FieldNames) -> Body:
    """The body of a search that marks the words of a query in entries of an index, by the analyzer of each language.

    Args:
        question: what is searched for.
        texts: entry -> its text.
        fields: the index's names of fields.

    Raises:
        UsageError: the query has too many words for the server.
    """
    tags = list(dict.fromkeys(one.language for one in texts.values()))
    if fields.split:
        names = [f"{name}.{tag}" for name in fields.text_fields if name != fields.title_field for tag in tags]
    else:
        names = [fields.main_text, *(f"{fields.main_text}.{tag}" for tag in tags if tag in fields.analyzed)]
    marked = {
        "highlight_query": dsl.matching(question.words, question.language, tags, fields=fields),
        "pre_tags": [_OPEN],
        "post_tags": [_CLOSE],
        "number_of_fragments": 1,
        "order": "score",
        "fragment_size": _LENGTH,
        "max_analyzer_offset": _MOST_ANALYZED,
        "fields": {name: {} for name in names},
    }
    return dsl.named(list(texts), fields, source=False) | {"highlight": marked}


def make_snippets(
    question: SearchQuery, texts: Texts, fields: FieldNames, encode: Encode | None
) -> SearchPlan[dict[str, Snippet]]:
    """Choose what is shown of each hit; one request, where there are hits.

    Args:
        question: what was searched for.
        texts: entry -> its text, best first.
        fields: the index's names of fields.
        encode: makes vectors of sentences; None where only words can tell.

    Returns:
        Of the plan: entry -> snippet, of those that have a text.
    """
    texts = {name: one for name, one in texts.items() if one.text.strip()}
    found: dict[str, Snippet] = {}
    try:
        bodies = (highlight_body(question, texts, fields),) if texts else ()
    except UsageError:
        # So many words mark everything.
        bodies = ()
    for response in (yield bodies) if bodies else ():
        for hit in response["hits"]["hits"]:
            marked = [marks_of(part) for parts in hit.get("highlight", {}).values() for part in parts]
            # What has other marks than ours in it is no part of the text any more.
            fitting = [one for one in marked if one.marks and one.text in texts[hit["_id"]].text]
            if fitting:
                found[hit["_id"]] = max(fitting, key=lambda one: len(one.marks))
    rest = {name: one for name, one in texts.items() if name not in found}
    return found | nearest_sentences(question, rest, encode)


def marks_of(fragment: str) -> Snippet:
    """A fragment as the server marks it; words that touch, as those of scripts without spaces, are one place."""
    text, *parts = fragment.split(_OPEN)
    marks: list[tuple[int, int]] = []
    for part in parts:
        word, _, after = part.partition(_CLOSE)
        begin, end = len(text), len(text) + len(word)
        if marks and marks[-1][1] == begin:
            begin = marks.pop()[0]
        marks.append((begin, end))
        text += word + after
    return Snippet(text.rstrip(), tuple(marks), "words")


def nearest_sentences(question: SearchQuery, texts: Texts, encode: Encode | None) -> dict[str, Snippet]:
    """The sentences of each text that are nearest to the query; of a text that is short enough all, unencoded.

    How much is encoded is bounded, whatever the texts: of each the beginning, about as much as of any other.

    Args:
        question: what was searched for.
        texts: entry -> its text.
        encode: makes vectors of sentences; None for the beginning of each text.
    """
    found = {name: Snippet(_beginning(one.text)) for name, one in texts.items()}
    long = [name for name, one in texts.items() if len(one.text.strip()) > _LENGTH]
    if encode is None or question.vector is None or not long:
        return found
    parts, room = list[tuple[str, str]](), _MOST_ENCODED
    for place, name in enumerate(long):
        # What a text leaves the others have.
        here = _parts(texts[name], room // (len(long) - place))
        room -= len("".join(here).encode())
        parts += [(name, part) for part in here]
    if not parts:
        return found
    near = with_norm_1(encode([part for _, part in parts])) @ with_norm_1(question.vector)
    best: dict[str, float] = {}
    for (name, part), cosine in zip(parts, near.tolist(), strict=True):
        if cosine > best.get(name, -np.inf):
            best[name], found[name] = cosine, Snippet(_beginning(part), by="meaning")
    return found


def _parts(shown: ShownText, most: int) -> list[str]:
    """The sentences at the beginning of a text, those that follow each other together up to the length of a snippet.

    Args:
        shown: the text.
        most: how many bytes of it are looked at.
    """
    text = shown.text.encode(errors="ignore")[:most].decode(errors="ignore")
    spans = sentence_spans(within_bmp(text), 0, len(text), shown.language)
    if len(text) < len(shown.text):
        # The last one is cut off.
        spans = spans[:-1]
    together = joined(spans, [end - begin for begin, end in spans], _LENGTH) if spans else []
    return [part for begin, end in together if (part := text[begin:end].strip())]


def _beginning(text: str) -> str:
    """As much of a text as a snippet may have, to the end of a word where one ends soon."""
    text = text.strip()
    if len(text) <= _LENGTH:
        return text
    space = text.rfind(" ", _LENGTH * 3 // 4, _LENGTH + 1)
    return text[: space if space > 0 else _LENGTH].rstrip()
