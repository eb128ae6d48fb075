"""Documents in chunks: where they are cut, and what a chunk says of its place and its language."""

import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_encoder import ToyEncoder

from langshift.debias.detector import open_detector
from langshift.errors import UsageError
from langshift.ingest.chunking import Chunking, chunks_of
from langshift.ingest.documents import Document
from langshift.ingest.transform import chunked, detect_language, index_entry

LANGUAGES = {
    "en": "The sea rises and falls twice a day, and the moon above the old harbour is the reason for it. ",
    "th": "น้ำทะเลขึ้นและลงวันละสองครั้งเพราะแรงดึงดูดของดวงจันทร์ที่อยู่เหนือท่าเรือเก่าแห่งนั้นทุกวันทุกคืน ",
    "de": "Das Meer steigt und fällt zweimal am Tag, und der Mond über dem alten Hafen ist der Grund dafür. ",
    "zh": "海水每天涨落两次，原因是古老港口上空的月亮对海水的吸引力，所以渔民每天早上都要先看潮汐表，然后出海。",
    "ru": "Море поднимается и опускается два раза в день, и причиной тому луна над старой гаванью. ",
    "ar": "يرتفع البحر وينخفض مرتين في اليوم، والقمر فوق الميناء القديم هو السبب في ذلك كما يقول الصيادون. ",
    "ja": "海は一日に二回満ち引きします。その原因は古い港の上に出ている月です。漁師たちは毎朝潮の表を見ています。",
    "el": "Η θάλασσα ανεβαίνει και κατεβαίνει δύο φορές την ημέρα, και το φεγγάρι πάνω από το λιμάνι φταίει. ",
}
FAMILY, FLAG, HAND = "👨\u200d👩\u200d👧\u200d👦", "🇫🇷", "👋🏽"


