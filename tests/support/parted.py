"""Loads whose journal is in parts: what has become of their documents and dead letters."""

import numpy as np
from several_files import require_same

from langshift.ingest.parts.folder import StateFolder
from langshift.ingest.parts.journal import borrowed_letters

GIVEN = ("--encoder", "given", "--alpha", 0)


def letters_of(state):
    with borrowed_letters(StateFolder(str(state), 5)) as (_, letters, _):
        return list(letters)


def told(letters, names=lambda name: name):
    return sorted((names(one.corpus), one.line, one.id, one.type, one.stage, one.document) for one in letters)


def counted(said):
    """What of a summary is always the same: which of two lines is superseded depends on which request comes first."""
    return {name: said[name] for name in ("lines", "present", "dead", "chunks") if name in said}


def require_became(said, found, plain):
    documents, letters, made = found
    require_same(documents, plain[1])
    assert told(letters) == told(plain[2])
    assert made == plain[3]
    assert counted(said) == counted(plain[0])


def vectored(lines):
    """The same with vectors of their own, so that a process need load no encoder."""
    chance = np.random.default_rng(0)
    return [{**one, "embedding": chance.normal(size=8).tolist()} if "text" in one else one for one in lines]
