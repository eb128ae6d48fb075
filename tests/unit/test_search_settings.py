"""Settings as options, arguments and text; what does not belong together is refused in the words it was given in."""

import re
from dataclasses import replace

import pytest
from check_names import ROOT
from command_line import langshift, refusal
from hypothesis import given
from hypothesis import strategies as st
from plain_index import PLAIN
from search_request import preferring

from langshift.commands.anchors import calibration_due
from langshift.commands.search import search
from langshift.errors import ClusterError, UsageError
from langshift.plugin.metadata import USUAL as FIELDS
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.calibration.stored import StoredCalibration, no_answer, remarks, resolve, resolve_auto
from langshift.retrieval.plans import HttpRequest
from langshift.retrieval.question import AnchorModel
from langshift.retrieval.request import (
    ARGUMENTS,
    MODES,
    MOST_CHARACTERS,
    RECOMMENDED,
    SETTING,
    USUAL,
    SearchArguments,
    SearchSettings,
    format_settings,
    in_command,
    read_arguments,
    read_setting,
)
from langshift.retrieval.result import nearness_notes
from langshift.web.search.state import MOST_PREFERENCE

settings = st.builds(
    lambda mode, beta, fusion, weight, tokens, one: SearchSettings(
        mode,
        **preferring(beta),
        fusion=fusion if mode == "hybrid" else USUAL.fusion,
        lexical_weight=weight if mode == "hybrid" else USUAL.lexical_weight,
        sparse_weight=tokens * (1 - weight) if mode == "hybrid" else USUAL.sparse_weight,
        one_per_group=one,
    ),
    st.sampled_from(MODES),
    st.one_of(st.sampled_from([0.0, 0.02, -0.1]), st.floats(-2, 2)),
    st.sampled_from(ARGUMENTS["fusion"].choices),
    st.one_of(st.sampled_from([0.0, 0.3, 1.0]), st.floats(0, 1)),
    st.one_of(st.just(0.0), st.floats(0, 0.99)),
    st.booleans(),
)


@given(settings)
def test_what_is_written_is_read_again(setting):
    assert read_setting(format_settings(setting)) == setting


def test_what_is_usual_is_not_written():
    assert format_settings(USUAL) == "dense"
    assert format_settings(SearchSettings("hybrid", spread=0.02, fusion="rrf", one_per_group=True)) == (
        "hybrid --spread 0.02 --fusion rrf --one-per-group"
    )
    assert (
        format_settings(SearchSettings("hybrid", prefer_language=2.0, lexical_weight=1.0))
        == "hybrid --prefer-language 2 --lexical-weight 1"
    )
    assert format_settings(SearchSettings("hybrid", sparse_weight=0.5)) == "hybrid --sparse-weight 0.5"
    assert format_settings(SearchSettings("dense", prefer_language=0.1234567)) == "dense --prefer-language 0.1234567"
    assert read_setting("--prefer-language .02") == SearchSettings("dense", prefer_language=0.02)
    assert read_setting("") == USUAL
    assert read_setting("default") == read_setting("auto") == RECOMMENDED
    assert format_settings(RECOMMENDED) == "default"
    assert format_settings(SearchSettings("dense", rerank="st:model-1.0")) == "dense --rerank st:model-1.0"
    reranked = SearchSettings("anchored", rerank="http:http://localhost:1#a b", rerank_depth=20, rerank_fallback="keep")
    written = "anchored --rerank 'http:http://localhost:1#a b' --rerank-depth 20 --rerank-fallback keep"
    assert format_settings(reranked) == written
    assert read_setting(written) == reranked
    assert format_settings(SearchSettings("dense", within="domain=Law, all")) == "dense --within 'domain=Law, all'"
    assert read_setting("auto --within=language=en") == SearchSettings("auto", within="language=en")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rerank_depth": 10}, "rerank_depth needs rerank."),
        ({"mode": "sparse", "sparse_weight": 0.5}, "sparse_weight needs mode='hybrid'."),
        (
            {"mode": "hybrid", "sparse_weight": 0.8},
            "lexical_weight 0.3 and sparse_weight 0.8 are more than 1 together: vectors have what is left of 1.",
        ),
        ({"size": 0}, "size is 0, but it must be a whole number from 1 to 1,000."),
        ({"passages": True}, "passages is True, but it must be a whole number from 0 to 100."),
        ({"explain": "yes"}, "explain is 'yes', but it must be True or False."),
        ({"point_in_time": "x"}, "point_in_time needs from_."),
        ({"language": 5}, "language is 5, but it must be a BCP 47 tag such as 'th', or None."),
        ({"rerank": 3}, "rerank is 3, but it must be the name of a reranker, such as 'features'."),
        (
            {"rerank": "features", "rerank_depth": 0},
            "rerank_depth is 0, but it must be a whole number from 1 to 1,000.",
        ),
        (
            {"rerank": "features", "rerank_per_language": 2.5},
            "rerank_per_language is 2.5, but it must be a whole number from 0 to 100.",
        ),
        (
            {"rerank": "features", "rerank_fallback": "retry"},
            "There is no fallback 'retry': choose one of keep, fail.",
        ),
    ],
)
def test_options_that_cannot_be(given, said):
    with pytest.raises(UsageError) as caught:
        read_arguments(SearchArguments, **given)
    assert str(caught.value) == said


