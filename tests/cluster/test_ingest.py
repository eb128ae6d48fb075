"""The way of a document into a real index."""

import gzip
import json
import threading

import numpy as np
import pytest
from command_line import langshift, refusal
from stamps import stamp_of

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import ClusterError, FingerprintError, UsageError
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.resume import LoadOptions
from langshift.plugin import inventory, version_writer, versions
from langshift.settings import Settings

APPEND, RESUME = LoadOptions(if_exists="append"), LoadOptions(resume=True)
TEXTS = {
    "en": "The sea rises and falls twice a day because the Moon pulls at it.",
    "de": "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht.",
    "th": "ทะเลขึ้นและลงวันละสองครั้งเพราะดวงจันทร์ดึงดูดน้ำ",
    "ja": "海は月に引かれて一日に二回満ち引きする。",
    "vi": "Biển dâng lên và hạ xuống hai lần một ngày vì Mặt Trăng hút nó.",
}


@pytest.fixture(scope="module")
def making():
    return build_pipeline(open_encoder("use-m"), open_detector(), None, None)


def journal(client, name):
    return LoadWorkspace.of(Settings.from_env().home, client, name).journal


def stored(client, index, identifier):
    return client.get(index=index, id=identifier)["_source"]


@pytest.mark.usefixtures("real_encoder")
def test_a_document_is_detected_encoded_shifted_and_written(client, index_name, corpus, making):
    documents = [{"_id": tag, "title": "", "text": text, "group": "tides"} for tag, text in TEXTS.items()]
    summary = load(client, corpus(*documents), index_name, making)
    assert summary.index == f"{index_name}-v0001"
    assert summary.languages == dict.fromkeys(TEXTS, 1)
    assert (summary.documents, summary.shifted, summary.without_vector) == (5, 3, {"vi": 1})

    vectors = LanguageVectors.load(shipped("use-m"))
    raw = open_encoder("use-m").encode_documents(list(TEXTS.values()))
    for tag, z in zip(TEXTS, raw, strict=True):
        source = stored(client, index_name, tag)
        expected = z - vectors.vectors[tag] if tag in vectors.vectors else z
        assert np.abs(np.array(source["embedding"]) - expected).max() < 1e-6
        stamp = {"vectors": vectors.hash, "alpha": 1.0, "language": tag}
        assert stamp_of(source) == (stamp if tag in vectors.vectors else {"vectors": vectors.hash, "alpha": 0.0})
        assert source["language"] == tag
        assert source["language_confidence"] > 0.5
        assert source["text"] == {tag: TEXTS[tag]}
        assert "title" not in source
        assert source["group"] == "tides"


def test_every_other_field_comes_back_as_it_came(client, index_name, corpus, making):
    other = {"year": 1990, "tags": ["x", "y"], "nested": {"a": {"b": 1.5}}, "empty": None, "when": "2020-01-01"}
    load(client, corpus({"_id": "a", "text": TEXTS["en"], **other}), index_name, making)
    source = stored(client, index_name, "a")
    assert {name: source[name] for name in other} == other


def test_a_documents_own_language_wins_and_a_region_is_used_and_reduced(client, index_name, corpus, making):
    load(
        client,
        corpus(
            {"_id": "given", "text": TEXTS["en"], "language": "deu_Latn"},
            {"_id": "regional", "text": "海水每天漲落兩次。", "language": "zh-Hant"},
            {"_id": "und", "text": TEXTS["de"], "language": "und"},
        ),
        index_name,
        making,
    )
    given = stored(client, index_name, "given")
    assert (given["language"], given["language_confidence"], list(given["text"])) == ("de", 1.0, ["de"])
    regional = stored(client, index_name, "regional")
    stamp = regional["shift"]
    assert (regional["language"], stamp["language"], stamp["tag"]) == ("zh", "zh-TW", "zh-TW")
    assert "tag" not in given["shift"]
    unknown = stored(client, index_name, "und")
    assert (unknown["language"], unknown["shift"]["alpha"]) == ("und", 0.0)


