"""The commands ``evaluate offline`` and ``evaluate sweep``."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from langshift.debias.debiaser import Debiaser, recommended
from langshift.debias.detector import open_detector
from langshift.debias.encoders import Encoder, Reading, open_encoder
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import PER_LANGUAGE, Dataset, clusters, load_dataset
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.offline import encoding, ranking
from langshift.evaluate.offline.sweep import Sweeper, halves
from langshift.evaluate.offline.sweep import document as sweep_document
from langshift.evaluate.offline.sweep import sweep as run_sweep
from langshift.evaluate.replay.result import check_output
from langshift.evaluate.report.run_tables import show_offline, show_rows, show_sweep
from langshift.evaluate.runs import parse_names
from langshift.ingest.config import EmbeddingPipeline, build_pipeline
from langshift.output import emit_json, note, progress, warn
from langshift.parameters import (
    ALPHA,
    ENCODER,
    GAMMA,
    PATH,
    READING,
    REMOTE_CODE,
    THREADS,
    VECTORS,
    Command,
    FiniteRange,
    json_or_tables,
    option,
    option_group,
    parse_list,
)


class EncodingOptions(NamedTuple):
    """How texts become vectors, as it was asked for.

    Attributes:
        encoder: the encoder's name.
        trust_remote_code: whether to run code that comes with a model.
        vectors: the file of language vectors; None takes those that come with langshift.
        pivot: the pivot language; None leaves the file's own.
        cache: where encodings are kept; None keeps none.
        reading: how the encoder is to read texts.
    """

    encoder: str
    trust_remote_code: bool
    vectors: Path | None
    pivot: str | None
    cache: Path | None
    reading: Reading


_encoding_options = option_group(
    "options",
    lambda **values: EncodingOptions(reading=Reading.take(values), **values),
    ENCODER,
    REMOTE_CODE,
    *READING,
    VECTORS,
    option("--pivot LANGUAGE", "Convert the language vectors to this pivot.", rare=True),
    option("--cache FOLDER", "Keep the encodings here for the next run.", rare=True),
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


def open_dataset_pipeline(
    dataset: Dataset,
    options: EncodingOptions,
    alpha: float | None,
    gamma: float | None = None,
    methods: Sequence[str] = ("shift",),
) -> EmbeddingPipeline:
    """The encoder, and the language vectors, moved to the pivot that was asked for.

    Args:
        dataset: may bring vectors.
        options: what was asked for.
        alpha: scale of the shift; None takes what the vectors recommend.
        gamma: likewise; None beside an alpha is 0.
        methods: what will be done with the vectors.

    Raises:
        UsageError: an encoder, cache, file of vectors or pivot that cannot be used.
        FingerprintError: the vectors were fitted with another encoder.
    """
    if options.cache is not None:
        check_output(options.cache, "--cache")
    spec = encoding.read_vector_spec(dataset, options.encoder)
    encoder = open_encoder(
        options.encoder, trust_remote_code=options.trust_remote_code, vector_spec=spec, reading=options.reading
    )
    pipeline = build_pipeline(encoder, open_detector(), options.vectors, alpha, gamma=gamma)
    if options.pivot is None:
        return pipeline
    known = pipeline.debias.vectors
    if known is None:
        raise UsageError(f"--pivot {options.pivot} needs language vectors: give some with --vectors.")
    turned = ranking.repivoted(known, options.pivot)
    if "affine" in methods and known.maps and not turned.maps:
        raise UsageError(
            f"The maps of the method affine have the pivot {known.pivot} and cannot be converted to {turned.pivot}: "
            f"fit others with `langshift vectors fit --pivot {turned.pivot} --methods affine`."
        )
    return replace(pipeline, debias=recommended(turned, "shift", alpha, gamma))


def encode_shown(dataset: Dataset, encoder: Encoder, cache: Path | None) -> encoding.EncodedDataset:
    """Encode a dataset, with progress bars.

    Raises:
        UsageError: a document that cannot be read.
        LangshiftError: the encoder gives no usable vector for a text.
    """
    with progress() as bars:
        totals = {"documents": len(dataset.documents), "queries": len(dataset.queries)}
        tasks = {kind: bars.add_task(f"Encoding {kind}", total=total, rate="") for kind, total in totals.items()}
        return encoding.encode(dataset, encoder, cache, lambda kind, done: bars.advance(tasks[kind], done))


@click.command("offline", cls=Command)
@click.argument("dataset", type=PATH)
@THREADS
@_encoding_options
@option(
    "--method LIST",
    "Any of none, shift, centering, lir, affine.",
    dest="methods",
    default="shift",
    callback=partial(parse_list, example="none,shift,affine"),
)
@ALPHA
@GAMMA
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
    "--prefer-language B",
    "Add B to the cosine of documents in the query's language.",
    FiniteRange(0),
    dest="beta",
    default=0.0,
)
@option("--measures NAMES", "Measures, such as 'nDCG@20 TLR@20 SLR@20 LPR'.")
@option("--output FOLDER", "Write run.trec, result.json and so on here, for `langshift evaluate compare`.")
@json_or_tables
def offline(
    dataset: Path,
    options: EncodingOptions,
    methods: list[str],
    alpha: float | None,
    gamma: float | None,
    shift_queries: list[str],
    sources: list[encoding.LanguageSource],
    beta: float,
    measures: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Search DATASET exactly, without a cluster, and score the answers.

    Documents and queries are encoded locally, documents are shifted as by ingest, and every query is compared with
    every document by cosine. The best 100 documents count.

    Several values of --method, --language-from or --shift-queries give one table, with one folder for each
    row in --output. The methods centering and lir also change queries, and have no alpha.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
      langshift evaluate offline xquad8 --method none,shift,centering,lir,affine --vectors FILE
      langshift evaluate offline xquad8 --method none,shift --shift-queries never,always
      langshift evaluate offline xquad8 --method none,shift --language-from given,detected,detected:20
    """
    if output is not None:
        check_output(output)
    given = load_dataset(dataset)
    names = parse_names(measures, given)
    pipeline = open_dataset_pipeline(given, options, 0.0 if methods == ["none"] else alpha, gamma, methods)
    rows = ranking.settings(pipeline.debias.vectors, methods, alpha, shift_queries, sources, gamma)
    folders = _folders(output, rows)
    encoded = encode_shown(given, pipeline.encoder, options.cache)
    detections = encoding.resolve_document_languages(encoded, [setting.source for setting in rows], pipeline)
    documents = []
    with progress() as bars:
        searching = bars.add_task("Searching", total=len(encoded.queries) * len(rows), rate="")
        run = partial(ranking.evaluate, encoded, beta=beta, on_queries=partial(bars.advance, searching))
        for row in rows:
            bars.update(searching, rate=row.name)
            documents.append(run(row, detections[row.source], pipeline, names, folder=folders.get(row.name)))
    warn(dict.fromkeys(warning for document in documents for warning in document["warnings"]))
    if as_json:
        emit_json(documents[0] if len(rows) == 1 else {"rows": documents})
        return
    if len(rows) == 1:
        show_offline(dataset, rows[0], documents[0])
    else:
        show_rows(dataset, list(zip(rows, documents, strict=True)))
    if output is not None:
        destination = f"to {output}" if len(rows) == 1 else f"for each of {', '.join(folders)} to {output}"
        note(f"Wrote run.trec, group-scores.jsonl, per-query.jsonl and result.json {destination}.")


