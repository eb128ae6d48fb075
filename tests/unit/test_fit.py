"""Fitting language vectors on parallel text."""

import numpy as np
import pytest
from toy_encoder import ToyEncoder

from langshift.errors import LangshiftError, UsageError
from langshift.ingest.fit import fit
from langshift.ingest.parallel import language_files

TEXTS = {
    "eng_Latn": ["one", "two", "", "four", "five"],
    "de": ["eins", "zwei", "drei", "vier", "fünf"],
    "tha": ["หนึ่ง", "", "สาม", "สี่", "ห้า"],
}


@pytest.fixture
def pairs(tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    for name, lines in TEXTS.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "README.txt").write_text("no language")
    return folder


def test_the_vector_is_the_mean_difference_of_complete_pairs(pairs):
    made = fit(pairs, "en", ToyEncoder())
    encoder = ToyEncoder()
    for tag, name, rows in [("de", "de", [0, 1, 3, 4]), ("th", "tha", [0, 3, 4])]:
        own = encoder.encode_documents([TEXTS[name][i] for i in rows]).astype(np.float64)
        pivot = encoder.encode_documents([TEXTS["eng_Latn"][i] for i in rows]).astype(np.float64)
        assert np.abs(made.vectors[tag] - (own - pivot).mean(axis=0)).max() < 1e-6
        assert made.pairs[tag] == len(rows)
    assert sorted(made.vectors) == ["de", "th"]
    assert (made.pivot, made.encoder, made.document_prefix, made.dimension) == ("en", "toy", "passage: ", 8)


def test_the_order_of_the_pairs_does_not_matter(pairs):
    before = fit(pairs, "de", ToyEncoder())
    for path in pairs.glob("*.txt"):
        if path.name != "README.txt":
            path.write_text("\n".join(reversed(path.read_text(encoding="utf-8").splitlines())), encoding="utf-8")
    after = fit(pairs, "de", ToyEncoder())
    for tag in before.vectors:
        assert np.abs(before.vectors[tag] - after.vectors[tag]).max() < 1e-6


def test_lines_are_joined_within_documents(pairs, tmp_path):
    ids = tmp_path / "ids.tsv"
    ids.write_text("a\na\na\nb\nb\n")
    encoder = ToyEncoder()
    made = fit(pairs, "de", encoder, join_lines=2, documents=ids)
    assert [text for text in encoder.seen if text in ("eins zwei", "drei", "vier fünf")] == [
        "eins zwei", "drei", "vier fünf"
    ]  # fmt: skip
    # The second passage has no English, the first no whole Thai.
    assert made.pairs == {"en": 2, "th": 2}
    assert not any(text.startswith(" ") or text.endswith(" ") or "  " in text for text in encoder.seen)
    assert made.source == "pairs, 2 lines a passage"


def test_only_the_languages_asked_for_are_fitted(pairs):
    assert list(fit(pairs, "en", ToyEncoder(), languages=["tha"]).vectors) == ["th"]
    with pytest.raises(UsageError, match=r"pairs: has no text in the language 'fr'; it has de, en, th\.$"):
        fit(pairs, "en", ToyEncoder(), languages=["th", "fr"])


def test_lines_done_are_reported(pairs):
    seen = []
    fit(pairs, "en", ToyEncoder(), on_lines=lambda done, total: seen.append((done, total)))
    assert seen == [(5, 5)]


def test_regions_stand_for_their_language_where_no_other_file_does(tmp_path):
    for name in ("zho-CN", "newstest-ref.zho-TW", "por", "por-BR", "spa-MX"):
        (tmp_path / f"{name}.txt").touch()
    assert list(language_files(tmp_path)) == ["es-MX", "pt", "pt-BR", "zh", "zh-TW"]


def test_what_cannot_be_fitted_is_refused(pairs, tmp_path):
    with pytest.raises(UsageError) as refused:
        fit(pairs, "fr", ToyEncoder())
    assert str(refused.value) == f"{pairs}: has no text in the language 'fr'; it has de, en, th."
    with pytest.raises(UsageError, match=r"nowhere: there is no such folder of parallel text\.$"):
        fit(tmp_path / "nowhere", "en", ToyEncoder())
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match=r"empty: holds no file named for a language, such as th\.txt\.$"):
        fit(empty, "en", ToyEncoder())
    (empty / "en.txt").write_text("alone\n")
    with pytest.raises(UsageError, match=r"empty: there is text in en alone; a second language is needed\.$"):
        fit(empty, "en", ToyEncoder())
    (empty / "eng.txt").write_text("twice\n")
    with pytest.raises(UsageError, match=r"empty: en\.txt and eng\.txt are both en; keep one of them\.$"):
        fit(empty, "en", ToyEncoder())


def test_files_of_different_length_are_refused_before_anything_is_encoded(pairs):
    with (pairs / "de.txt").open("a") as file:
        file.write("sechs\n")
    encoder = ToyEncoder()
    with pytest.raises(UsageError) as refused:
        fit(pairs, "en", encoder)
    assert str(refused.value) == (
        f"{pairs / 'eng_Latn.txt'} has 5 lines but {pairs / 'de.txt'} has 6: "
        "parallel files must be aligned line by line."
    )
    assert encoder.seen == []


def test_bad_bytes_are_named_by_line(pairs):
    (pairs / "de.txt").write_bytes(b"eins\nzwei\ndr\xffi\nvier\nf\n")
    with pytest.raises(UsageError, match=r"de\.txt, line 3: is not UTF-8 text\.$"):
        fit(pairs, "en", ToyEncoder())


def test_document_ids_must_fit(pairs, tmp_path):
    ids = tmp_path / "ids"
    with pytest.raises(UsageError, match=r"ids: there is no such file of document ids\.$"):
        fit(pairs, "en", ToyEncoder(), join_lines=2, documents=ids)
    ids.write_text("a\n")
    with pytest.raises(UsageError, match=r"ids has 1 lines but the parallel text has 5: one id a line is needed\.$"):
        fit(pairs, "en", ToyEncoder(), join_lines=2, documents=ids)


def test_a_language_without_one_complete_pair_is_refused(pairs):
    (pairs / "tha.txt").write_text("\n\nสาม\n\n\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"tha\.txt: not one line has text here and in eng_Latn\.txt\.$"):
        fit(pairs, "en", ToyEncoder())


def test_an_encoder_that_gives_no_number_is_caught(pairs):
    with pytest.raises(
        LangshiftError, match=r"^The encoder toy gave a vector that is not a number for a text in en\.$"
    ):
        fit(pairs, "en", ToyEncoder(norm=float("nan")))
