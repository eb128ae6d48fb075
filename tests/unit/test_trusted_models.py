"""Which models LANGSHIFT_TRUSTED_MODELS names, of Hugging Face and of folders, and what is no name of one."""

import pytest
from tiny_model import require_transformers

from langshift.debias.encoders.model_files import TRUSTED_MODELS, find_model, trusted_models
from langshift.errors import UsageError


def test_names_are_full_ones_and_folders_are_without_links(monkeypatch, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(TRUSTED_MODELS, f" someone/coded, st:bge-m3,LaBSE,,./link,{tmp_path}/mine/")
    assert trusted_models() == {"someone/coded", "BAAI/bge-m3", "LaBSE", str((tmp_path / "mine").resolve())}
    monkeypatch.delenv(TRUSTED_MODELS)
    assert trusted_models() == frozenset()


@pytest.mark.parametrize("entry", ["*", "someone/*", "https:coded", "a b"])
def test_what_is_no_name_is_refused(monkeypatch, entry):
    monkeypatch.setenv(TRUSTED_MODELS, f"someone/coded,{entry}")
    with pytest.raises(UsageError) as refused:
        trusted_models()
    assert str(refused.value) == (
        f"LANGSHIFT_TRUSTED_MODELS contains {entry!r}, which is not the name of a model: write names separated by "
        "commas, such as Alibaba-NLP/gte-multilingual-base or the path of a folder."
    )


def test_a_folder_is_trusted_by_each_of_its_paths_and_by_no_other(monkeypatch, tmp_path):
    require_transformers()
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for trusted in ("mine", "link"):
        monkeypatch.setenv(TRUSTED_MODELS, str(tmp_path / trusted))
        found = {name: find_model("Tests need", str(tmp_path / name)).code for name in ("mine", "link", "other")}
        assert found == {"mine": True, "link": True, "other": False}