def test_below_the_confidence_a_document_is_undetermined_and_not_shifted(client, index_name, corpus):
    strict = build_pipeline(open_encoder("use-m"), open_detector(), None, None, least_confidence=0.9999)
    path = corpus({"_id": "a", "text": "Hotel Bar"}, {"_id": "b", "text": "123"}, {"_id": "c", "text": TEXTS["th"]})
    summary = load(client, path, index_name, strict)
    assert summary.languages["und"] == 3 - summary.languages["th"]
    source = stored(client, index_name, "a")
    assert (source["language"], source["text"], source["shift"]["alpha"]) == ("und", {"und": "Hotel Bar"}, 0.0)


def test_writing_twice_never_doubles(client, index_name, corpus, making):
    path = corpus({"text": TEXTS["en"]}, {"text": TEXTS["de"]})
    first = load(client, path, index_name, making)
    assert (first.lines, first.documents, first.present, first.replaced) == (2, 2, 2, 0)
    again = load(client, path, index_name, making, options=APPEND)
    assert (again.lines, again.documents, again.present, again.replaced) == (2, 2, 2, 2)
    assert client.count(index=index_name)["count"] == 2


def test_a_long_text_is_counted_and_said_and_found_by_its_last_word(cluster_env, index_name, corpus, tmp_path):
    text = TEXTS["en"] * 400 + " Zwiebelfisch"
    done = langshift("ingest", corpus({"_id": "long", "text": text}), "--index", index_name, url=cluster_env)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "1 text longer than the 20,000 characters that use-m reads: the vector covers only the beginning, "
        "lexical search all of it.\n"
        "1 text longer than 1,000 characters: with --chunk auto, every place in them can be found.\n"
    )
    assert done.stdout.splitlines()[-1] == (
        f"The 1 line of {tmp_path / 'corpus.jsonl'} is accounted for: 1 document on the server, checked."
    )
    found = langshift("search", index_name, "Zwiebelfisch", "--mode", "lexical", "--json", url=cluster_env)
    assert [hit["id"] for hit in json.loads(found.stdout)["hits"]] == ["long"]


def test_standard_input_compressed(client, cluster_env, index_name):
    lines = b"".join(json.dumps({"_id": tag, "text": text}).encode() + b"\n" for tag, text in TEXTS.items())
    done = langshift("ingest", "-", "--index", index_name, "--json", url=cluster_env, stdin=gzip.compress(lines))
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["languages"] == dict.fromkeys(TEXTS, 1)
    assert summary["index"] == f"{index_name}-v0001"
    assert client.count(index=index_name)["count"] == 5
    assert done.stderr == (
        "Standard input cannot be resumed: if this load is interrupted, it has to start again. "
        "A load from a file can be resumed.\n"
        "No language vector for vi (1 document): not shifted by language.\n"
        "All 5 lines of standard input are accounted for: 5 documents on the server, checked.\n"
    )
    resumed = langshift("ingest", "-", "--index", index_name, "--resume", url=cluster_env, stdin=lines)
    assert (resumed.returncode, refusal(resumed)) == (
        2,
        "Standard input cannot be resumed: give a file, or leave --resume out.",
    )


def test_another_fingerprint_is_refused_and_nothing_changes(client, index_name, corpus, making):
    load(client, corpus({"_id": "a", "text": TEXTS["de"]}), index_name, making)
    before = stored(client, index_name, "a")
    plain = build_pipeline(open_encoder("use-m"), open_detector(), None, 0.0)
    with pytest.raises(FingerprintError) as refused:
        load(client, corpus({"_id": "a", "text": TEXTS["en"]}), index_name, plain, options=APPEND)
    assert str(refused.value) == (
        f"Index {index_name} was built with alpha 1.0, not 0.0: "
        "use the settings it was built with, or choose another index name."
    )
    assert stored(client, index_name, "a") == before
    assert list(versions.versions_of(client, index_name)) == [f"{index_name}-v0001"]