def index_with(calibration, documents=60, encoder="toy", counts=None, **made):
    """An index that keeps a calibration, measured with 60 documents and no shift."""
    counts = {"de": documents // 2, "en": documents - documents // 2} if counts is None else counts
    fingerprint = replace(PLAIN, encoder=encoder, **made)
    kept = {"calibration": calibration}
    return IndexInfo(
        "news", "news-v0001", fingerprint, FIELDS, tuple(counts), documents, 1, counts, frozenset(), **kept
    )


def calibration(mode, **values):
    measured = {"alpha": 0.0, "alphas": {}, "gamma": 0.0, "vectors": None, "documents": 60}
    trust = AnchorModel(0.1, 0.25).to_dict()
    return trust | {"mode": mode, "lexical_weight": 0.125, "rerank": {}, "measured_with": measured} | values


COMMAND = "run `langshift anchors calibrate news`"


def test_auto_is_what_calibration_found_to_be_best():
    asked = read_arguments(SearchSettings, prefer_language=0.1, one_per_group=True)
    assert asked.mode == "auto"
    for mode, how in (("anchored", " (strength 0.25)"), ("hybrid", " (lexical weight 0.125)"), ("dense", "")):
        index = index_with(calibration(mode))
        weight = 0.125 if mode == "hybrid" else 0.3
        assert resolve_auto(index, asked) == (
            SearchSettings(mode, prefer_language=0.1, lexical_weight=weight, one_per_group=True),
            "calibration",
            f"Mode {mode}{how}, which calibration found to be best for news.",
        )
        assert calibration_due(index) is None
    assert {resolve_auto(index_with(calibration("anchored"), documents=n)).origin for n in (30, 120)} == {"calibration"}


def test_auto_is_hybrid_by_weights_of_tokens_where_calibration_found_that_to_be_best():
    for words, told in ((0.1, "lexical weight 0.1"), (None, "lexical weight 0")):
        index = index_with(calibration("hybrid", lexical_weight=words, sparse_weight=0.3))
        assert resolve_auto(index) == (
            SearchSettings("hybrid", lexical_weight=words or 0.0, sparse_weight=0.3),
            "calibration",
            f"Mode hybrid ({told}, sparse weight 0.3), which calibration found to be best for news.",
        )
    for unreadable in (2, "x"):
        index = index_with(calibration("hybrid", sparse_weight=unreadable))
        assert "cannot be read" in resolve_auto(index).reason


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (index_with(None), "is not calibrated, so mode anchored uses default values and auto is dense: {}."),
        (
            index_with(calibration("anchored"), alpha=0.5, gamma=0.25),
            "was calibrated with alpha 0.0 (now 0.5) and gamma 0.0 (now 0.25), so mode auto is dense: {} again.",
        ),
        (
            index_with(calibration("anchored"), alphas={"de": 0.5}),
            "was calibrated with different alphas for individual languages, so mode auto is dense: {} again.",
        ),
        (
            index_with(calibration("anchored"), vectors="0" * 16, alpha=0.5, documents=29, counts={"de": 15, "en": 15}),
            "was calibrated with different language vectors and 60 documents (now 29), so mode auto is dense: {} "
            "again.",
        ),
        (
            index_with(calibration("anchored"), documents=121),
            "was calibrated with 60 documents (now 121), so mode auto is dense: {} again.",
        ),
    ],
)
def test_auto_is_dense_where_no_calibration_holds_and_says_what_to_do(index, why):
    reason = f"news {why.format(COMMAND)}"
    assert resolve_auto(index) == (SearchSettings("dense"), "default", reason)
    assert calibration_due(index) == reason


