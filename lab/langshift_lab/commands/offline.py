"""The command ``evaluate offline``."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from langshift.commands.pipeline_options import LID_MODEL
from langshift.commands.run_tables import show_measures, shown_figure
from langshift.commands.search_options import WITHIN
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import AS_KNOWN
from langshift.debias.vectors import shipped
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import PER_LANGUAGE, Dataset, load_dataset
from langshift.evaluate.replay.requests import TOP_K
from langshift.evaluate.replay.result import check_output
from langshift.evaluate.runs import parse_names, require_room
from langshift.ingest.config import EmbeddingPipeline, build_pipeline
from langshift.languages import parse_tag, primary
from langshift.output import emit_json, heading, note, progress, table, warn
from langshift.parameters import ENCODER, JSON, PATH, VECTORS, Command, option, option_group, parse_list
from langshift.retrieval.request import MOST_HITS
from langshift.wording import format_score
from langshift_lab.methods.debiaser import QUERY_SIDE, recommended
from langshift_lab.methods.vectors import MethodVectors
from langshift_lab.offline import encoding, ranking
from langshift_lab.offline.encoding import GIVEN, LanguageSource
from langshift_lab.offline.ranking import BOTH_SIDES, NOTHING, OfflineSettings


class EncodingOptions(NamedTuple):
    """How texts become vectors, as it was asked for.

    Attributes:
        encoder: the encoder's name.
        vectors: the file of language vectors; None takes those that come with langshift.
        pivot: the pivot language; None leaves the file's own.
        cache: where encodings are kept; None keeps none.
        lid_model: a fastText model that detects documents' languages; None takes the one that comes with langshift.
    """

    encoder: str
    vectors: Path | None
    pivot: str | None
    cache: Path | None
    lid_model: Path | None


_encoding_options = option_group(
    "options",
    EncodingOptions,
    ENCODER,
    VECTORS,
    option("--pivot LANGUAGE", "Convert the language vectors to this pivot.", rare=True),
    option("--cache FOLDER", "Keep the encodings here for the next run.", rare=True),
    LID_MODEL,
)


def parse_sides(ctx: click.Context, parameter: click.Parameter, given: str | None) -> list[str]:
    """``"never,always"`` as a list of what ``--shift-queries`` can be."""
    parts = parse_list(ctx, parameter, given, "never,always") or []
    for part in parts:
        if part not in ranking.SHIFT_QUERIES:
            raise click.BadParameter(f"{part!r} is not one of {', '.join(ranking.SHIFT_QUERIES)}.")
    return parts


def parse_sources(ctx: click.Context, parameter: click.Parameter, given: str | None) -> list[encoding.LanguageSource]:
    """``"given,detected:20"`` as a list of sources of languages."""
    found = []
    for part in parse_list(ctx, parameter, given, "given,detected,detected:20") or []:
        source = encoding.LanguageSource.parse(part)
        if source is None:
            raise click.BadParameter(
                f"{part!r} is not one of given, detected and soft; a number of characters, 1 or more, can follow the "
                "latter two, such as detected:20."
            )
        found.append(source)
    return found


def _numbers(ctx: click.Context, parameter: click.Parameter, given: str | None) -> list[float] | None:  # noqa: ARG001
    """``"0,.5,1"`` as ascending numbers, each once; None where the option was not given."""
    if given is None:
        return None
    try:
        numbers = sorted({float(part) for part in given.split(",") if part.strip()})
    except ValueError:
        numbers = []
    highest = sys.float_info.max if parameter.name == "betas" else 1.0
    if not numbers or not all(0 <= number <= highest for number in numbers):
        reach = "from 0 to 1" if highest == 1 else "of 0 or more"
        raise click.BadParameter(f"{given!r} is not a comma-separated list of numbers {reach}, such as 0,.02,.05,.1.")
    return numbers


def parse_alphas_of(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, list[float]]:
    """``"th=.2,.6"``, given once or more, as canonical tag -> ascending scales."""
    found: dict[str, list[float]] = {}
    for text in given:
        language, _, scales = text.partition("=")
        tag = parse_tag(language)
        if tag is None:
            raise click.BadParameter(f"{text!r} is not a language with scales, such as th=.2,.6,1.")
        if tag in found:
            raise click.BadParameter(f"{tag} is given twice: the languages must be unique.")
        found[tag] = _numbers(ctx, parameter, scales) or []
    return found


def open_dataset_pipeline(
    dataset: Dataset,
    options: EncodingOptions,
    alpha: float | None,
    gamma: float | None = None,
    methods: Sequence[str] = ("shift",),
) -> tuple[EmbeddingPipeline, MethodVectors | None]:
    """The encoder, and the language vectors, moved to the pivot that was asked for.

    Args:
        dataset: may bring vectors.
        options: what was asked for.
        alpha: scale of the shift; None takes what the vectors recommend.
        gamma: likewise; None beside an alpha is 0.
        methods: what will be done with the vectors.

    Raises:
        UsageError: an encoder, cache, detector, file of vectors or pivot that cannot be used.
        FingerprintError: the vectors were fitted with another encoder.
    """
    if options.cache is not None:
        check_output(options.cache, "--cache")
    detector = open_detector(options.lid_model)
    spec = encoding.read_vector_spec(dataset, options.encoder)
    # The file of language vectors says how its encoder reads texts.
    reading = AS_KNOWN.of(MethodVectors.load(options.vectors), options.encoder) if options.vectors else AS_KNOWN
    encoder = open_encoder(options.encoder, vector_spec=spec, reading=reading)
    pipeline = build_pipeline(encoder, detector, options.vectors, alpha, gamma=gamma)
    path = options.vectors or shipped(encoder.id)
    known = None if path is None else MethodVectors.load(path)
    if options.pivot is None:
        return pipeline, known
    if known is None:
        raise UsageError(f"--pivot {options.pivot} needs language vectors: give some with --vectors.")
    turned = ranking.repivoted(known, options.pivot)
    if "affine" in methods and known.maps and not turned.maps:
        raise UsageError(
            f"The maps of the method affine have the pivot {known.pivot} and cannot be converted to {turned.pivot}: "
            f"fit others with `langshift vectors methods --pivot {turned.pivot} --methods affine`."
        )
    return replace(pipeline, debias=recommended(turned, "shift", alpha, gamma)), turned


@click.command("offline", cls=Command)
@click.argument("dataset", type=PATH)
@_encoding_options
@option(
    "--method LIST",
    "Any of none, shift, centering, lir, affine.",
    dest="methods",
    default="shift",
    callback=partial(parse_list, example="none,shift,affine"),
)
@option("--alpha LIST", "Scales of the shift, 0 to 1. [default: as recommended]", dest="alphas", callback=_numbers)
@option(
    "--alpha-for TAG=LIST",
    "Of one language alone; can be repeated: th=.2,.6.",
    dest="alphas_of",
    callback=parse_alphas_of,
    multiple=True,
    rare=True,
)
@option(
    "--gamma LIST",
    "What queries have in common, taken out: any of 0, .9 to .98. [default: as recommended, but 0 beside an --alpha]",
    dest="gammas",
    callback=_numbers,
    rare=True,
)
@option(
    "--shift-queries LIST",
    "Whether queries are shifted, too: never or always.",
    default="never",
    callback=parse_sides,
    rare=True,
)
@option(
    "--language-from LIST",
    "Documents' languages: given (by the dataset), detected, detected:20 (from 20 characters), soft or soft:20 "
    "(all that are possible).",
    dest="sources",
    default="given",
    callback=parse_sources,
    rare=True,
)
@option(
    "--prefer-language LIST",
    "Add so much to the cosine of documents in the query's language, such as 0,.02,.05.",
    dest="betas",
    default="0",
    callback=_numbers,
)
@WITHIN
@option("--measures NAMES", "Measures, such as 'nDCG@20 TLR@20 SLR@20 LPR'.")
@option("--depth N", "Documents kept for each query.", click.IntRange(1, MOST_HITS), default=TOP_K, rare=True)
@option("--output FOLDER", "Write run.trec, result.json and so on here, for `langshift evaluate compare`.")
@JSON
def offline(
    dataset: Path,
    options: EncodingOptions,
    within: str | None,
    measures: str | None,
    depth: int,
    output: Path | None,
    as_json: bool,
    **lists: Any,  # noqa: ANN401 - the fields of Grid
) -> None:
    """Search DATASET exactly, without a cluster, and score the answers.

    Documents and queries are encoded locally, documents are shifted as by ingest, and every query is compared with
    every document by cosine.

    Several values of options that take a LIST give one table of every combination, with one folder for each row in
    --output. The methods centering and lir also change queries, and have no alpha. A setting that is the best of a
    table is the best of these queries: `langshift vectors tune --dataset` chooses on some and reports others.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
      langshift evaluate offline xquad8 --method none,shift,centering,lir,affine --vectors FILE
      langshift evaluate offline xquad8 --method none,shift --language-from given,detected,detected:20
      langshift evaluate offline xquad8 --alpha .6 --alpha-for th=.2,.4,.6,.8,1 --measures "R@20 TR(language='th')@20"
    """
    if output is not None:
        check_output(output)
    given = load_dataset(dataset)
    grid = ranking.Grid(**lists)
    names = parse_names(measures, given)
    if measures is None:
        names += [f"TR(language='{primary(tag)}')@20" for tag in grid.alphas_of if given.judged != PER_LANGUAGE]
    require_room(len(given.queries), depth)
    if options.lid_model is not None and all(source == GIVEN for source in grid.sources):
        raise UsageError("--lid-model detects documents' languages: add detected or soft to --language-from.")
    if grid.alphas_of and not {"shift", "affine"} & set(grid.methods):
        raise UsageError("--alpha-for scales the methods shift and affine: add one of them to --method.")
    # No language vectors are needed where nothing is shifted.
    own = [alpha for alphas in grid.alphas_of.values() for alpha in alphas]
    alpha = 0.0 if grid.methods == ["none"] else max([*grid.alphas, *own]) if grid.alphas else None
    gamma = max(grid.gammas) if grid.gammas else None
    pipeline, known = open_dataset_pipeline(given, options, alpha, gamma, grid.methods)
    rows = ranking.settings(known, grid)
    folders = _folders(output, list(rows))
    with progress() as bars:
        totals = {"documents": len(given.documents), "queries": len(given.queries)}
        tasks = {kind: bars.add_task(f"Encoding {kind}", total=total, rate="") for kind, total in totals.items()}
        encoded = encoding.encode(
            given, pipeline.encoder, options.cache, lambda kind, done: bars.advance(tasks[kind], done), within
        )
    detections = encoding.resolve_document_languages(encoded, [setting.source for setting in rows.values()], pipeline)
    documents = []
    with progress() as bars:
        searching = bars.add_task("Searching", total=len(encoded.queries) * len(rows), rate="")
        run = partial(ranking.evaluate, encoded, depth=depth, on_queries=partial(bars.advance, searching))
        for name, setting in rows.items():
            bars.update(searching, rate=name)
            documents.append(run(setting, detections[setting.source], pipeline, names, folder=folders.get(name)))
    warn(dict.fromkeys(warning for document in documents for warning in document["warnings"]))
    if as_json:
        emit_json(documents[0] if len(rows) == 1 else {"rows": documents})
        return
    if len(rows) == 1:
        _show_one(dataset, next(iter(rows.values())), documents[0])
    else:
        _show_rows(dataset, list(zip(rows.values(), documents, strict=True)))
    if output is not None:
        destination = f"to {output}" if len(rows) == 1 else f"for each of {', '.join(folders)} to {output}"
        note(f"Wrote run.trec, group-scores.jsonl, per-query.jsonl and result.json {destination}.")


def _folders(output: Path | None, rows: Sequence[str]) -> dict[str, Path]:
    """Setting's name -> where its files go; nothing where none are written.

    Raises:
        UsageError: one of these places cannot be written to.
    """
    if output is None:
        return {}
    folders = {name: output if len(rows) == 1 else output / name for name in rows}
    for folder in folders.values():
        check_output(folder)
    return folders


def _show_one(folder: Path, setting: OfflineSettings, result: Mapping[str, Any]) -> None:
    """Print the measures of one setting, and by query language where there are several."""
    _headline(folder, result, [*_described(setting), *_beta(setting)])
    show_measures(result)


def _headline(folder: Path, result: Mapping[str, Any], words: Sequence[str]) -> None:
    within = [f"within {result['within']}"] if result.get("within") else []
    details = ", ".join(["exact search", *words, *within])
    heading(f"{folder}: {result['queries']['asked']:,} queries, {details}")


def _beta(setting: OfflineSettings) -> list[str]:
    return [f"beta {setting.beta:g}"] if setting.beta else []


def _alpha(setting: OfflineSettings) -> str:
    """The scale as tables have it: 0 where nothing moves for it, ``-`` where the method has none."""
    return "-" if setting.debias.method in ("none", *QUERY_SIDE) else setting.alpha or "0"


def _described(setting: OfflineSettings) -> list[str]:
    debias = setting.debias
    if setting.changes == NOTHING:
        return ["alpha 0" if debias.method == "shift" else "method none"]
    words = [] if debias.method == "shift" else [f"method {debias.method}"]
    if setting.alpha is not None and debias.vectors is not None:
        words += [f"alpha {setting.alpha}", f"pivot {debias.vectors.pivot}"]
    words += [f"gamma {debias.gamma:g}"] if debias.gamma else []
    words += [f"{setting.changes} changed"] if setting.changes == BOTH_SIDES else []
    return words + ([f"languages {_read(setting.source)}"] if setting.source != GIVEN else [])


def _read(source: LanguageSource) -> str:
    words = "detected softly" if source.soft else "detected"
    return words if source.characters is None else f"{words} from the first {source.characters:,} characters"


def _show_rows(folder: Path, rows: Sequence[tuple[OfflineSettings, Mapping[str, Any]]]) -> None:
    """Print one line for each of several settings of one dataset."""
    pivots = {setting.debias.vectors.pivot for setting, _ in rows if setting.debias.vectors is not None}
    alphas, betas = {_alpha(setting) for setting, _ in rows} - {"-"}, {setting.beta for setting, _ in rows}
    words = [f"alpha {alpha}" for alpha in alphas if len(alphas) == 1] + [f"pivot {pivot}" for pivot in pivots]
    _headline(folder, rows[0][1], [*words, *(_beta(rows[0][0]) if len(betas) == 1 else [])])
    # Columns that say nothing here are left out.
    said = {
        "alpha": len(alphas) > 1,
        "gamma": any(setting.debias.gamma for setting, _ in rows),
        "beta": len(betas) > 1,
        "changes": any(setting.changes == BOTH_SIDES for setting, _ in rows),
        **dict.fromkeys(("languages", "LID", "und"), any(setting.source != GIVEN for setting, _ in rows)),
    }
    shown = [_setting_cells(setting, result) for setting, result in rows]
    heads = [head for head in shown[0] if said.get(head, True)]
    cells = [[row[head] for head in heads] for row in shown]
    table(None, heads, cells, right=set(heads) - {"method", "changes", "languages"}, prose={"alpha"})


def _setting_cells(setting: OfflineSettings, result: Mapping[str, Any]) -> dict[str, str]:
    """Head -> field."""
    detection = result["detection"] or {"accuracy": None, "unknown": None}
    return {
        "method": setting.debias.method,
        "alpha": _alpha(setting),
        "gamma": f"{setting.debias.gamma:g}" if setting.debias.gamma else "-",
        "beta": f"{setting.beta:g}",
        "changes": setting.changes,
        "languages": "-" if setting.changes == NOTHING else str(setting.source),
        "LID": format_score(detection["accuracy"]),
        "und": "-" if detection["unknown"] is None else f"{detection['unknown']:,}",
        **{name: shown_figure(result, name) for name in result["measures"]},
    }
