"""Every table of every command, at its worst: long names, also of wide letters, and figures of six digits."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace as Of

import numpy as np
from check_names import LAB, ROOMS
from click.testing import CliRunner
from data_folder import write_dataset, write_run
from worst_tables import (
    COUNT,
    LANGUAGES,
    LONG,
    MEANS,
    NAME,
    NAMES,
    SENTENCE,
    WIDE,
    require_all_readable,
    scores,
    sites_of,
)

from langshift.commands import (
    anchors,
    audit,
    compare_tables,
    demo,
    doctor_size,
    evaluate,
    run_tables,
    search,
)
from langshift.evaluate.compare import gate
from langshift.evaluate.compare.verdict import Verdict
from langshift.evaluate.measures.base import MeasureCell, MeasureTable
from langshift.files import json_lines
from langshift.plugin.index_body import ENGINES
from langshift.plugin.metadata import ChunkPlace
from langshift.plugin.sizing import index_size
from langshift.retrieval.calibration.calibrate import CalibrationCost
from langshift.retrieval.calibration.changes import Prediction, SliceChange
from langshift.retrieval.calibration.stored import NoAnswer
from langshift.retrieval.facets import Facet, FacetValue
from langshift.retrieval.hits import Anchor, Leg
from langshift.retrieval.question import AnchorModel
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.result import Hit, Other, Passage, ShiftEffect
from langshift.retrieval.snippets import Snippet

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
    shift = ShiftEffect("zh-Hant", 0.125, 0.875, 0.0125, -0.1234, -0.9876, 99_999, 99_999)
    found = [Hit(name, 1, "zh-Hant", "", "", None, legs=legs, shift=shift) for name in NAMES]
    anchors = [Anchor(name, 0.999, 0.999, {"similarity": -123456.0, "lexical score": 123456.0}) for name in NAMES]
    more = {"gamma": 0.875, "preference_from": "index", "setting": SearchSettings("dense", prefer_language=0.125)}
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
        "no_answer": NoAnswer(0.8412, 0.97),
    }
    cost = CalibrationCost(400, 1200, 7200)
    found = Of(
        mode="anchored", lexical_weight=None, sparse_weight=None, trust=AnchorModel(0.1, 0.05), cost=cost, **parts
    )
    anchors._show_calibration(Of(name=NAME, index=NAME), found)


@case
def demonstrated():
    found = {name: scores(1.0) for name in demo._ALL_COLUMNS}
    shares = {tag: dict.fromkeys(("hits", "relevant"), MeasureCell(0.12345, COUNT)) for tag in LANGUAGES}
    found[demo.MOST_SHOWN_20] = scores(0.12345, table=MeasureTable("language", "share of", shares))
    replay = Of(scores=found, answers=range(COUNT), by_language=lambda: dict.fromkeys(LANGUAGES, found))
    pair = Of(dataset=Of(queries=range(COUNT)), before=replay, after=replay)
    demo._show_ways(dict.fromkeys(("plain", "paper", "shifted", "preferred"), replay))
    demo._show_figures(pair)
    hit = Of(language="zh-Hant", group="g", title=WIDE)
    demo._show_example(Of(query=Of(group="g", language="en", text=NAME), before=[hit] * 10, after=[hit] * 10))


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
def sizes_of_an_index():
    sizes = [index_size(10**12, 16_000, engine, 1e6) for engine in ENGINES]
    for measured in (None, doctor_size.CorpusSample(COUNT, COUNT, 123_456.789, 1e9)):
        doctor_size._show_sizes(sizes, measured)
        doctor_size._show_hours(10**12, measured)


#: What prints tables that are looked at as their commands print them, in ``test_tables_through_commands.py``.
THROUGH_COMMANDS = {
    f"langshift/commands/{name}.py"
    for name in ("adopt", "dataset", "dead_letters", "doctor", "index", "load_display", "vectors")
}


def test_at_80_columns_no_table_of_any_command_is_broken_and_what_is_hidden_is_said(monkeypatch):
    require_all_readable(monkeypatch, sites_of(set(ROOMS) - {LAB}, THROUGH_COMMANDS), CASES)
