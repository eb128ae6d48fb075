"""The bundled corpus in some languages, with its translation groups, for tests of anchored search."""

import json
from pathlib import Path

_DEMO = Path(__file__).parents[2] / "evaluate" / "demo" / "corpus.jsonl"
LANGUAGES = ("de", "en", "th", "zh")


def corpus(*, grouped=True, languages=LANGUAGES):
    """Lines of 44 groups; English has only every second one."""
    made = []
    for line in _DEMO.read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        group, _, tag = document["_id"].rpartition("-")
        if tag in languages:
            made.append(document | {"language": tag, "group": group})
    groups = sorted({document["group"] for document in made})
    made = [document for document in made if document["language"] != "en" or groups.index(document["group"]) % 2]
    if not grouped:
        for document in made:
            del document["group"]
    return made
