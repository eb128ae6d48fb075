"""What the encoder use-m makes of a text, computed once: many tests index the same few texts.

The vectors lie in pytest's cache, by the model's revision, the code around it and the text itself, so that whatever
changes a vector is met by its first test.
"""

import hashlib
import inspect
import sqlite3
from contextlib import closing, contextmanager

import numpy as np

from langshift.debias import encoders

# As many variables as one statement may have in any SQLite.
AT_ONCE = 500


class KnownVectors:
    """The vectors that a file holds; safe to use from several threads and processes."""

    def __init__(self, path):
        self._path = path
        self._encode = encoders.UseM.encode_documents
        with self._opened() as database:
            database.execute("CREATE TABLE IF NOT EXISTS known (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    @classmethod
    def of(cls, folder):
        """The file in a folder for the model and the code that are there."""
        code = hashlib.sha256(inspect.getsource(encoders).encode()).hexdigest()[:12]
        return cls(folder / f"use-m-{encoders._revision()}-{code}.sqlite")

    def install(self, patch):
        """Let the encoder ask here first."""
        patch.setattr(encoders.UseM, "encode_documents", lambda encoder, texts: self.encode(encoder, texts))

    def remove(self, patch):
        """Let the encoder encode every text itself."""
        patch.setattr(encoders.UseM, "encode_documents", self._encode)

    def encode(self, encoder, texts):
        """The vectors of texts, shape (len(texts), 512), float32; those that are not known yet are made."""
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        with self._opened() as database:
            known = self._read(database, keys)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if new:
            made = dict(zip(new, self._encode(encoder, list(new.values())), strict=True))
            with self._opened() as database:
                rows = [(key, vector.tobytes()) for key, vector in made.items()]
                database.executemany("INSERT OR IGNORE INTO known VALUES (?, ?)", rows)
            known |= made
        return np.array([known[key] for key in keys], np.float32).reshape(len(keys), encoder.dimension)

    @contextmanager
    def _opened(self):
        with closing(sqlite3.connect(self._path, timeout=60)) as database, database:
            yield database

    def _read(self, database, keys):
        known = {}
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            found = database.execute(f"SELECT text, vector FROM known WHERE text IN ({marks})", some)
            known |= {key: np.frombuffer(vector, np.float32) for key, vector in found}
        return known
