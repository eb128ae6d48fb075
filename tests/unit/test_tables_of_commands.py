"""Every table of every command, at its worst: long names, also of wide letters, and figures of six digits."""

import ast
import json
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace as Of

import numpy as np
import pytest
from check_names import ROOMS
from click.testing import CliRunner
from data_folder import write_dataset, write_run
from documents import ROOT
from readable_tables import COLUMNS, require_readable

from langshift import output
from langshift.commands import (
    anchors,
    audit,
    board,
    compare_tables,
    constructing,
    demo,
    doctor_size,
    evaluate,
    labelling,
    offline,
    rag,
    rerank,
    run_tables,
    search,
    tuning,
)
from langshift.evaluate.compare import gate
from langshift.evaluate.compare.verdict import Verdict
from langshift.evaluate.construct.questions import REASONS
from langshift.evaluate.measures.base import MeasureCell, MeasureTable, Scores
from langshift.evaluate.offline.encoding import LanguageSource
from langshift.evaluate.rerank.laura import FIGURES, LabelComparison, LauraRow
from langshift.evaluate.rerank.pools import RerankSlice
from langshift.evaluate.tune.tune import COST, MEASURES, TARGET, MeasureChange, TuningSettings
from langshift.files import json_lines
from langshift.plugin.index_body import ENGINES
from langshift.plugin.metadata import ChunkPlace
from langshift.plugin.sizing import index_size
from langshift.retrieval.calibration.calibrate import CalibrationCost
from langshift.retrieval.calibration.changes import Prediction, SliceChange
from langshift.retrieval.facets import Facet, FacetValue
from langshift.retrieval.hits import Anchor, Hit, Leg, Other, Passage, ShiftEffect
from langshift.retrieval.rerank.features import read_model
from langshift.retrieval.settings import AnchorModel, SearchSettings
from langshift.retrieval.snippets import Snippet

NAME = "articles-of-the-whole-archive-since-nineteen-hundred"
WIDE = "月亮和地球之间的潮汐力使海水每天涨落两次的文章索引"
THAI = "บทความเกี่ยวกับดวงจันทร์และกระแสน้ำขึ้นน้ำลงทั้งหมดในคลังข้อมูล"
NAMES = (NAME, WIDE, THAI)
SENTENCE = f"{NAME} {WIDE} is what a sentence can be about, and it has an end."
LONG = {"nDCG(gains={1: 3, 2: 7, 3: 15, 4: 31})@1000": 0.123456}
MEANS = {"nDCG@20": 0.987654, "R@20": 1.0, "TLR@20": None, **LONG}
COUNT = 999_999
LANGUAGES = ("de", "en", "sr-Latn", "th", "und", "zh-Hant", "x-private", "(not given)", "fr", "ja")


def scores(mean=0.123456, count=1, **more):
    return Scores({str(number): mean for number in range(count)}, COUNT, **more)


def changed(sign=1):
    return MeasureChange(0.987654, 0.123456, -0.123456 * sign, 0.123456, 0.99999)


# What prints each table, given data at its worst.
CASES = []


def case(shown):
    CASES.append(shown)
    return shown


@case
def hits():
    other = Other(NAME, 12345.6789, "zh-Hant", WIDE, SENTENCE)
    snippet = Snippet(SENTENCE, ((0, 3), (8, 12)), "words")
    found = [
        Hit(name, 12345.6789, "zh-Hant", SENTENCE, SENTENCE, None, others=(other, other), snippet=snippet)
        for name in NAMES
    ]
    passage = Passage(NAME, 12345.6789, "zh-Hant", SENTENCE, ChunkPlace(9_999, 123_456, 1_234_567, 99_999, "headline"))
    in_chunks = [replace(hit, passage=passage, passages=(passage, passage)) for hit in found]
    for one_per_group in (False, True):
        for shown in (found, in_chunks):
            result = Of(notes=(), hits=shown, from_=None, sorted=None, depth=0)
            search._show_hits(NAME, result, Of(one_per_group=one_per_group))


