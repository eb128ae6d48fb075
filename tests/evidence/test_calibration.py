"""A calibration says of an index what another one says that asks about other documents, in other words."""

from anchored_corpus import corpus
from searched import make_index

from langshift.retrieval.calibration.calibrate import CalibrationRun
from langshift.retrieval.searcher import Searcher


def test_other_documents_and_words_come_to_the_same_mode(client, tmp_path, index_name):
    make_index(client, tmp_path / "corpus.jsonl", index_name, lines=corpus())
    one, other = (CalibrationRun(Searcher(client, index_name), 40, seed=seed).measure().to_dict() for seed in (0, 1))
    assert other["changes"] != one["changes"]
    assert other["mode"] == one["mode"]
