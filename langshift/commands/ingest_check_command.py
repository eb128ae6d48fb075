"""What ``langshift vectors check`` does and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langshift.commands.vectors_command import fit_shown, named_file
from langshift.console import emit_json, note, out, printable, table
from langshift.debias.encoders import Encoder, open_encoder
from langshift.debias.encoders.given import brought_by
from langshift.debias.fitting.check import USE, Judged, judge
from langshift.debias.parallel import open_parallel
from langshift.debias.parallel.rows import ParallelText
from langshift.debias.vectors import LanguageVectors
from langshift.errors import FingerprintError, UsageError

# In the terminal; all that are known are in --json.
_LISTED = 10


def run_check(
    file: str,
    pairs: Path | None,
    encoder: str | None,
    join_lines: int,
    documents: Path | None,
    *,
    trust_remote_code: bool,
    as_json: bool,
) -> None:
    """Judge a file of language vectors, on the evidence that it holds or on that of other pairs."""
    if pairs is None and (documents is not None or join_lines > 1):
        raise UsageError("--join-lines and --documents say how the rows of --pairs are joined: give --pairs too.")
    path = named_file(file)
    vectors = LanguageVectors.load(path)
    fitted = None
    if pairs is not None:
        source = _source(vectors, pairs, join_lines, documents)
        opened = _encoder(vectors, path, source, encoder, trust_remote_code=trust_remote_code)
        fitted = fit_shown(source, [vectors.pivot], opened)[vectors.pivot]
    elif not vectors.evidence:
        raise UsageError(f"{path}: holds no evidence of how it was made; give parallel text with --pairs to gather it.")
    try:
        judged = judge(vectors, fitted)
    except ValueError:
        raise UsageError(
            f"{path}: its evidence is damaged; give parallel text with --pairs to gather it anew."
        ) from None
    told = vectors.source if pairs is None else str(pairs)
    if as_json:
        emit_json(_document(vectors, path, told, judged))
    else:
        _print(vectors, Path(file), told, judged)


def _source(vectors: LanguageVectors, pairs: Path, join_lines: int, documents: Path | None) -> ParallelText:
    """The parallel text in the pivot and those languages of the file that it has."""
    found = open_parallel(pairs, join_lines=join_lines, documents=documents).languages
    wanted = [tag for tag in (vectors.pivot, *vectors.vectors) if tag in found]
    if vectors.pivot not in wanted or len(wanted) < 2:
        raise UsageError(
            f"{pairs}: the pivot {vectors.pivot} and another language of the vectors "
            f"({', '.join(sorted(vectors.vectors))}) are needed; it has {', '.join(found)}."
        )
    return open_parallel(pairs, wanted, join_lines=join_lines, documents=documents)


def _encoder(
    vectors: LanguageVectors, path: Path, source: ParallelText, name: str | None, *, trust_remote_code: bool
) -> Encoder:
    """The encoder that the file names, or another one that was asked for."""
    brought = brought_by(source)
    opened = open_encoder(name or vectors.encoder, trust_remote_code=trust_remote_code, brought=brought)
    if opened.dimension != vectors.dimension:
        other = opened.id != vectors.encoder
        raise UsageError(
            f"{path}: holds vectors of {vectors.dimension} dimensions, but {opened.id} makes {opened.dimension}; "
            + (f"take the encoder {vectors.encoder}." if other else "it is not the model that they were fitted with.")
        )
    try:
        vectors.require_encoder(opened, str(path))
    except FingerprintError:
        if name is None:
            raise
        note(f"Warning: {path} was fitted with {vectors.encoder}, and is compared with what {opened.id} makes.")
    return opened


def _print(vectors: LanguageVectors, path: Path, told: str, judged: list[Judged]) -> None:
    summary = f"{path}: towards {vectors.pivot}, encoder {vectors.encoder}; evidence of {told}"
    out.print(printable(summary), soft_wrap=True, markup=False)
    rows = [_row(one) for one in judged]
    # A column in which nothing stands would only take room.
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    table(None, columns, [[row[name] for name in columns] for row in rows], right=set(columns[1:-1]))
    for one in judged:
        if one.verdict.word != USE:
            out.print(f"{one.language}: {one.verdict.reason}.", soft_wrap=True, markup=False)
    _print_suspects(judged)


def _row(one: Judged) -> dict[str, str]:
    """The cells of a language by the heading of their column."""
    row = dict.fromkeys(("pairs", "missing", "norm", "halves", "enough", "suspect", "cosine"), "")
    if known := one.evidence:
        found, pairs = known.reliability, known.alignment
        row |= {
            "pairs": f"{known.pairs:,}",
            "missing": f"{known.missing:,}" if known.missing else "",
            "norm": f"{one.share:.1%}",
            "halves": f"{_short(found.split_half)} ({_short(found.low)}–{_short(found.high)})",
            "enough": "never" if found.enough is None else f"{found.enough:,}",
            "suspect": f"{pairs.count:,}" if pairs.told else "?",
        }
    if one.agreement is not None:
        row["cosine"] = _short(one.agreement)
    return {"language": one.language, **row, "verdict": one.verdict.word or "-"}


def _short(cosine: float) -> str:
    """``.86``, ``-.12``, ``1.00``."""
    return f"{cosine:.2f}".replace("0.", ".", 1)


def _print_suspects(judged: list[Judged]) -> None:
    worst = {one.language: one.evidence.alignment.worst for one in judged if one.evidence}
    rows = [
        [language, suspect.place, suspect.fits, _short(suspect.margin)]
        for language, suspects in worst.items()
        for suspect in suspects[:_LISTED]
    ]
    if rows:
        out.print()
        table("Pairs that look misaligned", ["language", "pair", "fits better", "margin"], rows, right={"margin"})
    if any(len(suspects) > _LISTED for suspects in worst.values()):
        note(f"The first {_LISTED} of a language are listed; --json has the worst 50 of each.")


def _document(vectors: LanguageVectors, path: Path, told: str, judged: list[Judged]) -> dict[str, Any]:
    return {
        "file": str(path),
        "hash": vectors.hash,
        "pivot": vectors.pivot,
        "encoder": vectors.encoder,
        "evidence_of": told,
        "languages": {
            one.language: {
                "verdict": one.verdict.word,
                "reason": one.verdict.reason,
                "norm": one.norm,
                "share": one.share,
                "agreement": one.agreement,
                "evidence": one.evidence.to_json() if one.evidence else None,
            }
            for one in judged
        },
    }
