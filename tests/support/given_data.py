"""A dataset and parallel data that bring their vectors, of a made-up model in which languages lie apart."""

import json

import numpy as np
from click.testing import CliRunner
from data_folder import write_dataset

from langshift.cli import root

DIMENSION = 8
LANGUAGES, TOPICS = ("en", "de", "th"), 6


def run(*arguments):
    """The command line in this process."""
    return CliRunner().invoke(root, list(map(str, arguments)))


def write_lines(path, rows):
    """Write JSON Lines, and return the path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


class Made:
    """Documents, queries and parallel vectors of a model in which languages lie apart, written to a folder."""

    def __init__(self, folder, *, normalised=False):
        numbers = np.random.default_rng(1)
        self.offsets = {tag: 4 * numbers.standard_normal(DIMENSION) for tag in LANGUAGES}
        topics = numbers.standard_normal((TOPICS, DIMENSION))
        names = [(topic, tag) for topic in range(TOPICS) for tag in LANGUAGES]
        self.documents = {f"{topic}-{tag}": topics[topic] + self.offsets[tag] for topic, tag in names}
        self.queries = {f"q{topic}": topics[topic] + self.offsets["en"] for topic in range(TOPICS)}
        if normalised:
            self.documents = {name: vector / np.linalg.norm(vector) for name, vector in self.documents.items()}
        self.data = write_dataset(
            folder / "data",
            {name: (name[2:], name[0], f"Document {name}.") for name in self.documents},
            {name: ("en", name[1:], None, f"Question {name}?") for name in self.queries},
            {name: {f"{name[1:]}-{tag}": 1 for tag in LANGUAGES} for name in self.queries},
        )
        self.bring("corpus.jsonl", self.documents)
        self.bring("queries.jsonl", self.queries)
        pairs = numbers.standard_normal((50, DIMENSION))
        self.pairs = write_lines(
            folder / "pairs.jsonl",
            [{tag: list(row + offset) for tag, offset in self.offsets.items()} for row in pairs],
        )
        self.vectors = folder / "v.safetensors"

    def bring(self, file, vectors):
        path = self.data / file
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        write_lines(path, [row | {"embedding": list(vectors[row["_id"]])} for row in rows])

    def fit(self, encoder="given"):
        options = ["--pivot", "en", "--encoder", encoder, "--output", self.vectors, "--json"]
        done = run("vectors", "fit", "--pairs", self.pairs, *options)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def offline(self, *options):
        return run("evaluate", "offline", self.data, *options)
