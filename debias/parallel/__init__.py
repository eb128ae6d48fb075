"""Parallel text of any format and size, read in batches."""

from collections.abc import Callable, Sequence
from pathlib import Path

from langshift.debias.detector import open_detector
from langshift.debias.parallel.columns import ParallelText, by_language, chosen, file_kind, written_language
from langshift.debias.parallel.tables import GivenArrays, ParallelJsonl, ParallelParquet
from langshift.debias.parallel.text import AlignedLines, ParallelTsv, Passages
from langshift.debias.parallel.translations import Translations
from langshift.errors import UsageError, no_file, special_file
from langshift.languages import parse_tag

_FILES = {".tsv": ParallelTsv, ".jsonl": ParallelJsonl}
_FOLDERS: dict[str, Callable[..., ParallelText]] = {".txt": AlignedLines, ".npy": GivenArrays}


def open_parallel(
    path: Path,
    languages: Sequence[str] | None = None,
    *,
    pivots: Sequence[str] = (),
    join_lines: int = 1,
    documents: Path | None = None,
) -> ParallelText:
    """Open parallel text; its name, or what lies in the folder, tells the format.

    ========================================  =========================================================
    ``FOLDER/<lang>.txt``                     a text a line, aligned by line
    ``FOLDER/<lang>.npy``                     given vectors, aligned by row
    ``FILE.tsv``                              columns named by language
    ``FILE.jsonl``                            objects with keys named by language; texts or given vectors
    ``FILE.parquet``, ``FOLDER/*.parquet``    columns named by language; texts or given vectors
    ========================================  =========================================================

    Text files may be compressed (``.txt.gz``, ``.tsv.zst``).

    Args:
        path: the file or folder.
        languages: those to read, in any form of their tags; None reads all.
        pivots: languages in any form of their tags; what is no translation of their texts is left out and counted.
        join_lines: this many consecutive rows make one passage.
        documents: file with a document id a line, one for each row; passages never cross documents.

    Raises:
        UsageError: what cannot be used, in one sentence that names the place.
        LangshiftError: a library is missing that the format needs.
    """
    if documents is not None and join_lines == 1:
        raise UsageError("--documents marks where joined passages end: add --join-lines.")
    if not path.exists() or special_file(path):
        raise UsageError(f"{no_file(path, f'The parallel text {path} does not exist')}.")
    source = (_open_folder if path.is_dir() else _open_file)(path, languages or None)
    if pivots:
        tags = [parse_tag(pivot) or pivot for pivot in pivots]
        source = Translations(source, tags, open_detector(), keep_numbers=join_lines > 1)
    return source if join_lines == 1 else Passages(source, join_lines, documents)


def _open_file(path: Path, languages: Sequence[str] | None) -> ParallelText:
    kind = file_kind(path)
    if kind == ".parquet":
        return ParallelParquet(path, [path], languages)
    if kind in _FILES:
        return _FILES[kind](path, languages)
    if kind in _FOLDERS:
        raise UsageError(f"{path} contains one language only: give the folder that contains a file for each language.")
    raise UsageError(
        f"{path} is not a known format of parallel text; give a .tsv, .jsonl or .parquet file, or a folder."
    )


def _open_folder(folder: Path, languages: Sequence[str] | None) -> ParallelText:
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith((".", "_"))]
    shards = [path for path in files if file_kind(path) == ".parquet"]
    found = {kind: [path for path in files if file_kind(path) == kind and written_language(path)] for kind in _FOLDERS}
    examples = [paths[0].name for paths in (*found.values(), shards) if paths]
    if not examples:
        raise UsageError(
            f"{folder} contains no file named after a language, such as th.txt or th.npy, and no .parquet file."
        )
    if len(examples) > 1:
        raise UsageError(
            f"{folder} contains parallel text in several formats, {' and '.join(examples)}; leave only one of them."
        )
    if shards:
        return ParallelParquet(folder, shards, languages)
    kind, paths = next((kind, paths) for kind, paths in found.items() if paths)
    named = by_language(((written_language(path), path.name) for path in paths), str(folder))
    picked = chosen(named, languages, str(folder), "vectors" if kind == ".npy" else "text")
    return _FOLDERS[kind](folder, {tag: folder / name for tag, name in picked.items()})