@case
def facets():
    values = [FacetValue(value, COUNT * 1000) for value in (*NAMES, "true", 1.5)]
    search._show_facets(Of(facets={"section.of.the.archive": Facet(tuple(values), COUNT)}))


@case
def explained_hits():
    legs = dict.fromkeys(("dense", "moved", "lexical"), Leg(12345.6789, 99_999))
    shift = ShiftEffect("zh-Hant", 0.125, 0.875, -0.1234, -0.9876, 99_999, 99_999)
    found = [Hit(name, 1, "zh-Hant", "", "", None, legs=legs, shift=shift) for name in NAMES]
    anchors = [Anchor(name, 0.999, 0.999, {"similarity": -123456.0, "lexical score": 123456.0}) for name in NAMES]
    more = {"gamma": 0.875, "preference_from": "index", "setting": SearchSettings(preference=0.125)}
    more["mode_reason"] = f"Mode anchored (strength 0.25), which calibration found to be best for {NAME}."
    search.show(Of(hits=found, bonus=0.02, bonus_of=lambda _: 0.0234, compared=COUNT, anchors=anchors, **more))


@case
def calibration():
    changes = [
        SliceChange(answer, overlap, level, COUNT * 1000, 0.9, -0.1234, -0.1234, 0.01)
        for answer, overlap, level in (("own", "none", None), ("own", "half", None), ("other", "any", 0.25))
    ]
    parts = {"changes": changes, "full_strength": changes, "hybrid": changes}
    parts |= {"rerank": {"dense": 0.1, "anchored": 0.0}, "reranked": {"dense": changes, "anchored": changes}}
    parts |= {
        "predicted": [Prediction(None, "zh-Hant", COUNT * 1000, -0.1234, 0.1234)],
        "overlap": None,
        "translated": 1.0,
    }
    cost = CalibrationCost(400, 1200, 7200)
    found = Of(
        mode="anchored", lexical_weight=None, sparse_weight=None, trust=AnchorModel(0.1, 0.05), cost=cost, **parts
    )
    anchors._show_calibration(Of(name=NAME, index=NAME), found)


@case
def reranker():
    rerank._show_weights(read_model())
    rerank._show_losses([1.2345] * 5)
    rerank._show_slices(
        [RerankSlice(NAME, kept, "other", 0.1, COUNT, 0.9, -0.1234, -0.1234, 0.0123) for kept in (None, 2)]
    )


@case
def orders_of_rerankers():
    figures = dict.fromkeys(FIGURES, 0.123456)
    names = ("search", "untrained", "self-training", "same-language labels", "utilities (LAURA)")
    rows = [LauraRow(name, figures, {}) for name in names]
    rerank._show_comparison(LabelComparison(rows, {}, COUNT, COUNT))


@case
def languages_of_the_best_answers():
    labelling._show_oracle(dict.fromkeys(LANGUAGES, dict.fromkeys(LANGUAGES, 0.123456)))


@case
def answers():
    counts = dict.fromkeys(("asked", "empty", "cut_off", "refused"), COUNT)
    figures = dict.fromkeys(("3-gram recall", "containment", "exact match", "F1", "language coherence"), 0.123456)
    distances = dict.fromkeys(("JS", "KL", "entropy_retrieved", "entropy_oracle"), 0.123456)
    shares = dict.fromkeys(LANGUAGES, 0.123456)
    row = {"queries": COUNT, **distances, "retrieved": shares, "oracle": shares}
    one = {"queries": COUNT, **figures, "undecided": 0.123456, "left_out": COUNT, "answers": counts}
    correlation = {"pearson": -0.1234, "p": 0.99, "queries": COUNT}
    one |= {"by_language": dict.fromkeys(LANGUAGES, figures), "correlation": correlation}
    one |= {"oracle": {**distances, "all_zero": COUNT, "by_language": dict.fromkeys(LANGUAGES, row)}}
    names = ("gold-own", "language-wise:50")
    test = {"difference": -0.123456, "queries": COUNT, "randomisation": 0.00001, "corrected": 0.99999}
    rag._show(
        {
            "queries": {"asked": COUNT, "without_answers": COUNT},
            "conditions": dict.fromkeys(names, one),
            "test": {"clusters": COUNT, "clustered_by": "article"},
            "differences": [{"before": names[0], "after": names[1], "measure": "language coherence", **test}],
        }
    )


