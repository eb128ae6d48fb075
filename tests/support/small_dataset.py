"""Five topics of the demo in three languages, none asked in Thai: 15 passages, 20 questions."""

import json

from langshift.evaluate.asked import Asked, Plan
from langshift.evaluate.dataset import load_dataset
from langshift.evaluate.dataset_files import write_dataset
from langshift.evaluate.demo import FOLDER
from langshift.evaluate.replay import replay_all

TOPICS, LANGUAGES = 5, {"de", "en", "th"}


def write_small_dataset(folder):
    """Write it to an existing folder, with translation groups; its languages are in languages.tsv."""
    whole = load_dataset(FOLDER)
    topics = sorted({document.group for document in whole.documents.values()})[:TOPICS]
    kept = {
        name: document.language
        for name, document in whole.documents.items()
        if document.group in topics and document.language in LANGUAGES
    }
    lines = (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [record for record in map(json.loads, lines) if record["_id"] in kept]
    asked = [query for query in whole.queries if query.group in topics and query.language in {"de", "en"}]
    write_dataset(
        folder,
        documents,
        [{"_id": query.id, "text": query.text, "language": query.language} for query in asked],
        [(query.id, name, 1) for query in asked for name in whole.qrels[query.id] if name in kept],
        kept.items(),
    )


def replayed(client, searcher, dataset):
    """The replay of a dataset in the usual way."""
    plan = Plan()
    (found,) = replay_all([client], Asked.of([searcher], dataset, plan), plan)
    return found
