"""A corpus of every kind of line, in several files and in one."""

import gzip
import random

import numpy as np
import orjson

TEXTS = {
    "de": "Das Meer steigt und fällt zweimal am Tag.",
    "en": "The sea rises and falls twice a day.",
    "th": "ทะเลขึ้นและลงวันละสองครั้ง",
}


def made_lines(seed):
    """Documents whose ids come again, deletes, updates before and after their documents, and lines of every fault."""
    chance = random.Random(seed)
    lines = []
    for number in range(120):
        name, tag = f"d{chance.randrange(40)}", chance.choice(list(TEXTS))
        kind = chance.choice(["write"] * 6 + ["delete", "update", "no text", "refused"])
        # No whole number, so that the field has its type before the first document is written.
        document = {"_id": name, "text": f"{TEXTS[tag]} {number}", "year": number + 0.5}
        lines.append(
            {
                "write": document,
                "delete": {"_op": "delete", "_id": name},
                "update": {"_op": "update", "_id": name, "year": 1000 + number},
                "no text": {"_id": name, "year": number},
                # The field is one of numbers.
                "refused": document | {"year": [{"of": "no number"}]},
            }[kind]
        )
    return [{"_id": "d0", "text": TEXTS["en"], "year": 0}, *lines]


def written(folder, lines):
    """The lines in three files, each of a kind, and in one."""
    folder.mkdir()
    packed = [orjson.dumps(line) for line in lines]
    files = [folder / "a.jsonl", folder / "b.jsonl.gz", folder / "c.jsonl"]
    files[0].write_bytes(b"\n".join(packed[:50]))
    files[1].write_bytes(gzip.compress(b"{broken\n" + b"\n".join(packed[50:90]) + b"\n"))
    files[2].write_bytes(b"\n".join(packed[90:]) + b"\n")
    together = folder.parent / "together.jsonl"
    together.write_bytes(b"\n".join([*packed[:50], b"{broken", *packed[50:]]) + b"\n")
    return files, together


def require_same(one, other):
    apart = sorted(one.keys() ^ other.keys())
    assert not apart, apart
    for name, source in one.items():
        vectors = [np.array(each["embedding"], np.float32) for each in (source, other[name])]
        assert np.abs(vectors[0] - vectors[1]).max() < 1e-6
        assert {**source, "embedding": None} == {**other[name], "embedding": None}
