"""README.md and docs stay true: what they show is run and sent in order, and prints and answers what they show.

What takes XQuAD, and the demo's output, is in tests/evidence/paper.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from functools import partial

import numpy as np
import pytest
from command_line import LANGSHIFT
from documents import (
    ADOPT,
    CLIENTS,
    CONSOLE,
    CONTRIBUTING,
    DEMO,
    DOCS,
    DOCUMENTS,
    FINGERPRINT,
    INGEST,
    NAMES,
    PLUGIN,
    README,
    REFERENCE,
    REPRODUCTION,
    ROOT,
    RUN,
    SCALE,
    SEARCH,
    SEARCH_PAGE,
    SERVED,
    SERVICE,
    SHIFT,
    VARIABLES,
    VECTORS,
    blocks,
    can_run,
    console_commands,
    cut_short,
    differences,
    in_shell,
    installed_body,
    renewed,
    request,
    run,
    served_elsewhere,
)
from native_plugin import has_plugin
from stamps import stamp_of

from langshift.plugin import metadata, pipelines, shift_script, version_writer
from langshift.plugin.metadata import USUAL
from langshift.plugin.user_template import Template

# Kinds of blocks, document by document: those that are run, sent or compared here, and the others.
DONE = {
    README: {"sh", "console"},
    INGEST: {"sh", "json"},
    ADOPT: {"sh"},
    VECTORS: {"sh"},
    SEARCH: {"sh", "python"},
    SEARCH_PAGE: {"sh", "python", "js"},
    SERVICE: {"sh", "python"},
    SCALE: {"sh"},
    REPRODUCTION: {"sh"},  # tests/evidence/paper/test_reproduction.py
    DEMO: {"console"},
    DOCS / "operations.md": {"console"},
    CONTRIBUTING: {"console"},
    CLIENTS: {"sh", "json", "python"},
    CONSOLE: {"console"},
    PLUGIN: {"json", "sh", "js"},  # the requests: tests/cluster/native
}
KNOWN = {
    README: {"text"},  # from docs/demo.md
    INGEST: {"text"},  # a drawing
    VECTORS: {"text"},  # formulas
    DEMO: {"text"},  # what `make demo` prints: `make smoke` checks it
    CLIENTS: {"text", "yaml", "java"},  # Logstash, Data Prepper, Spark, Java
    CONSOLE: {"nginx"},  # test_statements.py sends what it makes of a request
    REFERENCE / "permissions.md": {"json"},  # tests/cluster/security_plugin.py makes its roles
    SERVICE: {"json"},  # tests/cluster/console/test_agents.py starts that command
    SCALE: {"yaml"},  # test_statements.py reads it
    DOCS / "rag.md": {"sh"},  # needs a model; lab/tests/cluster/test_rag.py runs it with a chat server
    REFERENCE / "cli.md": {"text"},  # tools/generate_pages.py writes it
    REFERENCE / "lab-cli.md": {"text"},
    REFERENCE / "format.md": {"json", "text"},  # test_format.py reads it
}
# Whose extras test_statements.py looks for, what needs a machine of one's own, and what test_doctor.py runs.
COMMANDS_NOT_RUN = re.compile(r"(python3 -m venv|pip install|ssh|git clone|langshift doctor)\b.*")


@pytest.mark.parametrize("document", [one for one in NAMES if one not in SERVED], ids=lambda path: path.name)
def test_its_commands_and_its_code_print_what_it_shows(document, cluster_env, names, tmp_path):
    own = names(*NAMES[document])
    # Hybrid search stretches the cosines of five documents, and with them what another processor makes of them.
    near = 0.02 if document == SEARCH else 0.006
    shown = 0
    for block in blocks(document):
        if block.kind in RUN:
            variables = {"OPENSEARCH_URL": cluster_env, **VARIABLES[document]}
            printed = own.restore(run(block.kind, own.rename(block.text), tmp_path, **variables))
            if block.shown is not None:
                assert differences(printed, block.shown.text, lambda _: near) == [], block.text
                shown += 1
    assert shown == {README: 2, INGEST: 7, ADOPT: 9, VECTORS: 2, SEARCH: 18, SCALE: 1}[document]


@pytest.fixture
def running(names, cluster_env, tmp_path):
    """A function that gives one that runs a page's blocks; the server that the page starts has a port that is free."""
    with served_elsewhere(tmp_path, cluster_env) as run_block:

        def running(document):
            own = names(*NAMES[document])
            return partial(run_block, document, rename=own.rename, restore=own.restore)

        yield running