class Windowed(ToyEncoder):
    """Reads so many tokens at a time, of four characters each."""

    def __init__(self, window):
        super().__init__()
        self.window = window

    def count_tokens(self, texts):
        return [2 + -(-len(text) // 4) for text in texts]


def document(text, **more):
    return Document("a", **{"title": "", "text": text, "language": None, "other": {}, **more})


def cut(text, how, *, language="en", encoder=None, title=""):
    made = chunks_of(document(text, title=title), language, Chunking.parse(how), encoder or ToyEncoder())
    return [chunk.text for chunk in made]


@pytest.mark.parametrize("how", ["auto", "paragraphs", "sentences:5", "words:120", "fixed:100"])
def test_a_method_is_written_as_it_is_read(how):
    assert str(Chunking.parse(how)) == how


@pytest.mark.parametrize(
    "how", ["", "off", "Auto", "auto:3", "words", "words:", "words:0", "words:-1", "fixed", "lines:3"]
)
def test_what_is_no_method_is_refused(how):
    with pytest.raises(UsageError) as caught:
        Chunking.parse(how)
    assert str(caught.value) == f"--chunk {how!r} is not auto, paragraphs, sentences:N, words:N, fixed:N or off."


def test_paragraphs_end_at_lines_of_nothing_but_white_space():
    text = "One.\nStill one.\r\n \t\r\nTwo.\u2029Three.\n\n\n\n  Four.\r\n"
    assert cut(text, "paragraphs") == ["One.\nStill one.", "Two.", "Three.", "Four."]


def test_sentences_are_grouped_and_never_across_a_blank_line():
    text = "Mr. Brown met J. R. Tolkien. He was late! Why?\n\nIt rained.  It poured."
    assert cut(text, "sentences:2") == ["Mr. Brown met J. R. Tolkien. He was late!", "Why?", "It rained.  It poured."]
    assert cut("我来了。你好！是吗？", "sentences:1", language="zh") == ["我来了。", "你好！", "是吗？"]
    assert cut("Er kam am 3. Mai nach Bonn. Dr. Meier ging.", "sentences:1", language="de") == [
        "Er kam am 3. Mai nach Bonn.",
        "Dr. Meier ging.",
    ]


def test_thai_sentences_end_at_spaces_for_want_of_marks():
    made = cut(LANGUAGES["th"] * 3, "sentences:1", language="th")
    assert made == [LANGUAGES["th"].strip()] * 3


def test_lines_that_were_broken_at_a_width_are_no_sentences_and_others_are():
    wrapped = "The sea rises and falls twice a day, and the moon above\nthe harbour is why. Fishermen know it well."
    assert cut(wrapped, "sentences:1") == [wrapped[:75], wrapped[76:]]
    assert cut("Bread\nMilk\nEggs", "sentences:1") == ["Bread", "Milk", "Eggs"]


def test_words_are_counted_as_each_language_has_them():
    assert cut("One two. Three four five. Six.", "words:5") == ["One two. Three four five.", "Six."]
    assert cut("One two three four. Five.", "words:2") == ["One two three four.", "Five."]
    # Two words and three.
    assert cut("我们 中国。我们 中国 人民。", "words:4", language="zh") == ["我们 中国。", "我们 中国 人民。"]


def test_chunks_of_a_fixed_size_have_so_many_words_or_characters_wherever_sentences_end():
    assert cut("One two. Three\n\nfour -  five six. Seven", "fixed:3") == [
        "One two. Three",
        "four -  five",
        "six. Seven",
    ]
    assert cut("One two three", "fixed:3") == ["One two three"]
    text = LANGUAGES["zh"] * 5
    made = cut(text, "fixed:100", language="zh")
    assert made == [text[start : start + 100] for start in range(0, len(text), 100)]
    assert len(made[0]) == 100
    # Marks stay with their letter, of three code points here.
    assert cut("ที่ที่ที่", "fixed:5", language="th") == ["ที่"] * 3
    assert cut(FAMILY * 2, "fixed:3", language="ja") == [FAMILY] * 2


def test_a_text_that_fits_a_window_with_its_title_is_one_chunk():
    text = "One.\n\nTwo. " + "x" * 40
    assert cut(text, "auto", encoder=Windowed(15)) == [text]
    assert cut(text, "auto", encoder=Windowed(15), title="Sea") == ["One.", "Two. " + "x" * 40]
    assert cut("x" * 990, "auto", title="Nine more") == ["x" * 990]
    assert cut("One.\n\n" + "x" * 999, "auto") == ["One.", "x" * 999]


def test_a_paragraph_beyond_the_window_becomes_few_pieces_of_about_equal_length():
    text = " ".join(f"This is the sentence number {number} of the text." for number in range(10, 60))
    made = cut(text, "paragraphs")
    assert len(made) == -(-len(text) // 1000)
    assert max(map(len, made)) - min(map(len, made)) < 100
    assert all(piece.endswith("of the text.") for piece in made)


def test_a_sentence_beyond_the_window_is_cut_at_spaces_else_between_words_else_between_characters():
    assert all(piece.split() == ["word"] * len(piece.split()) for piece in cut("word " * 1000, "auto"))
    assert all(piece.startswith("我们") for piece in cut("我们" * 1000, "auto", language="zh"))
    for one in (FAMILY, FLAG, HAND, "e\u0301\u0323"):
        made = cut(one * 1500, "auto", encoder=Windowed(16))
        assert {piece.replace(one, "") for piece in made} == {""}


MARKUP = "<p>Tom &amp; <b>Jerry</b></p>"
SPACES = (" ", "  ", "\n", "\n\n", "\r\n \r\n", "\t", "\x85", "\u2028", "\u2029", "\u3000", "\0")
ODD = (FAMILY, FLAG, HAND, "e\u0301", "\u0301", "𠮷𝐀", MARKUP, "a" * 90, "Dr. ", "3. ", "! ", ".")
PIECES = st.sampled_from([*LANGUAGES.values(), *ODD, *SPACES])


@given(
    st.lists(PIECES | st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=30).map("".join),
    st.sampled_from(["auto", "paragraphs", "sentences:2", "words:7", "fixed:7"]),
    st.sampled_from([None, 12, 60]),
    st.sampled_from(["en", "th", "und", "zh-TW"]),
)
def test_places_are_those_of_the_original_and_leave_nothing_out(text, how, window, language):
    encoder = Windowed(window) if window else ToyEncoder()
    made = chunks_of(document(text), language, Chunking.parse(how), encoder)
    places = [chunk.other["chunk"] for chunk in made]
    assert [chunk.text for chunk in made] == [text[place["start"] : place["end"]] for place in places]
    assert [place["ordinal"] for place in places] == list(range(len(made)))
    assert {place["count"] for place in places} == {len(made)}
    end = 0
    for place in places:
        assert not text[end : place["start"]].strip()
        end = place["end"]
    assert not text[end:].strip()
    if text.strip():
        assert all(chunk.text and chunk.text == chunk.text.strip() for chunk in made)
        limit = 4 * (window - 2) if window else 1000
        assert max(len(chunk.text) for chunk in made) <= limit
    else:
        assert [chunk.text for chunk in made] == [""]
    if how not in ("auto", "fixed:7"):
        assert not any("\n\n" in chunk.text for chunk in made)


@pytest.mark.parametrize("piece", ["a", "word ", "我们的", FAMILY, "x\n", "e" + "\u0301" * 50])
def test_a_sentence_of_100000_characters_is_cut_quickly(piece):
    text = (piece * 100_000)[:100_000]
    begun = time.process_time()
    made = cut(text, "auto")
    assert time.process_time() - begun < 2
    assert "".join("".join(one.split()) for one in made) == "".join(text.split())


def test_a_chunk_is_the_document_with_a_slice_of_its_text_and_its_place():
    whole = document("One.\n\nTwo.", title="T", other={"price": 3}, language="en")
    made = chunks_of(whole, "en", Chunking("paragraphs"), ToyEncoder())
    assert [(chunk.id, chunk.title, chunk.text, chunk.language) for chunk in made] == [
        ("a#0000", "T", "One.", "en"),
        ("a#0001", "T", "Two.", "en"),
    ]
    assert made[1].other == {"price": 3, "parent": "a", "chunk": {"ordinal": 1, "start": 6, "end": 10, "count": 2}}


def test_each_of_several_text_fields_is_cut_for_itself_and_the_title_is_repeated():
    fields = {"headline": "T", "body": "One.\n\nTwo.", "more": "", "notes": "Three."}
    whole = document("One.\n\nTwo. Three.", title="T", texts=fields)
    made = chunks_of(whole, "en", Chunking("paragraphs"), ToyEncoder())
    assert [(chunk.text, chunk.other["chunk"].get("field")) for chunk in made] == [
        ("One.", "body"),
        ("Two.", "body"),
        ("Three.", "notes"),
    ]
    assert [chunk.other["chunk"]["start"] for chunk in made] == [0, 6, 0]
    assert made[1].texts == {"headline": "T", "body": "Two.", "more": "", "notes": ""}
    entry = index_entry(made[2], "en", 1.0, None, {})
    assert (entry["headline"], entry["notes"], "body" in entry) == ({"en": "T"}, {"en": "Three."}, False)
    (alone,) = chunks_of(whole, "en", Chunking("auto"), ToyEncoder())
    assert (alone.texts, alone.text) == (fields, whole.text)
    assert alone.other["chunk"] == {"ordinal": 0, "start": 0, "end": 17, "count": 1}


def test_one_text_field_with_a_name_of_its_own_needs_no_field_in_the_place():
    whole = document("One.\n\nTwo.", title="T", texts={"headline": "T", "body": "One.\n\nTwo."})
    made = chunks_of(whole, "en", Chunking("paragraphs"), ToyEncoder())
    assert [chunk.texts["body"] for chunk in made] == ["One.", "Two."]
    assert "field" not in made[0].other["chunk"]


def pipeline(how):
    chunking = Chunking.parse(how)
    return SimpleNamespace(chunking=chunking, encoder=ToyEncoder(), detector=open_detector(), least_confidence=0.5)


def languages_of(whole, how):
    made = pipeline(how)
    return chunked([whole], [detect_language(whole, made)], made)[1]


def test_each_chunk_of_a_document_in_eight_languages_has_its_own():
    whole = document("\n\n".join(LANGUAGES.values()) + "\n\nOk 12!")
    found = languages_of(whole, "paragraphs")
    assert [one.language for one in found[:-1]] == list(LANGUAGES)
    # Too short to tell.
    assert found[-1] == detect_language(whole, pipeline("paragraphs"))


def test_the_language_that_a_document_names_is_that_of_all_its_chunks():
    whole = document("\n\n".join(LANGUAGES.values()), language="sv")
    assert {one.language for one in languages_of(whole, "paragraphs")} == {"sv"}
