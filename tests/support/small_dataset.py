"""Five topics of the demo in three languages, none asked in Thai: 15 passages, 20 questions."""

import json
import uuid

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.evaluate.convert.pool import write_corpus, write_questions
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan
from langshift.evaluate.replay.replay import replay_all
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load

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
    write_corpus(folder, [record | {"language": kept[record["_id"]]} for record in documents], with_language=False)
    write_questions(
        folder,
        [{"_id": query.id, "text": query.text, "language": query.language} for query in asked],
        [(query.id, name, 1) for query in asked for name in whole.qrels[query.id] if name in kept],
    )


def write_topics(folder, chosen):
    """Write those topics of the demo that ``chosen`` takes of them all, in every language, to a new folder."""
    whole = load_dataset(FOLDER)
    topics = sorted({document.group for document in whole.documents.values()})[chosen]
    lines = (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [record for record in map(json.loads, lines) if record["group"] in topics]
    asked = [query for query in whole.queries if query.group in topics]
    folder.mkdir()
    tagged = [record | {"language": whole.documents[record["_id"]].language} for record in documents]
    write_corpus(folder, tagged, with_language=False)
    write_questions(
        folder,
        [{"_id": one.id, "text": one.text, "language": one.language, "group": one.group} for one in asked],
        [(one.id, name, 1) for one in asked for name in whole.qrels[one.id]],
    )


def index_of(client, folder, alpha):
    """Index the dataset in a folder, shifted with a scale; gives the index's name, which no other test uses."""
    name = f"langshift-test-small-{uuid.uuid4().hex[:8]}"
    load(
        client, str(folder / "corpus.jsonl"), name, build_pipeline(open_encoder("use-m"), open_detector(), None, alpha)
    )
    return name


def replayed(client, searcher, dataset):
    """The replay of a dataset in the usual way."""
    plan = ReplayOptions()
    (found,) = replay_all([client], ReplayPlan.of([searcher], dataset, plan), plan)
    return found
