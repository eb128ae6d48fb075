"""An adopted index is searched, filtered and told apart as any other, whatever its fields are called."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest
from command_line import langshift

from langshift.debias.encoders import open_encoder
from langshift.errors import UsageError
from langshift.plugin import versions
from langshift.plugin.metadata import USUAL
from langshift.retrieval.filters import FieldCheck
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

TEXTS = {
    "tides-en": "The sea rises and falls twice a day because the Moon pulls at it.",
    "tides-de": "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht.",
    "bread-en": "Yeast makes the dough rise before it is baked in a hot oven.",
    "bread-de": "Hefe lässt den Teig aufgehen, bevor er im heißen Ofen gebacken wird.",
    "numbers": "1234 5678",
}
# As it is left where a text was cut in the middle of an emoji.
CUT = r'{"body": ["Nur Worte und nichts als Worte,", "sonst nichts \ud83d"]}'


@pytest.fixture(scope="module")
def adopted(client, cluster_url):
    """An alias of an index of one shard, whose own ``language`` and, unmapped, ``shift`` mean something else."""
    encoder, index_name = open_encoder("use-m"), f"langshift-test-{uuid.uuid4().hex[:8]}"
    old, alias, new = f"{index_name}-old", f"{index_name}-alias", f"{index_name}-new"
    method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    properties = {
        "parts": {"properties": {"vec": {"type": "knn_vector", "dimension": encoder.dimension, "method": method}}},
        "body": {"type": "text", "analyzer": "english"},
        "language": {"type": "keyword"},
    }
    mappings = {"dynamic": False, "properties": properties}
    client.indices.create(index=old, body={"settings": {"index": {"knn": True}}, "mappings": mappings})
    for name, vector in zip(TEXTS, encoder.encode_documents(list(TEXTS.values())), strict=True):
        source = {"parts": {"vec": vector.tolist()}, "body": TEXTS[name], "language": "Fortran", "shift": "night"}
        client.index(index=old, id=name, body=source)
    client.index(index=old, id="bare", body=CUT)
    client.index(index=old, id="empty", body={"language": "Fortran"}, params={"refresh": "true"})
    client.indices.put_alias(index=old, name=alias)
    options = ["--vector-field", "parts.vec", "--text-field", "body", "--alpha", "1"]
    done = langshift("adopt", alias, "--name", new, *options, "--json", url=cluster_url)
    assert done.returncode == 0, done
    yield old, new, json.loads(done.stdout), done.stderr
    client.indices.delete(index=f"{index_name}*")


def test_what_was_done_is_told_as_json(client, adopted):
    old, new, told, stderr = adopted
    made = client.indices.get_settings(index=old)[old]["settings"]["index"]["uuid"]
    told.pop("seconds"), told.pop("log"), told.pop("dead_letters")
    assert told == {
        "name": new,
        "index": f"{new}-v0001",
        "alpha": 1.0,
        "gamma": 0.0,
        "own": 0.0,
        "lines": 7,
        "documents": 7,
        "present": 7,
        "published": True,
        "replaced": 0,
        "superseded": 0,
        "dead": 0,
        "repaired": 0,
        "languages": {"de": 3, "en": 2, "und": 2},
        "shifted": 2,
        "folded": {},
        "without_vector": {},
        "vectorless": 2,
        "unread": {},
        "retries": 0,
        "old": {"name": f"{old[:-4]}-alias", "index": old, "uuid": made},
        "fields": {
            **USUAL.to_dict(),
            "vector": "parts.vec",
            "language": "langshift_language",
            "confidence": "language_confidence",
            "stamp": "langshift_shift",
            "texts": ["body"],
            "told": None,
            "analyzed": [],
        },
    }
    assert stderr.splitlines() == [
        "2 documents without a clear language: not shifted by language.",
        f"All 7 documents that searches of {old[:-4]}-alias found when reading began are accounted for: 7 documents on "
        f"the server, checked. Anything written to {old[:-4]}-alias since is not in {new}.",
    ]


def test_what_documents_had_under_the_usual_names_stays(client, adopted):
    _, new, *_ = adopted
    german = client.get(index=new, id="tides-de")["_source"]
    assert (german["language"], german["shift"], german["langshift_language"]) == ("Fortran", "night", "de")
    assert german["langshift_shift"]["language"] == "de"
    unclear = client.get(index=new, id="numbers")["_source"]
    assert (unclear["langshift_language"], unclear["langshift_shift"]["alpha"]) == ("und", 0)
    bare = client.get(index=new, id="bare")["_source"]
    assert (bare["langshift_language"], "langshift_shift" in bare) == ("de", False)
    assert client.get(index=new, id="empty")["_source"] == {"language": "Fortran"}


def test_it_is_searched_by_meaning_and_by_words_and_filtered_by_language(client, adopted):
    _, new, *_ = adopted
    searcher = Searcher(client, new)
    found = searcher.search("Why does the water level change?", size=2).hits
    assert {hit.id for hit in found} == {"tides-en", "tides-de"}
    (first, *_) = searcher.search("Mond", SearchSettings("lexical")).hits
    assert (first.id, first.language, first.text) == ("tides-de", "de", TEXTS["tides-de"])
    (cut,) = searcher.search("Worte", SearchSettings("lexical")).hits
    assert (cut.id, cut.text) == ("bare", "Nur Worte und nichts als Worte, sonst nichts \ufffd")
    german = searcher.search("bread", filters={"language": ["de"]}).hits
    assert {hit.id for hit in german} == {"tides-de", "bread-de"}
    assert versions.live(client, new).languages == ("de", "en")


def test_groups_that_cannot_be_asked_for_are_refused(client, adopted, index_name):
    remedy = (
        "adopt the old index again, with --group-field naming a keyword field or a text field that has a keyword view."
    )
    searcher = Searcher(client, adopted[1])
    with pytest.raises(UsageError) as refused:
        searcher.search("Moon", SearchSettings("dense", one_per_group=True))
    beginning = "cannot be searched for one document per group, because its field 'group'"
    assert str(refused.value) == f"Index {adopted[1]} {beginning} is not in its mapping: {remedy}"
    # As dynamic mapping makes it of strings.
    client.index(index=index_name, body={"group": "Group One"}, params={"refresh": "true"})
    with pytest.raises(UsageError) as refused:
        FieldCheck(client, replace(searcher.index, name="news", index=index_name)).require_groups()
    assert str(refused.value) == f"Index news {beginning} is of type text: {remedy}"
