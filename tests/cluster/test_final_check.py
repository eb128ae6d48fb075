"""The final check: what the cluster has confirmed is compared with what is there."""

import numpy as np
import pytest
from opensearchpy import helpers
from plain_index import PLAIN

from langshift.errors import ClusterError
from langshift.ingest import publication as checking
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.journal_store import Acknowledged, Sampled
from langshift.ingest.publication import VerificationResult, check
from langshift.plugin import version_writer

BASE = 1_750_000_000_000 << 20


class Load:
    """Lines that are written and acknowledged as a load does it."""

    def __init__(self, client, target, journal):
        self.client, self.target, self.journal = client, target, journal
        self.line = 0

    def write(self, ids, operation="index"):
        """Write the next lines, or delete by them."""
        actions, rows, sampled = [], [], []
        for identifier in ids:
            self.line += 1
            vector = np.random.default_rng(self.line).normal(0, 30, PLAIN.dimension).astype(np.float32)
            actions.append(action(self.target.index, identifier, self.line, vector, operation))
            rows.append(Acknowledged(self.line, identifier, operation))
            if operation == "index" and self.journal.wants(self.line):
                sampled.append(Sampled(self.line, identifier, vector.tobytes()))
        # Deleting what is not there is answered with 404.
        helpers.bulk(self.client, actions, ignore_status=404)
        self.journal.acknowledge(rows, sampled)

    def check(self):
        """The final check."""
        return check(self.client, self.target, lambda: [self.journal], BASE)


def action(index, identifier, line, vector, operation="index"):
    """A write as loads make it."""
    made = {"_op_type": operation, "_index": index, "_id": identifier}
    versioned = {"version": BASE + line, "version_type": "external_gte"}
    return {**made, **versioned, **({"embedding": vector.tolist()} if operation == "index" else {})}


def overwrite(client, index, identifier, line):
    """Put another vector in the place of one, with the version of a line."""
    helpers.bulk(client, [action(index, identifier, line, np.ones(PLAIN.dimension, np.float32))])


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "journal.sqlite") as opened:
        opened.begin({}, {})
        yield opened


@pytest.fixture
def load(client, index_name, journal):
    """A load into a new version."""
    return Load(client, version_writer.open_for_writing(client, index_name, PLAIN), journal)


@pytest.fixture
def added(client, index_name, journal):
    """A load into an index that holds other documents, more than the load has."""
    target = version_writer.open_for_writing(client, index_name, PLAIN)
    helpers.bulk(client, ({"_index": target.index, "_id": f"other{n}"} for n in range(3000)))
    version_writer.publish(client, target)
    return Load(client, version_writer.open_for_writing(client, index_name, PLAIN, if_exists="append"), journal)


