"""What lies in the plugin's zip: with detection of languages the model and its licence, without it neither."""

import io
import zipfile

import pytest

from langshift.embedded.artifacts import read_lock
from langshift.plugin import native


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Packs the plugin without its classes, and gives the names in the zip and in the jar."""

    def compiled(_lock, _downloads, classes):
        classes.mkdir()

    def packed(detects):
        made = native.build(read_lock(), tmp_path, tmp_path / "made", detects=detects)
        with zipfile.ZipFile(made) as outer:
            names = outer.namelist()
            (jar,) = (name for name in names if name.endswith(".jar"))
            with zipfile.ZipFile(io.BytesIO(outer.read(jar))) as inner:
                return made.name, set(names), {name.rpartition("/")[2] for name in inner.namelist()}

    monkeypatch.setattr(native, "compile_sources", compiled)
    return packed


def test_the_model_comes_with_its_licence_or_not_at_all(build):
    name, outer, inner = build(True)
    other_name, other_outer, other_inner = build(False)
    assert name != other_name
    assert outer - other_outer == {"lid.176.LICENSE"}
    assert inner - other_inner == {"lid.176.ftz", "lid.176.LICENSE", "detector.json"}
    licence = (native.source_folder() / "lid.176.LICENSE").read_text(encoding="utf-8")
    assert "Attribution-ShareAlike 3.0 Unported" in licence
    assert "https://fasttext.cc/docs/en/language-identification" in licence
