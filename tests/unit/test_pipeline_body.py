"""The body of an index's ingest pipeline, and what is read from one."""

import numpy as np
import pytest

from langshift import __version__
from langshift.normal_form import SPELLINGS
from langshift.plugin import pipelines, shift_script
from langshift.plugin.index_body import asset
from langshift.plugin.metadata import USUAL, FieldNames
from langshift.plugin.pipelines import PrecedingPipeline, found_in, steps
from langshift.plugin.stored_shift import StoredShift

SHIFT = StoredShift("0123", "en", {"de": np.ones(2, np.float32)}, 0.6, {"th": 0.3, "ar": 0.0})
SCRIPT = shift_script.script_id()


def body(first=None, shift=SHIFT, fields=USUAL):
    return pipelines.body("news-v0001", shift, fields, first)


def test_alone_it_puts_texts_into_normal_form_and_shifts():
    assert pipelines.name_for("news-v0001") == "langshift-news-v0001"
    assert body() == {
        "description": (
            "Shifts documents for news-v0001 by their language: alpha 0.6 (ar 0, th 0.3), language vectors 0123. "
            f"Made by langshift {__version__}."
        ),
        "processors": [
            {
                "script": {
                    "source": asset("normal_form.painless"),
                    "params": {
                        "texts": ["title", "text"],
                        "spellings": {letters: [ord(one) for one in SPELLINGS[letters]] for letters in SPELLINGS},
                    },
                }
            },
            {"script": {"id": SCRIPT, "params": shift_script.params(SHIFT, SHIFT, USUAL, pipeline=True)}},
        ],
    }


@pytest.mark.parametrize(
    "first", [None, PrecedingPipeline("theirs", was_default=True), PrecedingPipeline("theirs", was_default=False)]
)
def test_what_runs_first_is_read_from_it_again(first):
    made = body(first)
    assert found_in(made["processors"]) == first
    # It may encode the texts, or make them.
    sources = [step["script"].get("source", "") for step in made["processors"] if "script" in step]
    assert [source[:10] for source in sources].count("def normal") == (1 if first is None else 2)
    assert pipelines.shift_steps(made) == made["processors"][-1:]
    assert made["processors"][-1]["script"]["id"] == SCRIPT


def test_the_steps_around_another_pipeline_know_the_fields():
    kept, run, drop = steps(PrecedingPipeline("theirs", was_default=False), FieldNames(vector="a.b", stamp="c.d.e"))
    assert kept["copy"]["source_field"] == "a.b"
    assert run == {"pipeline": {"name": "theirs"}}
    assert drop["script"]["params"] == {"vector": ["a", "b"], "within": ["c", "d"], "stamp": "e"}
    assert kept["copy"]["target_field"] in drop["script"]["source"]


def test_in_an_index_of_chunks_the_script_is_told_what_a_document_has_that_is_not_a_part():
    fields = FieldNames(vector="vec", texts=("body", "head"), parent="meta.doc")
    params = body(PrecedingPipeline("theirs", was_default=False), fields=fields)["processors"][-1]["script"]["params"]
    assert (params["fields"]["parent"], params["content"]) == ("meta.doc", ["vec", "body", "head"])
    assert "content" not in body()["processors"][-1]["script"]["params"]
