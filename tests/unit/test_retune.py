"""What a retune makes of what an index says of itself and of what is asked for, and what it refuses."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from advice import advised
from given_data import Made, run
from shifted_index import DIMENSION, language_vectors, refused, saved, with_directions

from langshift import __version__
from langshift.debias.debiaser import Debiaser
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError, FingerprintError, UsageError
from langshift.plugin.retune import RetuneRequest, lagging_replicas, plan_retune
from langshift.plugin.stored_shift import to_metadata
from langshift.plugin.transfer import reindex_tasks
from langshift.plugin.transfer.state import TransferAborted

KNOWN = language_vectors(alphas={"th": 0.5}, alpha=0.75)
OTHERS = language_vectors(2, ("de", "fr"), pivot="es", alpha=0.5, alphas={"fr": 0.25})
MADE = Fingerprint(
    encoder="given",
    revision="",
    query_prefix="",
    document_prefix="",
    dimension=DIMENSION,
    normalised=False,
    pivot="en",
    alpha=0.75,
    vectors=KNOWN.hash,
    detector="lid",
    langshift="0.0.9",
    alphas={"th": 0.5},
)
MINE = {"theirs": {"a": 1}, **to_metadata(Debiaser(KNOWN, alpha=0.75, alphas={"th": 0.5}))}


def made(wanted, fingerprint=MADE, mine=MINE):
    index = SimpleNamespace(name="news", index="news-v0001", fingerprint=fingerprint)
    return plan_retune(index, {**mine, "langshift": fingerprint.to_dict()}, wanted)


@pytest.mark.parametrize(
    ("wanted", "alpha", "alphas"),
    [
        (RetuneRequest(0.6), 0.6, {}),
        (RetuneRequest(0.0), 0.0, {}),
        (RetuneRequest(alphas={"de": 0.25}), 0.75, {"de": 0.25, "th": 0.5}),
        (RetuneRequest(alphas={"th": 0.75}), 0.75, {}),
        (RetuneRequest(0.6, {"th": 0.3, "de": 0.6}), 0.6, {"th": 0.3}),
    ],
)
def test_scales(wanted, alpha, alphas):
    plan = made(wanted)
    assert (plan.old.alpha, plan.old.alphas) == (0.75, {"th": 0.5})
    assert (plan.new.alpha, plan.new.alphas) == (alpha, alphas)
    assert (plan.new.hash, plan.new.pivot, set(plan.new.vectors)) == (KNOWN.hash, "en", set(KNOWN.vectors))
    fingerprint = replace(MADE, alpha=alpha, alphas=alphas, langshift=__version__)
    assert plan.meta == {**MINE, "langshift": fingerprint.to_dict()}
    assert plan.changes


@pytest.mark.parametrize(
    "wanted",
    [RetuneRequest(0.75, {"th": 0.5}), RetuneRequest(alphas={"th": 0.5}), RetuneRequest(alphas={"de": 0.75})],
    ids=str,
)
def test_nothing_changes(wanted):
    assert not made(wanted).changes


def test_other_vectors_come_with_what_they_recommend_unless_something_else_is_asked_for(tmp_path):
    path = saved(tmp_path, OTHERS)
    plan = made(RetuneRequest(vectors=path))
    assert (plan.new.hash, plan.new.pivot, plan.new.alpha, plan.new.alphas) == (OTHERS.hash, "es", 0.5, {"fr": 0.25})
    assert plan.old.hash == KNOWN.hash
    fingerprint = replace(
        MADE, alpha=0.5, alphas={"fr": 0.25}, vectors=OTHERS.hash, pivot="es", langshift=__version__
    ).to_dict()
    assert plan.meta == {"theirs": {"a": 1}, **to_metadata(Debiaser(OTHERS)), "langshift": fingerprint}
    for wanted, alpha, alphas in (
        (RetuneRequest(1.0, vectors=path), 1.0, {}),
        (RetuneRequest(None, {"de": 0.1}, path), 0.5, {"de": 0.1, "fr": 0.25}),
        (RetuneRequest(1.0, {"fr": 0.1}, path), 1.0, {"fr": 0.1}),
    ):
        plan = made(wanted)
        assert (plan.new.alpha, plan.new.alphas) == (alpha, alphas)


def test_the_same_vectors_are_no_change(tmp_path):
    assert not made(RetuneRequest(vectors=saved(tmp_path, KNOWN))).changes


BOTH = with_directions(KNOWN)
WITH = replace(MADE, vectors=BOTH.hash)


def test_a_gamma(tmp_path):
    known = replace(BOTH, **advised({"alpha": 1.0, "gamma": 0.97}))
    path = saved(tmp_path, known)
    plan = made(RetuneRequest(vectors=path))
    assert (plan.old.gamma, plan.new.alpha, plan.new.gamma, plan.meta["langshift"]["gamma"]) == (0.0, 1.0, 0.97, 0.97)
    assert plan.new.step is not None
    # One that was recommended belongs to the alpha of the recommendation.
    for wanted, gamma in (
        (RetuneRequest(0.5, vectors=path), 0.0),
        (RetuneRequest(0.5, vectors=path, gamma=0.9), 0.9),
        (RetuneRequest(gamma=0.0, vectors=path), 0.0),
    ):
        assert made(wanted).new.gamma == gamma
    # An index has what it takes, and keeps its gamma beside another alpha.
    mine = to_metadata(Debiaser(BOTH, alpha=0.75, alphas={"th": 0.5}))
    assert made(RetuneRequest(gamma=0.98), WITH, mine).new.gamma == 0.98
    assert made(RetuneRequest(0.5), replace(WITH, gamma=0.95), mine).new.gamma == 0.95
    assert not made(RetuneRequest(gamma=0.95), replace(WITH, gamma=0.95), mine).changes


@pytest.mark.parametrize("gamma", [0.5, 0.89, 0.99, 1.0])
def test_a_gamma_that_is_no_better_or_cannot_be_undone_is_refused(tmp_path, gamma):
    for wanted in (RetuneRequest(gamma=gamma), RetuneRequest(gamma=gamma, vectors=saved(tmp_path, BOTH))):
        with pytest.raises(UsageError) as refused:
            made(wanted, WITH, to_metadata(Debiaser(BOTH, alpha=0.75, alphas={"th": 0.5})))
        assert str(refused.value) == (
            f"gamma {gamma:g} cannot be used: it must be 0, or 0.9 to 0.98. Values between find less than either, and "
            "what 1 takes out of a vector cannot be put back."
        )


def test_an_index_without_directions_takes_no_gamma(tmp_path):
    with pytest.raises(UsageError) as refused:
        made(RetuneRequest(gamma=0.97))
    assert str(refused.value) == (
        "Index news was built without the common mean and the directions that a gamma takes out: give language vectors "
        "that have them with --vectors."
    )
    with pytest.raises(UsageError, match=r"^The language vectors contain no directions of queries for a gamma: "):
        made(RetuneRequest(gamma=0.97, vectors=saved(tmp_path, KNOWN)))


def test_an_index_without_vectors_gets_some(tmp_path):
    plain = replace(MADE, pivot=None, vectors=None, alpha=0.0, alphas={})
    plan = made(RetuneRequest(vectors=saved(tmp_path, OTHERS)), plain, {})
    assert (plan.old.hash, plan.old.alpha) == (None, 0.0)
    assert (plan.new.hash, plan.new.alpha) == (OTHERS.hash, 0.5)
    for wanted in (RetuneRequest(0.5), RetuneRequest(alphas={"th": 0.5})):
        with pytest.raises(UsageError) as refused:
            made(wanted, plain, {})
        assert str(refused.value) == (
            "Index news was built without language vectors, so nothing can be shifted: give some with --vectors."
        )
    assert not made(RetuneRequest(0.0), plain, {}).changes


def test_an_index_without_its_vectors_is_refused(tmp_path):
    for wanted in (RetuneRequest(0.6), RetuneRequest(vectors=saved(tmp_path, KNOWN))):
        with pytest.raises(ClusterError) as refused:
            made(wanted, mine={})
        assert str(refused.value) == (
            f"Index news-v0001 does not contain its language vectors ({KNOWN.hash}): index the corpus again."
        )


def test_a_language_without_a_vector_cannot_be_scaled(tmp_path):
    for tag in ("vi", "en", "zh"):
        with pytest.raises(UsageError) as refused:
            made(RetuneRequest(0.5, {tag: 0.1}))
        assert str(refused.value) == (
            f"There is no language vector for {tag} to scale: --alpha-for accepts de, th, zh-TW."
        )
    alone = r"^There is no language vector for th to scale: --alpha-for accepts de, fr\.$"
    with pytest.raises(UsageError, match=alone):
        made(RetuneRequest(alphas={"th": 0.1}, vectors=saved(tmp_path, OTHERS)))


def test_vectors_of_another_encoder_or_dimension_are_refused(tmp_path):
    for fields, told in (
        ({"encoder": "use-m"}, "with encoder use-m, not given"),
        ({"normalised": True}, "on embeddings of norm 1, but given returns embeddings that are not normalised"),
    ):
        path = saved(tmp_path, replace(OTHERS, **fields))
        with pytest.raises(FingerprintError) as refused:
            made(RetuneRequest(vectors=path))
        assert str(refused.value) == (
            f"{path}: these language vectors were fitted {told}: "
            "fit vectors for this encoder with `langshift vectors fit`."
        )
    path = saved(tmp_path, language_vectors(dimension=4))
    with pytest.raises(FingerprintError, match=r": these language vectors were fitted with dimension 4, not 6: fit "):
        made(RetuneRequest(vectors=path))


SEGMENT = {"replication": {"type": "SEGMENT"}}


@pytest.mark.parametrize(
    ("settings", "lag"),
    [
        ({**SEGMENT, "number_of_replicas": "1"}, True),
        ({**SEGMENT, "number_of_replicas": "2", "auto_expand_replicas": "0-all"}, True),
        (SEGMENT, True),
        ({**SEGMENT, "number_of_replicas": "0"}, False),
        ({"replication": {"type": "DOCUMENT"}, "number_of_replicas": "1"}, False),
        ({"number_of_replicas": "1"}, False),
    ],
)
def test_replicas_that_take_segments_over_may_lag(settings, lag):
    assert lagging_replicas(settings) is lag


MEASURED = "{} is about what --gate measures: give a dataset with --gate too."


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "There is nothing to change: give --alpha, --alpha-for, --gamma, --own or --vectors."),
        (["--alpha", 1, "--fail-if", "SLR@20 < 0"], MEASURED.format("--fail-if")),
        (["--alpha", 1, "--accept-loss"], MEASURED.format("--accept-loss")),
        (["--alpha", 1, "--encoder", "use-m"], "Nothing is encoded without --gate: leave --encoder out."),
    ],
)
def test_wrong_use(options, told):
    assert refused(run("retune", "news", *options)) == (told, 2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--alpha", "1.1"], "Invalid value for '--alpha': 1.1 is not in the range 0<=x<=1."),
        (["--alpha", "nan"], "Invalid value for '--alpha': nan is not in the range 0<=x<=1."),
        (["--alpha-for", "th=1.1"], "Invalid value for '--alpha-for': 1.1 is not in the range 0<=x<=1."),
        (
            ["--alpha-for", "0.3"],
            "Invalid value for '--alpha-for': 0.3 is not a language with a scale, such as th=0.3.",
        ),
        (["--alpha-for", "th"], "Invalid value for '--alpha-for': th is not a language with a scale, such as th=0.3."),
        (["--alpha-for", "th=x"], "Invalid value for '--alpha-for': 'x' is not a valid float range."),
        (
            ["--alpha-for", "th=0.3", "--alpha-for", "tha=0.4"],
            "Invalid value for '--alpha-for': th is given twice: the languages must be unique.",
        ),
        (["--throttle", "0"], "Invalid value for '--throttle': 0.0 is not in the range x>0."),
    ],
)
def test_numbers_that_are_none(options, told):
    done = run("retune", "news", *options)
    assert done.exit_code == 2
    assert done.output.splitlines()[-1] == f"Error: {told}"


@pytest.mark.parametrize(
    ("folder", "condition", "told"),
    [
        (
            "none",
            "SLR@20 < 0",
            "There is no dataset folder {}: a dataset folder contains corpus.jsonl, queries.jsonl and qrels/test.tsv.",
        ),
        (
            "data",
            "SLR@20 in fr < 0",
            "--fail-if 'SLR@20 in fr < 0': there are no queries in 'fr'; the queries are in en.",
        ),
    ],
)
def test_a_gate_is_read_before_a_cluster_is_asked_anything(tmp_path, monkeypatch, folder, condition, told):
    monkeypatch.setenv("OPENSEARCH_URL", "http://127.0.0.1:9")
    Made(tmp_path)
    sentence, code = refused(run("retune", "news", "--alpha", 1, "--gate", tmp_path / folder, "--fail-if", condition))
    assert sentence == told.format(tmp_path / folder)
    assert code == 2


def test_a_version_that_is_deleted_while_it_is_made_is_told_as_that_and_not_as_a_document():
    cause = {"type": "index_not_found_exception", "reason": "no such index [news-v0002]", "index": "news-v0002"}
    answer = {"failures": [{"index": "news-v0002", "id": "d0", "cause": cause, "status": 404}]}
    with pytest.raises(TransferAborted) as given_up:
        reindex_tasks._result(answer)
    assert str(given_up.value) == "Index news-v0002 was deleted during the copying: run the command again."