def test_what_a_killed_load_left_behind_is_never_mixed_with_another_load(client, index_name, corpus, making):
    left = version_writer.open_for_writing(client, index_name, making.fingerprint())
    client.index(index=left.index, id="stale", body={"text": {"en": "stale"}}, refresh=True)
    assert not client.indices.exists_alias(name=index_name)
    summary = load(client, corpus({"_id": "a", "text": TEXTS["de"]}), index_name, making)
    assert summary.index == f"{index_name}-v0002"
    live = versions.live(client, index_name)
    assert (live.index, live.documents, live.fingerprint) == (summary.index, 1, making.fingerprint())
    assert list(versions.unfinished(client, index_name)) == [left.index]


def test_of_two_loads_at_once_the_second_is_refused(client, index_name, making):
    first = version_writer.open_for_writing(client, index_name, making.fingerprint())
    second = version_writer.open_for_writing(client, index_name, making.fingerprint())
    version_writer.publish(client, second)
    with pytest.raises(ClusterError) as refused:
        version_writer.publish(client, first)
    assert str(refused.value) == (
        f"Another load has created {index_name} ({second.index}) in the meantime, so this load's documents were not "
        "added: run it again to add them."
    )
    version_writer.discard(client, first)
    assert versions.live(client, index_name).index == second.index


def test_a_version_that_somebody_deleted_is_not_published(client, index_name, making):
    target = version_writer.open_for_writing(client, index_name, making.fingerprint())
    client.indices.delete(index=target.index)
    client.index(index=target.index, body={"text": "made anew by a write"})
    with pytest.raises(ClusterError, match=r"-v0001 was deleted while it was being written: run the command again\.$"):
        version_writer.publish(client, target)


def test_an_index_deleted_while_documents_are_added_does_not_stay_made_anew(client, index_name, corpus, making):
    load(client, corpus({"_id": "a", "text": TEXTS["de"]}), index_name, making)

    def delete(stage, _documents, _seconds):
        if stage == "shift":
            client.indices.delete(index=f"{index_name}-v0001")

    with pytest.raises(ClusterError) as ended:
        load(client, corpus({"_id": "b", "text": TEXTS["de"]}), index_name, making, delete, APPEND)
    assert str(ended.value).startswith(
        f"Index {index_name}-v0001 was deleted while it was being written: run the command again. 1 line of "
    )
    assert str(ended.value).endswith(" handled, but this load cannot be resumed: start again without --resume.")
    assert list(client.indices.get(index=f"{index_name}*")) == []


def test_interrupting_before_anything_is_written_leaves_nothing_behind(client, index_name, corpus, making):
    def interrupt(stage, _documents, _seconds):
        if stage == "shift":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(client, corpus({"_id": "a", "text": TEXTS["de"]}), index_name, making, interrupt)
    assert list(versions.versions_of(client, index_name)) == []
    assert not journal(client, index_name).exists()


@pytest.fixture
def interrupted(client, index_name, corpus, making, capsys):
    """A load of 300 documents that was interrupted when 256 had been written; its corpus."""
    path = corpus(*({"_id": str(number), "text": f"Das Meer, Teil {number}."} for number in range(300)))
    written = threading.Event()

    def interrupt(stage, _documents, _seconds):
        if stage == "write":
            written.set()
        elif stage == "shift" and interrupt.batches:
            assert written.wait(60)
            raise KeyboardInterrupt
        elif stage == "shift":
            interrupt.batches += 1

    interrupt.batches = 0
    with pytest.raises(KeyboardInterrupt):
        load(client, path, index_name, making, interrupt)
    assert capsys.readouterr().err == f"256 lines of {path} handled: continue with --resume.\n"
    return path


def test_an_interrupted_load_is_gone_on_with_where_it_was(client, index_name, making, interrupted, capsys):
    index = f"{index_name}-v0001"
    assert list(versions.unfinished(client, index_name)) == [index]
    assert versions.version_behind(client, index_name) is None
    detected = []

    def listen(stage, documents, _seconds):
        if stage == "detect":
            detected.append(documents)

    summary = load(client, interrupted, index_name, making, listen, RESUME)
    # What the server had confirmed is not encoded again.
    assert (summary.resumed, detected) == (256, [44])
    assert (summary.lines, summary.documents, summary.present, summary.replaced) == (300, 300, 300, 0)
    assert versions.live(client, index_name).index == summary.index == index
    assert versions.unfinished(client, index_name) == {}
    assert client.count(index=index_name)["count"] == 300
    assert capsys.readouterr().err == f"Resuming the load into {index_name} ({index}): 256 lines already handled.\n"
    again = load(client, interrupted, index_name, making, listen, RESUME)
    assert capsys.readouterr().err == (
        f"This load into {index_name} is already complete: there is nothing to resume.\n"
    )
    assert (again.resumed, again.lines, again.present, detected) == (300, 300, 300, [44])


