"""Indices of chunks: one of made-up vectors with what an exact search finds in it, and one that a command makes."""

import uuid
from contextlib import contextmanager

import numpy as np
import pytest
from data_folder import write_dataset
from given_data import run, write_lines
from plain_index import PLAIN
from searched import drop
from toy_encoder import ToyEncoder

from langshift.debias.fingerprint import Fingerprint
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.plugin import version_writer
from langshift.plugin.metadata import ChunkPlace, FieldNames, chunk_id
from langshift.retrieval.searcher import Searcher

LANGUAGES, TOPICS, MOST_CHUNKS = ("de", "en", "th"), 14, 5
FIELDS = FieldNames(parent="parent", chunking="paragraphs")
ENCODER = ToyEncoder()
WORDS = ["sun", "moon", "tide", "sea", "bread", "oven", "yeast", "star", "ship", "port", "wind", "sand"]
#: The languages of the chunks of documents that are not in one language alone; ``5-th`` has as many of each.
MIXED = {"4-de": ["en", "de", "de", "th", "de"], "5-th": ["th", "en"]}
TOY = Fingerprint.from_dict(
    PLAIN.to_dict()
    | {name: getattr(ENCODER, name) for name in ("revision", "query_prefix", "document_prefix", "dimension")}
)


class ChunkedCorpus:
    """Documents ``TOPIC-LANGUAGE`` of one to five paragraphs, those of a topic in one group, and their chunks.

    Attributes:
        folder: of the dataset, whose two questions a topic, in German and in English, have three answers each.
        documents: document id -> its paragraphs.
        places: ``_id`` of a chunk -> document and place.
        languages: ``_id`` of a chunk -> its language.
        vectors: ``_id`` of a chunk -> its vector, shape (8,), float32.
    """

    def __init__(self, folder):
        numbers = np.random.default_rng(24)
        names = [f"{topic}-{tag}" for topic in range(TOPICS) for tag in LANGUAGES]
        counts = {name: len(MIXED.get(name, ())) or 1 + at * 3 % MOST_CHUNKS for at, name in enumerate(names)}
        self.documents = {
            name: [f"{name} part {part} {' '.join(numbers.choice(WORDS, 9))}." for part in range(count)]
            for name, count in counts.items()
        }
        self.places, self.languages, texts = {}, {}, {}
        for name, parts in self.documents.items():
            start = 0
            for ordinal, (text, tag) in enumerate(
                zip(parts, MIXED.get(name) or [name.partition("-")[2]] * len(parts), strict=True)
            ):
                place = ChunkPlace(ordinal, start, start + len(text), len(parts))
                entry = chunk_id(name, ordinal)
                self.places[entry], self.languages[entry], texts[entry] = (name, place), tag, text
                start = place.end + 2
        self.texts = texts
        self.vectors = dict(zip(texts, ENCODER.encode_documents(list(texts.values())), strict=True))
        asked = {f"{tag}{topic}": (tag, str(topic)) for topic in range(TOPICS) for tag in ("de", "en")}
        write_dataset(
            folder,
            {n: (n.partition("-")[2], n.partition("-")[0], "\n\n".join(p)) for n, p in self.documents.items()},
            {name: (tag, topic, None, f"Question {name}?") for name, (tag, topic) in asked.items()},
            {name: {f"{topic}-{one}": 1 for one in LANGUAGES} for name, (_, topic) in asked.items()},
        )
        self.folder, self.dataset = folder, load_dataset(folder)

    def write(self, client, name):
        """Make the index; its name is that of an alias."""
        target = version_writer.open_for_writing(client, name, TOY, fields=FIELDS)
        lines = []
        for entry, (document, place) in self.places.items():
            held = {"parent": document, "chunk": place.to_dict(), "language": self.languages[entry]}
            held |= {"group": document.partition("-")[0], "text": {self.languages[entry]: self.texts[entry]}}
            stamp = {"vectors": None, "alpha": 0.0, "language": self.languages[entry]}
            lines += [
                {"index": {"_id": entry}},
                held | {"embedding": self.vectors[entry].tolist(), "shift": stamp},
            ]
        assert not client.bulk(index=target.index, body=lines)["errors"]
        version_writer.publish(client, target)

    def scores(self, words):
        """Document -> the score and the place of its best chunk, best first, by exact cosine."""
        (query,) = ENCODER.encode_queries([words]).astype(np.float64)
        best = {}
        for entry, vector in self.vectors.items():
            cosine = float(query @ vector / np.linalg.norm(query) / np.linalg.norm(vector.astype(np.float64)))
            document, place = self.places[entry]
            best[document] = max(best.get(document, (-1.0, place)), ((1 + cosine) / 2, place))
        return dict(sorted(best.items(), key=lambda one: -one[1][0]))


def searcher(client, name):
    """A searcher over the index."""
    return Searcher(client, name, opened={ENCODER.id: ENCODER})


#: Documents of one to three paragraphs; two of them say why bread rises, each in its last one.
PARAGRAPHS = {
    "harbour": [
        "The harbour was built of stone, and ships from many countries came there to trade wool and salt.",
        "A lighthouse stands on the cliff; its keeper lit the lamp every evening before sunset.",
        "Bread rises because yeast turns sugar into gas, and the bakers of the harbour knew it well.",
    ],
    "river": ["The river floods the fields in spring, and the farmers wait for the water."],
    "brot": [
        "Der Hafen ist alt, und viele Schiffe legen dort an.",
        "Brot geht auf, weil Hefe Zucker in Gas verwandelt.",
    ],
}
BREAD = "why does bread rise?"


@contextmanager
def paragraph_index(client, cluster_url, folder, **more):
    """An index of ``PARAGRAPHS`` by the command line, shifted and cut into paragraphs, all in one translation group.

    ``more`` are further documents: id -> paragraphs.
    """
    name = f"langshift-test-{uuid.uuid4().hex[:8]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENSEARCH_URL", cluster_url)
        _ingest_paragraphs(folder, name, more)
    yield name
    drop(client, name)


def _ingest_paragraphs(folder, name, more):
    lines = [
        {"_id": one, "title": one.title(), "text": "\n\n".join(parts), "language": "de" if one == "brot" else "en"}
        for one, parts in {**PARAGRAPHS, **more}.items()
    ]
    corpus = write_lines(folder / "corpus.jsonl", [line | {"group": "all"} for line in lines])
    done = run("ingest", corpus, "--index", name, "--encoder", "use-m", "--alpha", 1, "--chunk", "paragraphs")
    assert done.exit_code == 0, (done.output, done.exception)
