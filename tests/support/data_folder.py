"""Small dataset folders and runs, written as a person would."""

import json


def write_dataset(folder, documents, queries, qrels):
    """``documents``: id -> (language, group, text); ``queries``: id -> (language, group, article, text)."""
    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for name, (language, group, text) in documents.items():
            named = {"_id": name, "title": "", "text": text, "language": language, "group": group}
            file.write(json.dumps({key: value for key, value in named.items() if value is not None}) + "\n")
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as file:
        for name, (language, group, article, text) in queries.items():
            named = {"_id": name, "text": text, "language": language, "group": group, "article": article}
            file.write(json.dumps({key: value for key, value in named.items() if value is not None}) + "\n")
    with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for query, judged in qrels.items():
            file.writelines(f"{query}\t{name}\t{grade}\n" for name, grade in judged.items())
    return folder


def write_run(path, rankings):
    """``rankings``: query -> documents, best first; each is scored 1 less than the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(
            f"{query} Q0 {name} {rank} {100 - rank} run\n"
            for query, names in rankings.items()
            for rank, name in enumerate(names, 1)
        )
    )
    return path
