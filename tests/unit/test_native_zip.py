"""What lies in the plugin's zips: with the processor the model and its licence, with the query alone neither."""

import io
import zipfile

import pytest

from langshift.embedded.artifacts import read_lock
from langshift.plugin import native


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Packs the plugin without its classes, and gives of each zip the names in it and in its jar."""

    def compiled(_lock, _downloads, classes, _name):
        classes.mkdir()

    monkeypatch.setattr(native, "compile_sources", compiled)
    return [names(one) for one in native.build(read_lock(), tmp_path, tmp_path / "made")]


def names(packed):
    with zipfile.ZipFile(packed) as outer:
        (jar,) = (name for name in outer.namelist() if name.endswith(".jar"))
        with zipfile.ZipFile(io.BytesIO(outer.read(jar))) as inner:
            return set(outer.namelist()), {name.rpartition("/")[2] for name in inner.namelist()}


def test_the_model_comes_with_its_licence_or_not_at_all(build):
    (outer, inner), (other_outer, other_inner) = build
    assert {name for name in outer - other_outer if not name.endswith(".jar")} == {"lid.176.LICENSE"}
    assert inner - other_inner == {"lid.176.ftz", "lid.176.LICENSE", "detector.json"}
    licence = (native.source_folder() / "lid.176.LICENSE").read_text(encoding="utf-8")
    assert "Attribution-ShareAlike 3.0 Unported" in licence
    assert "https://fasttext.cc/docs/en/language-identification" in licence


def test_neither_asks_for_permissions(build):
    for outer, _ in build:
        assert outer >= {"plugin-descriptor.properties"}
        assert not [name for name in outer if name.endswith(".policy")]
