"""Language tags as people write them."""

import pytest

from langshift.languages import macrolanguage, parse_tag, primary


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
        ("pt-BR", "pt-BR"),
        ("arz", "arz"),
    ],
)
def test_any_form_of_a_tag_gives_the_canonical_one(written, tag):
    assert parse_tag(written) == tag


@pytest.mark.parametrize("written", ["", "xx", "und", "klingonese", "e", "german", "th!", "en en"])
def test_what_names_no_language_gives_none(written):
    assert parse_tag(written) is None


def test_primary_subtag():
    assert primary("zh-TW") == "zh"
    assert primary("th") == "th"


@pytest.mark.parametrize(("tag", "wider"), [("arz", "ar"), ("nn", "no"), ("yue", "zh"), ("th", None)])
def test_macrolanguage(tag, wider):
    assert macrolanguage(tag) == wider
