"""Runs to report on: of a small dataset with Arabic in it, and with what is hostile to a page."""

import json

from click.testing import CliRunner
from data_folder import write_dataset, write_run

from langshift.commands.evaluate import evaluate
from langshift.evaluate.datasets.dataset import identity, load_dataset

SCRIPT = "<script>alert('x')</script>"
TOPICS = range(12)
_TEXTS = {"en": f"On {SCRIPT} | $5 & \\ {{}} _ * `", "ar": "القمر يسحب البحر", "de": "Der Mond zieht am Meer."}
DOCUMENTS = {f"t{i}-{tag}": (tag, f"t{i}", f"{i} {text}") for i in TOPICS for tag, text in _TEXTS.items()}
QUERIES = {f"q{i}-{tag}": (tag, f"t{i}", None, f"{SCRIPT} of {i}?") for i in TOPICS for tag in ("en", "de")}
QRELS = {name: {f"{group}-{tag}": 1 for tag in _TEXTS} for name, (_, group, *_) in QUERIES.items()}
FINGERPRINT = {"encoder": "use-m", "pivot": "en", "alpha": 0.0, "alphas": {}, "vectors": "ab"}


def write_runs(folder, names):
    """The dataset, and two runs of these names: one finds every language, the other English alone."""
    data = load_dataset(write_dataset(folder / "data", DOCUMENTS, QUERIES, QRELS))
    for name, tags, alpha in zip(names, (["en"], ["ar", "en", "de"]), (0.0, 1.0), strict=True):
        run = {query: [f"{group}-{tag}" for tag in tags] for query, (_, group, *_) in QUERIES.items()}
        write_run(folder / name / "run.trec", run)
        percentiles = {"p50": 1.0, "p90": 2.0, "p95": 3.0, "p99": 4.5}
        result = {
            "index": f"news-{SCRIPT}",
            "version": "news-v0001",
            "mode": "dense",
            "dataset": identity(data),
            "fingerprint": {**FINGERPRINT, "alpha": alpha},
            "versions": {"opensearch": "3.6.0", "langshift": "0.1.0"},
            "command": f"langshift evaluate replay {SCRIPT}",
            "latency_ms": {"took": percentiles, "wall": percentiles},
        }
        (folder / name / "result.json").write_text(json.dumps(result))
    return [folder / name for name in names]


def report(*arguments):
    """Compare runs, and write the report into the folder of the last of them."""
    runs = [str(argument) for argument in arguments]
    folder = next(one for one in reversed(arguments) if one.is_dir())
    return compare(*runs, "--report", folder)


def compare(*arguments):
    """The command."""
    return CliRunner().invoke(evaluate, ["compare", *map(str, arguments)])
