"""What ``langshift index describe`` says in words."""

from dataclasses import replace

import pytest
from described_index import LIVE, MADE, RETUNE, WELL
from plain_index import PLAIN

from langshift.errors import UsageError
from langshift.plugin.description import in_words, remarks
from langshift.plugin.index_body import VectorField
from langshift.plugin.inventory import find_version
from langshift.plugin.shift_script import StampCounts
from langshift.plugin.transfer.state import this_process


def test_where_all_is_well_nothing_is_remarked():
    assert remarks(WELL) == []


def test_documents_that_do_not_agree_with_the_index_are_counted_with_the_remedy():
    assert remarks(replace(WELL, without_vector=1, stamps=StampCounts(8, 2, 1, 3))) == [
        "1 document has no vector: dense search finds only documents with a vector.",
        "2 documents have a vector but no stamp, so it is unknown whether the vector was shifted: index such documents "
        "again, with `langshift ingest` or after `langshift pipeline install news`.",
        "1 document was shifted by language vectors other than the index's (0123456789abcdef), and cannot be retuned: "
        "index such documents again.",
        "3 documents were shifted with a scale other than the index's: "
        "`langshift retune news --alpha 0.6 --alpha-for th=0.3 --alpha-for zh-TW=0` gives all documents "
        "the same scale.",
    ]
    plain = replace(LIVE, fingerprint=PLAIN)
    assert remarks(replace(WELL, version=plain, stamps=StampCounts(9, 0, 2, 0))) == [
        "2 documents were shifted although the index has no language vectors, and cannot be retuned: "
        "index such documents again."
    ]
    assert remarks(replace(WELL, stamps=None)) == [
        "The index does not record which language vectors it has, so the documents' stamps were not checked."
    ]


def test_an_engine_that_gives_other_vectors_back_is_told():
    assert remarks(replace(WELL, vector=VectorField("faiss", "cosinesimil", derived=True))) == [
        "The engine faiss returns vectors with norm 1, whatever was written, so the index cannot be retuned: "
        "create it again with langshift's default settings or the engine lucene."
    ]


def test_a_write_block_is_told_with_who_left_it():
    blocked = replace(LIVE, write_blocked=True)
    assert remarks(replace(WELL, version=blocked, versions=[blocked, RETUNE])) == [
        "Nothing can be written to news-v0001: the retune to news-v0002 has blocked it for its last step.",
        "The retune of news to news-v0002 is still running or was interrupted: in that case, finish it with "
        "`langshift retune news --alpha 0.6 --alpha-for th=0.3 --alpha-for zh-TW=0`, or abandon it with `langshift "
        "index drop news --version news-v0002`.",
    ]
    by_somebody = replace(RETUNE, blocks=None)
    assert remarks(replace(WELL, version=blocked, versions=[blocked, by_somebody]))[0] == (
        "Nothing can be written to news-v0001: an administrator or a full disk has blocked it (index.blocks)."
    )
    assert remarks(replace(WELL, version=blocked, versions=[blocked])) == [
        "Nothing can be written to news-v0001: an administrator or a full disk has blocked it (index.blocks)."
    ]
    kept = replace(blocked, state="kept")
    assert remarks(replace(WELL, version=kept, versions=[kept])) == [
        "Nothing can be written to news-v0001: it is kept as it was when another version replaced it."
    ]


def test_what_is_known_of_the_process_is_told_with_the_command_that_finishes_its_work():
    own = dict(this_process())
    left = replace(RETUNE, begun="2026-11-25T10:00:00+00:00", process=own, fingerprint=replace(MADE, vectors="other"))
    other = replace(left, unfinished="reencode", process={**own, "host": "elsewhere"})
    back = replace(left, unfinished="rollback", process={**own, "started": 1.0})
    drop = "or abandon it with `langshift index drop news --version news-v0002`"
    assert [remarks(replace(WELL, versions=[LIVE, one]))[0] for one in (left, other, back)] == [
        "The retune of news to news-v0002, which began at 2026-11-25T10:00:00+00:00, is still running, as process "
        f"{own['pid']} of this machine.",
        "The reencode of news to news-v0002, which began at 2026-11-25T10:00:00+00:00, is still running on elsewhere "
        f"or was interrupted: in that case, finish it with `langshift reencode news --encoder {MADE.encoder}` and its "
        f"other options, {drop}.",
        "The rollback of news to news-v0002, which began at 2026-11-25T10:00:00+00:00, was interrupted: finish it with "
        "`langshift rollback news`.",
    ]
    (interrupted,) = remarks(replace(WELL, versions=[LIVE, replace(left, process={**own, "started": 1.0})]))
    scales = "--alpha 0.6 --alpha-for th=0.3 --alpha-for zh-TW=0"
    assert interrupted.endswith(
        f" was interrupted: finish it with `langshift retune news {scales}` and the same --vectors, {drop}."
    )


def test_an_unfinished_load_is_told_with_the_ways_there_are():
    left = replace(RETUNE, unfinished="load", blocks=None)
    assert remarks(replace(WELL, versions=[LIVE, left])) == [
        "news-v0002 is not finished: a load is still writing it or was interrupted. Run that again with --resume, or "
        "remove the version with `langshift index drop news --version news-v0002`."
    ]


def test_a_fingerprint_in_words():
    assert in_words(replace(MADE, query_prefix="query: ", document_prefix="passage: ", normalised=True)) == [
        "Its vectors were computed by the encoder toy (revision 1): 4 dimensions, norm 1, prefix 'query: ' for each "
        "query and 'passage: ' for each document.",
        "Each document was shifted with alpha 0.6 (th 0.3, zh-TW 0) and the language vectors 0123456789abcdef "
        "(pivot en).",
        "Languages were detected by none; the index was built by langshift 0.1.0.",
    ]
    assert in_words(PLAIN)[:2] == [
        "Its vectors were computed by the encoder toy (revision 1): 4 dimensions, any norm.",
        "No document was shifted: the index has no language vectors.",
    ]
    assert in_words(replace(MADE, alpha=0.0, alphas={}))[1] == (
        "No document was shifted (alpha 0); the index has the language vectors 0123456789abcdef (pivot en)."
    )
    assert PLAIN.scales == "alpha 0"
    assert replace(PLAIN, alpha=0.6, alphas={"th": 0.3}, gamma=0.97).scales == "alpha 0.6 (th 0.3), gamma 0.97"


@pytest.mark.parametrize("told", ["1", "01", "v1", "v0001", "news-v0001"])
def test_a_version_may_be_named_by_its_number(told):
    assert find_version("news", told, [LIVE, RETUNE]) == LIVE


@pytest.mark.parametrize("told", ["", "0", "3", "*", "v", "-1", "other-v0001", "news", "١", "1 "])
def test_a_version_that_is_not_there_is_refused_with_those_that_are(told):
    with pytest.raises(UsageError) as refused:
        find_version("news", told, [LIVE, RETUNE])
    assert str(refused.value) == f"news has no version {told!r}: it has news-v0001, news-v0002."
