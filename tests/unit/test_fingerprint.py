"""What keeps two kinds of vectors apart."""

from dataclasses import replace

import pytest

from langshift.errors import FingerprintError
from langshift.plugin.fingerprint import Fingerprint
from langshift.plugin.template import analyzers, index_body, text_language

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


@pytest.mark.parametrize(
    ("tag", "fields"), [("th", "th"), ("zh-TW", "zh"), ("nn", "no"), ("arz", "ar"), ("vi", "vi"), ("und", "und")]
)
def test_which_text_fields_a_language_goes_to(tag, fields):
    assert text_language(tag) == fields


def test_a_difference_is_refused_with_both_values():
    with pytest.raises(FingerprintError) as refused:
        ONE.require_same(replace(ONE, alpha=0.5, vectors=None), "news", "index it again")
    assert str(refused.value) == "Index news was made with alpha 1.0, not 0.5, vectors abc, not none: index it again."


def test_every_built_in_analyzer_is_mapped_and_others_take_standard():
    properties = index_body(ONE)["mappings"]["properties"]
    assert {analyzers()[tag] for tag in ("zh", "ja", "ko")} == {"cjk"}
    assert len(analyzers()) == 37
    for field in ("title", "text"):
        assert properties[field]["properties"]["th"] == {"type": "text", "analyzer": "thai"}
        assert properties[field]["properties"]["und"] == {"type": "text", "analyzer": "standard"}
