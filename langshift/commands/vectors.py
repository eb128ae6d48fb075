"""The commands of ``vectors``."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from langshift.commands import fitting
from langshift.commands.pipeline_options import reading_options
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import Reading
from langshift.debias.encoders.precomputed import vector_spec_of
from langshift.debias.fitting.fit import fit as fit_vectors
from langshift.debias.fitting.reliability import USE, VectorAssessment, assess_vectors
from langshift.debias.parallel import open_parallel
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import UsageError
from langshift.output import emit_json, line, note, out, table, warn
from langshift.parameters import ENCODER, JSON, PATH, CommandGroup, option, parse_list
from langshift.wording import format_score, pluralize


@click.group(cls=CommandGroup)
def vectors() -> None:
    """Fit language vectors on parallel text, inspect them, and judge them.

    \b
    Example:
      langshift vectors check e5-small
    """


@vectors.command("import")
@click.argument("file", type=PATH, metavar="FILE.pt")
@option("--output FILE", "The file to write.", required=True)
@option("--encoder NAME", "The encoder that the vectors are for. [default: st: and FILE's model]")
@reading_options
@JSON
def import_(file: Path, output: Path, encoder: str | None, reading: Reading, as_json: bool) -> None:
    """Import language vectors published with the paper's reference implementation.

    FILE.pt is a file saved by torch: a dict with model_name, source_lang and a tensor v_<lang> for every
    language. Code in it is never run. The encoder must use the same model; it is opened to check that the
    vectors fit.

    \b
    Example:
      langshift vectors import multilingual-e5-large.pt --output e5.safetensors
    """
    from langshift.debias.import_torch import read_pt, require_model_of, with_encoder

    fitting.check_output(output)
    published = read_pt(file)
    name = encoder or published.encoder
    require_model_of(published, name)
    made = with_encoder(published, open_encoder(name, reading=reading))
    made.save(output)
    show_vectors(made, output, as_json=as_json)
    if not as_json:
        note("It has nothing for --gamma and --own: `langshift vectors fit` fits that, too, on parallel text.")
        note(f"Use it: langshift ingest CORPUS --index NAME --encoder {name} --vectors {output}")


def named_file(file: str) -> Path:
    """The file of that name, or the one shipped for an encoder of that name."""
    path = Path(file)
    return path if path.exists() else shipped(file) or path


def show_vectors(vectors: LanguageVectors, path: Path, *, as_json: bool) -> None:
    """Print what language vectors hold and recommend."""
    if as_json:
        emit_json(_document(vectors, path))
        return
    advice, count = vectors.recommendation, _directions(vectors)
    for text in (
        f"{path}: {pluralize(len(vectors.vectors), 'language vector')} towards {vectors.pivot}, hash {vectors.hash}",
        f"encoder {f'{vectors.encoder} {vectors.revision}'.strip()}, {vectors.dimension} dimensions; "
        f"fitted on {vectors.source}",
        f"{pluralize(count, 'direction')} of queries, {pluralize(len(vectors.own_vectors), 'preference vector')}"
        f"{'' if advice else '; alpha 1 (default: not tuned)'}",
        *([f"recommended: {advice.words}{_own_in_words(vectors)}"] if advice else []),
    ):
        line(text)
    languages = _languages(vectors)
    figures = {name: form for name, form in _FIGURES.items() if any(name in one for one in languages.values())}
    rows = [
        [tag, *(form.format(one[name]) if name in one else "" for name, form in figures.items())]
        for tag, one in languages.items()
    ]
    names = [name.replace("_", " ") for name in figures]
    table(None, ["language", *names], rows, right=set(names))


def _own_in_words(vectors: LanguageVectors) -> str:
    least, most = _recommended_own(vectors)
    return f", own {least:g} to {most:g} by how far a corpus is translated" if most else ""


def _recommended_own(vectors: LanguageVectors) -> tuple[float, float]:
    return vectors.recommended_own(), vectors.recommended_own(1)


def _directions(vectors: LanguageVectors) -> int:
    return 0 if vectors.query_directions is None else len(vectors.query_directions)


# What a language may have -> how it is printed.
_FIGURES = {
    "pairs": "{:,}",
    "missing": "{:,}",
    "identical": "{:,}",
    "other_language": "{:,}",
    "norm": "{:.3f}",
    "query_norm": "{:.3f}",
    "alpha": "{:g}",
}


def _languages(vectors: LanguageVectors) -> dict[str, dict[str, Any]]:
    """What is known of each language, sorted."""
    found: dict[str, dict[str, Any]] = {}
    for tag, vector in sorted(vectors.vectors.items()):
        evidence = vectors.evidence.get(tag, {})
        missing, identical, others = (evidence.get(name) for name in ("missing", "identical", "other_language"))
        of_queries = vectors.query_vectors.get(tag)
        figures = {
            # Imported files do not say how many there were.
            "pairs": vectors.pairs[tag] or None,
            "missing": missing if isinstance(missing, int) else None,
            "identical": identical if isinstance(identical, int) and identical else None,
            "other_language": sum(others.values()) if isinstance(others, dict) and others else None,
            "norm": float(np.linalg.norm(vector)),
            "query_norm": None if of_queries is None else float(np.linalg.norm(of_queries)),
            "alpha": vectors.recommendation.alphas.get(tag) if vectors.recommendation else None,
        }
        found[tag] = {name: figure for name, figure in figures.items() if figure is not None}
    return found


def _document(vectors: LanguageVectors, path: Path) -> dict[str, Any]:
    names = "hash pivot encoder revision document_prefix query_prefix pooling max_tokens dimension normalised source"
    return {
        "file": str(path),
        **{name: getattr(vectors, name) for name in names.split()},
        "directions": _directions(vectors),
        "recommended_own": _recommended_own(vectors),
        "recommendation": None if vectors.recommendation is None else asdict(vectors.recommendation),
        "languages": _languages(vectors),
    }


# In the terminal; all that are known are in --json.
_LISTED = 10


def _print_verdicts(evidence_source: str, judged: list[VectorAssessment]) -> None:
    rows = [_row(one) for one in judged]
    # A column in which nothing stands would only take room.
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    cells = [[row[name] for name in columns] for row in rows]
    table(f"\nEvidence from {evidence_source}", columns, cells, right=set(columns[1:-1]))
    for one in judged:
        if one.verdict != USE:
            line(f"{one.language}: {one.reason}.")
    _print_suspects(judged)


def _row(one: VectorAssessment) -> dict[str, str]:
    """The cells of a language by the heading of their column."""
    row = dict.fromkeys(("pairs", "missing", "norm", "halves", "needed", "suspect", "cosine"), "")
    if known := one.evidence:
        found, pairs = known.reliability, known.alignment
        row |= {
            "pairs": f"{known.pairs:,}",
            "missing": f"{known.missing:,}" if known.missing else "",
            "norm": f"{one.share:.1%}",
            "halves": "{} ({}–{})".format(*(format_score(one, 2) for one in (found.split_half, found.low, found.high))),
            "needed": "never" if found.enough is None else f"{found.enough:,}",
            "suspect": f"{pairs.count:,}" if pairs.told else "?",
        }
    if one.agreement is not None:
        row["cosine"] = format_score(one.agreement, 2)
    return {"language": one.language, **row, "verdict": one.verdict or "-"}


def _print_suspects(judged: list[VectorAssessment]) -> None:
    worst = {one.language: one.evidence.alignment.worst for one in judged if one.evidence}
    rows = [
        [language, suspect.place, suspect.fits, format_score(suspect.margin, 2)]
        for language, suspects in worst.items()
        for suspect in suspects[:_LISTED]
    ]
    if rows:
        out.print()
        table("Pairs that look misaligned", ["language", "pair", "fits better", "margin"], rows, right={"margin"})
    if any(len(suspects) > _LISTED for suspects in worst.values()):
        note(f"The first {_LISTED} pairs of each language are listed; --json contains the worst 50 of each.")


def _judgement(one: VectorAssessment) -> dict[str, Any]:
    figures = {name: getattr(one, name) for name in ("verdict", "reason", "norm", "share", "agreement")}
    return {**figures, "evidence": one.evidence.to_json() if one.evidence else None}


#: The options of a command that fits language vectors, in the order of its help.
_FITTING = (
    option("--pairs PATH", "Parallel text, or given vectors.", required=True),
    option("--languages LIST", "The languages to fit, such as ar,de,en. [default: all in PATH]", callback=parse_list),
    option(
        "--pivot LIST",
        "The language to shift towards; several are fitted in one pass.",
        dest="pivots",
        default="en",
        callback=partial(parse_list, example="en,de"),
    ),
    option(
        "--directions K",
        "How many directions of queries, for --gamma. [default: those with a singular value above 1/40 of the first]",
        click.IntRange(min=1),
        rare=True,
    ),
    ENCODER,
    reading_options,
    option(
        "--output FILE",
        "The file to write; with several pivots a folder, for files <pivot>.safetensors.",
        required=True,
    ),
    fitting.passage_options,
    JSON,
)


def fitting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that fits language vectors, which it hands to ``fit_and_show``."""
    for one in reversed(_FITTING):
        command = one(command)
    return command


