"""Every table of every command, at its worst: long names, also of wide letters, and figures of six digits."""

import ast
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace as Of

import numpy as np
import pytest
from check_names import ROOMS
from data_folder import write_dataset, write_run
from documents import ROOT
from readable_tables import COLUMNS, require_readable

from langshift import output
from langshift.commands import (
    cluster,
    compare,
    dataset,
    evaluate,
    index,
    ingest,
    laura,
    rag,
    rerank,
    search,
    serve,
    vectors,
)
from langshift.debias.vectors import LanguageVectors, Recommendation
from langshift.evaluate.audit import report as audit_report
from langshift.evaluate.compare import comparison, findings, gate, significance
from langshift.evaluate.compare.verdict import Verdict
from langshift.evaluate.measures.base import MeasureCell, MeasureTable, Scores
from langshift.evaluate.measures.fairness import OUTCOMES, TOP1
from langshift.evaluate.offline.encoding import LanguageSource
from langshift.evaluate.report import run_tables, tables
from langshift.evaluate.rerank.laura import LauraRow
from langshift.evaluate.rerank.pools import RerankSlice
from langshift.evaluate.tune import report as tune_report
from langshift.evaluate.tune.tune import COST, MEASURES, TARGET, MeasureChange, TuningSettings
from langshift.plugin.description import TextField
from langshift.plugin.inventory import ListedVersion, UnreadableVersion
from langshift.plugin.metadata import USUAL, ChunkPlace, FieldNames
from langshift.retrieval.anchored import AnchorModel
from langshift.retrieval.calibration.calibrate import SliceChange
from langshift.retrieval.hits import Anchor, Hit, Leg, Other, Passage, ShiftEffect
from langshift.retrieval.rerank.features import read_model
from langshift.retrieval.settings import SearchSettings

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


def result_of(difference=-0.123456):
    return significance.TestResult(difference, COUNT, COUNT, 0.99999, 0.99999, 0.00001, (-0.123456, 0.0))


# What prints each table, given data at its worst.
CASES = []


def case(shown):
    CASES.append(shown)
    return shown


@case
def dataset_check():
    languages = [Of(language=tag, documents=COUNT, queries=COUNT, heard=COUNT, out_of_step=COUNT) for tag in LANGUAGES]
    problem = Of(problem=SENTENCE, language="zh-Hant", file=f"{NAME}.tsv", count=COUNT, examples=[*NAMES])
    dataset._print(
        Of(
            languages=languages,
            clean=False,
            documents=1,
            queries=COUNT,
            judgements=1,
            own_documents=COUNT,
            same_ids=COUNT,
            problems=[problem],
            folder=NAME,
        )
    )


@case
def doctor():
    finding = cluster.Finding(NAME, WIDE, "warning", f"/{NAME}/{NAME}", SENTENCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "examine", lambda: [finding])
        with pytest.raises(SystemExit):
            cluster.doctor.callback(as_json=False)


@case
def hits():
    other = Other(NAME, 12345.6789, "zh-Hant", WIDE, SENTENCE)
    found = [Hit(name, 12345.6789, "zh-Hant", SENTENCE, SENTENCE, None, others=(other, other)) for name in NAMES]
    passage = Passage(NAME, 12345.6789, "zh-Hant", SENTENCE, ChunkPlace(9_999, 123_456, 1_234_567, 99_999, "headline"))
    in_chunks = [replace(hit, passage=passage, passages=(passage, passage)) for hit in found]
    for one_per_group in (False, True):
        search._show_hits(NAME, Of(notes=(), hits=found), Of(one_per_group=one_per_group))
        search._show_hits(NAME, Of(notes=(), hits=in_chunks), Of(one_per_group=one_per_group))


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
def loaded_languages():
    ingest._print_languages([(tag, COUNT * 1000) for tag in LANGUAGES])


@case
def dead_letters():
    example = Of(corpus=f"/{NAME}/{WIDE}.jsonl", line=COUNT, reason=SENTENCE)
    group = Of(count=COUNT, stage="encode", type=f"{NAME}_exception", reason=SENTENCE, example=example)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "with_letters", lambda _: [])
        patch.setattr(ingest, "grouped", lambda _: [group])
        ingest.list_.callback(name=None, as_json=False)


@case
def calibration():
    changes = [
        SliceChange(answer, overlap, COUNT * 1000, 0.9, -0.1234, -0.1234)
        for answer, overlap in (("own", "none"), ("own", "as in the log"), ("other", "as in the log"))
    ]
    parts = {"changes": changes, "full_strength": changes, "hybrid": changes}
    parts |= {"rerank": {"dense": 0.1, "anchored": 0.0}, "reranked": {"dense": changes, "anchored": changes}}
    found = Of(mode="dense", lexical_weight=None, trust=AnchorModel(0.1, 0.0), **parts)
    search._show_calibration(Of(name=NAME, index=NAME), found)


