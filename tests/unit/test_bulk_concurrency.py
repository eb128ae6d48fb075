"""How many requests are sent at once."""

import threading

import pytest

from langshift.ingest.bulk.concurrency import Limit


def through(limit, times=1):
    for _ in range(times):
        with limit.request() as turn:
            turn.accepted = True


def overload(limit):
    with limit.request() as turn:
        turn.overloaded = True


def test_it_grows_by_one_a_round_up_to_the_most():
    limit = Limit(4)
    assert limit.at_once == 2
    through(limit, 2 + 1)
    assert limit.at_once == 3
    through(limit, 100)
    assert limit.at_once == 4


def test_overload_halves_it_down_to_one_and_it_recovers():
    limit = Limit(8)
    through(limit, 100)
    overload(limit)
    assert limit.at_once == 4
    for _ in range(9):
        overload(limit)
    assert limit.at_once == 1
    through(limit, 100)
    assert limit.at_once == 8


def test_requests_that_were_under_way_together_halve_it_once():
    limit = Limit(8)
    through(limit, 100)
    with limit.request() as first, limit.request() as second:
        first.overloaded = second.overloaded = True
    assert limit.at_once == 4


def test_what_was_neither_taken_nor_too_much_changes_nothing():
    limit = Limit(8)
    with limit.request():
        pass
    with pytest.raises(ValueError, match="lost"), limit.request():
        raise ValueError("lost")
    assert limit.at_once == 2


def test_never_more_at_once_than_the_limit_says():
    limit, seen, lock, under_way = Limit(3), [], threading.Lock(), set()

    def work(number):
        for _ in range(50):
            with limit.request() as turn:
                with lock:
                    under_way.add(number)
                    seen.append(len(under_way))
                turn.accepted = True
                with lock:
                    under_way.discard(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(seen) <= 3
    assert limit.seconds > 0
