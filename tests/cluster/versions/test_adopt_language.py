"""The language of documents that clients write to an adopted index, whichever field they name it in."""

from __future__ import annotations

import pytest
from command_line import langshift
from small_old_index import ADOPTED, old_index

TEXT = "Das Ministerium teilte mit, dass das neue Krankenhaus im Frühling eröffnet wird."


@pytest.mark.parametrize("own", ["language", "langshift_language"])
def test_the_usual_field_is_read_where_the_declared_one_names_none(client, cluster_url, index_name, own):
    documents = {"a": {"body": TEXT, "locale": "de"}, "b": {"body": TEXT, "locale": ""}}
    if own != "language":
        documents["b"]["language"] = "fr"
    keywords = {"locale": {"type": "keyword"}, **({} if own == "language" else {"language": {"type": "keyword"}})}
    with old_index(client, index_name, {"body": {"type": "text"}, **keywords}, documents):
        new = f"{index_name}-new"
        options = ["--text-field", "body", "--language-field", "locale", *ADOPTED]
        assert langshift("adopt", index_name, "--name", new, *options, url=cluster_url).returncode == 0
        assert client.get(index=new, id="b")["_source"][own] == ("de" if own == "language" else "fr")
        assert langshift("pipeline", "install", new, url=cluster_url).returncode == 0
        sent = ({"locale": "th"}, {"language": "th"}, {"locale": "sports", "language": "th"}, {"locale": "sports"})
        for number, fields in enumerate(sent):
            client.index(index=new, id=str(number), body={"body": TEXT, "vec": [1.0, 2.0, 3.0, 4.0], **fields})
        client.indices.refresh(index=new)
        found = [client.get(index=new, id=str(number))["_source"][own] for number in range(len(sent))]
        assert found == ["th", "th", "th", "und"]
        client.indices.put_settings(index=new, body={"index": {"default_pipeline": None}})
        client.ingest.delete_pipeline(id=f"langshift-{new}-v0001")