@pytest.mark.parametrize(
    "index",
    [
        index_with(None, documents=29),
        index_with(None, counts={"de": 60}),
        index_with(None, encoder="given:mine"),
    ],
)
def test_nothing_is_due_where_an_index_cannot_be_calibrated(index):
    assert calibration_due(index) is None
    assert resolve_auto(index).reason == (
        "news is not calibrated, so mode anchored uses default values and auto is dense."
    )


@pytest.mark.parametrize(
    "values",
    [{"mode": "lexical"}, {"mode": "hybrid", "lexical_weight": None}, {"lexical_weight": 2}, {"strength": 1.5}],
)
def test_auto_is_dense_where_the_calibration_cannot_be_read(values):
    assert resolve_auto(index_with(calibration("anchored") | values)) == (
        SearchSettings("dense"),
        "default",
        f"The calibration in the mapping of news-v0001 (_meta.langshift_anchors) cannot be read: {COMMAND} again.",
    )


def test_nothing_fits_where_a_calibration_that_holds_tells_it_well():
    told = calibration("dense", no_answer={"below": 0.84, "caught": 0.5})
    assert no_answer(index_with(told)) == 0.84
    assert nearness_notes(0.84, 0.84) == nearness_notes(0.84, None) == nearness_notes(None, 0.1) == []
    assert nearness_notes(0.84, 0.8123) == [
        "The nearest document is farther from the query than what answers usually is (cosine 0.8123, below 0.8400): "
        "perhaps nothing answers it."
    ]
    unknown = (
        index_with(None),
        index_with(calibration("dense")),
        index_with(calibration("dense", no_answer=None)),
        index_with(calibration("dense", no_answer={"below": 0.84, "caught": 0.49})),
        index_with(told, documents=121),
        index_with(told | {"strength": 1.5}),
    )
    assert [no_answer(one) for one in unknown] == [None] * len(unknown)


@pytest.mark.parametrize(
    "kept", [0.84, [0.84, 0.9], {"below": 0.84}, {"below": 1.5, "caught": 0.9}, {"below": "x", "caught": 0.9}]
)
def test_what_tells_that_nothing_fits_and_cannot_be_read_is_an_error(kept):
    with pytest.raises(ClusterError, match="cannot be read"):
        StoredCalibration.of_index(index_with(calibration("dense", no_answer=kept)))


def test_anchored_at_strength_0_is_dense_and_says_so():
    asked = SearchSettings("anchored", prefer_language=0.1, one_per_group=True)
    reason = "Mode anchored, as requested; its strength in news is 0, so it finds what dense finds."
    nothing = index_with(calibration("dense", strength=0.0))
    assert resolve(nothing, asked) == (
        SearchSettings("dense", prefer_language=0.1, one_per_group=True),
        "asked",
        reason,
    )
    for index in (index_with(calibration("dense", strength=0.02)), index_with(None)):
        assert resolve(index, asked) == (asked, "asked", "Mode anchored, as requested.")
    for setting in (SearchSettings("hybrid"), SearchSettings("lexical"), USUAL):
        assert resolve(nothing, setting).setting == setting
    assert resolve(nothing, read_arguments(SearchSettings)).setting.mode == "dense"


