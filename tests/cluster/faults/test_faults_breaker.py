"""Fault 5: the memory breaker of k-NN, whose 400 looks like a bad document's."""

import re
from itertools import repeat
from math import inf

import server_words
from faults import Breaker, refusing
from nothing_lost import write_corpus


def test_fault_5_the_memory_breaker_of_knn_never_makes_a_dead_letter(load):
    write_corpus(load.corpus, 3000)
    breaker = Breaker(server_words.broken, requests=6)
    load.proxy.inject("_bulk", repeat(breaker.bulk))
    assert load.accounted_for(load.run()) == []
    assert not load.place.dead_letters.exists()
    assert breaker.refused == 6


def test_fault_5_the_same_words_of_a_bad_document_make_a_dead_letter(load):
    write_corpus(load.corpus, 300)
    load.proxy.inject("_bulk", repeat(refusing(lambda one: server_words.bad_vector if one.id == "d7" else None)))
    (letter,) = load.accounted_for(load.run())
    assert (letter["line"], letter["_id"], letter["stage"]) == (8, "d7", "write")


def test_fault_5_a_breaker_that_stays_ends_the_load_with_the_diagnosis_and_it_can_be_resumed(load):
    write_corpus(load.corpus, 300)
    breaker = Breaker(server_words.broken, requests=inf)
    load.proxy.inject("_bulk", repeat(breaker.bulk))
    done = load.run("--patience", "2")
    assert (done.returncode, done.stdout) == (1, ""), done
    # A slow machine may have said before that it waits.
    assert re.sub("d[0-9]+", "dN", done.stderr.splitlines()[-1]) == (
        "Error: The cluster has accepted no documents for 2 seconds, because its memory for k-NN graphs is used up ("
        "failed to parse field [embedding] of type [knn_vector] in document with id 'dN'. Preview of field's value: "
        "'0.1' (Parsing the created knn vector fields prior to indexing has failed as the circuit breaker triggered. "
        "This indicates that the cluster is low on memory resources and cannot index more documents at the moment. "
        "Check _plugins/_knn/stats for the circuit breaker status.)): give the nodes more memory, or raise "
        "knn.memory.circuit_breaker.limit."
    )
    assert load.letters() == []
    load.proxy.clear()
    assert load.accounted_for(load.run("--resume")) == []