def test_an_interrupted_load_is_not_left_without_a_word(client, index_name, making, interrupted, capsys):
    with pytest.raises(UsageError) as refused:
        load(client, interrupted, index_name, making)
    assert str(refused.value) == (
        f"A load of {interrupted} into {index_name} was interrupted after 256 lines: continue it with --resume, or "
        f"remove {journal(client, index_name)} to abandon it."
    )
    capsys.readouterr()
    summary = load(client, interrupted, index_name, making, options=LoadOptions(if_exists="replace"))
    assert capsys.readouterr().err == (
        f"A load of {interrupted} into {index_name} that was interrupted after 256 lines is abandoned.\n"
    )
    assert (summary.resumed, summary.present) == (0, 300)
    assert list(versions.versions_of(client, index_name)) == [summary.index]


def test_a_load_that_has_changed_is_not_gone_on_with(client, index_name, corpus, interrupted):
    corpus({"_id": "other", "text": TEXTS["de"]})
    with pytest.raises(UsageError) as refused:
        load(
            client,
            interrupted,
            index_name,
            build_pipeline(open_encoder("use-m"), open_detector(), None, 0.5),
            options=RESUME,
        )
    assert str(refused.value) == (
        f"The load of {interrupted} into {index_name} cannot be resumed, because the content of "
        f"{interrupted} and the alpha (1.0, not 0.5) changed: run it as it was begun, or remove "
        f"{journal(client, index_name)} to abandon it."
    )


def test_languages_without_an_analyzer_go_to_their_macrolanguages_fields(client, cluster_env, index_name, corpus):
    egyptian = "مرحبا بالعالم ازيك عامل ايه النهارده"
    path = corpus({"_id": "a", "text": egyptian}, {"_id": "b", "text": "Eg likar å lesa bøker.", "language": "nn"})
    done = langshift("ingest", path, "--index", index_name, "--json", url=cluster_env)
    assert json.loads(done.stdout)["folded"] == {"arz": 1, "nn": 1}
    assert done.stderr.splitlines()[:2] == [
        "1 document in arz counted as ar, its macrolanguage.",
        "1 document in nn counted as no, its macrolanguage.",
    ]
    source = stored(client, index_name, "a")
    assert (source["language"], list(source["text"]), source["shift"]["language"]) == ("ar", ["ar"], "ar")
    assert source["shift"]["tag"] == "arz"
    source = stored(client, index_name, "b")
    assert (source["language"], list(source["text"]), source["shift"]["tag"]) == ("no", ["no"], "nn")
    found = langshift(
        "search", index_name, "lesa bøker", "--mode", "lexical", "--language", "nb", "--json", url=cluster_env
    )
    assert json.loads(found.stdout)["language"] == "no"
    assert [hit["id"] for hit in json.loads(found.stdout)["hits"]] == ["b"]


def test_languages_of_the_live_index_most_frequent_first(client, index_name, corpus, making):
    documents = [{"text": TEXTS["th"], "n": i} for i in range(3)] + [{"text": TEXTS["de"]}, {"text": "123"}]
    load(client, corpus(*documents), index_name, making)
    index = versions.live(client, index_name)
    assert (index.languages, index.documents) == (("th", "de"), 5)
    assert index.fingerprint == making.fingerprint()


def test_dropping_removes_every_version(client, index_name, corpus, making):
    load(client, corpus({"text": TEXTS["th"]}), index_name, making)
    inventory.drop_all(client, index_name)
    assert versions.version_behind(client, index_name) is None
    assert list(versions.versions_of(client, index_name)) == []
