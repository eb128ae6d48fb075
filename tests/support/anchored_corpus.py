"""The bundled corpus in some languages, with its translation groups, for tests of anchored search."""

import json
from pathlib import Path

from langshift.retrieval.calibration import calibrate

_DEMO = Path(__file__).parents[2] / "evaluate" / "demo" / "corpus.jsonl"
LANGUAGES = ("de", "en", "th", "zh")
#: Documents of a calibration with ``few_are_calibrated``.
FEW = 10


def corpus(*, grouped=True, languages=LANGUAGES, groups=44):
    """Lines of so many groups, 44 at most; English has only every second one."""
    made = []
    for line in _DEMO.read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        group, _, tag = document["_id"].rpartition("-")
        if tag in languages:
            made.append(document | {"language": tag, "group": group})
    numbers = {group: number for number, group in enumerate(sorted({document["group"] for document in made})[:groups])}
    made = [one for one in made if one["group"] in numbers and (one["language"] != "en" or numbers[one["group"]] % 2)]
    if not grouped:
        for document in made:
            del document["group"]
    return made


def calibrate_few(patch, documents):
    """Let a calibration ask by so many documents, whatever its sample: each is asked for by a hundred searches or so.

    That it takes thirty or more is about how sure it is, and not about what it does.
    """
    usual = calibrate.draw_passages
    patch.setattr(calibrate, "FEWEST_CALIBRATED", documents)
    patch.setattr(calibrate, "draw_passages", lambda searcher, _, *more: usual(searcher, documents, *more))
