"""Which of a language's vectors a text takes: by the script that it is in, or that its tag implies."""

import numpy as np
import pytest
from encoded_data import vectors

from langshift.debias.debiaser import Debiaser
from langshift.debias.detector import open_detector, with_script_of
from langshift.debias.vectors import LanguageVectors, vector_tag
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import Document
from langshift.ingest.transform import debias_batch, detect_language

CHINESE = ("zh", "zh-TW")
SERBIAN = ("sr", "sr-Latn")


@pytest.mark.parametrize(
    ("language", "pivot", "tags", "vector"),
    [
        *[
            (tag, "en", CHINESE, "zh-TW")
            for tag in ("zh-HK", "zh-MO", "zh-Hant-CN", "yue", "yue-HK", "nan-TW", "zh-TW")
        ],
        *[(tag, "en", CHINESE, "zh") for tag in ("zh", "zh-SG", "zh-Hans-TW", "zh-Latn", "yue-CN", "wuu", "nan")],
        ("zh-HK", "en", ("zh-TW",), "zh-TW"),
        ("zh-HK", "en", (*CHINESE, "zh-HK"), "zh-HK"),
        ("zh-MO", "en", ("zh", "zh-HK"), "zh-HK"),
        ("zh-HK", "en", ("zh",), "zh"),
        ("zh", "en", ("zh-TW",), None),
        # The pivot is one of its language's, too.
        ("zh-HK", "zh-TW", ("zh",), None),
        ("zh-HK", "zh", ("zh-TW",), "zh-TW"),
        ("sr-ME", "en", SERBIAN, "sr-Latn"),
        ("sr-RS", "en", SERBIAN, "sr"),
        ("sr-Latn-RS", "en", SERBIAN, "sr-Latn"),
        ("sr-Latn", "en", ("sr",), "sr"),
        ("uz-Cyrl", "en", ("uz", "uz-Cyrl"), "uz-Cyrl"),
        ("pt-PT", "en", ("pt", "pt-BR"), "pt"),
        ("nn", "en", ("no",), "no"),
        ("und", "en", CHINESE, None),
    ],
)
def test_vectors_in_the_script_of_a_tag_come_first(language, pivot, tags, vector):
    assert vector_tag(language, pivot, tags) == vector


TRADITIONAL = "香港的天氣今天很熱，下午可能會下雨，請大家記得帶傘出門。"
SIMPLIFIED = "香港的天气今天很热，下午可能会下雨，请大家记得带伞出门。"
LATIN = "Danas je lep dan i idemo na more sa decom, a uveče ćemo se vratiti kući."
CYRILLIC = "Данас је леп дан и идемо на море са децом, а увече ћемо се вратити кући."


@pytest.mark.parametrize(
    ("text", "tag", "wanted"),
    [
        (TRADITIONAL, "zh", "zh-TW"),
        (SIMPLIFIED, "zh", "zh"),
        ("中文", "zh", "zh"),
        (f"iPhone 15 Pro Max: {TRADITIONAL}", "zh", "zh-TW"),
        (LATIN, "sr", "sr-Latn"),
        (CYRILLIC, "sr", "sr"),
        (CYRILLIC, "ru", "ru"),
        ("1234", "sr", "sr"),
        (TRADITIONAL, "ja", "ja"),
        (TRADITIONAL, "und", "und"),
    ],
)
def test_the_script_of_a_text(text, tag, wanted):
    assert with_script_of(tag, text) == wanted


MADE = vectors({tag: [number + 1, 0] for number, tag in enumerate((*CHINESE, *SERBIAN))})


@pytest.mark.parametrize(
    ("text", "declared", "tag", "key"),
    [
        (TRADITIONAL, None, "zh-TW", "zh-TW"),
        (SIMPLIFIED, None, None, "zh"),
        (TRADITIONAL, "zh-HK", "zh-HK", "zh-TW"),
        (TRADITIONAL, "zh", None, "zh"),
        (CYRILLIC, None, None, "sr"),
        (LATIN, "sr-Latn", "sr-Latn", "sr-Latn"),
        (LATIN, "sr-ME", "sr-ME", "sr-Latn"),
    ],
)
def test_a_stamp_keeps_the_tag_by_which_a_document_moves(text, declared, tag, key):
    pipeline = EmbeddingPipeline(None, Debiaser(MADE), open_detector())
    found = detect_language(Document("a", "", text, declared, {}), pipeline)
    _, (stamp,) = debias_batch(np.ones((1, 2), np.float32), [found], pipeline)
    assert (stamp["language"], stamp.get("tag")) == (key, tag)


def test_vectors_may_be_named_with_a_script(tmp_path):
    MADE.save(tmp_path / "made.safetensors")
    assert set(LanguageVectors.load(tmp_path / "made.safetensors").vectors) == {*CHINESE, *SERBIAN}
