"""docs/clients.md stays true: its requests and commands are sent in order, and answer what it shows."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from clients_document import DOCUMENT, FINGERPRINT, SHIFT, blocks, cut_short, installed_body, request

from langshift.plugin import meta, pipeline, writing

BLOCKS = blocks(DOCUMENT.read_text(encoding="utf-8"))
NOT_RUN = {"text", "yaml", "java"}


@pytest.fixture
def index(client, pipelines):
    target = writing.open_for_writing(client, pipelines, FINGERPRINT, {meta.VECTORS: SHIFT.to_dict()})
    writing.publish(client, target)
    return target.index


@pytest.fixture
def sent(client, cluster_env, index_name, capsys):
    """Sends what a block holds, with the test's own names; gives the answer, or what was printed."""

    def rename(text):
        named = re.sub(r"(?<![\w/.-])news\b|(?<=/)news\b|(?<=langshift-)news\b", index_name, text)
        return named.replace("my-embedding", f"{index_name}-embedding").replace("http://localhost:9200", cluster_env)

    def send(block):
        text = rename(block.text)
        if block.kind == "sh":
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            env = {**os.environ, "OPENSEARCH_URL": cluster_env, "PATH": path}
            done = subprocess.run(["/bin/sh", "-euc", text], env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (text, done.stdout, done.stderr)
            return done.stdout
        if block.kind == "python":
            exec(compile(text, str(DOCUMENT), "exec"), {})
            return capsys.readouterr().out
        method, where, body = request(text)
        headers = {"content-type": "application/x-ndjson" if "/_bulk" in where else "application/json"}
        return client.transport.perform_request(method, where, body=body or None, headers=headers)

    send.rename = rename
    return send


def contains(answer, shown, where="answer"):
    """Where an answer lacks something that is shown: objects may hold more, lists may not."""
    if isinstance(shown, dict):
        missing = [f"{where} has no {name}" for name in shown if name not in answer]
        there = [
            one for name in shown if name in answer for one in contains(answer[name], shown[name], f"{where}.{name}")
        ]
        return missing + there
    if isinstance(shown, list):
        if len(answer) != len(shown):
            return [f"{where} is {answer}, not {shown}"]
        pairs = enumerate(zip(answer, shown, strict=True))
        return [one for place, (mine, other) in pairs for one in contains(mine, other, f"{where}[{place}]")]
    return [] if answer == shown else [f"{where} is {answer!r}, not {shown!r}"]


def source(client, index, name):
    return client.get(index=index, id=name)["_source"]


def holds(client, index, name, vector, stamp):
    found = source(client, index, name)
    return np.allclose(found["embedding"], vector, atol=1e-7) and found["shift"] == {"vectors": SHIFT.hash, **stamp}


def stand_in(client, index_name):
    """In the place of text_embedding, which needs a model: the same vector for each text that is a string."""
    script = {"source": "if (ctx.text instanceof String) { ctx.embedding = [1.5, 0.75, -0.25, 0.5] }"}
    client.ingest.put_pipeline(id=f"{index_name}-embedding", body={"processors": [{"script": script}]})


def without_versions(body):
    """A pipeline's body without the script's hash and langshift's version, which change with each of them."""
    text = re.sub(r"langshift-shift-[0-9a-f]{8}", "langshift-shift-", json.dumps(body))
    return json.loads(re.sub(r"Made by langshift \S+\.", "Made by langshift.", text))


def test_its_requests_and_commands_do_what_it_says(client, index, index_name, sent):
    answer, told = None, []
    for block in BLOCKS:
        if block.kind in NOT_RUN or block.mark == "as installed":
            continue
        if block.kind == "json" and request(block.text) is None:
            shown = json.loads(sent.rename(block.text))
            assert contains(answer, shown) == [], block.text
            told.append(block)
            continue
        if block.mark == "chained":
            stand_in(client, index_name)
        answer = sent(block)
    assert len(told) == 5
    german, thai = {"alpha": 1.0, "language": "de"}, {"alpha": 0.5, "language": "th"}
    # As the updates left them.
    assert holds(client, index, "tides-de", [0.375, 1.0, 0.75, -0.8125], thai)
    assert holds(client, index, "tides-th", [1.375, 0.5, 0.0, 0.4375], thai)
    assert holds(client, index, "moon-de", [1.0, 1.0, -0.375, 0.5], german)
    assert holds(client, index, "moon-en", [1.0, 1.0, -0.5, 0.25], {"alpha": 0.0})
    assert holds(client, index, "moon-th", [0.375, 1.0, 0.75, -0.8125], thai)
    assert holds(client, index, "sea-de", [1.0, 1.0, -0.375, 0.5], german)
    assert source(client, index, "moon-th")["@version"] == "1"
    assert source(client, index, "sea-de")["text"] == {"de": "Das Meer"}
    # The last command took the pipeline away.
    assert pipeline.default(client, index) is None


def test_the_pipeline_that_it_shows_is_the_one_that_is_installed_and_works_as_shown(client, index, index_name, sent):
    (shown,) = [block for block in BLOCKS if block.mark == "as installed"]
    body = json.loads(request(shown.text)[2])
    # Else: python tests/support/clients_document.py
    assert without_versions(body) == without_versions(installed_body())
    embedding, install = (
        next(block for block in BLOCKS if text in block.text) for text in ('text_embedding"', "--after")
    )
    sent(embedding)
    sent(install)
    name = pipeline.name_for(index)
    installed = client.ingest.get_pipeline(id=name)[name]
    made = installed_body(index, f"{index_name}-embedding")
    assert without_versions(cut_short(installed)) == without_versions(made)
    # Sent as it is shown, with the id of the script that is there, it works for the spellings that are shown.
    script = installed["processors"][-1]["script"]["id"]
    text = re.sub(r"langshift-shift-[0-9a-f]{8}", script, sent.rename(shown.text))
    method, where, sent_body = request(text)
    client.transport.perform_request(method, where, body=sent_body)
    stand_in(client, index_name)
    for told in ("de", "ger"):
        client.index(index=index_name, id="1", body={"text": "Ebbe", "language": told})
        assert holds(client, index, "1", [1.0, 1.0, -0.375, 0.5], {"alpha": 1.0, "language": "de"})


def test_every_block_is_run_or_known_not_to_be():
    assert {block.kind for block in BLOCKS} == NOT_RUN | {"sh", "json", "python"}
    assert not re.search(r"https?://(?!localhost|docs\.opensearch\.org)", DOCUMENT.read_text(encoding="utf-8"))
