"""What ``langshift vectors fit`` and ``vectors show`` do and print."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from langshift.console import counted, emit_json, note, out, printable, progress, table
from langshift.debias.encoders import Encoder, open_encoder
from langshift.debias.encoders.given import brought_by
from langshift.debias.fitting.fit import fit
from langshift.debias.parallel import open_parallel
from langshift.debias.parallel.rows import ParallelText
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import UsageError
from langshift.languages import parse_tag


def run_fit(
    pairs: Path,
    languages: list[str] | None,
    pivots: list[str],
    methods: list[str],
    encoder: str,
    output: Path,
    join_lines: int,
    documents: Path | None,
    *,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Fit, save, and show what was made."""
    files = _files(output, pivots)
    wanted = None if languages is None else [*languages, *pivots]
    source = open_parallel(pairs, wanted, join_lines=join_lines, documents=documents)
    opened = open_encoder(encoder, trust_remote_code=trust_remote_code, brought=brought_by(source))
    made = fit_shown(source, pivots, opened, methods)
    told = pairs.resolve().name
    if join_lines > 1:
        told += f", {join_lines} lines a passage"
    written = [(replace(made[pivot], source=told), file) for pivot, file in files.items()]
    for vectors, file in written:
        vectors.save(file)
    if as_json:
        shown = [_document(vectors, file) for vectors, file in written]
        emit_json({"files": shown} if len(shown) > 1 else shown[0])
        return
    for vectors, file in written:
        show_vectors(vectors, file, as_json=False)
    note(f"Use it: langshift ingest CORPUS --index NAME --encoder {encoder} --vectors {written[0][1]}")


def fit_shown(
    source: ParallelText, pivots: Sequence[str], encoder: Encoder, methods: Sequence[str] = ("shift",)
) -> dict[str, LanguageVectors]:
    """Fit with a progress bar over the rows."""
    with progress() as shown:
        task = shown.add_task("rows", total=source.total, rate="")
        return fit(source, pivots, encoder, methods=methods, on_rows=lambda done, _: shown.update(task, completed=done))


def _files(output: Path, pivots: Sequence[str]) -> dict[str, Path]:
    """Where each pivot's vectors go, found before the work to be free for them."""
    tags = list(dict.fromkeys(parse_tag(pivot) or pivot for pivot in pivots))
    if len(tags) == 1:
        check_output(output)
        return {tags[0]: output}
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} is a file: with several pivots, --output takes the name of a folder.")
    files = {tag: output / f"{tag}.safetensors" for tag in tags}
    for file in files.values():
        check_output(file)
    return files


def check_output(output: Path) -> None:
    """Refuse, before the work, a file that cannot be written or that holds something else.

    Raises:
        UsageError: saying why.
    """
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


def named_file(file: str) -> Path:
    """The file of that name, or the one shipped for an encoder of that name."""
    path = Path(file)
    return path if path.exists() else shipped(file) or path


def run_show(file: str, *, as_json: bool) -> None:
    """Show a file of language vectors, or those shipped for an encoder."""
    path = named_file(file)
    show_vectors(LanguageVectors.load(path), path if as_json else Path(file), as_json=as_json)


def show_vectors(vectors: LanguageVectors, path: Path, *, as_json: bool) -> None:
    """Print what language vectors hold and recommend."""
    if as_json:
        emit_json(_document(vectors, path))
        return
    lines = (
        f"{path}: {counted(len(vectors.vectors), 'language vector')} towards {vectors.pivot}, hash {vectors.hash}",
        f"encoder {f'{vectors.encoder} {vectors.revision}'.strip()}, {vectors.dimension} dimensions; "
        f"fitted on {vectors.source}",
        f"methods {', '.join(_methods(vectors))}; {_recommended(vectors)}",
    )
    for line in lines:
        out.print(printable(line), soft_wrap=True, markup=False)
    languages = _languages(vectors)
    figures = {name: form for name, form in _FIGURES.items() if any(name in one for one in languages.values())}
    rows = [
        [tag, *(form.format(one[name]) if name in one else "" for name, form in figures.items())]
        for tag, one in languages.items()
    ]
    names = [name.replace("_", " ") for name in figures]
    table(None, ["language", *names], rows, right=set(names))


def _methods(vectors: LanguageVectors) -> list[str]:
    held = {"shift": vectors.vectors, "centering": vectors.means, "lir": vectors.directions, "affine": vectors.maps}
    return [method for method, tensors in held.items() if tensors]


def _recommended(vectors: LanguageVectors) -> str:
    """What measurement recommends, in words."""
    if vectors.alpha is None and not vectors.alphas and vectors.shift_queries is None:
        return "alpha 1 (default: nobody measured another)"
    alpha = 1 if vectors.alpha is None else vectors.alpha
    queries = (
        ""
        if vectors.shift_queries is None
        else f", queries {'shifted too' if vectors.shift_queries else 'left as they are'}"
    )
    return f"recommended: alpha {alpha:g}{queries}"


# What a language may have -> how it is printed.
_FIGURES = {"pairs": "{:,}", "missing": "{:,}", "norm": "{:.3f}", "query_norm": "{:.3f}", "alpha": "{:g}"}


def _languages(vectors: LanguageVectors) -> dict[str, dict[str, Any]]:
    """What is known of each language, sorted."""
    found: dict[str, dict[str, Any]] = {}
    for tag, vector in sorted(vectors.vectors.items()):
        one: dict[str, Any] = {}
        # Imported files do not say how many there were.
        if pairs := vectors.pairs[tag]:
            one["pairs"] = pairs
        if isinstance(missing := vectors.evidence.get(tag, {}).get("missing"), int):
            one["missing"] = missing
        one["norm"] = float(np.linalg.norm(vector))
        if tag in vectors.query_vectors:
            one["query_norm"] = float(np.linalg.norm(vectors.query_vectors[tag]))
        if tag in vectors.alphas:
            one["alpha"] = vectors.alphas[tag]
        found[tag] = one
    return found


def _document(vectors: LanguageVectors, path: Path) -> dict[str, Any]:
    return {
        "file": str(path),
        "hash": vectors.hash,
        "pivot": vectors.pivot,
        "encoder": vectors.encoder,
        "revision": vectors.revision,
        "document_prefix": vectors.document_prefix,
        "query_prefix": vectors.query_prefix,
        "dimension": vectors.dimension,
        "normalised": vectors.normalised,
        "source": vectors.source,
        "methods": _methods(vectors),
        "alpha": vectors.alpha,
        "shift_queries": vectors.shift_queries,
        "languages": _languages(vectors),
    }
