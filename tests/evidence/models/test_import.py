"""Importing language vectors published as torch files; test_encoder_st has the command with a model of their own."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tiny_model import require_transformers
from toy_encoder import ToyEncoder

from langshift.commands.vectors import import_
from langshift.debias.import_torch import read_pt, require_model_of, with_encoder
from langshift.errors import LangshiftError, UsageError

require_transformers()
pytestmark = pytest.mark.xdist_group("torch")

MODEL = "intfloat/multilingual-e5-large"
GOOD = {
    "model_name": MODEL,
    "source_lang": "en",
    "v_de": np.arange(8, dtype=np.float32),
    "v_zh": np.arange(8, dtype=np.float32).reshape(1, 8) / 2,
    "v_th": np.ones(8, np.float16),
    "n_pairs": 532_761,
}


def save(path, content, **options):
    """Save a file as torch does; arrays become tensors, Chinese ones of the type that NumPy does not have."""
    import torch

    def tensor(key, value):
        if not isinstance(value, np.ndarray):
            return value
        return torch.from_numpy(value).to(torch.bfloat16) if key == "v_zh" else torch.from_numpy(value)

    torch.save({key: tensor(key, value) for key, value in content.items()}, path, **options)


@pytest.fixture
def saved(tmp_path):
    """A function that saves a file of language vectors, some keys changed, those that are None left out."""

    def save_changed(**changes):
        path = tmp_path / "published.pt"
        save(path, {key: value for key, value in {**GOOD, **changes}.items() if value is not None})
        return path

    return save_changed


def test_what_the_file_holds(saved):
    published = read_pt(saved(v_en=np.zeros(8, np.float32), v_iw=np.ones(8, np.float32)))
    assert (published.model, published.pivot, published.encoder) == (MODEL, "en", f"st:{MODEL}")
    assert list(published.vectors) == ["de", "he", "th", "zh"]
    assert {(vector.shape, vector.dtype.name) for vector in published.vectors.values()} == {((8,), "float32")}
    assert np.array_equal(published.vectors["zh"], np.arange(8) / 2)


@pytest.mark.parametrize(
    ("written", "encoder"),
    [
        (MODEL, f"st:{MODEL}"),
        ("multilingual-e5-large", f"st:{MODEL}"),
        ("/data/models/multilingual-e5-large", f"st:{MODEL}"),
        ("someone/bge-m3", "st:someone/bge-m3"),
        ("LaBSE", "st:LaBSE"),
    ],
)
def test_the_encoder_of_a_file(saved, written, encoder):
    published = read_pt(saved(model_name=written))
    assert published.encoder == encoder
    require_model_of(published, encoder)


@pytest.mark.parametrize(
    "encoder",
    [
        f"st:{MODEL}",
        "st:Intfloat/Multilingual-E5-Large",
        "st:multilingual-e5-large",
        "st:/models/multilingual-e5-large",
        "st:/cache/models--intfloat--multilingual-e5-large/snapshots/0123abc",
        f"http://localhost:8080/v1#{MODEL}",
        f"given:{MODEL}",
    ],
)
def test_encoders_of_the_same_model(saved, encoder):
    require_model_of(read_pt(saved()), encoder)


@pytest.mark.parametrize(
    ("encoder", "model"),
    [
        ("st:BAAI/bge-m3", "BAAI/bge-m3"),
        ("st:bge-m3", "BAAI/bge-m3"),
        ("st:someone/multilingual-e5-large", "someone/multilingual-e5-large"),
        ("st:intfloat/multilingual-e5-base", "intfloat/multilingual-e5-base"),
        ("st:/models/mine", "mine"),
        ("https://localhost:8080/v1#bge-m3", "bge-m3"),
        ("use-m", "use-m"),
        ("given", "given"),
    ],
)
def test_an_encoder_of_another_model_is_refused_with_both_named(saved, encoder, model):
    published = read_pt(saved())
    with pytest.raises(UsageError) as refused:
        require_model_of(published, encoder)
    assert str(refused.value) == (
        f"{published.path} contains language vectors of the model {MODEL}, not of {model} (--encoder {encoder}): "
        "vectors of one model cannot be used with another."
    )


class Code:
    """Runs a command when it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("ran"),))