def test_the_service_answers_as_its_page_shows(running):
    run_block = running(SERVICE)
    for block in blocks(SERVICE):
        if block.kind in RUN and can_run(block):
            run_block(block)


def test_a_search_page_is_built_with_curl_and_with_python(running):
    run_block = running(SEARCH_PAGE)
    for block in blocks(SEARCH_PAGE):
        if block.kind in {"sh", "python"} and "npm" not in block.text:
            run_block(block)


def test_a_search_page_is_built_with_javascript(running):
    run_block = running(SEARCH_PAGE)
    ingested, served, *_ = commands = [block for block in blocks(SEARCH_PAGE) if block.kind == "sh"]
    (installed,) = (block for block in commands if "npm install" in block.text)
    try:
        run_block(installed)
    except AssertionError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"OpenSearch's client for Node cannot be installed here: {error}")
    for block in (ingested, served, *(block for block in blocks(SEARCH_PAGE) if block.kind == "js")):
        run_block(block)


def test_a_search_page_is_one_request_where_the_plugin_is(running, client):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")
    if shutil.which("node") is None and "CI" not in os.environ:
        pytest.skip("no node on the PATH")
    run_block = running(PLUGIN)
    for block in blocks(PLUGIN):
        if block.kind in RUN:
            run_block(block)


def test_the_template_that_it_shows_is_one(tmp_path):
    (shown,) = [block.text for block in blocks(INGEST) if block.kind == "json"]
    path = tmp_path / "own.json"
    path.write_text(shown)
    template = Template.read(path)
    assert template.mappings["properties"]["text"]["properties"]["ja"] == {"analyzer": "kuromoji"}
    assert template.settings == {"number_of_shards": 2}


def test_the_console_starts_as_it_is_shown(cluster_url, tmp_path):
    ((command, shown),) = [one for one in console_commands(CONSOLE) if "langshift serve" in one[0]]
    assert command == "langshift serve"
    env = {"OPENSEARCH_URL": cluster_url, "LANGSHIFT_HOME": str(tmp_path)}
    # Somebody may use the usual port here.
    command = [LANGSHIFT, "serve", "--port", "0"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        told = process.stdout.readline().decode()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1].decode()
    assert re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8365", told).strip() == shown
    assert (process.returncode, said) == (0, "The console has stopped.\n")


