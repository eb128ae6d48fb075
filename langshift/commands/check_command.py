"""What ``langshift dataset check`` does and prints."""

from __future__ import annotations

from pathlib import Path

from langshift.console import emit_json, out, progress, table
from langshift.debias.detect import open_detector
from langshift.evaluate.datasets.check import check_dataset
from langshift.evaluate.datasets.check_findings import Checked


def run(folder: Path, *, as_json: bool) -> int:
    """Check a dataset folder and say what was found; the exit code, 0 where it is clean and 1 where not."""
    with progress() as shown:
        task = shown.add_task("documents", total=None, rate="")
        checked = check_dataset(folder, open_detector(), lambda documents: shown.advance(task, documents))
    if as_json:
        emit_json(checked.to_dict())
    else:
        _print(checked)
    return 0 if checked.clean else 1


def _print(checked: Checked) -> None:
    rows = [
        [
            one.language or "(none named)",
            f"{one.documents:,}",
            f"{one.queries:,}",
            f"{one.heard:,}",
            f"{one.out_of_step:,}",
        ]
        for one in checked.languages
    ]
    columns = ["language", "documents", "queries", "heard", "out of step"]
    table(None, columns, rows, right=set(columns[1:]))
    size = f"{checked.documents:,} documents, {checked.queries:,} queries, {checked.judgements:,} judgements"
    if checked.clean:
        out.print(f"Clean: {size}.", soft_wrap=True)
        return
    out.print()
    table(
        "Problems",
        ["problem", "file", "count", "examples"],
        [
            [f"{one.problem}{f', not {one.language}' if one.language else ''}", one.file, f"{one.count:,}", example]
            if not number
            else ["", "", "", example]
            for one in checked.problems
            for number, example in enumerate([*one.examples, *(["..."] if one.count > len(one.examples) else [])])
        ],
        right={"count"},
    )
    total = sum(one.count for one in checked.problems)
    out.print(f"{total:,} problem{'' if total == 1 else 's'} in {checked.folder}: {size}.", soft_wrap=True)
