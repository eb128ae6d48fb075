"""An index of chunks is retuned, encoded by another model and rolled back chunk by chunk, and no chunk is left over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from embeddings_server import EmbeddingsServer, embeddings_server, vector
from given_data import run, write_lines
from reencoded_index import NEW, vectors_of
from retuned_index import Process, live, note, require_tidy
from shifted_index import printed, saved, sources

from langshift.debias.vectors import LanguageVectors
from langshift.plugin.metadata import chunk_id

pytestmark = pytest.mark.usefixtures("cluster_env")
TAGS = ("en", "de", "th")


@pytest.fixture
def old() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as server:
        yield server


@pytest.fixture
def new() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as server:
        server.dimension = NEW
        yield server


def paragraphs(name: str, count: int) -> list[str]:
    return [f"Paragraph {number} of {name}." for number in range(count)]


class Chunked:
    """An index of chunks, and the documents that it must hold: id -> paragraphs."""

    def __init__(self, client, name, server, folder, count=24):
        self.client, self.name, self._server, self._folder = client, name, server, folder
        self.known = vectors_of(server)
        self.vectors = saved(folder, self.known, "old.safetensors")
        self.documents: dict[str, list[str]] = {}
        shift = ["--encoder", server.name, "--vectors", self.vectors, "--alpha", 1]
        made = {f"d{n}": paragraphs(f"d{n}", n % 5 + 1) for n in range(count)}
        self.write(made, "--chunk", "paragraphs", *shift)

    def write(self, documents: dict[str, list[str] | None], *options: object) -> None:
        """Load documents; None deletes one."""
        rows = [
            {"_id": name, "_op": "delete"}
            if parts is None
            else {"_id": name, "title": f"Title {name}", "text": "\n\n".join(parts), "language": TAGS[len(name) % 3]}
            for name, parts in documents.items()
        ]
        path = write_lines(self._folder / "corpus.jsonl", rows)
        printed(run("ingest", path, "--index", self.name, *options, "--json"))
        held = {**self.documents, **documents}
        self.documents = {name: parts for name, parts in held.items() if parts is not None}

    @property
    def chunks(self) -> int:
        return sum(map(len, self.documents.values()))

    def require(
        self, server: EmbeddingsServer | None = None, known: LanguageVectors | None = None, alpha: float = 1.0
    ) -> dict[str, Any]:
        """Every chunk of every document is there and no other, in its place, its vector shifted by its own stamp."""
        server, known = server or self._server, known or self.known
        stored = sources(self.client, self.name)
        wanted = {
            chunk_id(name, ordinal): (name, ordinal, parts)
            for name, parts in self.documents.items()
            for ordinal in range(len(parts))
        }
        assert stored.keys() == wanted.keys()
        for identifier, (name, ordinal, parts) in wanted.items():
            source, text = stored[identifier], "\n\n".join(parts)
            place = source["chunk"]
            assert source["parent"] == name
            assert (place["ordinal"], place["count"]) == (ordinal, len(parts))
            assert text[place["start"] : place["end"]] == parts[ordinal]
            assert list(source["text"].values()) == [parts[ordinal]]
            made = vector(f"Title {name} {parts[ordinal]}", dimension=server.dimension).astype(np.float64)
            stamp = source["shift"]
            key = known.key(source["language"])
            assert (stamp["vectors"], stamp.get("language")) == (known.hash, key)
            made -= 0 if key is None else alpha * known.vectors[key].astype(np.float64)
            assert np.abs(np.array(source["embedding"]) - made).max() < 1e-6, identifier
        return stored


@pytest.fixture
def index(client, index_name, old, new, monkeypatch, tmp_path):
    monkeypatch.setenv("LANGSHIFT_TRUSTED_HOSTS", f"{old.url},{new.url}")
    return Chunked(client, index_name, old, tmp_path)


def test_a_retune_and_the_way_back(client, index):
    name, raw = index.name, index.require()
    told = printed(run("retune", name, "--alpha", 0.25, "--json"))
    assert (told["documents"], told["chunks"]) == (24, index.chunks)
    index.require(alpha=0.25)
    done = run("retune", name, "--alpha", 1)
    assert f"alpha 1: 24 documents in {index.chunks} chunks, 0 caught up, checked." in done.stdout
    for identifier, source in index.require().items():
        assert np.abs(np.subtract(source["embedding"], raw[identifier]["embedding"])).max() < 1e-6
    done = run("rollback", name)
    assert done.stdout == (
        f"{name} points to {name}-v0002 again: 24 documents in {index.chunks} chunks, 0 carried over and 0 deleted "
        f"since {name}-v0003 replaced it. {name}-v0003 is kept.\n"
    )
    index.require(alpha=0.25)
    described = run("index", "describe", name).stdout.splitlines()
    assert described[1:3] == [
        f"It holds 24 documents in {index.chunks} chunks, 0.0% of them in an unknown language (und), 0 without a "
        "vector.",
        "Its documents were cut by langshift ingest --chunk paragraphs: each chunk names its document in parent, and "
        "its place there in chunk.",
    ]
    require_tidy(client, name)


def change(index: Chunked) -> None:
    """Add a document and delete one, let one shrink, one grow and one change."""
    index.write(
        {
            "new": paragraphs("new", 3),
            "d1": None,
            "d4": paragraphs("the former d4", 2),
            "d5": paragraphs("the former d5", 4),
            "d8": paragraphs("the other d8", 4),
        },
        "--if-exists",
        "append",
    )


def test_what_was_written_since_a_retune_leaves_no_chunk_over(client, index):
    name = index.name
    printed(run("retune", name, "--alpha", 0.5, "--json"))
    change(index)
    index.require(alpha=0.5)
    told = printed(run("rollback", name, "--json"))
    assert (told["index"], told["documents"], told["chunks"]) == (f"{name}-v0001", 24, index.chunks)
    index.require()
    # Versions of chunks are as they were, so that what shrinks later leaves none either.
    index.write({"new": paragraphs("new", 1), "d9": None}, "--if-exists", "append")
    index.require()
    require_tidy(client, name)


def test_another_encoder_encodes_chunks_as_they_are_cut_and_the_former_takes_later_ones_back(index, new, tmp_path):
    name, known = index.name, vectors_of(new, 2)
    vectors = saved(tmp_path, known, "new.safetensors")
    told = printed(run("reencode", name, "--encoder", new.name, "--vectors", vectors, "--alpha", 0.5, "--json"))
    assert (told["documents"], told["chunks"]) == (24, index.chunks)
    before, after = (sources(index.client, f"{name}-v000{number}") for number in (1, 2))
    assert {one: source["chunk"] for one, source in before.items()} == {
        one: source["chunk"] for one, source in after.items()
    }
    index.require(new, known, 0.5)
    change(index)
    index.require(new, known, 0.5)
    printed(run("rollback", name, "--json"))
    index.require()


def test_a_retune_that_was_killed_goes_on_with_its_chunks(client, index, cluster_env, tmp_path):
    name, command = index.name, ("retune", index.name, "--alpha", 0.5)
    process = Process(cluster_env, tmp_path / "home", *command, "--throttle", 20)
    process.wait_for(lambda: note(client, name) is not None and count(client, f"{name}-v0002") > 0)
    assert process.kill()
    assert live(client, name) == f"{name}-v0001"
    index.write({"d4": paragraphs("d4", 1), "d1": None}, "--if-exists", "append")
    told = Process(cluster_env, tmp_path / "home", *command).done()
    assert (told["index"], told["documents"], told["chunks"]) == (f"{name}-v0002", 23, index.chunks)
    index.require(alpha=0.5)
    require_tidy(client, name)


def count(client, index):
    client.indices.refresh(index=index)
    return client.count(index=index)["count"]