def test_whoever_asks_for_anchored_hears_where_no_calibration_holds():
    due = f"news is not calibrated, so mode anchored uses default values and auto is dense: {COMMAND}."
    assert remarks(index_with(None), SearchSettings("anchored")) == [due]
    changed = index_with(calibration("anchored"), alpha=0.5)
    assert remarks(changed, SearchSettings("anchored")) == [resolve_auto(changed).reason]
    for mode in ("dense", "lexical", "balanced", "hybrid"):
        assert remarks(index_with(None), SearchSettings(mode)) == []
    assert remarks(index_with(calibration("dense")), SearchSettings("anchored")) == []


@pytest.mark.parametrize(
    ("safe", "weight", "sentences"),
    [
        (0.1, 0.1, []),
        (0.1, 0.05, []),
        (
            0.1,
            0.3,
            [
                "Hybrid search of news may lose answers with words weighing 0.3: calibration found 0.1 to be the "
                "highest weight tried at which nothing is lost."
            ],
        ),
        (
            None,
            0.01,
            ["Calibration found no weight of words at which hybrid search of news loses nothing."],
        ),
    ],
)
def test_whoever_asks_for_hybrid_hears_where_its_words_may_lose_answers(safe, weight, sentences):
    index = index_with(calibration("dense", lexical_weight=safe))
    assert remarks(index, SearchSettings("hybrid", lexical_weight=weight)) == sentences


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "hybird",
            "There is no search mode 'hybird': choose one of auto, dense, lexical, sparse, hybrid, balanced, anchored.",
        ),
        ("dense --fusion rrf", "--fusion needs --mode hybrid."),
        ("lexical --lexical-weight 1", "--lexical-weight needs --mode hybrid."),
        ("auto --fusion rrf", "--fusion needs --mode hybrid."),
        (
            "dense --prefer-language 0 --spread 0",
            "--prefer-language and --spread are mutually exclusive: give one of them.",
        ),
        ("dense --prefer-language nan", "--prefer-language is 'nan', but it must be a number from 0 to 2."),
        ("dense --spread=3", "--spread is '3', but it must be a number from 0 to 2."),
        ("dense --spread", "--spread needs a value."),
        (
            "dense --rerank features --rerank-depth 2.5",
            "--rerank-depth is '2.5', but it must be a whole number from 1 to 1,000.",
        ),
        (
            "dense --size 3",
            f"There is no option --size: choose from {', '.join(in_command(one.name) for one in SETTING)}.",
        ),
        (
            "dense --within language=",
            "--within is 'language=', but it must be a field, such as language, or a field with one value, such as "
            "language=en.",
        ),
    ],
)
def test_a_text_that_is_no_setting_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(UsageError) as refused:
        read_setting(text)
    assert str(refused.value) == f"The setting {text!r} cannot be used: {sentence}"


def test_a_quotation_mark_that_is_missing_is_said():
    with pytest.raises(UsageError) as refused:
        read_setting("dense 'x")
    assert str(refused.value) == 'The setting "dense \'x" is not complete: a quotation mark is missing.'


def test_the_command_has_an_option_for_all_that_is_declared_to_have_one():
    declared = [one for one in ARGUMENTS.values() if one.option and not one.of_replays]
    options = {parameter.name: parameter for parameter in search.params}
    assert [name for name in options if name in ARGUMENTS and name != "filters"] == [one.name for one in declared]
    for one in declared:
        assert options[one.name].help.startswith(one.help.rstrip("."))
        assert options[one.name].opts == [one.option.split()[0]]