def test_every_block_is_run_or_known_not_to_be():
    there = {document: {block.kind for block in blocks(document)} for document in DOCUMENTS}
    assert there == {document: DONE.get(document, set()) | KNOWN.get(document, set()) for document in DOCUMENTS}
    for document in DOCUMENTS:
        begun = re.findall(r"^ *```\w+", document.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(begun) == sum(1 if block.shown is None else 2 for block in blocks(document))
    (excerpt,), (whole,) = ([one for one in blocks(place) if one.kind == "text"] for place in (README, DEMO))
    assert (excerpt.mark, whole.mark) == ("demo excerpt", "demo output")
    assert set(excerpt.text.splitlines()) <= set(whole.text.splitlines())
    # What prints something shows it, but for the load with which docs/search.md begins.
    told = [one for one in NAMES if one not in SERVED]
    silent = [block for document in told for block in blocks(document) if block.kind in RUN and block.shown is None]
    assert [block for block in blocks(SEARCH) if block.kind == "sh"][:1] == silent


@pytest.mark.parametrize("document", [one for one in DONE if "console" in DONE[one]], ids=lambda path: path.name)
def test_every_command_of_a_console_is_run_or_known_not_to_be(document):
    targets = re.findall(r"^([\w-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    ran = [line for page in NAMES for block in blocks(page) if block.kind == "sh" for line in block.text.splitlines()]
    # What becomes of its output or its exit code there is no part of it.
    lines = {re.split(r" \|\|? ", line)[0] for line in ran}
    for command, _ in console_commands(document):
        known = command in {"langshift serve", *lines} or COMMANDS_NOT_RUN.fullmatch(command)
        made = [words.removeprefix("make ") for words in re.findall(r"make [a-z-]+", command)]
        assert known or (made and set(made) <= set(targets)), command


def test_lines_run_in_this_process_and_those_run_by_a_shell_print_the_same(tmp_path):
    text = """\
langshift vectors check "$NAME"
cat > words.txt <<'END'
two  words
END
words=$(cat words.txt)
echo "$words"
cat missing 2> said.txt || test $? = 1
cat said.txt
langshift vectors check missing || test $? = 2
langshift vectors check "$NAME" | tail -n 2
"""
    done = in_shell(text, tmp_path, NAME="use-m")
    assert done.returncode == 0, done.stderr
    assert run("sh", text, tmp_path, NAME="use-m") == "".join(f"{one.rstrip()}\n" for one in done.stdout.splitlines())
    for failing in (
        "langshift vectors check missing\n",
        "langshift vectors check missing || test $? = 1\n",
        "cat missing\n",
    ):
        with pytest.raises(AssertionError, match=r"missing( \|\| test .*)?\n\nended with exit code [12]:\n.*missing"):
            run("sh", failing, tmp_path)


def test_the_comparison_notices_what_is_not_so():
    shown = "nDCG@20  .7802    1,190\nSpeed: encode 99/s, write 5/s.\ntook  2.0\n"
    assert differences(shown, shown) == []
    assert differences("nDCG@20 .7850 1,190\nSpeed: encode 7/s, write 1,000/s.\ntook 17.5\n", shown) == []
    assert differences(shown.replace(".7802", ".7700"), shown) == [
        "'nDCG@20  .7700    1,190' is shown as 'nDCG@20  .7802    1,190'"
    ]
    assert differences("th has 14% of the hits\n", "th has 15% of the hits\n") == []
    assert len(differences("th has 14% of the hits\n", "th has 16% of the hits\n")) == 1
    assert len(differences("th has 14.1% of the hits\n", "th has 15.0% of the hits\n")) == 1
    assert differences("hash 19312964b33ce025\n", "hash dfe712fe0fb8e7a7\n") == []
    assert len(differences("hash none\n", "hash dfe712fe0fb8e7a7\n")) == 1
    assert len(differences(shown.replace("1,190", "1,191"), shown)) == 1
    assert len(differences(shown.replace("took", "wall"), shown)) == 1
    changes = "th 1,190 .121 de -.013, th +.013, ru +.012\n"
    assert differences("th 1,190 .121 de -.013, ru +.013, es -.012\n", changes) == []
    assert len(differences(changes.replace("de -.013", "de -.023"), changes)) == 1
    far = "es 1,190 .217 es -.038, de -.029, ru +.020\n"
    assert len(differences(far.replace("es -.038", "zh -.038"), far)) == 1
    assert differences(shown + "more\n", shown) == ["4 lines printed, 3 shown"]


def test_a_page_is_renewed_but_for_speeds_and_times():
    shown = "nDCG@20  .7802    1,190\nSpeed: encode 99/s, write 5/s.\ntook  2.0\nhash 19312964b33ce025\n"
    other = "nDCG@20  .7803    1,190\nSpeed: encode 7/s, write 1,000/s.\ntook 17.5\nhash dfe712fe0fb8e7a7\n"
    assert renewed(other, shown) == shown.replace(".7802", ".7803")
    assert renewed(other.replace("took", "wall"), shown) == shown.replace(".7802", ".7803").replace(
        "took  2.0", "wall 17.5"
    )
    assert renewed(other + "more\n", shown) == other + "more\n"
    # Heads stay above their times; other lines are as they were printed.
    assert renewed("     p50\nmean\n", "   p50\nmean \n") == "   p50\nmean\n"


def test_the_tables_of_the_papers_figures_repeat_its_outputs():
    text = REPRODUCTION.read_text(encoding="utf-8")
    printed = set(re.findall(r"(?<!\d)\.\d{4}\b", "".join(b.shown.text for b in blocks(REPRODUCTION) if b.shown)))
    repeated = set(re.findall(r"(?<!\d)\.\d{4}\b", "".join(re.findall(r"^\|.*\n", text, re.MULTILINE))))
    assert len(repeated) > 20
    assert repeated <= printed


# docs/clients.md: each block is sent to an index of the vectors that it is about.


META = {metadata.VECTORS: SHIFT.to_dict()}


@pytest.fixture
def own(names):
    return names("news", "my-embedding")


@pytest.fixture
def index(client, own):
    target = version_writer.open_for_writing(client, own["news"], FINGERPRINT, META)
    version_writer.publish(client, target)
    return target.index


@pytest.fixture
def send(client, cluster_env, own, tmp_path):
    """Sends what a block holds, with the test's own names; gives the answer, or what was printed."""

    def send(block):
        text = own.rename(block.text).replace("http://localhost:9200", cluster_env)
        if block.kind in RUN:
            return run(block.kind, text, tmp_path, OPENSEARCH_URL=cluster_env)
        method, where, body = request(text)
        headers = {"content-type": "application/x-ndjson" if "/_bulk" in where else "application/json"}
        return client.transport.perform_request(method, where, body=body or None, headers=headers)

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
    return np.allclose(found["embedding"], vector, atol=1e-7) and stamp_of(found) == {"vectors": SHIFT.hash, **stamp}


def stand_in(client, own):
    """In the place of text_embedding, which needs a model: the same vector for each text that is a string."""
    script = {"source": "if (ctx.text instanceof String) { ctx.embedding = [1.5, 0.75, -0.25, 0.5] }"}
    client.ingest.put_pipeline(id=own["my-embedding"], body={"processors": [{"script": script}]})


def without_versions(body):
    """A pipeline's body without the script's hash and langshift's version, which change with each of them."""
    text = re.sub(r"langshift-shift-[0-9a-f]{8}", "langshift-shift-", json.dumps(body))
    return json.loads(re.sub(r"Made by langshift \S+\.", "Made by langshift.", text))


# What is there when the page begins, as a load has written it: raw vector, language, translation group.
LOADED = {
    "rain-de": ([1.0, 0.5, 0.0, 0.5], "de", "rain"),
    "rain-en": ([1.5, 0.75, -0.25, 0.5], "en", "rain"),
    "rain-th": ([0.5, 1.0, 0.0, 0.0], "th", "rain"),
    "snow-en": ([-1.0, 0.5, 0.0, 0.25], "en", None),
}


def write_loaded(client, index):
    shift_script.install(client)
    body = pipelines.body(index, SHIFT, USUAL, None)
    documents = [
        {"_id": name, "_source": {"embedding": vector, "language": tag, **({"group": group} if group else {})}}
        for name, (vector, tag, group) in LOADED.items()
    ]
    made = client.ingest.simulate(body={"pipeline": json.loads(json.dumps(body)), "docs": documents})["docs"]
    for one in made:
        client.index(index=index, id=one["doc"]["_id"], body=one["doc"]["_source"], params={"refresh": "true"})


def test_requests_and_commands_of_other_clients_do_what_it_says(client, index, own, send):
    write_loaded(client, index)
    answer, told = None, []
    for block in blocks(CLIENTS):
        if block.kind in KNOWN[CLIENTS] or block.mark == "as installed":
            continue
        if block.kind == "json" and request(block.text) is None:
            shown = json.loads(own.rename(block.text))
            answer = json.loads(answer) if isinstance(answer, str) else answer
            assert contains(answer, shown) == [], block.text
            told.append(block)
            continue
        if block.mark == "chained":
            stand_in(client, own)
        answer = send(block)
    assert len(told) == 7
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
    assert pipelines.default(client, index) is None
    assert not re.search(r"https?://(?!localhost|docs\.opensearch\.org)", CLIENTS.read_text(encoding="utf-8"))


def test_the_pipeline_that_it_shows_is_the_one_that_is_installed_and_works_as_shown(client, index, own, send):
    (shown,) = [block for block in blocks(CLIENTS) if block.mark == "as installed"]
    body = json.loads(request(shown.text)[2])
    # Else: python tests/support/documents.py
    assert without_versions(body) == without_versions(installed_body())
    embedding, install = (
        next(block for block in blocks(CLIENTS) if text in block.text) for text in ('text_embedding"', "--after")
    )
    send(embedding)
    send(install)
    name = pipelines.name_for(index)
    installed = client.ingest.get_pipeline(id=name)[name]
    made = installed_body(index, own["my-embedding"])
    assert without_versions(cut_short(installed)) == without_versions(made)
    # Sent as it is shown, with the id of the script that is there, it works for the spellings that are shown.
    script = installed["processors"][-1]["script"]["id"]
    send(shown._replace(text=re.sub(r"langshift-shift-[0-9a-f]{8}", script, shown.text)))
    stand_in(client, own)
    for told in ("de", "ger"):
        client.index(index=own["news"], id="1", body={"text": "Ebbe", "language": told})
        assert holds(client, index, "1", [1.0, 1.0, -0.375, 0.5], {"alpha": 1.0, "language": "de"})