def _folders(output: Path | None, rows: Sequence[ranking.OfflineSettings]) -> dict[str, Path]:
    """Setting's name -> where its files go; nothing where none are written.

    Raises:
        UsageError: one of these places cannot be written to.
    """
    if output is None:
        return {}
    folders = {row.name: output if len(rows) == 1 else output / row.name for row in rows}
    for folder in folders.values():
        check_output(folder)
    return folders


_ALPHAS = "0,.1,.2,.3,.4,.5,.6,.7,.8,.9,1"


def _numbers(ctx: click.Context, parameter: click.Parameter, given: str | None) -> list[float]:  # noqa: ARG001
    """``"0,.5,1"`` as ascending numbers, each once; none where the option was not given."""
    try:
        numbers = sorted({float(part) for part in (given or "").split(",") if part.strip()})
    except ValueError:
        numbers = [-1.0]
    highest = float("inf") if parameter.name == "betas" else 1.0
    if any(not 0 <= number <= highest or number == float("inf") for number in numbers) or (given and not numbers):
        reach = "from 0 to 1" if highest == 1 else "of 0 or more"
        raise click.BadParameter(f"{given!r} is not a comma-separated list of numbers {reach}, such as 0,.02,.05,.1.")
    return numbers


@click.command("sweep", cls=Command)
@click.argument("dataset", type=PATH)
@THREADS
@_encoding_options
@option("--alpha LIST", "Alphas to try.", dest="alphas", default=_ALPHAS, callback=_numbers)
@option("--gamma LIST", "Gammas to try, each at every alpha, such as 0,.95,.97.", dest="gammas", callback=_numbers)
@option("--prefer-language LIST", "Language preferences to try, such as 0,.02,.05.", dest="betas", callback=_numbers)
@option("--measures NAMES", "Measures to report; the first one chooses the best alpha.")
@json_or_tables
def sweep(
    dataset: Path,
    options: EncodingOptions,
    alphas: list[float],
    gammas: list[float],
    betas: list[float],
    measures: str | None,
    as_json: bool,
) -> None:
    """Try alphas on DATASET by exact search, encoding it only once.

    Every alpha is tried for all languages together, then for one language at a time with the others at the
    best alpha. The best is chosen on one half of the queries and reported on the other; queries of one
    article (or, if the dataset names no articles, of one group) stay in one half. --prefer-language
    adds a table of language preferences, over all queries, at the smallest, the best and the largest alpha;
    --gamma adds one of every alpha with every gamma.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
      langshift evaluate sweep xquad8 --alpha 0,.25,.5,.75,1 --prefer-language 0,.02,.05,.1
    """
    given = load_dataset(dataset)
    names, select = _names(given, measures, betas)
    pipeline = open_dataset_pipeline(given, options, 1.0)
    vectors = pipeline.debias.vectors
    if vectors is None:
        raise UsageError("A sweep needs language vectors: give some with --vectors.")
    for gamma in gammas:
        Debiaser(vectors, gamma=gamma)  # refuses what cannot be used
    encoded = encode_shown(given, pipeline.encoder, options.cache)
    parts = halves(*clusters(given))
    with progress() as bars:
        task = bars.add_task("Searching", total=None, rate="")
        sweeper = Sweeper(encoded, vectors, names, lambda setting: bars.update(task, advance=1, rate=setting))
        steps = len(sweeper.shiftable()) * (len(alphas) - 1)
        pairs = len(betas) * min(3, len(alphas)) + len(gammas) * len(alphas)
        bars.update(task, total=len(alphas) + steps + 1 + pairs)
        found = run_sweep(sweeper, parts, select, alphas, betas, gammas)
    warn([*encoded.dataset.own_documents_remarks, *encoded.languages.warnings])
    if as_json:
        emit_json(sweep_document(found, encoded, pipeline, names))
    else:
        show_sweep(found, names)


def _names(dataset: Dataset, measures: str | None, betas: Sequence[float]) -> tuple[list[str], str]:
    """The measures to report, and the first of them, to choose by.

    Raises:
        UsageError: an unknown measure, or a first one that is not to be high.
    """
    names = parse_names(measures, dataset)
    chosen = names[0]
    direction = parse_measure(chosen).family.direction
    if direction != "high":
        good = "Low" if direction == "low" else "Neither high nor low"
        raise UsageError(f"{good} values of {chosen} are better: name another measure first, such as nDCG@20.")
    if betas and measures is None and dataset.judged != PER_LANGUAGE:
        names.append("Lang_nDCG@20")
    return list(dict.fromkeys(names)), chosen
