"""A run's figures as MTEB, the Massive Text Embedding Benchmark, keeps them: its TaskResult, as JSON.

Scores are those that MTEB names for retrieval, as trec_eval counts them: ``ndcg_at_10``, the main score, and the like.
There is a subset for each language of the queries; MTEB's mean over subsets counts each language alike.
"""

from typing import Any

import langcodes

from langshift.errors import UsageError
from langshift.evaluate.compare.comparison import ComparedRun, Comparison
from langshift.evaluate.datasets.dataset import identity
from langshift.evaluate.runs import by_language, scored
from langshift.languages import UNDETERMINED, script_of

_CUTS = (1, 3, 5, 10, 20, 100)
_NAMES = {"nDCG": "ndcg", "AP": "map", "R": "recall", "P": "precision", "RR": "mrr", "Success": "hit_rate"}


def task_result(compared: Comparison, run: ComparedRun) -> dict[str, Any]:
    """A run's figures as MTEB's TaskResult.

    Args:
        compared: the comparison that the run is one of.
        run: the run.

    Raises:
        UsageError: there are no judgements.
    """
    dataset, languages = compared.dataset, compared.languages
    if not dataset.qrels:
        raise UsageError(f"{run.place} is a replay without judgements, so it has no scores: leave --mteb out.")
    columns = {f"{measure}@{cut}": f"{name}_at_{cut}" for measure, name in _NAMES.items() for cut in _CUTS}
    found = scored(list(columns), run.dataset, languages, run.run)
    subsets = [
        {
            "hf_subset": language,
            "languages": [_language(language)],
            "main_score": scores["nDCG@10"].mean or 0.0,
            **{column: scores[measure].mean or 0.0 for measure, column in columns.items()},
        }
        for language, scores in by_language(found, languages.queries).items()
    ]
    return {
        "task_name": dataset.folder.absolute().name,
        "dataset_revision": identity(dataset)["hash"],
        "mteb_version": None,
        "evaluation_time": None,
        "kg_co2_emissions": None,
        "scores": {"test": subsets},
    }


def _language(tag: str) -> str:
    """ISO 639-3 and ISO 15924, such as ``deu-Latn``."""
    if tag == UNDETERMINED:
        return "und-Zyyy"
    return f"{langcodes.Language.get(tag).to_alpha3()}-{script_of(tag) or 'Zyyy'}"
