"""Read parallel text: one file a language, aligned by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import groupby, islice
from pathlib import Path

from langshift.errors import UsageError
from langshift.languages import parse_tag, primary


def language_files(folder: Path) -> dict[str, Path]:
    """The files ``<lang>.txt`` of a folder by language tag.

    A file's name is any form of a tag, or ends in one after a dot: ``th.txt``, ``tha_Thai.txt`` and
    ``newstest2019-ref.tha.txt`` are Thai. A regional
    text (``zho-CN``) stands for its primary language where no other file does and the region is that
    language's usual one; else it keeps its region (``zh-TW``). Other files are left aside.

    Raises:
        UsageError: there is no such folder, it holds no such file, or two for one language.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder of parallel text.")
    files: dict[str, Path] = {}
    for path in sorted(folder.glob("*.txt")):
        tag = parse_tag(path.stem.rpartition(".")[2])
        if tag is None or not path.is_file():
            continue
        if tag in files:
            raise UsageError(f"{folder}: {files[tag].name} and {path.name} are both {tag}; keep one of them.")
        files[tag] = path
    if not files:
        raise UsageError(f"{folder}: holds no file named for a language, such as th.txt.")
    for tag in [tag for tag in files if "-" in tag]:
        if primary(tag) not in files and _usual_region(tag):
            files[primary(tag)] = files.pop(tag)
    return dict(sorted(files.items()))


def read_aligned(files: Mapping[str, Path], batch: int) -> Iterator[dict[str, list[str]]]:
    """Read the files in step: batches of lines, the same ones in every language.

    Raises:
        UsageError: the files differ in length, or a line is not UTF-8.
    """
    counts = {tag: count_lines(path) for tag, path in files.items()}
    first = next(iter(files))
    for tag, path in files.items():
        if counts[tag] != counts[first]:
            raise UsageError(
                f"{path} has {counts[tag]:,} lines but {files[first]} has {counts[first]:,}: "
                "parallel files must be aligned line by line."
            )
    with ExitStack() as opened:
        readers = {tag: opened.enter_context(path.open("rb")) for tag, path in files.items()}
        done = 0
        while True:
            lines = {
                tag: [_decode(line, files[tag], done + i) for i, line in enumerate(islice(reader, batch), start=1)]
                for tag, reader in readers.items()
            }
            if not lines[first]:
                return
            done += len(lines[first])
            yield lines


def joined(
    batches: Iterator[dict[str, list[str]]], lines: int, documents: Iterator[str]
) -> Iterator[dict[str, list[str]]]:
    """Join consecutive lines of one document to passages of ``lines`` lines (the last may be shorter).

    Language vectors are best fitted on texts as long as those in the index; public parallel text is
    aligned by sentence. A passage that lacks a line in a language is empty there: half a translation is none.

    Args:
        batches: what ``read_aligned`` yields.
        lines: how many lines make a passage.
        documents: for each line, the id of the document that it belongs to.
    """
    rows = (dict(zip(batch, row, strict=True)) for batch in batches for row in zip(*batch.values(), strict=True))
    for _, of_document in groupby(zip(documents, rows, strict=True), key=lambda pair: pair[0]):
        remaining = (row for _, row in of_document)
        while passage := list(islice(remaining, lines)):
            yield {tag: [_whole([row[tag] for row in passage])] for tag in passage[0]}


def _whole(lines: list[str]) -> str:
    return " ".join(lines) if all(lines) else ""


def read_documents(path: Path | None, lines: int) -> list[str]:
    """For each line of the parallel text, the id of its document; one document where no file is given.

    Raises:
        UsageError: there is no such file, or it has another number of lines than the text.
    """
    if path is None:
        return [""] * lines
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file of document ids.")
    with path.open("rb") as file:
        ids = [_decode(line, path, number) for number, line in enumerate(file, start=1)]
    if len(ids) != lines:
        raise UsageError(f"{path} has {len(ids):,} lines but the parallel text has {lines:,}: one id a line is needed.")
    return ids


def _usual_region(tag: str) -> bool:
    import langcodes

    return langcodes.get(primary(tag)).maximize().territory == langcodes.get(tag).territory


def count_lines(path: Path) -> int:
    """How many lines a file has; the last may lack its line break."""
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise UsageError(f"{path}, line {number}: is not UTF-8 text.") from None
