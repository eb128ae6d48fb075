"""The β that a load takes where nobody asks for one: by how far its pages are translated, as far as it can know."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from given_data import run, write_lines
from shifted_index import language_vectors, preferring, printed, saved

from langshift.cli import root

pytestmark = pytest.mark.usefixtures("cluster_env")
LANGUAGES, DIMENSION = ("de", "en", "th"), 16


@pytest.fixture
def known():
    made = preferring(language_vectors(tags=("de", "th"), dimension=DIMENSION, alpha=1.0, gamma=0.97))
    return replace(made, normalised=True)


def rows(pages, languages=LANGUAGES, **more):
    numbers = np.random.default_rng(4)
    for page in range(pages):
        for language in languages:
            vector = numbers.standard_normal(DIMENSION)
            vector /= np.linalg.norm(vector)
            yield {
                "_id": f"{page}-{language}",
                "text": "x",
                "language": language,
                "embedding": vector.tolist(),
                **{name: form.format(page) for name, form in more.items()},
            }


def test_a_file_a_pipe_an_append_and_other_vectors(known, tmp_path, pipelines):
    name, file = pipelines, saved(tmp_path, known)
    least, most = known.recommended_own(), known.recommended_own(1)
    assert 0 < least < most
    load = ("--index", name, "--encoder", "given", "--vectors", file, "--json")
    corpus = write_lines(tmp_path / "corpus.jsonl", rows(20, group="g{}"))
    done = run("ingest", corpus, *load)
    told = printed(done)
    assert (told["own"], told["translations"]) == (
        most,
        {"pages": 20, "per_page": 3, "languages": pytest.approx(3), "field": "shift.page"},
    )
    says = "Translated: 20 pages, on average in 3.0 of 3.0 languages. A search that collapses on shift.page shows "
    assert f"{says}each page once.\n" in done.stderr
    assert "retune" not in done.stderr

    # Of a pipe nobody knows beforehand.
    piped = [*map(str, ("ingest", "-", *load, "--if-exists", "replace"))]
    done = CliRunner().invoke(root, piped, input=corpus.read_bytes())
    assert printed(done)["own"] == least
    assert f"`langshift retune {name} --own {most:g}`" in done.stderr
    # What is added takes what is there, of a file, too.
    printed(run("retune", name, "--own", 0.01, "--json"))
    more = write_lines(tmp_path / "more.jsonl", rows(30, group="h{}"))
    for given in (load, ("--index", name, "--encoder", "given", "--json")):
        assert printed(run("ingest", more, *given, "--if-exists", "append"))["own"] == 0.01
    # Other vectors come with the β for the index.
    other = replace(known, vectors={tag: -one for tag, one in known.vectors.items()})
    printed(run("retune", name, "--vectors", saved(tmp_path, other, "other.safetensors"), "--json"))
    described = printed(run("index", "describe", name, "--json"))
    assert described["fingerprint"]["own"] == other.recommended_own(1)


@pytest.mark.parametrize(
    ("scales", "of"),
    [(("--own", 0.05), 0.05), (("--alpha", 1), 0), (("--gamma", 0.97), 0), ((), None)],
)
def test_what_is_asked_for_and_corpora_without_translations(pipelines, known, tmp_path, scales, of):
    load = ("--index", pipelines, "--encoder", "given", "--vectors", saved(tmp_path, known), "--json")
    # A field of that name inside another is no group.
    corpus = write_lines(tmp_path / "corpus.jsonl", [{**row, "meta": {"group": "g"}} for row in rows(20)])
    told = printed(run("ingest", corpus, *load, *scales))
    assert told["own"] == (known.recommended_own() if of is None else of)
    assert "translations" not in told