@vectors.command("fit")
@fitting_options
def fit(**given: Any) -> None:  # noqa: ANN401 - the parameters of fit_and_show
    """Fit language vectors on parallel text: the mean difference to the pivot language's embeddings.

    PATH is a folder with one file per language, such as th.txt and en.txt, whose lines are translations of
    each other; or a TSV, JSONL or Parquet file with one column per language; or, with --encoder given, your own
    vectors. A pair with a missing side is left out and counted as missing. So is a line that is the pivot's or
    that is surely in another language; a language with fewer than two pairs is left out.

    Each passage's first sentence is encoded as a query, too, where the encoder makes a difference; otherwise passages
    stand for queries. The directions that the means of queries in each language have in common are fitted for a gamma.

    \b
    Example:
      langshift vectors fit --pairs parallel --pivot en --output mine.safetensors
      langshift vectors fit --pairs parallel --pivot en,de,zh --output vectors
    """
    fit_and_show(fit_vectors, **given)


def fit_and_show(
    fit_with: Callable[..., Mapping[str, LanguageVectors]],
    *,
    pairs: Path,
    languages: list[str] | None,
    pivots: list[str],
    directions: int | None,
    encoder: str,
    reading: Reading,
    output: Path,
    passages: dict[str, Any],
    as_json: bool,
) -> None:
    """Fit with a progress bar, write the files, and show what is in them.

    Args:
        fit_with: ``langshift.debias.fitting.fit.fit``, or what takes and gives the same.
        pairs: the parallel text, or given vectors.
        languages: which of its languages; None for all.
        pivots: the pivot languages.
        directions: how many directions of queries; None for all that matter.
        encoder: the encoder's name.
        reading: how it reads texts.
        output: the file, or the folder where there are several pivots.
        passages: how rows are joined.
        as_json: whether one JSON document is printed.
    """
    files = fitting.output_files(output, pivots)
    wanted = None if languages is None else [*languages, *pivots]
    source = open_parallel(pairs, wanted, pivots=pivots, **passages)
    opened = open_encoder(encoder, vector_spec=vector_spec_of(source), reading=reading)
    if directions is not None and directions > (most := min(len(source.languages), opened.dimension)):
        raise UsageError(
            f"--directions {directions} is too many: {pluralize(len(source.languages), 'language')} and "
            f"{opened.dimension} dimensions have {most} at most."
        )
    omitted: dict[str, dict[str, str]] = {}
    found = fitting.fit_shown(
        source,
        pivots,
        opened,
        fit_with,
        directions=directions,
        on_omitted=lambda pivot, language, why: omitted.setdefault(pivot, {}).update({language: why}),
    )
    warn([*fitting.left_out_in_words(source), *(why for of in omitted.values() for why in of.values())])
    source_name = pairs.resolve().name
    if passages["join_lines"] > 1:
        source_name += f", {passages['join_lines']} lines a passage"
    written = [(replace(found[pivot], source=source_name), file) for pivot, file in files.items()]
    for vectors, file in written:
        vectors.save(file)
    if as_json:
        shown = [
            _document(vectors, file)
            | {"left_out": fitting.left_out_document(source), "omitted": omitted.get(pivot, {})}
            for pivot, (vectors, file) in zip(files, written, strict=True)
        ]
        emit_json({"files": shown} if len(shown) > 1 else shown[0])
        return
    for vectors, file in written:
        show_vectors(vectors, file, as_json=False)
    note(f"Use it: langshift ingest CORPUS --index NAME --encoder {encoder} --vectors {written[0][1]}")