@case
def demonstrated():
    found = {name: scores(1.0) for name in demo._COLUMNS}
    shares = {tag: dict.fromkeys(("hits", "relevant"), MeasureCell(0.12345, COUNT)) for tag in LANGUAGES}
    found[demo.MOST_SHOWN_20] = scores(0.12345, table=MeasureTable("language", "share of", shares))
    replay = Of(scores=found, answers=range(COUNT), by_language=lambda: dict.fromkeys(LANGUAGES, found))
    pair = Of(dataset=Of(queries=range(COUNT)), before=replay, after=replay)
    demo._show_ways(dict.fromkeys(("plain", "paper", "shifted", "preferred"), replay))
    demo._show_figures(pair)
    hit = Of(language="zh-Hant", group="g", title=WIDE)
    demo._show_example(Of(query=Of(group="g", language="en", text=NAME), before=[hit] * 10, after=[hit] * 10))


@case
def tuned():
    setting = TuningSettings(0.12345, 0.98765, COUNT)
    points = [Of(setting=setting._replace(alpha=tenth / 10)) for tenth in range(11)]
    steps = [Of(name=name, setting=setting, points=points, change=changed(), taken=True) for name in tuning._SCALES]
    means = {name: {0.0: 1.0, 0.1: 0.5}.get for name in MEASURES}
    changes = {group: {TARGET: changed(), COST: changed(-1)} for group in ("all", "pivot", "others")}
    report = Of(
        found=Of(steps=steps),
        reported=steps,
        judge=Of(vectors=Of(pivot="zh-Hant"), task=None),
        held_out=dict.fromkeys(tuning._SCALES, changes),
        mean=lambda point, name: means[name](point.setting.alpha, 0.123456),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "describe_task", lambda _: [])
        patch.setattr(tuning, "recommendation", lambda _: [])
        tuning._show(report)


@case
def offline_rows():
    result = {
        "measures": MEANS,
        "queries": {"asked": COUNT},
        "detection": {"accuracy": 0.5, "unknown": COUNT},
    }
    debias = Of(method="shift", vectors=Of(pivot="zh-Hant"), gamma=0.97)
    own = ", ".join(f"{tag} 0.12345" for tag in LANGUAGES)
    rows = [
        (Of(debias=debias, alpha=alpha, changes=changes, source=LanguageSource("detected", COUNT), beta=beta), result)
        for alpha, changes, beta in ((f"0.12345 ({own})", "both sides", 0.1), ("1", "documents", 0.0))
    ]
    offline._show_rows(Path(NAME), rows)


@case
def replayed():
    counts = dict.fromkeys(MEANS, COUNT)
    part = {"measures": MEANS, "queries": counts}
    run_tables.show_measures({**part, "by_language": dict.fromkeys(LANGUAGES, part)})
    times = dict.fromkeys(("took", "wall", "wall_corrected"), dict.fromkeys(("p50", "p90", "p95", "p99"), 3_600_000.0))
    replay = Of(load=Of(concurrency=2, open_loop=False))
    run_tables._show_times(replay, {"load": {"throughput": None}, "latency_ms": times})
    run_tables.show_positions({name: {"EvidenceHit@10": scores(), "PSI@10": scores()} for name in NAMES})
    shares = dict.fromkeys(LANGUAGES, 0.12345)
    drift = Of(queries=COUNT, rbo=0.12345, jaccard=0.12345, before=shares, after=dict.fromkeys(LANGUAGES, 0.98765))
    run_tables.show_drifts([Of(before=NAME, after=WIDE, by_language=dict.fromkeys(LANGUAGES, drift), whole=drift)])


