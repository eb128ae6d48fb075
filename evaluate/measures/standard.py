"""What ir_measures computes, mostly by trec_eval's code: its own measures; and TLR, SLR, own and TR, by language."""

from collections.abc import Callable, Mapping
from itertools import islice
from operator import eq, ne
from statistics import fmean
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.measures.base import (
    Measure,
    MeasureCell,
    MeasureFamily,
    MeasureOption,
    MeasureTable,
    RankedMaterial,
    Scores,
)
from langshift.languages import parse_tag, primary

# gdeval calls a Perl script, and ir_measures' Accuracy divides by zero where all that was found is relevant.
_PROVIDERS = ("pytrec_eval", "cwl_eval", "compat", "pyndeval", "judged", "msmarco")


class StandardFamily(MeasureFamily):
    """A measure of ir_measures."""

    def check(self, measure: Measure) -> None:
        """Refuse what ir_measures does not take, or cannot compute here.

        Raises:
            UsageError: an unknown option, a value that does not fit, or no provider for it.
        """
        _provider(_base(measure), measure.name)


def calculate(
    base: Any,  # noqa: ANN401 - a measure of ir_measures, which has no types
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
    name: str = "",
) -> dict[str, float]:
    """The figure of every query of ``qrels``; a query that ``run`` does not answer gets 0.

    Args:
        base: a measure of ir_measures.
        qrels: query id -> document id -> grade.
        run: query id -> document id -> score, no two of a query the same.
        name: what to call the measure in an error.
    """
    if not qrels:
        return {}
    # pytrec_eval takes dicts alone; the hits of the answers it only reads.
    given = {query: dict(judged) for query, judged in qrels.items()}
    hits = {query: run[query] for query in qrels if query in run}
    results = _provider(base, name or str(base)).evaluator([base], given).iter_calc(hits)
    found = {result.query_id: float(result.value) for result in results}
    return {query: found.get(query, 0.0) for query in qrels}


def compute(measure: Measure, ranked: RankedMaterial) -> Scores:
    """A measure of ir_measures over all judgements of a query.

    A query without answer counts 0, and a query without relevant document is left out. What is
    relevant follows the options ``rel`` (the least grade) and ``gains`` (grades mapped to gains).
    """
    base = _base(measure)
    least, gains = measure.options.get("rel", 1), measure.options.get("gains")
    qrels = {}
    for query in ranked.queries:
        judged = ranked.material.qrels.get(query, {})
        grades = judged.values() if gains is None else (gains.get(grade, grade) for grade in judged.values())
        if any(grade >= least for grade in grades):
            qrels[query] = judged
    return Scores(calculate(base, qrels, ranked.run, measure.name), len(ranked.queries) - len(qrels))


def find(name: str) -> MeasureFamily | None:
    """A measure of ir_measures by its own name; None where it has no such measure."""
    import ir_measures

    base = ir_measures.measures.registry.get(name)
    if base is None:
        return None
    counts = isinstance(base.aggregator(), ir_measures.SumAgg)
    cut = base.SUPPORTED_PARAMS.get(base.AT_PARAM)
    return StandardFamily(
        f"{name}@k" if cut is not None and cut.required else name,
        "report" if counts else "high",
        f"ir_measures, {base.NAME}",
        compute,
    )


def _base(measure: Measure) -> Any:  # noqa: ANN401
    """The measure of ir_measures, with its options.

    ir_measures' own reading of names is not used: it needs parts of ``ast`` that Python 3.14 has no more.
    """
    import ir_measures

    base = ir_measures.measures.registry[measure.family.name]
    takes = base.SUPPORTED_PARAMS
    given = dict(measure.options)
    if measure.cutoff is not None:
        if base.AT_PARAM not in takes:
            raise UsageError(f"{measure.name!r} is not a valid form of {base.NAME}: it takes no cutoff.")
        given[base.AT_PARAM] = measure.cutoff
    for key, value in given.items():
        if key not in takes:
            raise UsageError(
                f"{measure.name!r} sets {key!r}, which is not an option of {base.NAME}: "
                f"its options are {', '.join(sorted(takes.keys() - {'cutoff'}))}."
            )
        if not takes[key].validate(value) or (key == "gains" and not _whole(value)):
            raise UsageError(f"{measure.name!r} sets {key} to {value!r}, which {base.NAME} does not accept.")
    missing = next((key for key in takes if takes[key].required and key not in given), None)
    if missing is not None:
        how = f"write {measure.family.written_out}" if missing == "cutoff" else f"it needs {missing}"
        raise UsageError(f"{measure.name!r} is not a valid form of {base.NAME}: {how}.")
    return base(**given)


def _whole(gains: Mapping[object, object]) -> bool:
    return all(type(number) is int for pair in gains.items() for number in pair)


def _provider(base: Any, name: str) -> Any:  # noqa: ANN401
    """What computes a measure of ir_measures, which ``name`` stands for in an error."""
    import ir_measures

    registry = ir_measures.providers.registry
    for provider in (registry[known] for known in _PROVIDERS):
        if provider.is_available() and provider.supports(base):
            return provider
    if base.NAME == "nDCG" and base["dcg"] == "exp-log2":
        raise UsageError(
            f"{name!r} would call a Perl script: map grades to gains instead, "
            f"for example nDCG(gains={{2:3,3:7}}){name.partition(')')[2]} for 2^grade - 1."
        )
    wanted = (registry[known] for known in ("cwl_eval", "pyndeval"))
    extra = next((provider.NAME for provider in wanted if provider.supports(base)), None)
    remedy = f"run pip install 'ir-measures[{extra}]'" if extra else "use another, such as nDCG@20"
    raise UsageError(f"{name!r} is a measure of ir_measures that no installed package can compute: {remedy}.")


