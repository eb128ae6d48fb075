"""Two small runs of one dataset, to be judged side by side."""

import orjson

from langshift.evaluate.datasets.dataset import identity, load_dataset
from langshift.evaluate.runs import format_run

DIFFERING, SAME = 8, 2
#: Of the pages that show them.
HOSTILE = "<script>alert(1)</script>\u202e & <b>bold</b>"


def write_runs(results, folder):
    """Write a dataset to ``folder``, and its runs ``a`` and ``b`` to ``results``; gives the names of the runs.

    Of query n the first finds dn-x and dn-0, the second dn-y and dn-0; of the last ``SAME`` queries both find dn-0.
    """
    (folder / "qrels").mkdir(parents=True)
    queries = range(DIFFERING + SAME)
    documents = [
        {"_id": f"d{n}-{one}", "title": f"Title {one} of {n}: {HOSTILE}", "text": f"{HOSTILE} " * 40, "language": tag}
        for n in queries
        for one, tag in (("x", "de"), ("y", "en"), ("0", "ar"))
    ]
    asked = [{"_id": f"q{n}", "text": f"Question {n} {HOSTILE}", "language": "en"} for n in queries]
    for name, rows in (("corpus", documents), ("queries", asked)):
        (folder / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0-0\t1\n")
    known = identity(load_dataset(folder))
    for name, own in (("a", "x"), ("b", "y")):
        (results / name).mkdir(parents=True)
        hits = {f"q{n}": ([(f"d{n}-{own}", 2.0)] if n < DIFFERING else []) + [(f"d{n}-0", 1.0)] for n in queries}
        (results / name / "run.trec").write_text(format_run(hits, name))
        (results / name / "result.json").write_bytes(orjson.dumps({"complete": True, "dataset": known}))
    return "a", "b"


def write_logged(results, words=True):
    """Make the runs of ``write_runs`` replays of a log: without a dataset, with queries and beginnings of their own."""
    for name in ("a", "b"):
        (results / name / "result.json").write_bytes(orjson.dumps({"complete": True, "dataset": None}))
        asked = (
            {"_id": f"q{n}", "language": "en"} | ({"text": f"Question {n}"} if words else {})
            for n in range(DIFFERING + SAME)
        )
        (results / name / "logged-queries.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in asked))
        found = (
            {"_id": f"d{n}-{one}", "language": "de", "text": "" if one == "0" else f"Beginning {n} {HOSTILE}"}
            for n in range(DIFFERING + SAME)
            for one in ("x" if name == "a" else "y", "0")
        )
        (results / name / "found-documents.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in found))
