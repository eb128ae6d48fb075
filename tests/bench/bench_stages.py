"""What each stage of indexing whole passages costs the client, and how well their languages are detected.

Run with ``make bench``. Machines differ and are shared: look at the shares and ratios, not the seconds.
"""

import json
import random
import statistics
import time
from collections import defaultdict
from dataclasses import replace

import pytest
from documents import DATA

from langshift.debias.detector import LanguageDetector, open_detector, piece
from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import VectorSpec
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.evaluate.demo import FOLDER
from langshift.ingest import transform
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.languages import parse_tag, text_language
from langshift.plugin.inventory import drop_all

# Stage -> the function that it is, of those that make documents.
CALLS = {"detect": "detect_language", "encode": "document_vectors", "shift": "debias_batch"}
STAGES = (*CALLS, "rest")
REPETITIONS = 3
PASSAGES_A_LANGUAGE = 12
MOST_OF_CPU = 0.02
MOST_OF_DETECTION = 1.15
_SPREAD = (statistics.median, min, max)
_PASSAGE = 780  # characters, about as many as XQuAD's
# Gamma and own.
SCALES = ((0.0, 0.0), (0.97, 0.0), (0.97, 0.03))
GIVEN_TIMES = 20  # how often each passage is loaded where its vector is given

# What stands at the beginning of a text, or within it, in another language or in none.
NAMES = ("Jean-Baptiste Poquelin, ", "Владимир Набоков (Vladimir Nabokov) ", "習近平 ", "Muḥammad al-Khwārizmī: ")
URLS = ("https://www.example.com/articles/2020/the-history-of-the-city?lang=en&page=2 ", "www.example.de/a-101.html ")
QUOTATIONS = (
    "“It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness.” ",
    "»Es irrt der Mensch, solang er strebt. Da steh ich nun, ich armer Tor, und bin so klug als wie zuvor.« ",
)


