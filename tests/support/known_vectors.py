"""What an encoder that comes with langshift makes of a text, computed once: many tests index the same few texts.

The vectors lie in pytest's cache, by the model's revision, the code around it and the text itself, so that whatever
changes a vector is met by its first test.
"""

import hashlib
import inspect
import sqlite3
import sys
from contextlib import closing, contextmanager

import numpy as np

from langshift.debias.encoders.base import package_digest

# As many variables as one statement may have in any SQLite.
AT_ONCE = 500


class KnownVectors:
    """The vectors that files in a folder hold, one for each method of an encoder that encodes."""

    def __init__(self, folder, of, *methods):
        self._of = of
        self._files = {method: _File(folder, of, method) for method in methods}

    def install(self, patch):
        """Let the encoder ask here first."""
        for method, file in self._files.items():
            patch.setattr(self._of, method, file.method())

    def remove(self, patch):
        """Let the encoder encode every text itself."""
        for method, file in self._files.items():
            patch.setattr(self._of, method, file.encode)

    def add(self, method, texts, vectors):
        """Let vectors that were made elsewhere be known as the encoder's, shape (len(texts), dimension)."""
        self._files[method].add(texts, vectors)


class _File:
    """The vectors of one method; safe to use from several threads and processes."""

    def __init__(self, folder, of, method):
        encode, module = getattr(of, method), sys.modules[of.__module__]
        # Where another one is installed already, what that one took the place of.
        self.encode = getattr(encode, "own", encode)
        code = hashlib.sha256(inspect.getsource(module).encode()).hexdigest()[:12]
        self._path = folder / f"{of.id}-{package_digest(*module.WEIGHTS)}-{code}-{method}.sqlite"
        with self._opened() as database:
            database.execute("CREATE TABLE IF NOT EXISTS known (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def method(self):
        """What takes the place of the encoder's own."""

        def known(encoder, texts):
            return self._known(encoder, texts)

        known.own = self.encode
        return known

    def add(self, texts, vectors):
        with self._opened() as database:
            keys = map(_key, texts)
            rows = [(key, one.astype(np.float32).tobytes()) for key, one in zip(keys, vectors, strict=True)]
            database.executemany("INSERT OR IGNORE INTO known VALUES (?, ?)", rows)

    def _known(self, encoder, texts):
        """The vectors of texts, shape (len(texts), dimension), float32; those that are not known yet are made."""
        keys = [_key(text) for text in texts]
        with self._opened() as database:
            known = self._read(database, keys)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if new:
            made = self.encode(encoder, list(new.values()))
            self.add(new.values(), made)
            known |= dict(zip(new, made, strict=True))
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


def _key(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