@pytest.fixture(params=["load", "added"])
def either(request):
    """Both kinds."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def requests(client, monkeypatch):
    """The numbers of ids that requests for single documents ask for."""
    seen = []
    real = client.mget

    def mget(**arguments):
        seen.append(len(arguments["body"]["docs"]))
        return real(**arguments)

    monkeypatch.setattr(client, "mget", mget)
    return seen


def test_where_all_is_there_nothing_is_reported_and_little_is_fetched(either, requests):
    either.write(f"d{n}" for n in range(1500))
    either.write(["d3", "d4", "d3"])
    assert either.check() == VerificationResult(1500, 1500, [], [], 0)
    assert sum(requests) == len(either.journal.sample()) <= 200


def test_an_empty_load_is_in_order(either):
    assert either.check() == VerificationResult(0, 0, [], [], 0)


def test_documents_that_were_lost_are_all_named_with_their_lines(either, monkeypatch):
    monkeypatch.setattr(checking, "_COUNTED", 400)
    monkeypatch.setattr(checking, "_FETCHED", 100)
    either.write(f"d{n:04}" for n in range(1500))
    either.write(["d0007"])
    sampled = {each.id for each, _ in either.journal.sample()}
    lost = [n for n in (7, 100, 399, 400, 401, 1201, 1499) if f"d{n:04}" not in sampled or n == 7]
    helpers.bulk(
        either.client, [{"_op_type": "delete", "_index": either.target.index, "_id": f"d{n:04}"} for n in lost]
    )
    checked = either.check()
    assert checked == VerificationResult(
        1500, 1500, [(f"d{n:04}", 1501 if n == 7 else n + 1, f"d{n:04}") for n in lost], [], 0
    )


def test_only_the_batch_that_falls_short_is_fetched_and_no_further_than_to_the_last_lost(either, monkeypatch, requests):
    monkeypatch.setattr(checking, "_COUNTED", 500)
    monkeypatch.setattr(checking, "_FETCHED", 100)
    either.write(f"d{n:04}" for n in range(1500))
    sampled = {each.id for each, _ in either.journal.sample()}
    lost = next(n for n in range(610, 690) if f"d{n:04}" not in sampled)
    either.client.delete(index=either.target.index, id=f"d{lost:04}")
    assert either.check().missing == [(f"d{lost:04}", lost + 1, f"d{lost:04}")]
    assert sum(requests) == len(sampled) + 200


def test_all_is_lost(either):
    either.write(f"d{n}" for n in range(30))
    helpers.bulk(
        either.client, [{"_op_type": "delete", "_index": either.target.index, "_id": f"d{n}"} for n in range(30)]
    )
    checked = either.check()
    assert (len(checked.missing), checked.differing, checked.surplus) == (30, [], 0)


def test_a_document_with_another_vector_at_the_same_version_is_named(either):
    either.write(["a", "b", "c"])
    overwrite(either.client, either.target.index, "b", 2)
    assert either.check() == VerificationResult(3, 3, [], [("b", 2, "b")], 0)


def test_a_vector_that_is_gone_or_has_another_length_differs(either):
    either.write(["a", "b"])
    bare = action(either.target.index, "a", 1, np.zeros(0))
    del bare["embedding"]
    helpers.bulk(either.client, [bare])
    assert either.check().differing == [("a", 1, "a")]


def test_what_somebody_else_has_updated_since_is_not_reported(either):
    either.write(["a", "b", "c"])
    overwrite(either.client, either.target.index, "b", 2**25)
    either.client.update(index=either.target.index, id="c", body={"doc": {"embedding": [1, 2, 3, 4]}})
    assert either.check() == VerificationResult(3, 3, [], [], 0)


def test_an_older_version_of_a_document_counts_as_lost_and_makes_the_check_read_every_document(client, added):
    """As after a copy of a shard that was behind became the primary."""
    ids = [f"d{n:04}" for n in range(1000)]
    # Lines of an earlier load have earlier versions.
    helpers.bulk(client, [action(added.target.index, id, -2000 + n, np.ones(4)) for n, id in enumerate(ids)])
    added.write(ids[:10])
    rows = [Acknowledged(n + 1, ids[n], "index") for n in range(10, 1000)]
    vector = np.full(4, 2, np.float32).tobytes()
    added.journal.acknowledge(rows, [Sampled(r.line, r.id, vector) for r in rows if added.journal.wants(r.line)])
    checked = added.check()
    assert checked == VerificationResult(1000, 1000, [(id, n + 1, id) for n, id in enumerate(ids)][10:], [], 0)


def test_deletes_in_the_stream_leave_nothing_to_be_missed(either):
    either.write(["a", "b", "c", "d"])
    either.write(["a", "b", "never"], "delete")
    either.write(["b"])
    assert either.check() == VerificationResult(3, 3, [], [], 0)
    either.client.delete(index=either.target.index, id="b")
    assert either.check() == VerificationResult(3, 3, [("b", 8, "b")], [], 0)


def test_lines_that_are_dead_or_superseded_are_not_missed(either):
    either.write(["a", "b"])
    either.journal.acknowledge([Acknowledged(3, "dead", "dead"), Acknowledged(4, "late", "superseded")])
    assert either.check() == VerificationResult(2, 2, [], [], 0)


def test_documents_that_a_new_version_should_not_have_are_counted(client, load):
    load.write(["a", "b", "c"])
    client.delete(index=load.target.index, id="a")
    helpers.bulk(client, [{"_index": load.target.index, "_id": f"strange{n}"} for n in range(4)])
    assert load.check() == VerificationResult(3, 3, [("a", 1, "a")], [], 4)


def test_ids_of_any_letters_and_of_the_greatest_length(either):
    ids = ['ä"\\/ %?#', "日" * 170, "x" * 512, "-", "_"]
    either.write(ids)
    assert either.check() == VerificationResult(5, 5, [], [], 0)
    either.client.delete(index=either.target.index, id=ids[0])
    assert either.check().missing == [(ids[0], 1, ids[0])]


def test_a_version_that_was_deleted_cannot_be_checked(client, load):
    load.write(["a"])
    client.indices.delete(index=load.target.index)
    with pytest.raises(ClusterError) as refused:
        load.check()
    assert str(refused.value) == (
        f"Index {load.target.index} was deleted while it was being written: run the command again."
    )