def target_languages(measure: Measure, ranked: RankedMaterial) -> Scores:
    """TLR@k: recall@k over the relevant documents that are not in the query's language.

    ``|top k ∩ R_tgt| / |R_tgt|`` with ``R_tgt = {relevant d: L(d) != L(q)}``. Queries without such a
    document are left out.

    Direction: high. Source: Shift (Jang et al., 2026), section 4.3.
    """
    return _by_language("R", measure, ranked, ne)


def same_language(measure: Measure, ranked: RankedMaterial) -> Scores:
    """SLR@k: recall@k over the relevant documents in the query's language, what debiasing may cost.

    Queries without such a document are left out.

    Direction: high. Source: counterpart of TLR.
    """
    return _by_language("R", measure, ranked, eq)


def own_answer(measure: Measure, ranked: RankedMaterial) -> Scores:
    """own@k: share of queries for which a relevant document in their own language is among the first k documents.

    What a reader sees of SLR@20, which is the same whether an answer stands first or behind eleven translations of
    itself. Queries without a relevant document in their language, and those of unknown language, are left out.

    Direction: high. Source: langshift, by ir_measures' Success.
    """
    return _by_language("Success", measure, ranked, eq)


def _by_language(name: str, measure: Measure, ranked: RankedMaterial, counts: Callable[[str, str], bool]) -> Scores:
    """A measure of ir_measures over the documents whose language counts for the query's; an unknown one never does."""
    import ir_measures

    qrels = {}
    for query, language in ranked.queries.items():
        if language is not None:
            languages = ranked.languages_of_relevant(query)
            part = {document: 1 for document, its in languages.items() if counts(its, language)}
            if part:
                qrels[query] = part
    base = ir_measures.measures.registry[name] @ measure.depth
    return Scores(calculate(base, qrels, ranked.run), len(ranked.queries) - len(qrels))


TLR = MeasureFamily("TLR@k", "high", "Shift (Jang et al., 2026), section 4.3", target_languages, across=True)
SLR = MeasureFamily("SLR@k", "high", "counterpart of TLR", same_language)
FIRST_OWN = MeasureFamily("own@k", "high", "langshift, by ir_measures' Success", own_answer)


def target_recall(measure: Measure, ranked: RankedMaterial) -> Scores:
    """TR@k, Target Recall: recall@k over the relevant documents in one language, for each language.

    The table holds, for a query language and a document language, the mean over the queries that have
    a relevant document in it; a fair index has even rows. A query's own figure is the mean over the
    languages in which it has a relevant document; with ``TR(language='zh')@20`` it is the recall in that language
    alone, and queries without a relevant document in it stay out. So do queries and documents of unknown language.

    Direction: high. Source: Shift (Jang et al., 2026), section 5.5 and appendices H and I.
    """
    import ir_measures

    parts: dict[tuple[str, str], dict[str, int]] = {}
    alone = measure.option("language")
    for query, language in ranked.queries.items():
        if language is not None:
            for document, its in ranked.languages_of_relevant(query).items():
                if alone in (None, its):
                    parts.setdefault((query, its), {})[document] = 1
    # One query for each language of its relevant documents.
    names = {f"{language} {query}": (query, language) for query, language in parts}
    qrels = {name: parts[pair] for name, pair in names.items()}
    # What is below the cut cannot count, and each answer is given once for every language.
    tops = {query: dict(islice(ranked.run[query].items(), measure.depth)) for query in ranked.run}
    run = {name: tops[query] for name, (query, _) in names.items() if query in tops}
    found = calculate(ir_measures.R @ measure.depth, qrels, run)
    figures: dict[str, dict[str, float]] = {}
    for name, (query, language) in names.items():
        figures.setdefault(query, {})[language] = found[name]
    per_query = {query: fmean(recalls.values()) for query, recalls in figures.items()}
    return Scores(
        per_query,
        len(ranked.queries) - len(per_query),
        table=_table(ranked, figures),
        again=lambda queries: target_recall(measure, ranked.only(queries)),
    )


def _table(ranked: RankedMaterial, figures: dict[str, dict[str, float]]) -> MeasureTable:
    columns = sorted({language for recalls in figures.values() for language in recalls})
    cells = {}
    for row, queries in ranked.by_language().items():
        values = {column: [figures[q][column] for q in queries if column in figures.get(q, {})] for column in columns}
        cells[row] = {column: MeasureCell(fmean(found), len(found)) for column, found in values.items() if found}
    return MeasureTable("query language", "document language", cells)


def _is_language(value: object) -> bool:
    return isinstance(value, str) and parse_tag(value) == primary(value) == value


_ALONE = {"language": MeasureOption(None, "a language without region or script, such as 'zh'", _is_language)}
TR = MeasureFamily("TR@k", "high", "Shift (Jang et al., 2026), section 5.5", target_recall, _ALONE, across=True)
