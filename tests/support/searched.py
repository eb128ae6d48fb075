"""A small index that tests of searching share: two topics in three languages, shifted, and what is odd."""

import json
import uuid
from contextlib import contextmanager
from dataclasses import replace

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.vectors import LanguageVectors, Recommendation, shipped
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.plugin import inventory

TEXTS = {
    "tides-en": "The sea rises and falls twice a day because the Moon pulls at it.",
    "tides-de": "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht.",
    "tides-th": "ทะเลขึ้นและลงวันละสองครั้งเพราะดวงจันทร์ดึงดูดน้ำ",
    "bread-en": "Yeast makes the dough rise before it is baked in a hot oven.",
    "bread-de": "Hefe lässt den Teig aufgehen, bevor er im heißen Ofen gebacken wird.",
    "bread-th": "ยีสต์ทำให้แป้งขึ้นฟูก่อนนำไปอบในเตาร้อน",
}
HOSTILE = "[bold]x[/bold] \x1b[31mred"


def documents():
    """Lines of the corpus; one has a title that a terminal would take for a command."""
    for number, (name, text) in enumerate(TEXTS.items()):
        title = HOSTILE if name == "tides-en" else ""
        yield {"_id": name, "title": title, "text": text, "group": name[:5], "year": 1990 + number}


def make_index(client, path, name, *, alpha=None, lines=None, **how):
    """Load the corpus, or other lines, into an index, as ``choose`` is told."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines or documents()), encoding="utf-8")
    load(client, str(path), name, build_pipeline(open_encoder("use-m"), open_detector(), None, alpha, **how))


#: What the vectors of ``with_gamma`` recommend.
ADVICE = Recommendation(0.5, gamma=0.95)


def with_gamma():
    """The vectors shipped for use-m, with ``ADVICE``, and without what a preference takes."""
    return replace(LanguageVectors.load(shipped("use-m")), recommendation=ADVICE, own_vectors={}, scatter=[])


def a_name():
    """A name that no other test uses."""
    return f"langshift-test-{uuid.uuid4().hex[:8]}"


def drop(client, name):
    """Take an index away with all its versions."""
    inventory.drop_all(client, name)


@contextmanager
def an_index(client, folder):
    """The name of an index of the corpus that no other test uses; it is taken away afterwards."""
    name = a_name()
    make_index(client, folder / "corpus.jsonl", name)
    yield name
    drop(client, name)