@vectors.command("check")
@click.argument("file")
@option("--pairs PATH", "Gather the evidence again on this parallel text, as for `vectors fit`.")
@fitting.PAIRS_ENCODER
@fitting.passage_options
@JSON
def check(file: str, pairs: Path | None, encoder: str | None, passages: dict[str, Any], as_json: bool) -> None:
    """Show what is in FILE, or in the language vectors shipped for an encoder, and judge it language by language.

    The evidence was gathered when FILE was fitted. With --pairs it is gathered again on that text, and the
    vectors fitted there are compared with FILE's: use text like the text that you index.

    \b
    Columns:
      norm     length of the vector V, in per cent of the embeddings' norm
      halves   mean cosine between V of random halves of the pairs, and where 95 % lie
      needed   pairs for an expected cosine of .95 with the true V
      suspect  pairs that look misaligned
      missing  rows of which a side is missing or left out
      cosine   with the V that --pairs gives

    \b
    Verdicts:
      do not use     fewer than 10 pairs, halves under .33, or cosine under .71
      use with care  halves under .82, over 5 % suspect, cosine under .9, or an
                     encoder that cannot distinguish texts of the language
      use            otherwise, or V is shorter than 1 %: nothing to gain or lose

    \b
    Example:
      langshift vectors check mine.safetensors
      langshift vectors check e5-small --pairs parallel --join-lines 3
    """
    if pairs is None and (passages["documents"] is not None or passages["join_lines"] > 1):
        raise UsageError("--join-lines and --documents only apply to --pairs: give --pairs too.")
    path = named_file(file)
    vectors = LanguageVectors.load(path)
    fitted, left_out = None, {}
    if pairs is not None:
        source, _ = fitting.open_for(pairs, passages, vectors)
        opened = fitting.encoder_for(vectors, path, source, encoder)
        omitted: list[str] = []
        fitted = fitting.fit_shown(source, [vectors.pivot], opened, on_omitted=lambda _, __, why: omitted.append(why))[
            vectors.pivot
        ]
        left_out = fitting.left_out_document(source)
        warn([*fitting.left_out_in_words(source), *omitted])
    try:
        judged = assess_vectors(vectors, fitted) if fitted is not None or vectors.evidence else []
    except ValueError:
        raise UsageError(
            f"{path} contains damaged evidence: give parallel text with --pairs to gather it again."
        ) from None
    evidence_source = vectors.source if pairs is None else str(pairs)
    if as_json:
        document = _document(vectors, path)
        verdicts = {one.language: _judgement(one) for one in judged}
        languages = {tag: {**figures, **verdicts.get(tag, {})} for tag, figures in document["languages"].items()}
        emit_json({**document, "evidence_of": evidence_source, "left_out": left_out, "languages": languages})
        return
    show_vectors(vectors, Path(file), as_json=False)
    if judged:
        _print_verdicts(evidence_source, judged)
    else:
        note(f"{file} contains no evidence of how it was fitted: for a verdict, give parallel text with --pairs.")
