"""Users who may not do everything: what is missing is named, nothing is half-written, and the rest works over TLS."""

import json
import os
import re

import anchored_corpus
import command_line
import pytest
import trustme
from chat_server import chat_server
from cluster_templates import index_templates
from given_data import write_lines
from secured_cluster import DOCUMENT, documented_roles, everything_but

from langshift.plugin.pipelines import installed

DOCUMENTS = 15
# What every command looks at first, and goes on without.
LOOKING = {"cluster:monitor/main", "cluster:monitor/state", "cluster:monitor/nodes/info"}


def said(err):
    """What a load said, but for how far its pages are translated."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("Translated: "))


@pytest.fixture
def langshift(secured, tmp_path):
    """Run a command as a user, with these variables only; the password must not come out."""

    def run(user, *arguments, **env):
        usual = {"PATH": os.environ["PATH"], "HOME": tmp_path, "LANGSHIFT_HOME": tmp_path / "home"}
        done = command_line.langshift(*arguments, only={}, **usual | secured.environment(user) | env)
        assert "s3cret" not in done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def ingest(folder, secured_name):
    """The command that loads the small dataset."""
    return "ingest", folder / "corpus.jsonl", "--index", secured_name


def lacks(secured, user, named):
    return (
        f"Error: The cluster at {secured.url} denies the request: the user {user} does not have the permission "
        f"{named}; ask the cluster's administrator for it."
    )


def indices(client, name):
    return sorted(client.indices.get(index=f"{name}*", params={"expand_wildcards": "all"}))


@pytest.mark.parametrize(
    ("permission", "group"),
    [
        ("cluster:monitor/main", "cluster_monitor"),
        ("indices:admin/get", None),
        ("indices:admin/create", "create_index"),
        ("indices:data/write/bulk", "cluster_composite_ops"),
        ("indices:data/write/bulk[s]", "write"),
    ],
)
def test_a_load_that_cannot_begin_leaves_nothing(
    langshift, secured, administrator, secured_name, ingest, permission, group
):
    user = secured.user_of(everything_but(permission))
    named = f"{permission} (in the action group {group})" if group else permission
    assert langshift(user, *ingest) == (1, "", f"{lacks(secured, user, named)}\n")
    assert indices(administrator, secured_name) == []


@pytest.mark.parametrize(
    ("permission", "group", "told"),
    [
        ("indices:data/read/mget[shard]", "read", ""),
        ("indices:admin/aliases", "manage_aliases", ""),
        (
            *("indices:admin/settings/update", "manage"),
            " {index}-v0001 could not be removed or reset: the next run will do it.",
        ),
    ],
)
def test_a_load_that_cannot_end_is_gone_on_with(
    langshift, secured, administrator, folder, secured_name, ingest, permission, group, told
):
    user = secured.user_of(everything_but(permission))
    code, out, err = langshift(user, *ingest)
    assert (code, out) == (1, "")
    assert err == (
        f"{lacks(secured, user, f'{permission} (in the action group {group})')}{told.format(index=secured_name)} "
        f"{DOCUMENTS} lines of {folder / 'corpus.jsonl'} handled: continue with --resume.\n"
    )
    assert not administrator.indices.exists_alias(name=secured_name)
    secured.set_role(user, everything_but())
    code, _, err = langshift(user, *ingest, "--resume")
    assert code == 0, err
    assert administrator.count(index=secured_name)["count"] == DOCUMENTS
    assert indices(administrator, secured_name) == [f"{secured_name}-v0001"]


TEMPLATES = ("indices:admin/index_template/get", "indices:admin/template/get", "cluster:admin/component_template/get")


@pytest.mark.parametrize("missing", TEMPLATES)
def test_without_the_right_to_read_index_templates(langshift, secured, administrator, secured_name, ingest, missing):
    """What such a template does is then seen only in the version that was created."""
    components = {"c": {"aliases": {secured_name: {}}}}
    legacy = missing == "indices:admin/template/get"
    contents = components["c"] if legacy else {}
    user = secured.user_of(everything_but(missing))
    code, _, err = langshift(user, *ingest)
    assert (code, said(err)) == (0, "")
    components = None if legacy else components
    with index_templates(administrator, secured_name, contents, components=components, legacy=legacy):
        done = langshift(user, *ingest, "--if-exists", "new-version")
    assert done[:2] == (1, "")
    assert f"because an index template of the cluster would give it the alias {secured_name} at once" in done[2]
    assert indices(administrator, secured_name) == [f"{secured_name}-v0001"]


def test_without_the_right_to_look_at_the_cluster(langshift, secured, folder, secured_name, ingest, tmp_path):
    """Only a load needs to know which cluster it is, to find its journal again."""
    looking = ("cluster:monitor/state", "cluster:monitor/nodes/info", "cluster:monitor/health")
    looking += ("indices:data/read/msearch", *TEMPLATES)
    user = secured.user_of(everything_but(*looking))
    code, _, err = langshift(user, *ingest)
    assert (code, said(err)) == (0, "")
    user = secured.user_of(everything_but("cluster:monitor/main", *looking))
    code, out, err = langshift(user, "search", secured_name, "Ebbe und Flut", "--json")
    assert (code, err, len(json.loads(out)["hits"])) == (0, "", 10)
    output = tmp_path / "out"
    code, _, err = langshift(user, "evaluate", "replay", folder, "--index", secured_name, "--output", output, "--json")
    assert code == 0
    missing = lacks(secured, user, "indices:data/read/msearch (in the action group cluster_composite_ops_ro)")
    assert missing.removeprefix("Error: ").replace(f" at {secured.url}", "") in err
    assert json.loads((output / "result.json").read_text())["versions"]["opensearch"] == "unknown"
    code, out, err = langshift(user, "doctor", "--json")
    of_the_cluster = [f for f in json.loads(out)["findings"] if f["section"] == "cluster"]
    # An index that another test is loading right now is named here, too.
    found = {f["name"]: (f["status"], f["value"]) for f in of_the_cluster if not f["name"].startswith("index ")}
    assert (code, said(err)) == (0, "")
    assert found == {
        "reachable": ("ok", secured.url),
        "version": ("warning", "this user may not read it"),
        "health": ("warning", "this user may not read it"),
        "plugins": ("warning", "this user may not list them"),
    }


def test_without_the_right_to_several_searches_at_once_a_load_is_not_calibrated(
    langshift, secured, administrator, secured_name, tmp_path
):
    path = write_lines(tmp_path / "corpus.jsonl", anchored_corpus.corpus(languages=("de", "th"), groups=22))
    user = secured.user_of(everything_but("indices:data/read/msearch"))
    code, out, err = langshift(user, "ingest", path, "--index", secured_name, LANGSHIFT_NO_CALIBRATION="0")
    lacking = lacks(secured, user, "indices:data/read/msearch (in the action group cluster_composite_ops_ro)")
    why = lacking.removeprefix("Error: ").replace(f" at {secured.url}", "")
    assert said(err).splitlines()[-1] == (
        f"{secured_name} is not calibrated, so mode auto is dense; `langshift anchors calibrate {secured_name}` tries "
        f"again: {why}"
    )
    assert (code, out.splitlines()[-1].partition(" lines ")[0]) == (0, "All 44")
    assert administrator.count(index=secured_name)["count"] == 44


OFF = "disable verification with OPENSEARCH_SSL_VERIFY=false."
OTHER = f"presents a certificate that cannot be verified: set OPENSEARCH_CA_FILE to the CA that signed it, or {OFF}"


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (
            {"OPENSEARCH_PASSWORD": "wrong"},
            "rejects the user name or password: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD.",
        ),
        (
            {"OPENSEARCH_USERNAME": "", "OPENSEARCH_PASSWORD": ""},
            "requires a user name and password: set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD.",
        ),
        ({"OPENSEARCH_CA_FILE": ""}, OTHER),
        ({"OPENSEARCH_CA_FILE": "other.pem"}, OTHER),
    ],
)
def test_who_is_not_let_in_writes_nothing(langshift, secured, administrator, secured_name, ingest, tmp_path, env, says):
    if env.get("OPENSEARCH_CA_FILE"):
        env["OPENSEARCH_CA_FILE"] = str(tmp_path / "other.pem")
        trustme.CA().cert_pem.write_to_path(env["OPENSEARCH_CA_FILE"])
    assert langshift("administrator", *ingest, **env) == (1, "", f"Error: The cluster at {secured.url} {says}\n")
    assert indices(administrator, secured_name) == []


def test_a_certificate_that_nobody_verifies(langshift, administrator, secured_name, ingest):
    env = {"OPENSEARCH_SSL_VERIFY": "false", "OPENSEARCH_CA_FILE": ""}
    code, _, err = langshift("administrator", *ingest, **env)
    assert (code, said(err)) == (0, "")
    assert administrator.count(index=secured_name)["count"] == DOCUMENTS


def make_old(client, index, name):
    """An index that langshift did not make, with the documents of one that it made with alpha 0."""
    vector = client.indices.get_mapping(index=index)[f"{index}-v0001"]["mappings"]["properties"]["embedding"]
    properties = {"vector": vector, "body": {"type": "text"}, "lang": {"type": "keyword"}}
    settings = {"index": {"knn": True, "number_of_replicas": 0}}
    client.indices.create(index=name, body={"settings": settings, "mappings": {"properties": properties}})
    for hit in client.search(index=index, body={"size": 100})["hits"]["hits"]:
        source = hit["_source"]
        ((language, text),) = source["text"].items()
        client.index(index=name, id=hit["_id"], body={"vector": source["embedding"], "body": text, "lang": language})
    client.indices.refresh(index=name)


def documented_permissions(text, row):
    """The permissions that a row of the page's table names, with those of the rows that it refers to."""
    line = re.search(rf"^\| `{row}`?[^|]*\|(.*)$", text, re.MULTILINE)[1]
    named = set(re.findall(r"`((?:indices|cluster):[^`]*)`", line))
    for other in re.findall(r"as `([a-z ]+)`", line):
        named |= documented_permissions(text, other)
    return named


