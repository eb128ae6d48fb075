"""A corpus of many lines of every kind, with vectors."""

import random

import orjson

LANGUAGES = ("de", "en", "fr", "th")


def write_many_lines(path, count, seed=0, dimension=8):
    """Documents whose ids come again, deletes, updates of single fields, and broken lines, a few in a hundred each.

    A dimension of None leaves vectors out.
    """
    chance = random.Random(seed)
    with path.open("wb") as file:
        for number in range(count):
            name, kind = f"d{chance.randrange(count * 9 // 10)}", chance.random()
            if kind < 0.01:
                line = b"no JSON"
            elif kind < 0.03:
                line = orjson.dumps({"_id": name, "_op": "delete"})
            elif kind < 0.05:
                line = orjson.dumps({"_id": name, "_op": "update", "year": 1000 + number % 900})
            else:
                vector = [chance.gauss(0, 1) for _ in range(dimension or 0)]
                fields = {"text": f"Text {number} of {name}.", "language": chance.choice(LANGUAGES), "year": 2000}
                line = orjson.dumps({"_id": name, **fields, **({"embedding": vector} if vector else {})})
            file.write(line + b"\n")
    return path