@case
def reranker():
    rerank._show_weights(read_model())
    rerank._show_losses([1.2345] * 5)
    rerank._show_slices(
        [RerankSlice(NAME, kept, "other", 0.1, COUNT, 0.9, -0.1234, -0.1234, 0.0123) for kept in (None, 2)]
    )


@case
def orders_of_rerankers():
    figures = dict.fromkeys(("P@5", "P@10", "nDCG@5", "nDCG@10", "PEER"), 0.123456)
    names = ("search", "untrained", "self-training", "same-language labels", "utilities (LAURA)")
    laura._show([LauraRow(name, figures, {}, 0.123456, 0.123456, 2.123456) for name in names], COUNT, COUNT)


@case
def languages_of_the_best_answers():
    rerank._show_oracle(dict.fromkeys(LANGUAGES, dict.fromkeys(LANGUAGES, 0.123456)))


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
def language_vectors():
    made = dict.fromkeys(LANGUAGES, np.float32([1234.5, 0]))
    vectors.show_vectors(
        LanguageVectors(
            "en",
            made,
            dict.fromkeys(LANGUAGES, COUNT),
            NAME,
            "",
            "",
            2,
            normalised=False,
            source=NAME,
            query_vectors=made,
            recommendation=Recommendation(alphas=dict.fromkeys(LANGUAGES, 0.123456)),
            query_directions=np.zeros((COUNT, 2), np.float32),
            evidence={tag: {"missing": COUNT} for tag in LANGUAGES},
        ),
        Path(NAME),
        as_json=False,
    )


@case
def judged_vectors():
    reliability = Of(split_half=-0.1234, low=-0.1234, high=-0.1234, enough=COUNT)
    suspects = [Of(place=f"{NAME}:{COUNT}", fits=f"{WIDE}:{COUNT}", margin=-0.1234)] * 11
    evidence = Of(
        pairs=COUNT, missing=COUNT, reliability=reliability, alignment=Of(count=COUNT, told=True, worst=suspects)
    )
    judged = [
        Of(language=tag, evidence=evidence, share=9.999, agreement=-0.1234, verdict="do not use", reason=SENTENCE)
        for tag in LANGUAGES[:3]
    ]
    vectors._print(Of(pivot="en", encoder=NAME, query_directions=None), Path(NAME), NAME, judged)


@case
def scored_run():
    cells = dict.fromkeys(LANGUAGES, MeasureCell(0.123456, COUNT))
    found = {name: scores(mean) for name, mean in MEANS.items() if mean is not None}
    found["nDCG@20"] = scores(0.98765, table=MeasureTable("query", "document", dict.fromkeys(LANGUAGES, cells)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate.runs, "by_language", lambda *_: dict.fromkeys(LANGUAGES, found))
        data, languages = Of(queries=[]), Of(queries={})
        evaluate.show(Of(path=NAME, answered=COUNT, dataset=data, scores=found, languages=languages))


def version(name, number):
    made = Of(
        encoder=f"st:{NAME}/{WIDE}", alphas={"zh-Hant": 0.12345}, vectors=f"{number}" * 16, made="2026",
        scales="alpha 0.123456 (zh-Hant 0.12345), gamma 0.123456",
    )  # fmt: skip
    return Of(
        name=name,
        version=f"{name}-v123456",
        state="live",
        write_blocked=True,
        documents=COUNT * 1000,
        chunks=COUNT * 10_000,
        bytes=123_456_789,
        fingerprint=made,
        made="2026-01-02T03:04:05Z",
        origin={"kind": "retune", "from": f"{name}-v123455"},
    )


@case
def indices():
    versions = [version(name, number) for number, name in enumerate(NAMES)]
    # One of them cannot be read.
    broken = {name: value for name, value in vars(versions[0]).items() if name in ListedVersion.__annotations__}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "Version", Of)
        index._list([*versions, UnreadableVersion(**{"uuid": "u", **broken}, error=f"_meta.{WIDE} is wrong")])


