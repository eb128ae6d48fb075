"""One form of texts that are canonically equal: where they are read, encoded and asked for."""

import unicodedata

import numpy as np
import pytest

from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import Encoder
from langshift.ingest.adopt.transform import texts_in_normal_form
from langshift.ingest.documents import Columns, Document, parse_fields
from langshift.normal_form import normal_form
from langshift.plugin.metadata import FieldNames

#: A text in another form, and in normal form.
FORMS = [
    ("Zu\u0308rich", "Zürich"),
    ("\u1107\u1161\u1103\u1161", "바다"),
    ("ガッコウ".translate({0x30AC: "カ\u3099"}), "ガッコウ"),
    ("ba\u0301nh pho\u031b\u0309", "bánh phở"),
    # The marks of one letter in another order, and a character that is another's twin.
    ("q\u0307\u0323", "q\u0323\u0307"),
    ("10 \u212b", "10 Å"),
    ("Donau\u00addampf\u00adschiff", "Donaudampfschiff"),
    ("der Flughaﬁen, ﬂach", "der Flughafien, flach"),
    ("שלום\u200f, \u202bעולם\u202c", "שלום, עולם"),
    ("\ufeffKaffee", "Kaffee"),
    # What was parted by a soft hyphen alone belongs together.
    ("Zu\u00ad\u0308rich", "Zürich"),
]
#: Texts in which nothing changes: joiners and zero-width spaces stand for something, and only NFKC folds the rest.
KEPT = ["Zürich", "می‌خواهم", "ក\u200bខ", "น้ำ", "Ｔｈｅ", "x²", "שָׁלוֹם", "", "plain"]


@pytest.mark.parametrize(("text", "normal"), [*FORMS, *((unicodedata.normalize("NFC", text),) * 2 for text in KEPT)])
def test_there_is_one_form(text, normal):
    assert normal_form(text) == normal
    assert normal_form(normal) == normal


class Listening(Encoder):
    id, revision, dimension, normalised = "listening", "1", 1, False

    def __init__(self):
        self.read = []

    def count_tokens(self, texts):
        return list(map(len, texts))

    def encode_documents(self, texts):
        self.read += texts
        return np.ones((len(texts), 1), np.float32)

    def encode_queries(self, texts):
        return self.encode_documents(texts)


def test_no_encoder_reads_another_form():
    encoder = Listening()
    for text, normal in FORMS:
        assert encoder.count_tokens([text]) == [len(normal)]
        encoder.encode_documents([text])
        encoder.encode_queries((text,))
        assert encoder.read[-2:] == [normal, normal]


@pytest.mark.parametrize("name", ["use-m", "e5-small"])
def test_texts_that_are_canonically_equal_have_one_vector(name):
    encoder = open_encoder(name)
    text = "바다는 달이 끌어당기기 때문에 하루에 두 번 오르내린다."
    for encode in (encoder.encode_documents, encoder.encode_queries):
        made = encode([text, unicodedata.normalize("NFD", text)])
        # Of a batch the last digits differ.
        assert np.abs(made[0] - made[1]).max() < 1e-6


@pytest.mark.parametrize("operation", ["index", "update"])
def test_the_texts_of_a_line_are_in_one_form_and_all_else_as_it_came(operation):
    line = {"_op": operation, "_id": "Zu\u0308rich", "title": "Zu\u0308rich", "text": "ﬁnden", "city": "Zu\u0308rich"}
    made = parse_fields(line)
    texts = {"title": made.title, "text": made.text} if isinstance(made, Document) else made.texts
    assert texts == {"title": "Zürich", "text": "finden"}
    assert (made.id, made.other["city"]) == ("Zu\u0308rich", "Zu\u0308rich")


def test_so_are_texts_in_fields_with_other_names():
    columns = Columns(FieldNames(texts=("head", "parts.body"), title="head", by_language=True))
    made = parse_fields(
        {"_id": "a", "head": "Zu\u0308rich", "parts": {"body": ["ﬁnden", "ru\u0308hren"]}}, columns=columns
    )
    assert made.texts == {"head": "Zürich", "parts.body": "finden rühren"}
    assert (made.title, made.text) == ("Zürich", "finden rühren")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"head": "Zu\u0308rich", "city": "Zu\u0308rich"}, {"head": "Zürich"}),
        ({"head": "Zürich", "parts": {"body": "rühren"}}, {}),
        ({"head": ["a", "u\u0308"]}, {"head": ["a", "ü"]}),
        (
            {"parts": {"body": "u\u0308", "other": "u\u0308"}, "parts.body": "u\u0308"},
            {"parts": {"body": "ü", "other": "u\u0308"}, "parts.body": "ü"},
        ),
        (
            {"parts": [{"body": "u\u0308"}, {"body": {"de": "u\u0308"}, "n": 1.0}]},
            {"parts": [{"body": "ü"}, {"body": {"de": "ü"}, "n": 1.0}]},
        ),
        ({"head": None, "parts": 7}, {}),
    ],
)
def test_of_a_stored_document_its_texts_are_put_into_normal_form_wherever_they_are(source, expected):
    assert texts_in_normal_form(source, FieldNames(texts=("head", "parts.body"))) == expected
