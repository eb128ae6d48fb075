"""Figures that are exported for MTEB are read by its own reader."""

from data_folder import write_dataset, write_run


def test_mteb_reads_the_figures_of_a_run(tmp_path, done):
    from mteb.results import TaskResult

    documents = {f"d{n}-{tag}": (tag, f"g{n}", f"text {n}") for n in range(3) for tag in ("de", "zh")}
    queries = {f"q{n}-{tag}": (tag, f"g{n}", None, f"words {n}") for n in range(3) for tag in ("de", "zh")}
    qrels = {f"q{n}-{tag}": {f"d{n}-de": 1, f"d{n}-zh": 1} for n in range(3) for tag in ("de", "zh")}
    data = write_dataset(tmp_path / "judged", documents, queries, qrels)
    run = write_run(tmp_path / "run.trec", {query: ["d0-de", "d1-zh", "d2-de"] for query in queries})
    done("evaluate", "compare", run, "--dataset", data, "--mteb", tmp_path / "figures.json")
    found = TaskResult.from_disk(tmp_path / "figures.json", load_historic_data=False)
    assert found.task_name == "judged"
    assert sorted(found.languages) == ["deu", "zho"]
    subsets = {one["hf_subset"]: one for one in found.scores["test"]}
    assert set(subsets) == {"de", "zh"}
    assert subsets["de"]["main_score"] == subsets["de"]["ndcg_at_10"] > 0
    assert found.to_dict()["scores"]["test"] == found.scores["test"]
