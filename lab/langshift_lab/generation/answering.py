"""What answers are generated from: datasets with reference answers, and what a search finds for their queries."""

from collections.abc import Callable
from pathlib import Path

from opensearchpy import OpenSearch

from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import ANSWERS, Dataset, load_dataset
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan
from langshift.evaluate.replay.replay import ReplayResult, replay_all
from langshift.evaluate.replay.requests import LoadProfile
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher


def load_answered(folder: Path) -> Dataset:
    """Load a dataset with reference answers.

    Raises:
        UsageError: it cannot be read, or has none.
    """
    data = load_dataset(folder)
    if not data.answers:
        raise UsageError(
            f"{folder} has no reference answers ({ANSWERS}), which answers are compared with: convert the dataset "
            "anew with langshift dataset convert, or write the file."
        )
    return data


def search_queries(
    client: OpenSearch,
    searcher: Searcher,
    dataset: Dataset,
    setting: SearchSettings,
    on_answer: Callable[[], None] = lambda: None,
) -> ReplayResult:
    """Search for every query, one after the other.

    Nothing is found for a query that cannot be asked, such as one of too many words.

    Args:
        client: the cluster.
        searcher: over an index of the dataset's documents.
        dataset: the queries.
        setting: how to search.
        on_answer: called after each query.

    Raises:
        LangshiftError: a search failed.
    """
    options = ReplayOptions([setting], LoadProfile(warm_up=0), measures=[])
    plan = ReplayPlan.of([searcher], dataset, options)
    (found,) = replay_all([client], plan, options, on_answer=on_answer)
    if failed := [answer for answer in found.failed if answer not in found.refused]:
        first = failed[0]
        raise LangshiftError(
            f"{len(failed):,} of {len(found.answers):,} searches failed, so nothing was generated; the first, "
            f"{first.query}: {first.error}"
        )
    return found
