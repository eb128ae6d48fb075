"""Language tags as people write them."""

import pytest

from langshift.languages import macrolanguage, parse_tag, primary, script_of


@pytest.mark.parametrize(
    ("written", "tag"),
    [
        ("th", "th"),
        (" TH ", "th"),
        ("tha", "th"),
        ("tha_Thai", "th"),
        ("eng_Latn", "en"),
        ("arb_Arab", "ar"),
        ("cmn", "zh"),
        ("iw", "he"),
        ("zho-CN", "zh-CN"),
        ("zho_Hans", "zh"),
        ("zh-Hant", "zh-TW"),
        ("zh-Hant-HK", "zh-HK"),
        ("zh-Hant-CN", "zh-Hant-CN"),
        ("zh-CHT", "zh-TW"),
        ("zh-CHS", "zh"),
        ("zh-yue", "yue"),
        ("zh-min-nan", "nan"),
        ("zh-guoyu", "zh"),
        ("sr-Latn", "sr-Latn"),
        ("sr-Cyrl-RS", "sr-RS"),
        ("sh", "sr-Latn"),
        ("sr-Latn-ME", "sr-ME"),
        ("ur-Aran", "ur"),
        ("ar-arz", "arz"),
        ("deu_DEU", "de-DE"),
        ("en-x-mine", "en"),
        ("art-lojban", "jbo"),
        ("i-klingon", "tlh"),
        ("pt-BR", "pt-BR"),
        ("arz", "arz"),
    ],
)
def test_any_form_of_a_tag_gives_the_canonical_one(written, tag):
    assert parse_tag(written) == tag


@pytest.mark.parametrize(
    "written",
    [
        *("", "xx", "und", "klingonese", "e", "german", "th!", "en en", "root", "C", "POSIX", "419", "\u212ao"),
        *("x-default", "x-unknown", "qaa", "qtz-TW", "mul", "mis", "zxx", "und-Hant", "i-enochian"),
        *("en-foo", "de-txt", "zh-yue-cmn", "zh-cht-Hans", "de-1901-1901", "de-TW-Latn", "en-u", "de-Qqqq"),
    ],
)
def test_what_names_no_language_gives_none(written):
    assert parse_tag(written) is None


@pytest.mark.parametrize(
    ("tag", "script"),
    [
        *[
            ("zh", "Hans"),
            ("zh-MO", "Hant"),
            ("yue", "Hant"),
            ("hak-TW", "Hant"),
            ("zh-Hant-CN", "Hant"),
            ("ckb", "Arab"),
        ],
        *[("sr", "Cyrl"), ("sr-ME", "Latn"), ("sr-Latn", "Latn"), ("und", None)],
    ],
)
def test_the_script_that_a_tag_implies(tag, script):
    assert script_of(tag) == script


def test_primary_subtag():
    assert primary("zh-TW") == "zh"
    assert primary("th") == "th"


@pytest.mark.parametrize(("tag", "wider"), [("arz", "ar"), ("nn", "no"), ("yue", "zh"), ("th", None)])
def test_macrolanguage(tag, wider):
    assert macrolanguage(tag) == wider