@case
def described_index():
    texts = [TextField(f"{name}.{tag}", f"{name}_analyzer", COUNT) for name in NAMES for tag in LANGUAGES]
    usual = [TextField(f"{root}.{tag}", f"{NAME}_analyzer", COUNT) for root in ("title", "text") for tag in LANGUAGES]
    for fields, named in ((FieldNames(texts=("body",)), texts), (USUAL, usual)):
        versions = [version(NAME, number) for number in range(2)]
        found = Of(
            versions=versions,
            version=versions[0],
            texts=named,
            fields=fields,
            share=lambda _: 0.999,
            languages=dict.fromkeys(LANGUAGES, COUNT * 1000),
            alias=None,
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(index, "open_cluster", lambda: None)
            patch.setattr(index.description, "describe", lambda *_, found=found: found)
            for name in ("in_words", "first_lines", "storage", "remarks"):
                patch.setattr(index.description, name, lambda _: [])
            patch.setattr(index, "live", lambda *_: Of(calibratable=False))
            index.describe.callback(name=NAME, as_json=False)


@case
def demo():
    found = {name: scores(1.0) for name in serve._COLUMNS}
    shares = {tag: dict.fromkeys(("hits", "relevant"), MeasureCell(0.12345, COUNT)) for tag in LANGUAGES}
    found[serve.MOST_SHOWN_20] = scores(0.12345, table=MeasureTable("language", "share of", shares))
    replay = Of(scores=found, answers=range(COUNT), by_language=lambda: dict.fromkeys(LANGUAGES, found))
    pair = Of(dataset=Of(queries=range(COUNT)), before=replay, after=replay)
    serve._show_ways(dict.fromkeys(("plain", "paper", "shifted", "preferred"), replay))
    serve._show_figures(pair)
    hit = Of(language="zh-Hant", group="g", title=WIDE)
    serve._show_example(Of(query=Of(group="g", language="en", text=NAME), before=[hit] * 10, after=[hit] * 10))


@case
def tuning():
    setting = TuningSettings(0.12345, 0.98765, COUNT)
    points = [Of(setting=setting._replace(alpha=tenth / 10)) for tenth in range(11)]
    steps = [
        Of(name=name, setting=setting, points=points, change=changed(), taken=True) for name in tune_report._SCALES
    ]
    means = {name: {0.0: 1.0, 0.1: 0.5}.get for name in MEASURES}
    changes = {group: {TARGET: changed(), COST: changed(-1)} for group in ("all", "pivot", "others")}
    report = Of(
        found=Of(steps=steps),
        reported=steps,
        judge=Of(vectors=Of(pivot="zh-Hant")),
        held_out=dict.fromkeys(tune_report._SCALES, changes),
        mean=lambda point, name: means[name](point.setting.alpha, 0.123456),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune_report, "describe_task", lambda _: [])
        patch.setattr(tune_report, "recommendation", lambda _: [])
        tune_report.show(report)


def points(measures, alphas):
    found = {name: scores(0.0 if mean is None else mean) for name, mean in measures.items()}
    return [
        Of(alpha=alpha, scores=found, mean=lambda name, _, alpha=alpha: measures[name] and measures[name] * alpha)
        for alpha in alphas
    ]


@case
def swept():
    for select in ("nDCG@20", *LONG):
        curve = points(MEANS, (0.12345, 0.5, 0.98765))
        own = Of(alphas=dict.fromkeys(LANGUAGES, 0.12345), mean=lambda *_: 0.12345)
        halves = Of(development=[], test=[], units=(COUNT, COUNT), by="article")
        languages, betas = dict.fromkeys(LANGUAGES, curve), dict.fromkeys((0.012345, 0.1), curve)
        of = {**vars(curve[0]), "gamma": 0.5, "scores": dict.fromkeys(MEANS, scores(0.1)) | {select: scores(0.1)}}
        grid = [Of(**of)]
        found = {"alphas": curve, "best": curve[1], "languages": languages, "own": own, "betas": betas, "grid": grid}
        run_tables.show_sweep(Of(halves=halves, select=select, **found), list(MEANS))


@case
def offline_rows():
    result = {
        "measures": MEANS,
        "queries": {"asked": COUNT},
        "beta": 0.1,
        "detection": {"accuracy": 0.5, "unknown": COUNT},
    }
    debias = Of(method="centering", vectors=Of(pivot="zh-Hant"), gamma=0.97)
    own = ", ".join(f"{tag} 0.12345" for tag in LANGUAGES)
    rows = [
        (Of(debias=debias, alpha=alpha, changes=changes, source=LanguageSource("detected", COUNT)), result)
        for alpha, changes in ((f"0.12345 ({own})", "both sides"), ("1", "documents"))
    ]
    run_tables.show_rows(Path(NAME), rows)


@case
def replayed():
    counts = dict.fromkeys(MEANS, COUNT)
    part = {"measures": MEANS, "queries": counts}
    run_tables._show_measures({**part, "by_language": dict.fromkeys(LANGUAGES, part)})
    times = dict.fromkeys(("took", "wall", "wall_corrected"), dict.fromkeys(("p50", "p90", "p95", "p99"), 3_600_000.0))
    replay = Of(load=Of(concurrency=2, open_loop=False))
    run_tables._show_times(replay, {"load": {"throughput": None}, "latency_ms": times})
    run_tables.show_positions({name: {"EvidenceHit@10": scores(), "PSI@10": scores()} for name in NAMES})
    shares = dict.fromkeys(LANGUAGES, 0.12345)
    drift = Of(queries=COUNT, rbo=0.12345, jaccard=0.12345, before=shares, after=dict.fromkeys(LANGUAGES, 0.98765))
    run_tables.show_drifts([Of(before=NAME, after=WIDE, by_language=dict.fromkeys(LANGUAGES, drift), whole=drift)])


@case
def settings_side_by_side():
    cells = {"all": {name: MeasureCell(0.12345, COUNT) for name in OUTCOMES}}
    first_documents = scores(table=MeasureTable("", "", cells))
    replay = Of(
        answers=[Of(took=123_456.0, wall=123_456.0, waited=0)],
        scores={TOP1.name: first_documents},
        load=Of(open_loop=False),
    )
    rows = [comparison.SettingRow(f"{name}: hybrid --prefer-language 0.02", replay) for name in NAMES]
    columns = [comparison.Column("all", name) for name in (*MEANS, TOP1.name)]
    figures = {row.name: {column: scores() for column in columns} for row in rows}
    tests = {(column, (rows[0].name, row.name)): result_of() for column in columns for row in rows[1:]}
    part = comparison.ComparedQueries([""] * COUNT, figures, tests)
    clusters = Of(count=COUNT, by="article")
    data = Of(folder=NAME)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_tables, "describe_test", lambda _: "")
        for count in (len(columns), 1):
            run_tables.show_settings(
                comparison.SettingsComparison(data, rows, columns[:count], clusters, part, {"own": part, "none": part})
            )


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
            places.append(write_run(Path(folder, name, "run.trec"), found).parent)
        compared = findings.compare_places(places, data, " ".join(["nDCG@20", "SLR@20", "MostShown@20", *LONG]), [])
        compare.show(findings.findings(compared), [])