@case
def compared_runs():
    topics, languages = range(3), ("de", "en", "zh-Hant")
    documents = {f"{NAME}-{i}-{tag}": (tag, f"g{i}", f"{i} {WIDE}") for i in topics for tag in languages}
    queries = {f"{NAME}-{i}-{tag}": (tag, f"g{i}", None, SENTENCE) for i in topics for tag in ("de", "zh-Hant")}
    # Of the first topic, nothing in the query's own language is relevant.
    with TemporaryDirectory() as folder:
        qrels = {
            name: {f"{_topic(name)}-{tag}": 1 for tag in languages if group != "g0" or tag != language}
            for name, (language, group, *_) in queries.items()
        }
        data = write_dataset(Path(folder, "data"), documents, queries, qrels)
        rows = [f"{query}\t{_topic(query)}-en\t0.{place}\t900\n" for place, query in enumerate(queries)]
        (data / "evidence.tsv").write_text("".join(rows))
        places = []
        for number, name in enumerate(NAMES):
            found = {query: [f"{_topic(query)}-{tag}" for tag in languages[: number + 1]] for query in queries}
            places.append(str(write_run(Path(folder, name, "run.trec"), found).parent))
            times = dict.fromkeys(("took", "wall"), dict.fromkeys(("p50", "p90", "p95", "p99"), 123_456.0))
            Path(places[-1], "result.json").write_text(json.dumps({"latency_ms": times}))
        measures = " ".join(["nDCG@20", "SLR@20", "MostShown@20", "Top1", *LONG])
        options = ["--dataset", str(data), "--measures", measures]
        for arguments in ([*places, "--fail-if", "value R@20 < 0"], [*places, "--brief"], places[:1]):
            CliRunner().invoke(evaluate.evaluate, ["compare", *arguments, *options], catch_exceptions=False)


@case
def boards():
    known = Of(runs=dict.fromkeys(NAMES, Of(mean=lambda _: 0.123456)), macro=lambda *_: 0.123456)
    known.weighted, known.by_language = (
        known.macro,
        lambda *_: Of(known=0.123456, surprise=None, every=0.123456, languages=dict.fromkeys(LANGUAGES, 0.123456)),
    )
    rows = [Of(**{**vars(known), "name": name}) for name in NAMES]
    rows[0].by_language = lambda *_: Of(known=0.1, surprise=0.2, every=0.3, languages={"de": 0.1})
    datasets = {name: Of(hash=name, queries=COUNT) for name in NAMES}
    shared = dict.fromkeys(NAMES, NAME)
    board._show(
        Of(
            measure=next(iter(LONG)),
            datasets=datasets,
            retrievers=rows,
            surprise=(),
            nearby=(next(iter(LONG)), "LPR"),
            shared=lambda *_: shared,
        )
    )


@case
def unjudged():
    with TemporaryDirectory() as folder:
        places = []
        for number, name in enumerate(NAMES):
            path = write_run(
                Path(folder, name, "run.trec"), {f"{NAME}-{n}": [f"{NAME}-{n * number}"] for n in range(3)}
            )
            queries = [{"_id": f"{NAME}-{n}", "text": SENTENCE, "language": "de"} for n in range(3)]
            documents = [{"_id": f"{NAME}-{n}", "text": SENTENCE, "language": "zh"} for n in range(5)]
            (path.parent / "logged-queries.jsonl").write_bytes(json_lines(queries))
            (path.parent / "found-documents.jsonl").write_bytes(json_lines(documents))
            times = dict.fromkeys(("took", "wall"), dict.fromkeys(("p50", "p90", "p95", "p99"), 123_456.0))
            (path.parent / "result.json").write_text(json.dumps({"latency_ms": times}))
            places.append(str(path.parent))
        for brief in ([], ["--brief"]):
            CliRunner().invoke(evaluate.evaluate, ["compare", *places, *brief], catch_exceptions=False)


