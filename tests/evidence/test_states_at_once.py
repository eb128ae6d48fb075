"""Two loads that begin with one state at once, fifty times here and in S3: one wins, and is whole."""

import pytest
from loads_at_once import few_lines, in_turn, require_one_wins
from parted import GIVEN

from langshift.plugin.inventory import drop_all


@pytest.mark.parametrize("where", ["here", "s3"])
def test_of_two_loads_with_one_state_one_wins(became, client, cluster_url, store, tmp_path, where):
    corpus = few_lines(tmp_path / "corpus.jsonl")
    plain = became(corpus, options=GIVEN)
    in_turn(store)
    for number in range(50):
        state = tmp_path / f"state-{number}" if where == "here" else store.uri(f"state-{number}")
        folder = tmp_path / str(number)
        name = require_one_wins(became, plain, state, corpus, folder, cluster_url, together=number % 2 == 0)
        drop_all(client, name)