def _topic(query):
    return query.removesuffix("-zh-Hant").removesuffix("-de")


@case
def audited():
    audit_report._mix(
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
    audit_report._shift(
        Of(judged=[Of(language=tag, fit=fit, vector=tag, share=9.999) for tag in LANGUAGES], reference="en")
    )
    means, pairs = np.full((len(LANGUAGES),) * 2, -0.98765), np.full((len(LANGUAGES),) * 2, COUNT)
    rows = Of(documents=list(LANGUAGES), queries=list(LANGUAGES), pairs=pairs)
    audit_report._matrix(Of(rows=rows, reference="en"), means)
    near = [Of(language=tag, queries=COUNT, even=0.999, before=0.999, after=0.999) for tag in LANGUAGES]
    audit_report._near(Of(near=near, reference="en"))


@case
def gated():
    versions = [
        Of(version=f"{NAME}-v00000{number}", scores=dict.fromkeys(MEANS, scores()), answers=[], dataset=Of(folder=NAME))
        for number in range(2)
    ]
    gate.show(gate.GateResult(*versions, Verdict("too few", SENTENCE), [], False, []))


CALLS = ("table", "show_table")
#: (File, line) -> last line of each call that prints a table.
SITES = {
    (str(path), call.lineno): call.end_lineno
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", None)) in CALLS
}


@pytest.fixture
def called(monkeypatch):
    """The places of the calls that print a table; each table is looked at, as narrow as a usual terminal and whole."""
    places = set()
    monkeypatch.setattr(output.out, "width", COLUMNS)

    def note_place():
        frame = sys._getframe(2)
        name, line = str(Path(frame.f_code.co_filename).resolve()), frame.f_lineno
        places.update(site for site, last in SITES.items() if site[0] == name and site[1] <= line <= last)

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

    for function, make in ((output.table, looked_at), (tables.show_table, noted)):
        for module in [module for name, module in sys.modules.items() if name.startswith("langshift.")]:
            if vars(module).get(function.__name__) is function:
                monkeypatch.setattr(module, function.__name__, make(function))
    return places


def test_at_80_columns_no_table_of_any_command_is_broken_and_what_is_hidden_is_said(called):
    for shown in CASES:
        shown()
    forgotten = {f"{Path(name).relative_to(ROOT)}:{line}" for name, line in set(SITES) - called}
    assert not forgotten
