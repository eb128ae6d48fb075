"""The rule by which a way to search loses nothing against another: in no slice of the questions, in no measure."""

import json

MEASURES = ("nDCG@20", "TLR@20", "own@3")
# What no part of the questions may lose, and how many make a part.
MOST_LOST, LEVEL, QUESTIONS = 0.005, 0.05, 300


def require_nothing_lost(done, before, after):
    """Compare two runs, print each slice, and require that none of 300 questions or more loses anything.

    Args:
        done: runs a command, and gives what it prints.
        before: the folder of the one run, and
        after: that of the other.
    """
    found = json.loads(done("evaluate", "compare", before, after, "--measures", " ".join(MEASURES), "--json"))
    for part, one in {"all": {"queries": found["dataset"]["queries"], **found}, **found["slices"]}.items():
        compared = {name: one for section in reversed(one["sections"].values()) for name, one in section.items()}
        # With one translation kept, no answer in the searcher's language has one in another.
        for measure in [name for name in MEASURES if compared.get(name, {}).get("tests")]:
            test = compared[measure]["tests"][0]
            print(part, one["queries"], measure, compared[measure]["means"], test["randomisation"])
            if one["queries"] >= QUESTIONS and (part != "all" or not found["slices"]):
                assert test["difference"] >= -MOST_LOST
                assert test["difference"] >= 0 or test["randomisation"] >= LEVEL
