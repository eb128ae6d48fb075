"""How far a corpus is translated, as some of its groups tell while it is read."""

import random

import orjson
import pytest

from langshift.ingest.parsing import Parser
from langshift.ingest.sources import PageSample
from langshift.plugin.metadata import FieldNames

LANGUAGES = ["de", "en", "es", "fr", "it", "ja", "ru", "th"]


def lines(pages, share=1.0, first=0, **more):
    """A line for each page in each language, or some of them."""
    chosen = random.Random(7)
    return [
        orjson.dumps({"_id": f"{page}-{tag}", "text": "x" * 90, "language": tag, "group": f"g{page}", **more})
        for page in range(first, first + pages)
        for tag in LANGUAGES
        if chosen.random() < share
    ]


def found(rows, fields=None, block=1 << 16):
    sample = PageSample(Parser("refused") if fields is None else Parser("refused", fields=fields))
    random.Random(5).shuffle(rows)
    data = b"\n".join(rows)
    for begin in range(0, len(data), block):
        sample.look(data[begin : begin + block])
    sample.end()
    return sample.translations(lambda document: document.language, len(rows))


def test_few_and_many_pages_in_all_languages():
    few, many = found(lines(20), block=1 << 20), found(lines(5000))
    assert (few.pages, few.per_page, few.languages, few.share) == (20, 8, 8, 1)
    assert many.pages == pytest.approx(5000, rel=0.01)
    assert many.share == pytest.approx(1, abs=1e-6)


def test_half_of_the_translations_and_lines_without_a_group():
    half = found(lines(4000, 0.5))
    # Of pages in no language nothing is there.
    assert half.per_page == pytest.approx(4, abs=0.15)
    assert half.share == pytest.approx(3 / 7, abs=0.03)
    alone = [orjson.dumps({"_id": str(n), "text": "x", "language": LANGUAGES[n % 8]}) for n in range(9000)]
    mixed = found([*lines(1000), *alone])
    assert mixed.pages == pytest.approx(10_000, rel=0.01)
    assert mixed.per_page == pytest.approx(1.7, abs=0.05)


def test_what_is_no_translation():
    assert found([]) is None
    assert found(lines(50, language="en")) is None
    inside = [
        orjson.dumps({"_id": str(n), "text": "x", "language": LANGUAGES[n % 8], "meta": {"group": "g"}})
        for n in range(80)
    ]
    assert found(inside) is None
    assert found([orjson.dumps({"_id": "a", "group": "g", "_op": "delete"}), b'{"group": "g"', *alone()]) is None


def alone():
    return [orjson.dumps({"_id": tag, "text": "x", "language": tag, "group": tag}) for tag in LANGUAGES]


def test_groups_of_other_names_and_kinds():
    fields = FieldNames(group="meta.page")
    nested = [
        orjson.dumps(
            {"_id": f"{n}-{tag}", "text": "x", "language": tag, "meta": {"page": n}}, option=orjson.OPT_INDENT_2
        ).replace(b"\n", b" ")
        for n in range(9)
        for tag in LANGUAGES
    ]
    assert found(nested, fields, 1 << 20).share == 1
