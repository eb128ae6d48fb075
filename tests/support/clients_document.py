"""The blocks of docs/clients.md: requests to send, answers to expect, commands and code to run.

``python tests/support/clients_document.py`` writes the body that ``langshift pipeline install`` makes into it.
"""

import json
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
from piped_index import fingerprint_of

from langshift.plugin import pipeline
from langshift.plugin.fields import USUAL
from langshift.plugin.shift import script as shift_script
from langshift.plugin.shift.index_shift import IndexShift

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
SHIFT = IndexShift(
    "0123456789abcdef",
    "en",
    {"de": np.float32([0.5, -0.25, 0.125, 0.0]), "th": np.float32([0.25, 0.5, -0.5, 0.125])},
    1.0,
    {"th": 0.5},
)
FINGERPRINT = fingerprint_of(SHIFT)
# What of the tables of spellings the document shows.
SHOWN = {"keys": ("de", "th", "en"), "codes": ("deu", "ger", "tha", "eng"), "folds": ("nn", "nb")}
_BLOCK = re.compile(r"(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
_REQUEST = re.compile(r"(GET|PUT|POST) (/\S+)\n?")


class Block(NamedTuple):
    """A block, the words of a comment right before it, and where its text stands in the document."""

    mark: str | None
    kind: str
    text: str
    span: tuple[int, int]


def blocks(document):
    """All blocks of the document, in order."""
    return [Block(m["mark"], m["kind"], m["text"], m.span("text")) for m in _BLOCK.finditer(document)]


def request(text):
    """Method, path and body of a request, the body as bytes; None where a block is an answer."""
    found = _REQUEST.match(text)
    if found is None:
        return None
    body = text[found.end() :]
    if "/_bulk" not in found[2] and body:
        json.loads(body)
    return found[1], found[2], body.encode()


def cut_short(body):
    """The body of a pipeline with the tables of spellings as the document shows them."""
    made = json.loads(json.dumps(body))
    params = made["processors"][-1]["script"]["params"]
    for table, names in SHOWN.items():
        holder = params["new"] if table == "keys" else params
        holder[table] = {name: holder[table][name] for name in names}
    return made


def installed_body(index="news-v0001", first="my-embedding"):
    """What ``langshift pipeline install news --after my-embedding`` puts, cut short."""
    chained = pipeline.First(first, was_default=False)
    return cut_short(pipeline.body(index, SHIFT, USUAL, chained, shift_script.script_id()))


def renew():
    """Write the body of the pipeline into the document."""
    document = DOCUMENT.read_text(encoding="utf-8")
    (block,) = [block for block in blocks(document) if block.mark == "as installed"]
    # Short lists and objects on one line, as a person writes them.
    shown = json.dumps(installed_body(), indent=2, ensure_ascii=False)
    shown = re.sub(r"[\[{][^\[\]{}]{1,200}[\]}]", _on_one_line, shown)
    text = f"PUT /_ingest/pipeline/langshift-news-v0001\n{shown}\n"
    start, end = block.span
    DOCUMENT.write_text(document[:start] + text + document[end:], encoding="utf-8")


def _on_one_line(found):
    if "\n" not in found[0]:
        return found[0]  # inside a string
    line = " ".join(textwrap.dedent(found[0]).split())
    return re.sub(r"(?<=[\[{]) | (?=[\]}])", "", line) if len(line) < 90 else found[0]


if __name__ == "__main__":
    renew()
