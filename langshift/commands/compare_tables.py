"""Comparisons of runs in the terminal: whole, or a line a run; and what a gate found."""

from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len, set_cell_size

from langshift import output
from langshift.commands.run_tables import milliseconds, show_drifts, show_table, show_verdict, terminal_rows
from langshift.evaluate.compare import comparison
from langshift.evaluate.compare.breakdowns import ExampleHit, ExampleQueries, ExampleQuery
from langshift.evaluate.compare.comparison import ALL, Column, ComparedQueries, ComparedRun, Comparison
from langshift.evaluate.compare.findings import ComparisonFindings, describe_test
from langshift.evaluate.compare.gate import ConditionResult, GateResult
from langshift.evaluate.compare.significance import TestResult
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.measures.most_shown import format_figure
from langshift.evaluate.measures.preference import OUTCOMES, TOP1
from langshift.evaluate.report import tables
from langshift.evaluate.report.report import read_run_info
from langshift.evaluate.report.tables import Cell, Head, Table, plain_table
from langshift.languages import UNDETERMINED
from langshift.output import heading, line, out
from langshift.wording import format_change, format_score

_SUPERSCRIPTS = dict(zip(comparison.LETTERS, "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
#: Blanks between two columns.
_BETWEEN = 2


def show(found: ComparisonFindings, conditions: Sequence[ConditionResult]) -> None:
    """Print everything for a person."""
    compared = found.compared
    if not compared.dataset.qrels:
        _show_changes(found)
    elif len(compared.candidates) > 1:
        _show_sections(compared)
        line("\nA superscript names a run that is significantly lower. " + describe_test(compared.clusters))
        _show_breakdowns(compared)
    else:
        _show_run(compared)
    for one in found.matrices:
        earlier, later = one.pair
        heading(f"\n{one.measure} by query and document language: change from {earlier} to {later}")
        show_table(tables.recalls(one)[0])
    if most := tables.most_shown_table(found.most_shown):
        heading(f"\n{most.caption}")
        show_table(most)
    if found.positions:
        table = tables.positions_table(
            {compared.candidate(letter).label: scores for letter, scores in found.positions.items()}
        )
        heading(f"\n{table.caption}")
        show_table(table)
    for extreme in found.examples:
        _show_extremes(extreme)
    if conditions:
        _show_conditions(conditions)
    if found.verdicts:
        heading("\nWhich to use")
    for verdict in found.verdicts.values():
        show_verdict(verdict)


def _show_sections(compared: Comparison) -> None:
    _show_settings(compared)
    for section in compared.sections:
        heading(f"\n{comparison.SECTIONS[section]}")
        show_table(_figures_by_run(compared, section))
        show_table(_p_values(compared, section))


def _show_settings(compared: Comparison) -> None:
    heading(f"{compared.dataset.folder}: {len(compared.dataset.queries):,} queries")
    # Replays in different settings say how each searched.
    if len({run.how for run in compared.candidates if run.how}) > 1:
        for run in compared.candidates:
            line(f"{run.label}: {run.how or 'setting unknown'}")


def _show_run(compared: Comparison) -> None:
    """One run alone: its figures, also by query language, and the matrices of those measures that have one."""
    (run,) = compared.candidates
    answered = sum(query.id in run.run for query in compared.dataset.queries)
    heading(f"{run.place}: {answered:,} of {len(compared.dataset.queries):,} queries answered")
    found = {column.measure: compared.whole.scores[run.letter][column] for column in compared.named}
    rows = []
    for name, scores in found.items():
        direction = parse_measure(name).family.direction
        rows.append([name, format_figure(scores), direction, f"{scores.queries:,}", f"{scores.left_out:,}"])
    columns = ["measure", "mean", "good is", "queries", "left out"]
    output.table(None, columns, rows, right={"mean", "queries", "left out"})
    if len(compared.by_language) > 1:
        heading("\nBy query language")
        rows = [
            [tag, *(format_figure(part.scores[run.letter][column]) for column in compared.named)]
            for tag, part in compared.by_language.items()
        ]
        show_table(plain_table(["language", *found], rows))
    for name, scores in found.items():
        if (matrix := scores.table) is not None:
            heading(f"\n{name}: {matrix.rows} down, {matrix.columns} across")
            rows = [
                [row, *(format_score(cells[head].mean if head in cells else None, 3) for head in matrix.heads)]
                for row, cells in matrix.cells.items()
            ]
            show_table(plain_table(["", *matrix.heads], rows))


def _show_breakdowns(compared: Comparison) -> None:
    """By slice, and by query language."""
    first, *later = compared.letters
    for letter in later if compared.slices else ():
        heading(f"\nBy answer in the searcher's language: {first}, and the change to {letter} (* significant)")
        show_table(_narrow(tables.by_slice(compared, letter), "answer exists"))
    for letter in later if len(compared.by_language) > 1 else ():
        for section in compared.sections:
            heading(f"\nBy query language, {section}: {first}, and the change to {letter} (* significant)")
            show_table(_narrow(tables.by_language(compared, section, letter), "language"))


def _show_extremes(extreme: ExampleQueries) -> None:
    line(f"\n{tables.tally(extreme)}")
    # Two texts, the rank, and what parts them.
    width = max(20, (out.width - 5) // 2)
    for title, examples in (("Biggest winners", extreme.winners), ("Biggest losers", extreme.losers)):
        if examples:
            heading(f"\n{title} (* answers the query)")
        for example in examples:
            line(_example_head(example))
            show_table(_example_hits(example.hits, extreme.pair, width))


def _show_changes(found: ComparisonFindings) -> None:
    """Replays without judgements: how alike they are, how long they took, and what changes most."""
    compared = found.compared
    _show_settings(compared)
    show_drifts([change.overlap for change in found.changes.values()])
    if times := _times(compared):
        heading("\nMilliseconds per query")
        show_table(_table(compared, times))
    width = max(20, (out.width - 5) // 2)
    for change in found.changes.values():
        if change.most:
            heading("\nWhat changes most")
        for one in change.most:
            words = one.query.text or "(words not written)"
            line(f"{one.query.id} ({one.language or UNDETERMINED}) RBO {format_score(one.rbo, 3)}: {words}")
            show_table(_example_hits(one.hits, change.pair, width))


def _figures_by_run(compared: Comparison, section: str) -> Table:
    """One row a run and one column a measure, with superscripts: which runs it is significantly higher than."""
    columns = compared.columns_of(section)
    rows = [
        [run.label, *(_superscribed(compared, run.letter, column) for column in columns)] for run in compared.candidates
    ]
    first = compared.whole.scores[compared.letters[0]]
    counts = ["queries", *(f"{first[column].queries:,}" for column in columns)]
    return plain_table(["run", *(column.measure for column in columns)], [*rows, counts])


def _superscribed(compared: Comparison, letter: str, column: Column) -> str:
    marks = ""
    for other in compared.letters:
        tested = compared.whole.against(column, letter, other)
        if tested is not None and tested.significant and tested.difference > 0:
            marks += _SUPERSCRIPTS[other]
    # Figures stay one below the other, however many marks a run has.
    return format_figure(compared.whole.scores[letter][column]) + marks.ljust(len(compared.candidates) - 1)


def _p_values(compared: Comparison, section: str) -> Table:
    """One row a measure and pair of runs: the difference and its p-values."""
    heads = ["measure", "runs", "difference", "p, randomisation", "corrected", "p, Student's t"]
    rows = []
    for (column, (earlier, later)), found in compared.whole.tests.items():
        if column.section == section:
            chances = map(tables.probability, (found.randomisation, found.corrected, found.student))
            rows.append([column.measure, f"{later} - {earlier}", format_change(found.difference), *chances])
    return plain_table(heads, rows)


def _example_head(example: ExampleQuery) -> str:
    """Names a query, with its figures and its words."""
    moved, change = tables.describe_move(example)
    return f"{example.query.id} ({example.language or UNDETERMINED}) {moved} {change}: {example.query.text}"


def _example_hits(sides: Sequence[Sequence[ExampleHit]], letters: Sequence[str], width: int) -> Table:
    """What two runs find first for a query, side by side, each in ``width`` cells of a terminal."""
    rows = [
        [str(rank), *("" if hit is None else _brief(hit, width) for hit in hits)]
        for rank, hits in enumerate(zip_longest(*sides), 1)
    ]
    return plain_table(["", *letters], rows, words=True)


def _brief(hit: ExampleHit, width: int) -> str:
    return cut(f"{'*' if hit.relevant else ' '} {hit.language or UNDETERMINED} {hit.text or hit.id}", width)


def cut(text: str, width: int) -> str:
    """A text's beginning, no wider than some cells of a terminal."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def _narrow(table: Table, head: str) -> Table:
    """Figures by part of the queries as a terminal has room for them: the earlier one with its change in one column.

    The row of all queries is left out.

    Args:
        table: what a later run changes by language or slice.
        head: of the first column.
    """
    rows = [
        [row[0], row[1], *(_narrow_cell(row[place], row[place + 2]) for place in range(2, len(row), 3))]
        for row in table.rows
        if row[0].text != ALL
    ]
    return Table(table.caption, [Head(head), table.heads[1], *(Head(name) for name, _ in table.over()[1:])], rows)


def _narrow_cell(before: Cell, change: Cell) -> Cell:
    if change.text == "-":
        return change._replace(star=None)
    return Cell(f"{before.text} {change.text:>6}{'*' if change.star else ' '}")


def show_brief(found: ComparisonFindings, conditions: Sequence[ConditionResult]) -> None:
    """Print a line a run, and the tests against the first: by slice, where there is anything to tell apart."""
    compared = found.compared
    if not compared.dataset.qrels:
        _show_changes(found)
        for verdict in found.verdicts.values():
            line("")
            show_verdict(verdict)
        return
    first, *later = compared.candidates
    _show_settings(compared)
    times = _times(compared)
    figures = [_figures(compared, compared.sections[:1]), _figures(compared, compared.sections[1:])]
    shown: list[_Columns] = []
    for columns in (*figures, _first_documents(compared), times):
        # As many side by side as there is room for.
        if not shown or _width(_table(compared, shown[-1] | columns)) > output.room():
            shown.append({})
        shown[-1] |= columns
    for columns in filter(None, shown):
        show_table(_table(compared, columns))
    if times:
        line("wall: milliseconds until the client had the response; took: as reported by the server.")
    if later:
        line(f"* differs significantly from the first run, {first.label}. " + describe_test(compared.clusters))
        for name, part in (compared.slices or {ALL: compared.whole}).items():
            _show_tests(comparison.SLICES.get(name, "All queries"), compared, part)
        line(
            "The interval and p are for that one comparison alone: judge a loss by these, because a correction could "
            "hide it. The corrected p takes account of all pairs of runs, measures and parts of the queries: judge a "
            "gain by it."
        )
    if conditions:
        _show_conditions(conditions)


#: Head -> a cell for each run.
_Columns = dict[str, list[Cell]]


def _table(compared: Comparison, columns: _Columns) -> Table:
    """Some columns as one table."""
    columns = {"run": [Cell(run.label) for run in compared.candidates]} | columns
    return Table("", list(map(Head, columns)), list(zip(*columns.values(), strict=True)))


def _figures(compared: Comparison, sections: Sequence[str]) -> _Columns:
    return {
        column.measure: [
            Cell(format_figure(compared.whole.scores[run.letter][column]), _differs(compared, run, column))
            for run in compared.candidates
        ]
        for column in compared.named
        if column.measure != TOP1.name and column.section in sections
    }


def _differs(compared: Comparison, run: ComparedRun, column: Column) -> bool:
    test = compared.whole.tested(column, (compared.letters[0], run.letter))
    return test is not None and test.significant


def _first_documents(compared: Comparison) -> _Columns:
    """What the first document is, four ways, which add to 1; the test is of those that are perfect, the first way."""
    column = Column(ALL, TOP1.name)
    if column not in compared.columns:
        return {}
    shares = [compared.whole.scores[run.letter][column].cells.get(ALL, {}) for run in compared.candidates]
    found = {name: [Cell(format_score(one[name].mean if name in one else None)) for one in shares] for name in OUTCOMES}
    stars = [_differs(compared, run, column) for run in compared.candidates]
    perfect = OUTCOMES[0]
    return found | {perfect: [cell._replace(star=star) for cell, star in zip(found[perfect], stars, strict=True)]}


def _times(compared: Comparison) -> _Columns:
    """What replays recorded; empty where no run is one."""
    recorded = [read_run_info(run).latency_ms for run in compared.candidates]
    if not any(recorded):
        return {}
    return {
        f"{clock} {part}": [Cell(milliseconds(one.get(clock, {}).get(part))) for one in recorded]
        for clock in ("wall", "took")
        for part in ("p50", "p95")
    }


def _width(table: Table) -> int:
    """How many cells of a terminal its columns take side by side."""
    columns = zip([head.text for head in table.heads], *terminal_rows(table), strict=True)
    return sum(max(map(cell_len, column)) + _BETWEEN for column in columns) - _BETWEEN


def _show_tests(title: str, compared: Comparison, part: ComparedQueries) -> None:
    """Print measures of every run, and what is known of their differences from the first."""
    heading(f"\n{title}: {len(part.queries):,} queries")
    rows = []
    for column in compared.named:
        means = {run.letter: part.mean(run.letter, column) for run in compared.candidates}
        # Not a query of a slice may have a figure: without an answer in its language none has an SLR.
        if all(mean is None for mean in means.values()):
            rows.append([column.measure, "every run", "undefined", *_difference(None)])
            continue
        for run in compared.candidates:
            name = column.measure if run is compared.candidates[0] else ""
            test = part.tested(column, (compared.letters[0], run.letter))
            rows.append([name, run.label, format_score(means[run.letter]), *_difference(test)])
    heads = ["measure", "run", "mean", "difference", "95 % interval", "p", "corrected p"]
    output.table(None, heads, rows, right=set(heads[2:]))


def _difference(test: TestResult | None) -> list[str]:
    if test is None:
        return ["-", "-", "-", "-"]
    between = "-" if test.interval is None else " to ".join(map(format_change, test.interval))
    chances = map(tables.probability, (test.randomisation, test.corrected))
    return [format_change(test.difference), between, *chances]


def show_gate(judged: GateResult) -> None:
    """Print both versions' figures, what became of each condition, and the verdict."""
    before, after = judged.before, judged.after
    assert after.dataset is not None  # noqa: S101 - a gate has one
    folder = after.dataset.folder
    heading(f"{len(after.answers):,} queries of {folder} in {before.version} and {after.version}")
    rows = []
    for name, old in before.scores.items():
        new = after.scores[name]
        change = None if old.mean is None or new.mean is None else new.mean - old.mean
        rows.append([name, format_figure(old), format_figure(new), format_change(change)])
    columns = ["measure", before.version, after.version, "change"]
    output.table(None, columns, rows, right=set(columns[1:]))
    figures = judged.verdict.figures
    few = sum(not figure.enough for figure in figures)
    passes = f"passes: none of the verdict's {len(figures)} conditions shows a loss"
    told = f"{passes}, {few} of them with too few questions to tell." if few else f"{passes}."
    word = "accepted" if judged.accepted else "FAILS"
    _show_conditions(judged.conditions, [f"{word}: {loss}" for loss in judged.losses] or [told])
    line(f"\n{judged.verdict.sentence}")


def _show_conditions(conditions: Sequence[ConditionResult], first: Sequence[str] = ()) -> None:
    """Print what became of each condition, after other lines."""
    heading("\nConditions")
    for text in [*first, *(f"{'FAILS' if one.failed else 'passes'}: {one.says}" for one in conditions)]:
        line(f"- {text}")