def test_the_command_refuses_before_it_asks_the_cluster():
    none = "http://127.0.0.1:1"
    for given_, sentence in (
        (("Moon", "--fusion", "rrf"), "--fusion needs --mode hybrid."),
        ((" ",), "The query is empty: give the words to search for."),
        (("x" * 10_001,), "The query has 10,001 characters, but at most 10,000 can be searched for."),
        (("Moon", "--language", "tlhx"), "'tlhx' is not a valid language: use a BCP 47 tag such as th or zh-TW."),
        (
            ("Moon", "--filter", "year"),
            "A filter is FIELD=VALUE, such as language=th, also with !=, <, <=, > or >=, not 'year'.",
        ),
    ):
        assert refusal(langshift("search", "news", *given_, OPENSEARCH_URL=none)) == sentence


def test_a_replay_within_nothing_is_refused():
    done = langshift(
        "evaluate", "replay", "data", "--index", "news", "--within", "", OPENSEARCH_URL="http://127.0.0.1:1"
    )
    assert refusal(done) == (
        "--within is '', but it must be a field, such as language, or a field with one value, such as language=en."
    )


def test_a_request_is_one_line_for_a_shell_whatever_its_words():
    request = HttpRequest("POST", "/news-v0001/_search", b'{"query":"it\'s `x` $HOME \\"y\\""}')
    assert request.as_curl == (
        "curl -X POST \"$OPENSEARCH_URL/news-v0001/_search\" -H 'content-type: application/json' --data-binary "
        '\'{"query":"it\'"\'"\'s `x` $HOME \\"y\\""}\''
    )
    assert request.in_dev_tools == 'POST /news-v0001/_search\n{"query":"it\'s `x` $HOME \\"y\\""}\n'
    assert request.to_dict()["lines"] == [{"query": 'it\'s `x` $HOME "y"'}]


def test_a_request_of_several_searches_leaves_nothing_but_comments_above_what_dev_tools_take():
    request = HttpRequest("POST", "/news-v0001/_msearch", b'{}\n{"size":1}\n{}\n{"size":2}\n')
    assert request.in_dev_tools_and_for_curl == (
        "# curl -X POST \"$OPENSEARCH_URL/news-v0001/_msearch\" -H 'content-type: application/x-ndjson' "
        "--data-binary '{}\n"
        '# {"size":1}\n# {}\n# {"size":2}\n# \'\n'
        'POST /news-v0001/_msearch\n{}\n{"size":1}\n{}\n{"size":2}\n'
    )


def test_the_plugins_query_takes_arguments_of_a_search_by_their_names_and_limits():
    source = (ROOT / "plugin/java/org/langshift/opensearch/LangshiftQueryBuilder.java").read_text(encoding="utf-8")
    taken = set(re.findall(r'new ParseField\("(\w+)"\)', source))
    # What it has of its own: a query of OpenSearch's has a text, a filter and a number of neighbours.
    assert taken - {"text", "k", "filter", "vector_query"} == {
        "mode", "language", "vector", "prefer_language", "spread", "one_per_group"
    } == taken & set(ARGUMENTS)  # fmt: skip
    (modes,) = re.findall(r"MODES = List.of\(([^)]*)\)", source)
    assert set(re.findall(r'"(\w+)"', modes)) <= set(MODES)
    assert f"MOST_PREFERENCE = {ARGUMENTS['spread'].range[1]};" in source
    assert f"MOST_CHARACTERS = {MOST_CHARACTERS:_}," in source


def test_the_form_of_the_console_has_the_limits_that_are_declared():
    page = (ROOT / "web/templates/search.html").read_text(encoding="utf-8")
    least, most = ARGUMENTS["lexical_weight"].range
    assert f'dial(place, "weight", "Lexical weight", number(setting.lexical_weight), {least}, {most}, ' in page
    assert ARGUMENTS["prefer_language"].range[1] >= MOST_PREFERENCE
