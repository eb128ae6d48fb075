"""The command ``vectors tune``."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from langshift.commands.fitting import (
    PAIRS_ENCODER,
    check_output,
    left_out_document,
    left_out_in_words,
    open_for,
    passage_options,
)
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import AS_KNOWN, Encoder, VectorSpec, is_given
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset, load_dataset
from langshift.evaluate.report.tables import probability
from langshift.output import emit_json, heading, line, note, progress, table, warn
from langshift.parameters import JSON, PATH, Command, option, refuse_beside
from langshift.wording import format_change, format_score
from langshift_lab.methods.vectors import MethodVectors
from langshift_lab.offline.encoding import encode, read_vector_spec
from langshift_lab.tune.report import TuningReport, describe_task, recommendation, warnings
from langshift_lab.tune.task import (
    ParallelTask,
    TuningTask,
    default_sample,
    judged_task,
    make_task,
    sample_items,
    well_covered,
)
from langshift_lab.tune.tune import MEASURES, PLAIN, TARGET, Judge, MeasureChange, TuningStep
from langshift_lab.tune.tune import tune as run_tune


@click.command("tune", cls=Command)
@click.argument("file", type=PATH)
@option("--pairs PATH", "Parallel text, as for `vectors fit`.")
@option("--dataset FOLDER", "Queries with judgements across languages, instead of parallel text.")
@passage_options
@PAIRS_ENCODER
@option(
    "--sample N",
    "How many items to use. [default: 600, fewer with more than eight languages]",
    click.IntRange(min=100),
    rare=True,
)
@JSON
def tune(
    file: Path,
    pairs: Path | None,
    dataset: Path | None,
    passages: dict[str, Any],
    encoder: str | None,
    sample: int | None,
    as_json: bool,
) -> None:
    """Measure on parallel text or judged data how far to shift with FILE, and write what is recommended to FILE.

    Of parallel text a search task is built: about ten words from the middle of an item are a query in each language,
    and the whole item is to be found in every language. First alpha is chosen, and then whether a gamma of .97 with
    alpha 1 finds more, and along how many directions. Each time it is the smallest setting whose nDCG@20 falls short of
    the highest by no more than chance, and it is recommended only if it gains more than chance on fifths of the text
    (or of the articles of --dataset) that had no part in the choice; a gamma has to gain .01 as well. If nothing is
    gained, alpha 0 is recommended.

    \b
    Example:
      langshift vectors fit --pairs NTREX --pivot en --languages en,de,th --output mine.safetensors
      langshift vectors tune mine.safetensors --pairs NTREX
      langshift vectors tune mine.safetensors --dataset judged
    """
    given = [place for place in (pairs, dataset) if place is not None]
    if len(given) != 1:
        raise UsageError("Give either parallel text with --pairs or judged data with --dataset.")
    (source,) = given
    vectors = MethodVectors.load(file)
    check_output(file)
    name, named_by = encoder or vectors.encoder, "" if encoder else f"The file {file}"

    def opened(spec: VectorSpec | None = None) -> Encoder:
        found = open_encoder(name, vector_spec=spec, named_by=named_by, reading=AS_KNOWN.of(vectors, name))
        vectors.require_encoder(found, str(file))
        return found

    if dataset is not None:
        refuse_beside("--dataset", "join_lines", "documents", "sample")
        data = load_dataset(source)
        made = _from_dataset(data, vectors, opened(read_vector_spec(data, name)))
    elif is_given(vectors.encoder):
        raise UsageError(
            f"{file} was fitted on given vectors, and no query can be cut out of a vector: tune language vectors that "
            "were fitted with an encoder for texts, and give texts; or give judged data with --dataset."
        )
    else:
        made = _from_pairs(source, passages, sample, vectors, opened)
    with progress() as bars:
        searches = bars.add_task("Searching", total=None, rate="")
        judge = Judge(made.task, vectors, lambda: bars.advance(searches))
        found = run_tune(judge)
    report = TuningReport(source.resolve().name, judge, found, made.absent, made.few)
    report.recommended().save(file)
    warn([*made.notes, *warnings(report)])
    if as_json:
        emit_json({"file": str(file), "left_out": made.left_out, **report.document()})
        return
    _show(report)
    note(f"Wrote the recommendation to {file}.")


class _Prepared(NamedTuple):
    """A task, and what else is told of where it comes from: see ``TuningReport``."""

    task: TuningTask
    notes: Sequence[str]
    absent: Sequence[str] = ()
    few: Sequence[str] = ()
    left_out: Mapping[str, Any] = {}


def _from_dataset(data: Dataset, vectors: MethodVectors, opened: Encoder) -> _Prepared:
    with progress() as bars:
        task = bars.add_task("Encoding", total=len(data.documents) + len(data.queries), rate="")
        encoded = encode(data, opened, on_texts=lambda _, done: bars.advance(task, done))
    return _Prepared(judged_task(encoded, vectors.pivot), [*data.remarks, *encoded.languages.warnings])


def _from_pairs(
    pairs: Path, passages: dict[str, Any], sample: int | None, vectors: MethodVectors, opened: Callable[[], Encoder]
) -> _Prepared:
    source, absent = open_for(pairs, passages, vectors)
    if source.dimension is not None:
        raise UsageError(f"{source.shown} contains vectors, and no query can be cut out of a vector: give texts.")
    encoder = opened()
    used = [tag for tag in source.languages if tag != vectors.pivot]
    items = sample_items(source, vectors.pivot, used, sample or default_sample(len(used) + 1))
    same_text = all(items.pairs[tag] == vectors.pairs[tag] for tag in used)
    items, few = well_covered(items)
    with progress() as bars:
        texts = sum(bool(text) for of in items.texts.values() for text in of)
        bar = bars.add_task("Encoding items and queries", total=2 * texts, rate="")
        task = make_task(items, encoder, same_text=same_text, on_texts=lambda done: bars.advance(bar, done))
    return _Prepared(task, left_out_in_words(source), absent, few, left_out_document(source))


_BAR = 30


def _bars(values: Sequence[float | None]) -> list[str]:
    """A bar for each value, from one character for the lowest to ``_BAR`` for the highest."""
    known = [value for value in values if value is not None]
    if not known:
        return ["" for _ in values]
    low, span = min(known), max(known) - min(known)
    return ["" if v is None else "█" * (1 + round((v - low) / span * (_BAR - 1)) if span else _BAR) for v in values]


# Step -> what is varied in it.
_SCALES = {"shift": "alpha", "gamma": "directions"}


def _heading(step: TuningStep) -> str:
    """``Shift by alpha``, ``Gamma 0.97 with alpha 1 by directions``."""
    of = step.points[-1].setting
    return f"Gamma {of.gamma:g} with alpha {of.alpha:g} by directions" if of.gamma else "Shift by alpha"


def _interval(found: MeasureChange) -> str:
    """``+.0084 to +.0123``."""
    return f"{format_change(found.low)} to {format_change(found.high)}"


def _show(report: TuningReport) -> None:
    """Print the task, the curves, what each step and the recommendation give on held-out items, and the words."""
    parts = "items" if isinstance(report.judge.task, ParallelTask) else "articles or groups"
    for sentence in describe_task(report):
        line(sentence)
    for step in report.found.steps:
        heading(f"\n{_heading(step)}, with bars for {TARGET}")
        _curve(step, report)
    heading(f"\n{TARGET} on each fifth of the {parts}, with the setting chosen on the other four")
    _steps(report)
    for step in report.reported:
        heading(f"\nThe {step.name} compared with nothing shifted, on the same fifths")
        _held_out(report.held_out[step.name], report.judge.vectors.pivot)
    line("")
    for sentence in recommendation(report):
        line(sentence)


def _curve(step: TuningStep, report: TuningReport) -> None:
    means = [{name: report.mean(point, name) for name in MEASURES} for point in step.points]
    scale = _SCALES[step.name]
    rows = [
        [f"{getattr(point.setting, scale):g}", *(format_score(mean[name]) for name in MEASURES), bar]
        for point, mean, bar in zip(step.points, means, _bars([mean[TARGET] for mean in means]), strict=True)
    ]
    heads = [scale, *MEASURES]
    table(None, [*heads, ""], rows, right=set(heads))


def _steps(report: TuningReport) -> None:
    rows = [
        [
            step.name,
            *(f"{value:g}" for value in step.setting),
            _interval(step.change),
            probability(step.change.p),
            "yes" if step.taken else "no",
        ]
        for step in report.found.steps
    ]
    heads = ["step", *PLAIN._fields, "change, 95 %", "p", "gained"]
    table(None, heads, rows, right=set(heads) - {"step", "gained"})


def _held_out(groups: Mapping[str, Mapping[str, MeasureChange]], pivot: str) -> None:
    said = {"all": "all", "pivot": f"in {pivot}", "others": "in other languages"}
    rows = [
        [
            said[group] if measure == TARGET else "",
            measure,
            *map(format_score, (change.before, change.after)),
            f"{format_change(change.difference)} (95 % {_interval(change)})",
        ]
        for group, changes in groups.items()
        for measure, change in changes.items()
    ]
    heads = ["queries", "measure", "without", "with", "change"]
    table(None, heads, rows, right=set(heads[2:]))
