"""Two loads that begin with one state at once: one wins, and is whole. Fifty times in ``tests/evidence``."""

import pytest
from loads_at_once import few_lines, in_turn, require_one_wins
from parted import GIVEN

from langshift.plugin.inventory import drop_all


@pytest.mark.parametrize(("where", "together"), [("here", True), ("here", False), ("s3", True)])
def test_of_two_loads_with_one_state_one_wins(became, client, cluster_url, store, tmp_path, where, together):
    corpus = few_lines(tmp_path / "corpus.jsonl")
    plain = became(corpus, options=GIVEN)
    in_turn(store)
    state = tmp_path / "state" if where == "here" else store.uri("state")
    name = require_one_wins(became, plain, state, corpus, tmp_path / "two", cluster_url, together=together)
    drop_all(client, name)
