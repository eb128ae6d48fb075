"""What ``langshift vectors fit`` and ``vectors show`` do and print."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from langshift.console import emit_json, note, out, progress, table
from langshift.errors import UsageError
from langshift.ingest.encoders import open_encoder
from langshift.ingest.fit import fit
from langshift.ingest.vectors import LanguageVectors, shipped


def run_fit(
    pairs: Path,
    languages: list[str] | None,
    pivot: str,
    encoder: str,
    output: Path,
    join_lines: int,
    documents: Path | None,
    *,
    as_json: bool,
) -> None:
    """Fit, save, and show what was made."""
    if documents is not None and join_lines == 1:
        raise UsageError("--documents says where joined passages end: give --join-lines too.")
    _check_output(output)
    with progress() as shown:
        task = shown.add_task("lines", total=None, rate="")
        made = fit(
            pairs,
            pivot,
            open_encoder(encoder),
            languages=languages,
            join_lines=join_lines,
            documents=documents,
            on_lines=lambda done, total: shown.update(task, completed=done, total=total),
        )
    made.save(output)
    _print(made, output, as_json=as_json)
    if not as_json:
        note(f"Use it: langshift ingest CORPUS --index NAME --encoder {encoder} --vectors {output}")


def _check_output(output: Path) -> None:
    """Refuse, before the work, a file that cannot be written or that holds something else."""
    if output.is_dir():
        raise UsageError(f"{output} is a folder: --output takes the name of a file, such as mine.safetensors.")
    if output.exists():
        try:
            LanguageVectors.load(output)
        except UsageError:
            raise UsageError(f"{output} holds something else than language vectors: name another file.") from None
    folder = next(parent for parent in output.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"{output} cannot be written: {folder} is not a folder that you may write in.")


def run_show(file: str, *, as_json: bool) -> None:
    """Show a file of language vectors, or those shipped for an encoder."""
    path = Path(file)
    if not path.exists():
        path = shipped(file) or path
    _print(LanguageVectors.load(path), path, as_json=as_json)


def _print(vectors: LanguageVectors, path: Path, *, as_json: bool) -> None:
    norms = {tag: float(np.linalg.norm(vector)) for tag, vector in vectors.vectors.items()}
    if as_json:
        emit_json(_document(vectors, path, norms))
        return
    out.print(f"{path}: {len(norms)} language vectors towards {vectors.pivot}, hash {vectors.hash}", soft_wrap=True)
    out.print(
        f"encoder {vectors.encoder} {vectors.revision}, {vectors.dimension} dimensions; "
        f"fitted on {vectors.source}; alpha {'1 (default)' if vectors.alpha is None else vectors.alpha}",
        soft_wrap=True,
        markup=False,
    )
    rows = [[tag, f"{vectors.pairs[tag]:,}", f"{norm:.3f}"] for tag, norm in norms.items()]
    table(None, ["language", "pairs", "norm"], sorted(rows), right={"pairs", "norm"})


def _document(vectors: LanguageVectors, path: Path, norms: dict[str, float]) -> dict[str, Any]:
    return {
        "file": str(path),
        "hash": vectors.hash,
        "pivot": vectors.pivot,
        "encoder": vectors.encoder,
        "revision": vectors.revision,
        "document_prefix": vectors.document_prefix,
        "dimension": vectors.dimension,
        "normalised": vectors.normalised,
        "source": vectors.source,
        "alpha": vectors.alpha,
        "languages": {tag: {"pairs": vectors.pairs[tag], "norm": norm} for tag, norm in sorted(norms.items())},
    }
