"""The language of texts as they come: capitals, letters in parts, invisible characters, markup; and in plain prose.

With ``-s`` and ``LANGSHIFT_EVIDENCE=1`` the last test prints the table of docs/reference/languages.md.
"""

import csv
import json
import os
from collections import Counter

import pytest
from text_forms import FORMS, decomposed

from langshift.debias.detector import open_detector
from langshift.evaluate.demo import FOLDER
from langshift.languages import text_language

# Of the demo's texts every one is measured for the table; without it, so much less.
EVERY = 1 if os.environ.get("LANGSHIFT_EVIDENCE") else 5


@pytest.fixture(scope="module")
def detector():
    return open_detector()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("THIS IS AN ENGLISH PHRASE", "en"),
        ("MY FRIEND IS A BIRD", "en"),
        ("LİMAN SABAH ALTIDA AÇILIR VE İLK GEMİLER KANAL AÇILIR AÇILMAZ YOLA ÇIKAR.", "tr"),
        ("ЭТО РУССКОЕ ПРЕДЛОЖЕНИЕ", "ru"),
        ("ΤΟ ΛΙΜΑΝΙ ΑΝΟΙΓΕΙ ΣΤΙΣ ΕΞΙ ΤΟ ΠΡΩΙ", "el"),
        (decomposed("바다는 달이 끌어당기기 때문에 하루에 두 번 오르내린다."), "ko"),
        (decomposed("Phở là món ăn truyền thống của người Việt Nam."), "vi"),
        # Without kana, and with characters that Japanese has not.
        ("真的吃一颗花生就会死人吗？", "zh"),
        ("ﺍﻟﺴﻼﻡ ﻋﻠﻴﻜﻢ ﻭﺭﺣﻤﺔ ﺍﻟﻠﻪ", "ar"),
        ("ｶﾞｯｺｳﾉ ﾊﾟﾝﾊ ｵｲｼｲﾃﾞｽ｡", "ja"),
        ("می‌خواهم کتاب‌های تازه‌ای بخوانم", "fa"),
        ("ทะเลขึ้นและลงวันละสองครั้ง ทำให้น้ำลึก", "th"),
        ("<script>var the = 'only of the script';</script><p>Das Meer steigt und fällt.", "de"),
        ("info@the-company.example.com, @TheOldMan: 海は一日に二回満ち引きする。", "ja"),
        ("https://example.com/the/news海は一日に二回満ち引きする。", "ja"),
        ("Das Meer steigt & fällt, wenn a < b und c > d ist.", "de"),
    ],
)
def test_the_language_is_that_of_the_words(detector, text, language):
    assert text_language(detector.detect(text).language) == language


@pytest.mark.parametrize(
    "text", ["https://www.example.org/the-history-of-the-city", "<p>&nbsp;</p>", "\u200b\u00ad\ufeff"]
)
def test_what_has_no_words_is_in_no_language(detector, text):
    assert detector.detect(text) == ("und", 0.0)


def test_a_long_page_costs_no_more_than_its_beginning(detector):
    page = "<div>" * 1_000 + "Das Meer steigt und fällt zweimal am Tag. " + "<<<@@@&&&" * 1_000_000
    assert detector.detect(page).language == "de"


def test_the_demos_texts_are_detected_in_every_form_as_in_plain_prose(detector):
    with (FOLDER / "languages.tsv").open(encoding="utf-8") as file:
        languages = {row["corpus-id"]: row["language"] for row in csv.DictReader(file, delimiter="\t")}
    passages, questions = (
        list(map(json.loads, (FOLDER / name).read_text(encoding="utf-8").splitlines()[::EVERY]))
        for name in ("corpus.jsonl", "queries.jsonl")
    )
    kinds = {
        "passages": [(one["text"], languages[one["_id"]]) for one in passages],
        "questions": [(one["text"], one["language"]) for one in questions],
    }
    print(f"\n| texts | wrong passages of {len(passages)} | surely | wrong questions of {len(questions)} | surely |")
    wrong, sure = dict.fromkeys(kinds, 0), Counter()
    for name, form in FORMS.items():
        for kind, texts in kinds.items():
            found = [(detector.detect(form(text)), language) for text, language in texts]
            others = [one for one, language in found if text_language(one.language) not in (language, "und")]
            wrong[kind] = sum(text_language(one.language) != language for one, language in found)
            sure[kind, name] = sum(one.confidence >= 0.5 for one in others)
        print(f"| {name} |", " | ".join(f"{wrong[kind]} | {sure[kind, name]}" for kind in kinds), "|")
        assert wrong["passages"] == 0, name
        assert wrong["questions"] <= 1, name
    assert not sure.total()