def xquad():
    """Language -> XQuAD's passages; of the demo's, joined to about that length, where XQuAD is not there."""
    passages = defaultdict(list)
    for path in sorted((DATA / "xquad").glob("*.json")):
        for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
            passages[path.stem] += [paragraph["context"] for paragraph in article["paragraphs"]]
    if not passages:
        languages = dict(line.split("\t") for line in (FOLDER / "languages.tsv").read_text().splitlines())
        for document in map(json.loads, (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()):
            joined = passages[languages[document["_id"]]]
            if not joined or len(joined[-1]) >= _PASSAGE:
                joined.append("")
            joined[-1] += f" {document['text']}"
    return passages


def ntrex():
    """Language -> NTREX's lines, every tenth; empty where it is not there."""
    lines = defaultdict(list)
    for path in sorted((DATA / "ntrex").glob("*.txt")):
        lines[text_language(parse_tag(path.stem))] += path.read_text(encoding="utf-8").splitlines()[::10]
    return lines


def inserted(passages, foreign, place):
    """Every fourth passage with each of some other things put in, at a place from 0 to 1."""

    def put_in(text, other):
        where = int(len(text) * place)
        return f"{text[:where]} {other}{text[where:]}"

    return {tag: [put_in(text, other) for text in texts[::4] for other in foreign] for tag, texts in passages.items()}


class CpuClock:
    """Processor time of a load by stage, by the calls that make documents; reading and writing run beside them.

    Attributes:
        seconds: stage -> processor time of the thread that makes documents; the ``rest`` is all that other threads
            used, the encoder's own included.
    """

    def __init__(self, patch):
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._begun = time.process_time()
        for stage, name in CALLS.items():
            patch.setattr(f"langshift.ingest.transform.{name}", self._timed(stage, getattr(transform, name)))

    def _timed(self, stage, function):
        def timed(*arguments):
            begun = time.thread_time()
            made = function(*arguments)
            self.seconds[stage] += time.thread_time() - begun
            return made

        return timed

    def stop(self):
        self.seconds["rest"] = time.process_time() - self._begun - sum(self.seconds.values())


@pytest.mark.parametrize("given", [False, True])
def test_share_of_each_stage(client, index_name, tmp_path, monkeypatch, given):
    encoder, detector, path = open_encoder("e5-small"), open_detector(), None
    corpus = tmp_path / "corpus.jsonl"
    texts = [text for texts in xquad().values() for text in texts[:: max(1, len(texts) // PASSAGES_A_LANGUAGE)]]
    random.Random(0).shuffle(texts)
    lines = [{"text": text} for text in texts]
    if given:
        vectors = encoder.encode_documents(texts)
        lines = [{**one, "embedding": vector.tolist()} for one, vector in zip(lines, vectors, strict=True)]
        lines *= GIVEN_TIMES
        encoder, path = open_encoder("given", vector_spec=VectorSpec(384, True)), tmp_path / "given.safetensors"
        known = LanguageVectors.load(shipped("e5-small"))
        replace(known, encoder="given", revision="", document_prefix="", query_prefix="", query_vectors={}).save(path)
    corpus.write_text("".join(json.dumps(one) + "\n" for one in lines))
    seconds = {scales: {stage: [] for stage in STAGES} for scales in SCALES}
    for _ in range(REPETITIONS):
        for gamma, own in SCALES:
            making = build_pipeline(encoder, detector, path, 1.0, gamma=gamma, own=own)
            with monkeypatch.context() as patch:
                clock = CpuClock(patch)
                load(client, str(corpus), index_name, making)
                clock.stop()
            drop_all(client, index_name)
            for stage in STAGES:
                seconds[gamma, own][stage].append(clock.seconds[stage])
    characters = sum(map(len, texts)) / len(texts)
    for (gamma, own), stages in seconds.items():
        whole = sum(statistics.median(times) for times in stages.values())
        print(f"\n{'given vectors' if given else 'e5-small'}, gamma {gamma:g}, own {own:g}: {len(lines)} passages of")
        print(f"{characters:.0f} characters, {REPETITIONS} repetitions in turn")
        print(f"{'stage':8} {'of CPU':>7} {'median ms':>10} {'least':>8} {'most':>8}")
        for stage, times in stages.items():
            share, middle, least, most = statistics.median(times) / whole, *(f(times) for f in _SPREAD)
            print(f"{stage:8} {share:7.2%} {middle * 1000:10.1f} {least * 1000:8.1f} {most * 1000:8.1f}")
        ours = sum(statistics.median(stages[stage]) for stage in ("detect", "shift")) / whole
        print(f"detect and shift together: {ours:.2%}")
        assert given or ours <= MOST_OF_CPU


def test_accuracy_of_detection_on_a_piece_and_on_the_whole(monkeypatch):
    detector, passages = open_detector(), xquad()
    beginnings = {"a name": NAMES, "a URL": URLS, "a quotation": QUOTATIONS}
    sets = {"passages": passages, "lines": ntrex()}
    sets |= {f"{what} first": inserted(passages, foreign, 0) for what, foreign in beginnings.items()}
    sets |= {f"a quotation at {place:g}": inserted(passages, QUOTATIONS, place) for place in (0.25, 0.5, 0.75, 1)}

    def accuracies():
        return {
            name: {
                tag: statistics.fmean(text_language(detector.detect(text).language) == tag for text in texts)
                for tag, texts in some.items()
            }
            for name, some in sets.items()
            if some
        }

    pieces, cpu = accuracies(), time.process_time()
    for text in passages["en"]:
        detector.detect(text)
    piece_cpu, cpu = time.process_time() - cpu, time.process_time()
    monkeypatch.setattr(LanguageDetector, "_line", lambda _, text: " ".join(text.split()))
    for text in passages["en"]:
        detector.detect(text)
    whole_cpu = time.process_time() - cpu
    whole = accuracies()
    print(f"\n{'share right, mean of the languages':36} {'piece':>7} {'whole':>7}   least of a language")
    for name in pieces:
        means = [statistics.fmean(some[name].values()) for some in (pieces, whole)]
        least = " ".join(f"{min(some[name].values()):.3f}" for some in (pieces, whole))
        print(f"{name:36} {means[0]:7.4f} {means[1]:7.4f}   {least}")
    overall = [
        statistics.fmean(statistics.fmean(found.values()) for found in some.values()) for some in (pieces, whole)
    ]
    assert overall[0] >= overall[1] - 0.005
    print(f"Time of a passage's detection: {piece_cpu / whole_cpu:.0%} of what the whole takes.")
    assert pieces["passages"] == pytest.approx(whole["passages"], abs=0.0)


def test_what_the_copy_that_the_detector_reads_costs_with_its_script(monkeypatch):
    detector, texts = open_detector(), [text for some in xquad().values() for text in some[::10]]
    least = {kind: [float("inf")] * len(texts) for kind in ("as it is", "copy")}
    for _ in range(10 * REPETITIONS):
        for kind, seconds in least.items():
            with monkeypatch.context() as patch:
                if kind == "as it is":
                    patch.setattr(LanguageDetector, "_line", lambda _, text: piece(text))
                    patch.setattr("langshift.debias.detector.with_script_of", lambda tag, _: tag)
                for number, text in enumerate(texts):
                    begun = time.perf_counter()
                    detector.detect(text)
                    seconds[number] = min(seconds[number], time.perf_counter() - begun)
    before, after = (sum(seconds) / len(texts) * 1e6 for seconds in least.values())
    times = after / before
    print(
        f"\nDetection of a passage: {before:.0f} us as it is, {after:.0f} us with copy and script, {times:.3f} times."
    )
    assert after <= MOST_OF_DETECTION * before
