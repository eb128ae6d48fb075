"""A line ends with the last of its chunks, in whatever order and from whichever thread they come."""

import random
import threading

from langshift.ingest.bulk.chunked import LineParts
from langshift.ingest.bulk.writer import ActionResult, BulkAction
from langshift.ingest.documents import Update

UPDATE = Update("a", {}, False, None, {})


def parts(*states, line=1, operation="index", update=None, result="created"):
    """The outcomes of a line's chunks."""
    return [
        ActionResult(
            BulkAction(
                line, "a", operation, b"body", b"{}", b"v" if n == 1 else None, ("language en", "no tag"), update,
                f"a#{n:04d}", len(states),
            ),
            state,
            result if state == "done" else "",
            reason=state,
        )
        for n, state in enumerate(states)
    ]  # fmt: skip


def ended(*outcomes):
    (line,) = LineParts().lines(outcomes)
    return line


def test_a_line_ends_with_its_last_chunk():
    gathered, (first, second, third) = LineParts(), parts("done", "done", "done")
    assert gathered.lines([third]) == []
    assert gathered.lines([first]) == []
    (line,) = gathered.lines([second])
    assert (line.state, line.result, line.chunks) == ("done", "created", 3)
    assert (line.item.id, line.item.target, line.item.vector, line.item.body) == ("a", "a#0001", b"v", b"")
    # Of the document what is the document's, of each chunk its language.
    assert sorted(line.item.tallies) == ["in chunks", *["language en"] * 3, "no tag"]


def test_a_line_that_is_one_entry_passes_as_it_is():
    plain = ActionResult(BulkAction(1, "a", "index", b"body", b"{}"), "done", "created")
    assert LineParts().lines([plain]) == [plain]


def test_one_dead_chunk_is_a_dead_line_and_one_superseded_a_superseded_one():
    dead = ended(*parts("done", "superseded", "dead", "done"))
    assert (dead.state, dead.reason, dead.chunks) == ("dead", "dead", 2)
    assert ended(*parts("done", "superseded", "done")).state == "superseded"
    # What an update did to the others leaves the document whole.
    assert ended(*parts("done", "dead", operation="update", update=UPDATE)).chunks == 0


def test_a_line_counts_as_what_happened_to_any_of_its_chunks():
    created, updated = parts("done", "done")
    assert ended(created, updated._replace(result="updated")).result == "updated"
    gone, absent = parts("done", "done", operation="delete", result="deleted")
    assert ended(absent._replace(result="not_found"), gone).result == "deleted"
    anew = ended(*parts("done", update=UPDATE, result="update"))
    assert (anew.result, "in chunks" in anew.item.tallies) == ("update", False)


def test_threads_share_them():
    gathered, lines = LineParts(), []
    outcomes = [one for line in range(200) for one in parts(*["done"] * 7, line=line)]
    random.Random(6).shuffle(outcomes)

    def work(share):
        for one in share:
            lines.extend(gathered.lines([one]))

    threads = [threading.Thread(target=work, args=(outcomes[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line.item.line for line in lines) == list(range(200))