def _topic(query):
    return query.removesuffix("-zh-Hant").removesuffix("-de")


@case
def audited():
    audit._mix(
        Of(
            mixes=[
                Of(
                    language=tag,
                    documents=COUNT,
                    share=0.999,
                    confidence=0.999,
                    norm=123.456,
                    low=123.456,
                    high=123.456,
                    told=COUNT,
                    agreed=COUNT,
                    unsure=COUNT,
                )
                for tag in LANGUAGES
            ],
            disagreements=[],
        )
    )
    fit = Of(cosine=-0.999, there=Of(value=-0.999, low=-0.999, high=-0.999))
    audit._shift(Of(judged=[Of(language=tag, fit=fit, vector=tag, share=9.999) for tag in LANGUAGES], reference="en"))
    means, pairs = np.full((len(LANGUAGES),) * 2, -0.98765), np.full((len(LANGUAGES),) * 2, COUNT)
    rows = Of(documents=list(LANGUAGES), queries=list(LANGUAGES), pairs=pairs)
    audit._matrix(Of(nearness=Of(rows=rows), reference="en"), means)
    near = [Of(language=tag, queries=COUNT, even=0.999, before=0.999, after=0.999) for tag in LANGUAGES]
    audit._near(Of(near=near, reference="en"))


@case
def gated():
    versions = [
        Of(version=f"{NAME}-v00000{number}", scores=dict.fromkeys(MEANS, scores()), answers=[], dataset=Of(folder=NAME))
        for number in range(2)
    ]
    compare_tables.show_gate(gate.GateResult(*versions, Verdict("too few", SENTENCE), [], False, []))


@case
def constructed():
    constructing._show("questions", {"prompts": COUNT, "questions": COUNT, "dropped": dict.fromkeys(REASONS, COUNT)})


@case
def sizes_of_an_index():
    sizes = [index_size(10**12, 16_000, engine, 1e6) for engine in ENGINES]
    for measured in (None, doctor_size.CorpusSample(COUNT, COUNT, 123_456.789, 1e9)):
        doctor_size._show_sizes(sizes, measured)
        doctor_size._show_hours(10**12, measured)


CALLS = ("table", "show_table")
#: What prints tables that are looked at as their commands print them, in ``test_tables_through_commands.py``.
THROUGH_COMMANDS = {
    f"langshift/commands/{name}.py"
    for name in ("adopt", "dataset", "dead_letters", "doctor", "index", "load_display", "vectors")
}


@pytest.fixture(scope="module")
def sites():
    """(File, line) -> last line of each call that prints a table."""
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return {
        (str(path), call.lineno): call.end_lineno
        for path in files
        if str(path.relative_to(ROOT)) not in THROUGH_COMMANDS
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", None)) in CALLS
    }


@pytest.fixture
def called(monkeypatch, sites):
    """The places of the calls that print a table; each table is looked at, as narrow as a usual terminal and whole."""
    places = set()
    monkeypatch.setattr(output.out, "width", COLUMNS)

    def note_place():
        frame = sys._getframe(2)
        name, line = str(Path(frame.f_code.co_filename).resolve()), frame.f_lineno
        places.update(site for site, last in sites.items() if site[0] == name and site[1] <= line <= last)

    def looked_at(table):
        def checked(*given, **how):
            note_place()
            require_readable(table, *given, **how)

        return checked

    def noted(show_table):
        def checked(table):
            note_place()
            show_table(table)

        return checked

    for function, make in ((output.table, looked_at), (run_tables.show_table, noted)):
        for module in [module for name, module in sys.modules.items() if name.startswith("langshift.")]:
            if vars(module).get(function.__name__) is function:
                monkeypatch.setattr(module, function.__name__, make(function))
    return places


def test_at_80_columns_no_table_of_any_command_is_broken_and_what_is_hidden_is_said(called, sites):
    for shown in CASES:
        shown()
    forgotten = {f"{Path(name).relative_to(ROOT)}:{line}" for name, line in set(sites) - called}
    assert not forgotten
