"""Reading the answer to a bulk request: what each item says, and what no answer may be."""

import pytest

from langshift.ingest.bulk.answer import Broken, read, reason
from langshift.ingest.bulk.item import Chunk, Item

NAMES = ("a", "b", "c")


def chunk(*operations):
    operations = operations or ("index",) * 3
    return Chunk(
        [Item(n, name, op, b"x", b"{}") for n, (name, op) in enumerate(zip(NAMES, operations, strict=False), 1)]
    )


def told(*statuses, operation="index", **more):
    return {"items": [{operation: {"_id": n, "status": s, **more}} for n, s in zip(NAMES, statuses, strict=False)]}


def error(status, kind, why="", name="a", operation="index"):
    return {"items": [{operation: {"_id": name, "status": status, "error": {"type": kind, "reason": why}}}]}


def verdict(answer, sent=None, breaks=lambda _: False, unsure=False):
    return read(answer, sent or chunk(), breaks, unsure=unsure)


def alone(status, kind, operation="index", breaks=lambda _: False):
    return verdict(error(status, kind, "why", operation=operation), Chunk(chunk(operation).items[:1]), breaks)


def test_each_item_goes_its_own_way():
    answer = told(201, 200, 200)
    answer["items"][1]["index"] |= {"status": 429, "error": {"type": "rejected_execution_exception", "reason": "queue"}}
    answer["items"][2]["index"] |= {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "no date"}}
    found = verdict(answer)
    assert [(o.item.id, o.state, o.type, o.reason) for o in found.settled] == [
        ("a", "done", "", ""),
        ("c", "dead", "mapper_parsing_exception", "no date"),
    ]
    assert ([item.id for item in found.again], found.why, found.overloaded, found.fatal) == (["b"], "queue", True, "")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "es_rejected_execution_exception"),
        (429, "circuit_breaking_exception"),
        (503, "unavailable_shards_exception"),
        (500, "node_disconnected"),
        (403, "cluster_block_exception"),
        (429, "cluster_block_exception"),
    ],
)
def test_what_says_nothing_against_a_document_is_sent_again(status, kind):
    found = alone(status, kind)
    assert ([item.id for item in found.again], found.settled, found.fatal) == (["a"], [], "")


@pytest.mark.parametrize(
    ("status", "kind"), [(403, "security_exception"), (401, "security_exception"), (404, "index_not_found_exception")]
)
def test_what_stands_against_every_document_is_fatal(status, kind):
    found = alone(status, kind)
    assert (found.fatal, found.settled, found.again) == ("why", [], [])


def test_a_later_version_on_the_server_supersedes():
    assert alone(409, "version_conflict_engine_exception").settled[0].state == "superseded"


def test_deleting_what_is_not_there_is_done():
    answer = {"items": [{"delete": {"_id": "a", "status": 404, "result": "not_found"}}]}
    (outcome,) = verdict(answer, Chunk(chunk("delete").items[:1])).settled
    assert (outcome.state, outcome.result) == ("done", "not_found")


def test_a_breakers_400_is_no_bad_document():
    assert alone(400, "mapper_parsing_exception", breaks=lambda _: True).again
    assert alone(400, "mapper_parsing_exception").settled[0].state == "dead"


def test_what_was_sent_before_may_have_been_written_by_us():
    found = verdict(told(200, 200, 201, result="updated"), unsure=True)
    assert [o.result for o in found.settled] == ["resent"] * 3
    assert [o.result for o in verdict(told(200, 200, 200, result="updated")).settled] == ["updated"] * 3


@pytest.mark.parametrize(
    "answer",
    [
        told(201, 201),
        {"items": told(201, 201, 201)["items"] * 2},
        {"items": told(201, 201, 201)["items"][::-1]},
        told(201, 201, 201, operation="delete"),
        told("201", 201, 201),
        {"items": [None, None, None]},
        {"items": None},
        {},
        [],
        "text",
        None,
    ],
)
def test_an_answer_that_is_not_to_this_request_is_none(answer):
    with pytest.raises(Broken):
        verdict(answer)


def test_an_error_in_words():
    nested = {"type": "t", "reason": "failed.", "caused_by": {"reason": "x", "caused_by": {"reason": "the  root."}}}
    assert reason(nested) == "failed. (the root.)"
    assert reason({"type": "t"}) == "t"
    assert reason({"reason": "it broke: why", "caused_by": {"reason": "why"}}) == "it broke: why"