def test_the_roles_of_the_documentation_are_enough_and_its_table_names_what_is_asked_for(
    langshift, secured, administrator, folder, secured_name, ingest, tmp_path
):
    name, text = secured_name, DOCUMENT.read_text(encoding="utf-8")
    roles = documented_roles(name)
    # What a note below the table says of all that copies, and of an index with a pipeline.
    pipeline = {f"cluster:admin/{one}" for one in ("script/get", "script/put", "ingest/pipeline/get")}
    pipeline |= {"cluster:admin/ingest/pipeline/put", "cluster:admin/ingest/pipeline/simulate"}
    pipeline |= {"cluster:admin/reindex/rethrottle", "indices:admin/template/get"}
    pipeline |= {"indices:admin/index_template/get", "cluster:admin/component_template/get"}

    undocumented = {}

    def works(role, *arguments, row=None, more=frozenset()):
        user = secured.user_of(roles[role])
        code, _, err = langshift(user, *arguments)
        assert code == 0, (arguments, err)
        row = row or " ".join(one for one in arguments[:2] if str(one).isalpha() and one not in (name,))
        undocumented[row] = secured.used(user) - documented_permissions(text, row) - LOOKING - pipeline - more

    works("loading", *ingest, "--alpha", "0", row="ingest")
    make_old(administrator, name, f"{name}-old")
    works("searching", "search", name, "Ebbe und Flut", row="search")
    calibrate = ("anchors", "calibrate", name)
    user = secured.user_of(roles["searching"])
    needed = "indices:admin/mapping/put (in the action group create_index)"
    assert langshift(user, *calibrate) == (1, "", f"{lacks(secured, user, needed)}\n")
    # With fewer documents than it takes.
    user = secured.user_of(roles["loading"])
    assert "Calibration needs 30 documents" in langshift(user, *calibrate)[2]
    undocumented["anchors calibrate"] = secured.used(user) - documented_permissions(text, "anchors calibrate") - LOOKING
    works("searching", "search", name, "Ebbe", "--from", 0, "--facet", "language", "--one-per-group", row="search")
    works("searching", "evaluate", "replay", folder, "--index", name, "--output", tmp_path / "out")
    # The model refuses all, after the documents were read.
    with chat_server(lambda _: "") as model:
        models = ("--generator", model.name, "--rerank", model.name)
        done = langshift(secured.user_of(roles["searching"]), "dataset", "make", name, tmp_path / "made", *models)
    assert "Error: None of the 15 questions can be used, and nothing was written: the model refused" in done[2]
    works("everything", "retune", name, "--alpha", "0.5", "--throttle", "1000", row="retune")
    works("everything", "rollback", name, row="rollback")
    works("everything", "reencode", name, "--encoder", "use-m", "--alpha", "0.25", row="reencode")
    works("everything", "rollback", name, row="rollback")
    works("everything", "pipeline", "install", name)
    works("loading", "pipeline", "verify", name)
    works("everything", "retune", name, "--alpha", "0.7", row="retune")
    works("everything", "pipeline", "remove", name)
    works("listing", "index", "list", row="index list")
    works("searching", "index", "describe", name)
    works("everything", "index", "drop", name, "--yes")
    fields = ("--vector-field", "vector", "--text-field", "body", "--language-field", "lang", "--encoder", "use-m")
    old = documented_permissions(text, "adopt`, on the old index")
    works("everything", "adopt", f"{name}-old", "--name", name, *fields, row="ingest", more=old)
    assert administrator.count(index=name)["count"] == DOCUMENTS
    works("loading", *ingest, "--if-exists", "replace", row="ingest")
    assert administrator.count(index=f"{name}-old")["count"] == DOCUMENTS
    assert {row: some for row, some in undocumented.items() if some} == {}


