"""Parallel text that is none: copies of the pivot's text, and text in another language."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from parallel_data import read
from parallel_source import Texts
from planted import PlantedEncoder, direction

from langshift.commands.vectors import check, fit
from langshift.debias.detector import open_detector
from langshift.debias.parallel import open_parallel
from langshift.debias.parallel.columns import LeftOut
from langshift.debias.parallel.translations import Translations
from langshift.debias.vectors import LanguageVectors

ENGLISH = [
    "The sea rises and falls twice a day.",
    "The moon pulls the water towards itself.",
    "2024",
    "Jupiter",
    "Please subscribe to our newsletter today.",
    "The river carries sand down to the coast.",
    "Le soleil se lève à l'est tous les matins.",
]
GERMAN = [
    "Das Meer steigt und fällt zweimal am Tag.",
    "La luna tira del agua hacia sí misma cada noche.",
    "2024",
    "JUPITER",
    "Please subscribe to our newsletter today.",
    "Der Fluss trägt Sand hinab an die Küste.",
    "Die Sonne geht jeden Morgen im Osten auf.",
]
KEPT = [GERMAN[0], "", "", "", "", GERMAN[5], GERMAN[6]]


def written(folder, kind):
    if kind == "txt":
        folder.mkdir()
        for tag, lines in (("de", GERMAN), ("en", ENGLISH)):
            (folder / f"{tag}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder
    path = folder.with_suffix(f".{kind}")
    rows = [{"de": de, "en": en} for de, en in zip(GERMAN, ENGLISH, strict=True)]
    if kind == "parquet":
        pq.write_table(pa.table({"de": GERMAN, "en": ENGLISH}), path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text("de\ten\n" + "".join(f"{row['de']}\t{row['en']}\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["txt", "tsv", "jsonl", "parquet"])
def test_what_is_no_translation_is_left_out_and_counted(tmp_path, kind):
    source = open_parallel(written(tmp_path / "pairs", kind), pivots=["eng"])
    for _ in range(2):
        texts = [text for rows in source.batches(3) for text in rows.texts["de"]]
        assert texts == KEPT
        assert source.left_out["de"].identical == 3
        assert (dict(source.left_out["de"].detected), dict(source.left_out["en"].detected)) == ({"es": 1}, {"fr": 1})
    # Without a pivot all is read as it is.
    assert read(written(tmp_path / "again", kind))[1]["de"] == GERMAN


def test_of_joined_lines_numbers_stay(tmp_path):
    source = open_parallel(written(tmp_path / "pairs", "txt"), pivots=["en"], join_lines=2)
    texts = [text for rows in source.batches(9) for text in rows.texts["de"]]
    assert texts == ["", "", "", GERMAN[6]]
    assert source.left_out["de"] == LeftOut(2, {"es": 1})


def test_a_given_vector_that_is_the_pivots_is_left_out(tmp_path):
    english = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
    german = english + np.float32([[0, 1, 0]])
    german[2] = english[2]
    np.save(tmp_path / "en.npy", english)
    np.save(tmp_path / "de.npy", german)
    source = open_parallel(tmp_path, pivots=["en"])
    (rows,) = source.batches(9)
    assert np.isnan(rows.vectors["de"]).all(axis=1).tolist() == [False, False, True, False]
    assert (rows.vectors["en"] == english).all()
    assert source.left_out == {"de": LeftOut(1), "en": LeftOut()}


FRENCH = "Le soleil se lève à l'est tous les matins et se couche à l'ouest."


@pytest.mark.parametrize(
    ("tag", "text", "other"),
    [
        ("de", FRENCH, "fr"),
        ("zh-TW", FRENCH, "fr"),
        ("fr", FRENCH, None),
        # Close relatives, parts of a macrolanguage, and languages that the detector does not know.
        ("oc", FRENCH, None),
        ("sr", "Danas je lijep dan i idemo na more s djecom, a navečer ćemo se vratiti kući.", None),
        ("ms", "Saya akan pergi ke pasar untuk membeli ikan dan sayur hari ini.", None),
        ("nb", "Solen står opp i øst hver morgen og går ned i vest om kvelden.", None),
        ("yue", "大海每天漲落兩次，因為月亮在拉它，海水就會升起來。", None),
        ("jam", "The sun rises in the east every morning.", None),
        # Too little, or nothing that is a language.
        ("de", "Le soleil", None),
        ("de", "fr17 fr203 fr44 fr98 fr7 fr1 fr55 fr123", None),
    ],
)
def test_which_texts_are_surely_in_another_language(tag, text, other):
    source = Translations(Texts({tag: [text]}), [], open_detector(), keep_numbers=False)
    (rows,) = source.batches(9)
    assert rows.texts[tag] == ["" if other else text]
    assert list(source.left_out[tag].detected) == ([other] if other else [])


@pytest.fixture(autouse=True)
def encoder(monkeypatch):
    made = PlantedEncoder({"de": 2 * direction(10)}, {})
    for module in ("fitting", "vectors"):
        monkeypatch.setattr(f"langshift.commands.{module}.open_encoder", lambda *_, **__: made)


def test_fitting_and_checking_tell_what_was_left_out(tmp_path):
    random = np.random.default_rng(0).integers(0, 400, (40, 12))
    said = {tag: [" ".join(f"{tag}{word}" for word in row) for row in random] for tag in ("de", "en", "fr")}
    said["de"][:3] = said["en"][:3]
    said["fr"][1:] = said["en"][1:]
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    for tag, lines in said.items():
        (pairs / f"{tag}.txt").write_text("\n".join(lines) + "\n")
    output = tmp_path / "made.safetensors"
    done = CliRunner().invoke(fit, ["--pairs", str(pairs), "--output", str(output), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    few = (
        "fr has 1 pair with the pivot en, with 39 identical to the pivot left out, but a language vector needs at "
        "least two: it is left out."
    )
    left_out = {"de": {"identical": 3, "other_language": {}}, "en": {"identical": 0, "other_language": {}}}
    assert told["left_out"] == left_out | {"fr": {"identical": 39, "other_language": {}}}
    assert told["omitted"] == {"fr": few}
    german = told["languages"]["de"]
    assert (german["pairs"], german["missing"], german["identical"]) == (37, 3, 3)
    assert set(LanguageVectors.load(output).vectors) == {"de"}
    assert done.stderr.splitlines()[-3:] == [
        f"Warning: {pairs}, de: 3 identical to the pivot left out.",
        f"Warning: {pairs}, fr: 39 identical to the pivot left out.",
        f"Warning: {few}",
    ]
    done = CliRunner().invoke(check, [str(output), "--pairs", str(pairs), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["left_out"] == left_out
    (pairs / "de.txt").write_text((pairs / "en.txt").read_text())
    done = CliRunner().invoke(fit, ["--pairs", str(pairs), "--output", str(output)])
    assert str(done.exception).startswith(f"{pairs}: de has no pairs with the pivot en, with 40 identical to the pivot")
