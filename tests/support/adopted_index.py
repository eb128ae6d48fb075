"""A small index of somebody else's making, adopted: own names of fields, vectors that are given, planted shift."""

from contextlib import contextmanager

from command_line import langshift
from old_index import OldIndex


@contextmanager
def adopted(client, url, name, folder, *more, documents=200, shards=2):
    """The name of an adopted index, which is removed at the end as the old one is."""
    old = OldIndex(url, name, documents=documents, shards=shards)
    try:
        vectors = old.language_vectors(folder / "planted.safetensors")
        options = ["--vector-field", "vec", "--text-field", "headline", "--text-field", "body"]
        options += ["--language-field", "meta.lang", "--encoder", "given", "--vectors", vectors, "--alpha", 1, *more]
        done = langshift("adopt", name, "--name", f"{name}-adopted", *options, url=url)
        assert done.returncode == 0, done
        yield f"{name}-adopted"
    finally:
        old.close()
        for index in client.indices.get(index=f"{name}*", params={"expand_wildcards": "all"}):
            client.indices.delete(index=index)