def test_who_may_only_search(langshift, secured, administrator, secured_name, ingest):
    roles = documented_roles(secured_name)
    user = secured.user_of(roles["searching"])
    code, _, err = langshift(user, *ingest)
    assert (code, err) == (1, f"{lacks(secured, user, 'indices:admin/create (in the action group create_index)')}\n")
    assert indices(administrator, secured_name) == []
    user = secured.user_of(roles["loading"])
    assert langshift(user, *ingest)[0] == 0
    for command, permission in (
        (("pipeline", "install"), "cluster:admin/script/get"),
        (("retune", "--alpha", "0.5"), "cluster:admin/script/get"),
    ):
        assert langshift(user, *command, secured_name) == (1, "", f"{lacks(secured, user, permission)}\n")
    assert indices(administrator, secured_name) == [f"{secured_name}-v0001"]


def test_a_load_by_who_may_make_no_pipeline_does_not_take_the_place_of_a_version_with_one(
    langshift, secured, administrator, folder, secured_name, ingest
):
    replace = (*ingest, "--if-exists", "replace")
    assert langshift("administrator", *replace)[0] == 0
    assert langshift("administrator", "pipeline", "install", secured_name)[0] == 0
    try:
        user = secured.user_of(everything_but("cluster:admin/ingest/pipeline/put"))
        code, out, err = langshift(user, *replace)
        named = "cluster:admin/ingest/pipeline/put (in the action group cluster_manage_pipelines)"
        handled = f"{DOCUMENTS} lines of {folder / 'corpus.jsonl'} handled: continue with --resume."
        assert (code, out, err) == (1, "", f"{lacks(secured, user, named)} {handled}\n")
        assert list(administrator.indices.get_alias(name=secured_name)) == [f"{secured_name}-v0001"]
        code, _, err = langshift("administrator", *replace, "--resume")
        assert code == 0, err
        assert f"{secured_name}-v0002 shifts what other clients write, as {secured_name}-v0001 did." in err.splitlines()
        assert installed(administrator, f"{secured_name}-v0002") is not None
    finally:
        langshift("administrator", "pipeline", "remove", secured_name)


@pytest.mark.parametrize(
    ("permission", "group"),
    [
        ("cluster:admin/ingest/pipeline/put", "cluster_manage_pipelines"),
        ("indices:admin/settings/update", "manage"),
    ],
)
def test_a_pipeline_that_may_not_be_made(langshift, secured, administrator, secured_name, ingest, permission, group):
    assert langshift("administrator", *ingest)[0] == 0
    user = secured.user_of(everything_but(permission))
    done = langshift(user, "pipeline", "install", secured_name)
    assert done == (1, "", f"{lacks(secured, user, f'{permission} (in the action group {group})')}\n")
    assert f"langshift-{secured_name}-v0001" not in administrator.ingest.get_pipeline(params={"ignore": 404})
    assert "default_pipeline" not in str(administrator.indices.get_settings(index=secured_name))