def test_pickled_code_is_not_run(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    by_hand = tmp_path / "by-hand.pt"
    by_hand.write_bytes(pickle.dumps({"model_name": MODEL, "source_lang": "en", "v_fr": Code()}))
    old = tmp_path / "old.pt"
    save(old, {**GOOD, "v_fr": Code()}, _use_new_zipfile_serialization=False)
    for path in (saved(v_fr=Code()), by_hand, old):
        with pytest.raises(UsageError) as refused:
            read_pt(path)
        assert str(refused.value) == (
            f"{path} contains pickled code, which is not run: ask its author for a file with tensors only."
        )
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model_name": None}, " contains no language vectors: it must be a dict with model_name, source_lang "
         "and a tensor v_<lang> for every language."),
        ({"source_lang": 3}, " contains no language vectors: it must be a dict with model_name, source_lang "
         "and a tensor v_<lang> for every language."),
        ({"source_lang": "english"}, ": 'english' in source_lang is not a valid language."),
        ({"v_klingonisch": np.ones(8, np.float32)}, ": 'klingonisch' in v_klingonisch is not a valid language."),
        ({"v_deu": np.ones(8, np.float32)}, " contains two vectors of de; remove one of them."),
        ({"v_en": np.ones(8, np.float32)}, " is damaged: its vector of en towards en itself is not 0."),
        ({"v_de": None, "v_zh": None, "v_th": None}, " contains no tensor v_<lang> of a language other than en."),
        ({"v_fr": np.ones(7, np.float32)}, ": its vectors have different dimensions: 7 and 8."),
        ({"v_fr": np.ones((2, 8), np.float32)}, ": v_fr must be a vector, not of shape (2, 8)."),
        ({"v_fr": np.array(1, np.float32)}, ": v_fr must be a vector, not of shape ()."),
        ({"v_fr": [1.0] * 8}, ": v_fr must be a vector, not list."),
        ({"v_fr": np.full(8, np.nan, np.float32)}, ": v_fr contains values that are not numbers."),
        ({"v_fr": np.full(8, np.inf, np.float32)}, ": v_fr contains values that are not numbers."),
    ],
)  # fmt: skip
def test_unsound_files_are_refused(saved, changes, reason):
    path = saved(**changes)
    with pytest.raises(UsageError) as refused:
        read_pt(path)
    assert str(refused.value) == f"{path}{reason}"


def test_other_files_are_refused(saved, tmp_path):
    import torch

    with pytest.raises(UsageError) as refused:
        read_pt(tmp_path / "nowhere.pt")
    assert str(refused.value) == f"The language-vector file {tmp_path / 'nowhere.pt'} does not exist."
    content = saved().read_bytes()
    for other in (b"", b"words", b"version https://git-lfs.github.com/spec/v1\n", content[:-40], b"PK\3\4" + b"x" * 99):
        path = tmp_path / "other.pt"
        path.write_bytes(other)
        with pytest.raises(UsageError) as refused:
            read_pt(path)
        assert str(refused.value) == f"{path} is not a file saved by PyTorch, or is damaged: download it again."
    torch.save(torch.ones(8), path)
    with pytest.raises(
        UsageError, match=r"other\.pt contains no language vectors: it must be a dict with model_name, source_lang"
    ):
        read_pt(path)


def test_a_missing_extra_is_named(saved):
    path = saved()
    script = (
        "import sys, pathlib; sys.modules['torch'] = None\n"
        "from langshift.debias.import_torch import read_pt\n"
        "try: read_pt(pathlib.Path(sys.argv[1]))\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (
        f"{path} is a PyTorch file, which needs an extra: pip install 'langshift[transformers]'.\n",
        "",
    )


def test_the_encoder_fills_in_what_the_file_does_not_say(saved):
    published = read_pt(saved())
    encoder = ToyEncoder()
    made = with_encoder(published, encoder)
    made.require_encoder(encoder, "here")
    assert made.pairs == {"de": 0, "th": 0, "zh": 0}
    assert made.source == f"unknown pairs (imported from published.pt, built with {MODEL})"


def test_encoders_whose_vectors_do_not_fit_are_refused(saved):
    encoder = ToyEncoder()
    path = saved(v_de=np.ones(16, np.float32), v_zh=None, v_th=None)
    with pytest.raises(UsageError) as refused:
        with_encoder(read_pt(path), encoder)
    assert str(refused.value) == (
        f"{path}: its vectors have 16 dimensions, but toy returns 8: it is another model, or another version of it."
    )
    encoder.normalised = True
    path = saved()
    with pytest.raises(UsageError) as refused:
        with_encoder(read_pt(path), encoder)
    assert str(refused.value) == (
        f"{path}: its vectors were built from embeddings that are not normalised, but toy returns vectors of norm 1: "
        f"import them for st:{MODEL}, or fit vectors for this encoder with `langshift vectors fit`."
    )


def run(*arguments):
    """The command's standard output."""
    return CliRunner().invoke(import_, [*map(str, arguments)], catch_exceptions=False).stdout


def test_the_command_refuses_before_it_opens_the_encoder(saved, tmp_path):
    output = tmp_path / "e5.safetensors"
    with pytest.raises(
        UsageError, match=r"of the model intfloat/multilingual-e5-large, not of BAAI/bge-m3 \(--encoder"
    ):
        run(saved(), "--output", output, "--encoder", "st:BAAI/bge-m3")
    (tmp_path / "mine.txt").write_text("something else")
    with pytest.raises(LangshiftError, match=r"exists and does not contain language vectors: name another file\.$"):
        run(saved(), "--output", tmp_path / "mine.txt")
    assert not output.exists()
