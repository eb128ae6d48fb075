"""Users whose roles hide documents or fields, or mask them: nothing is copied, replaced or measured by their view."""

import json
import os
from itertools import pairwise

import command_line
import pytest
from secured_cluster import documented_roles

LANGUAGES = ("de", "en", "th")
RESTRICTED = {
    "documents": ({"dls": json.dumps({"term": {"language": "en"}})}, "show only "),
    "fields": ({"fls": ["~group"]}, "hide the field 'group' of "),
    "masked keyword": ({"masked_fields": ["group"]}, "mask the field 'group' of "),
    "masked text": ({"masked_fields": ["text.en"]}, "mask the field 'text.en' of "),
}
OLD = {"--vector-field": "embedding", "--text-field": "body", "--language-field": "language", "--encoder": "use-m"}


@pytest.fixture(scope="module")
def langshift(secured, tmp_path_factory):
    """Run a command as a user."""
    home = tmp_path_factory.mktemp("home")

    def run(user, *arguments):
        usual = {"PATH": os.environ["PATH"], "HOME": home, "LANGSHIFT_HOME": home / "home"}
        return command_line.langshift(*arguments, only={}, **usual | secured.environment(user))

    return run


@pytest.fixture(scope="module")
def corpus(folder, tmp_path_factory):
    """The small dataset, grouped, with an article of several parts, which an index keeps as nested documents."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    made = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    rows = [{**row, "group": row["_id"].rpartition("-")[0]} for row in rows]
    made.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def name(administrator, langshift, corpus):
    """An index that was retuned once, and an old one beside it that langshift did not make, with nested documents."""
    name = "langshift-restricted"
    for arguments in (
        ("ingest", corpus, "--index", name, "--alpha", 0),
        ("retune", name, "--alpha", 1),
    ):
        done = langshift("administrator", *arguments)
        assert done.returncode == 0, done.stderr
    vector = administrator.indices.get_mapping(index=name)[f"{name}-v0002"]["mappings"]["properties"]["embedding"]
    keyword = {"type": "keyword"}
    properties = {"embedding": vector, "language": keyword, "group": keyword, "text": {"properties": {}}}
    properties |= {"body": {"type": "text"}, "parts": {"type": "nested", "properties": {"part": keyword}}}
    properties["text"]["properties"]["en"] = {"type": "text"}
    administrator.indices.create(
        index=f"{name}-old", body={"settings": {"index.knn": True}, "mappings": {"properties": properties}}
    )
    for hit in administrator.search(index=f"{name}-v0001", body={"size": 100})["hits"]["hits"]:
        source = hit["_source"]
        kept = {field: source[field] for field in ("embedding", "language", "group", "text")}
        body = kept | {"body": next(iter(source["text"].values())), "parts": [{"part": "a"}, {"part": "b"}]}
        administrator.index(index=f"{name}-old", id=hit["_id"], body=body)
    yield name
    administrator.indices.delete(index=",".join(administrator.indices.get(index=f"{name}*")))


def state(administrator, name):
    """All that a command could change."""
    found = administrator.indices.get(index=f"{name}*")
    counts = {index: administrator.count(index=index)["count"] for index in found}
    return json.dumps([found, counts], sort_keys=True)


def commands(name, corpus):
    fields = [one for option in OLD.items() for one in option]
    return {
        "a retune": ("retune", name, "--alpha", "0.5"),
        "a reencode": ("reencode", name, "--encoder", "e5-small"),
        "adopting it": ("adopt", f"{name}-old", "--name", name, "--if-exists", "new-version", *fields),
        "a rollback": ("rollback", name),
        "a load that takes its place": ("ingest", corpus, "--index", name, "--if-exists", "replace"),
        "a calibration": ("anchors", "calibrate", name),
    }


@pytest.mark.parametrize("kind", RESTRICTED)
def test_what_is_seen_in_part_is_not_copied_replaced_or_measured(secured, administrator, langshift, name, corpus, kind):
    restriction, told = RESTRICTED[kind]
    role = documented_roles(name)["everything"]
    for part in role["index_permissions"]:
        part.update(restriction)
    user = secured.user_of(role)
    before = state(administrator, name)
    for what, arguments in commands(name, corpus).items():
        code, out, err = langshift(user, *arguments)
        assert (code, out) == (1, ""), (arguments, err)
        assert err.startswith(f"Error: This user's roles {told}"), (arguments, err)
        assert f", and {what} would leave out what they hide, for everybody: run the command as a user" in err
    assert state(administrator, name) == before


def test_a_restriction_that_looks_terms_up_is_told(secured, administrator, langshift, name):
    role = documented_roles(name)["everything"]
    lookup = {"terms": {"language": {"index": f"{name}-lookup", "id": "1", "path": "languages"}}}
    administrator.index(index=f"{name}-lookup", id="1", body={"languages": ["en"]})
    for part in role["index_permissions"]:
        part["dls"] = json.dumps(lookup)
    for arguments in (("search", name, "Moon"), ("retune", name, "--alpha", "0.5")):
        code, out, err = langshift(secured.user_of(role), *arguments)
        assert (code, out) == (1, "")
        assert err == (
            f"Error: The cluster at {secured.url} restricts this user's documents by terms that it looks up in another "
            "index, and then answers nothing but searches: use a role whose restriction names its terms.\n"
        )


def test_who_sees_all_may_copy_while_others_write(secured, administrator, langshift, name):
    before = administrator.count(index=name)["count"]
    for alpha, _ in pairwise((0.25, 1, 0.25)):
        done = langshift(secured.user_of(documented_roles(name)["everything"]), "retune", name, "--alpha", alpha)
        assert done.returncode == 0, done.stderr
        assert administrator.count(index=name)["count"] == before


def test_langshifts_own_searches_hold_to_the_restriction(secured, langshift, name):
    role = documented_roles(name)["searching"]
    role["index_permissions"][0]["dls"] = json.dumps({"term": {"language": "en"}})
    user = secured.user_of(role)
    for more in ((), ("--prefer-language", ".05"), ("--mode", "anchored"), ("--one-per-group",), ("--mode", "hybrid")):
        code, out, err = langshift(user, "search", name, "Warum steigt das Meer?", "--json", *more)
        assert code == 0, err
        hits = json.loads(out)["hits"]
        assert len(hits) == 5, more
        assert {hit["language"] for hit in hits} == {"en"}
