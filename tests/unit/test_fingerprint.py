"""What keeps two kinds of vectors apart."""

from dataclasses import replace

import pytest

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import FingerprintError
from langshift.languages import analyzers, text_language
from langshift.plugin.index_body import index_body

ONE = Fingerprint(
    encoder="use-m",
    revision="1",
    query_prefix="",
    document_prefix="",
    dimension=512,
    normalised=True,
    pivot="en",
    alpha=1.0,
    vectors="abc",
    detector="lid.176.ftz",
    langshift="0.1.0",
)


def test_the_index_carries_it_and_gives_it_back():
    body = index_body(ONE)
    assert Fingerprint.from_dict(body["mappings"]["_meta"]["langshift"]) == ONE
    assert body["mappings"]["properties"]["embedding"]["dimension"] == 512


def test_fields_of_later_versions_are_left_aside():
    assert Fingerprint.from_dict({**ONE.to_dict(), "invented_later": 1}) == ONE


def test_the_version_is_told_but_makes_no_difference():
    assert ONE.differences(replace(ONE, langshift="0.2.0")) == []
    assert ONE.differences(replace(ONE, detector="other")) == [("detector", "lid.176.ftz", "other")]


def test_which_indices_hold_moved_documents():
    assert ONE.moves
    assert replace(ONE, alpha=0.0, alphas={"th": 0.5}).moves
    assert not replace(ONE, alpha=0.0).moves
    assert not replace(ONE, vectors=None).moves


def test_the_same_weights_may_lie_elsewhere_and_a_server_may_move():
    for here, there in (("st:org/e5", "st:/models/e5"), ("http:http://a:1#e5", "http:https://b#e5")):
        mine = replace(ONE, encoder=here)
        assert mine.differences(replace(ONE, encoder=there)) == []
        assert mine.differences(replace(ONE, encoder=there, revision="2")) == [
            ("encoder", here, there),
            ("revision", "1", "2"),
        ]
    assert replace(ONE, encoder="st:e5").differences(replace(ONE, encoder="http:e5")) == [
        ("encoder", "st:e5", "http:e5")
    ]


@pytest.mark.parametrize(
    ("tag", "fields"), [("th", "th"), ("zh-TW", "zh"), ("nn", "no"), ("arz", "ar"), ("vi", "vi"), ("und", "und")]
)
def test_which_text_fields_a_language_goes_to(tag, fields):
    assert text_language(tag) == fields


def test_a_difference_is_refused_with_both_values():
    with pytest.raises(FingerprintError) as refused:
        ONE.require_same(replace(ONE, alpha=0.5, vectors=None), "news", "index it again")
    assert str(refused.value) == "Index news was built with alpha 1.0, not 0.5, vectors abc, not none: index it again."


def test_every_built_in_analyzer_is_mapped_and_others_take_standard():
    properties = index_body(ONE)["mappings"]["properties"]
    assert {analyzers()[tag] for tag in ("zh", "ja", "ko")} == {"cjk"}
    assert len(analyzers()) == 37
    for field in ("title", "text"):
        assert properties[field]["properties"]["th"] == {"type": "text", "analyzer": "thai"}
        assert properties[field]["properties"]["und"] == {"type": "text", "analyzer": "standard"}
