"""What ``evaluate rag`` and ``rerank label`` share: searches and answers, with their progress."""

from collections.abc import Callable, Sequence
from pathlib import Path

from langshift.client import open_cluster
from langshift.errors import LangshiftError
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.replay.replay import ReplayResult
from langshift.evaluate.replay.result import server_version
from langshift.output import note, progress, warn
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher
from langshift_lab.generation.answering import search_queries
from langshift_lab.generation.generators import Answer, AnswerCache, Generator


def search_shown(
    dataset: Dataset, index: str, setting: SearchSettings, options: SearchOptions
) -> tuple[ReplayResult, str | None]:
    """Search for every query; what was found, and the version of OpenSearch. A note names what cannot be asked.

    Raises:
        LangshiftError: a search failed.
    """
    client = open_cluster()
    searcher = Searcher(client, index, options)
    with progress() as bars:
        task = bars.add_task(f"Searching {index}", total=len(dataset.queries), rate="")
        found = search_queries(client, searcher, dataset, setting, lambda: bars.advance(task))
    warn(
        f"The query {answer.query} cannot be asked, so nothing is found for it: {answer.error}"
        for answer in found.refused
    )
    return found, server_version(client)


def generate_shown(model: Generator, cache: Path, *, resumable: bool) -> Callable[[Sequence[str]], Sequence[Answer]]:
    """What gives the answers to prompts, of which each is asked once, ever."""

    def generate(prompts: Sequence[str]) -> Sequence[Answer]:
        with progress() as bars, AnswerCache(cache) as answers:
            task = bars.add_task("Generating answers", total=len(prompts), rate="")
            try:
                return answers.answer_all(model, prompts, lambda _cached: bars.advance(task))
            except (LangshiftError, KeyboardInterrupt):
                if resumable:
                    note(f"The answers so far are kept in {cache}: the same command asks for the rest.")
                raise

    return generate
