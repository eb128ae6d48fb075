"""Fields of several types in one corpus: numbers, dates and integers too large, each kept as it is or refused aloud."""

import json

from command_line import langshift, refusal
from given_data import write_lines

from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.settings import Settings

GIVEN = ("--encoder", "given", "--alpha", 0)
MIXED = [
    {
        "price": 25,
        "year": 2021,
        "code": 7,
        "published": "2024-05-01",
        "day": "2024-05-01",
        "views": 1,
        "part": {"w": 1},
    },
    {"price": 25.5, "year": "2022", "published": "2024-06-01 10:00", "day": 1717236000000, "views": 2},
    {"price": 26, "year": "", "published": "", "part": {"w": 0.5}},
]


def documents(*fields):
    return [
        {"_id": str(number), "text": "The sea rises.", "language": "en", "embedding": [number + 1.0, 1.0], **own}
        for number, own in enumerate(fields)
    ]


def count(client, name, **ranges):
    return client.count(index=name, body={"query": {"range": ranges}})["count"]


def letters(client, name):
    return list(DeadLetters(LoadWorkspace.of(Settings.from_env().home, client, name).dead_letters))


def test_numbers_and_dates_are_mapped_by_the_first_documents(client, cluster_url, index_name, tmp_path):
    corpus = write_lines(tmp_path / "corpus.jsonl", documents(*MIXED))
    options = ("--index", index_name, *GIVEN, "--date-field", "day")
    done = langshift("ingest", corpus, *options, url=cluster_url)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "published has dates, by the first documents: published.date can be searched by range.",
    ]
    assert count(client, index_name, price={"gt": 25, "lt": 26}) == 1
    assert count(client, index_name, year={"gte": 2022}) == 1
    assert count(client, index_name, day={"gte": "2024-06-01"}) == 1
    assert count(client, index_name, **{"published.date": {"gte": "2024-05-15"}}) == 1
    assert count(client, index_name, **{"part.w": {"lt": 1}}) == 1
    assert client.count(index=index_name, body={"query": {"term": {"published": "2024-06-01 10:00"}}})["count"] == 1
    found = [client.get(index=index_name, id=str(number))["_source"] for number in range(len(MIXED))]
    assert [{name: one[name] for name in own} for one, own in zip(found, MIXED, strict=True)] == MIXED


def test_of_values_of_several_types_the_first_counts(client, cluster_url, index_name, tmp_path):
    first = {"n": 1, "word": "x", "part": {"w": "x"}, "sure": True, "mixed": 2, "code": "7"}
    other = {"n": "none", "word": 1, "part": 1, "sure": "maybe", "mixed": "2.5", "code": {"a": 1}}
    corpus = write_lines(tmp_path / "corpus.jsonl", documents(first, *({name: other[name]} for name in other)))
    done = langshift("ingest", corpus, "--index", index_name, *GIVEN, url=cluster_url)
    assert done.returncode == 3
    ((_, found),) = client.indices.get_mapping(index=index_name).items()
    templates = {path: one["mapping"] for each in found["mappings"]["dynamic_templates"] for path, one in each.items()}
    types = {path: templates[f"type of {path}"]["type"] for path in other}
    assert types == {
        "n": "long",
        "word": "keyword",
        "part": "object",
        "sure": "boolean",
        "mixed": "double",
        "code": "keyword",
    }
    assert sorted(letter.id for letter in letters(client, index_name)) == ["1", "3", "4", "6"]
    properties = found["mappings"]["properties"]
    assert {path: properties[path].get("type", "object") for path in other} == types


def test_what_does_not_fit_later_is_a_dead_letter_that_says_why(client, cluster_url, index_name, tmp_path):
    first = documents({"views": 1, "published": "2024-05-01", "day": "2024-05-01"})
    corpus = write_lines(tmp_path / "first.jsonl", first)
    made = langshift("ingest", corpus, "--index", index_name, *GIVEN, "--date-field", "day", url=cluster_url)
    assert made.returncode == 0, made.stderr
    later = documents({}, {"views": 25.5}, {"day": "yesterday"}, {"published": "soon"}, {"views": 3.0})[1:]
    corpus = write_lines(tmp_path / "later.jsonl", later)
    append = ("--index", index_name, *GIVEN, "--if-exists", "append")
    done = langshift("ingest", corpus, *append, url=cluster_url)
    assert done.returncode == 3
    assert [(letter.id, letter.type, letter.reason) for letter in letters(client, index_name)] == [
        (
            "1",
            "mapper_parsing_exception",
            "failed to parse field [views] of type [long] in document with id '1'. Preview of field's value: '25.5' "
            "(25.5 cannot be converted to Long without data loss): the first values of this field were whole numbers; "
            'to keep others too, load the corpus into a new version with a --template that maps it as "double" or '
            '"keyword"',
        ),
        (
            "2",
            "mapper_parsing_exception",
            "failed to parse field [day] of type [date] in document with id '2'. Preview of field's value: 'yesterday' "
            "(failed to parse date field [yesterday] with format "
            "[strict_date_optional_time||yyyy-MM-dd HH:mm[:ss][.SSS]||epoch_millis]: Failed to parse with all enclosed "
            "parsers)",
        ),
    ]
    assert count(client, index_name, views={"gte": 3}) == 1
    # What only looked like dates refuses nothing.
    assert client.count(index=index_name, body={"query": {"term": {"published": "soon"}}})["count"] == 1
    assert count(client, index_name, **{"published.date": {"gte": "2000"}}) == 1
    assert refusal(langshift("ingest", corpus, *append, "--date-field", "published", url=cluster_url)) == (
        f"Index {index_name} already exists ({index_name}-v0001), where --date-field would have no effect: leave that "
        "out to add to it, replace it with --if-exists replace, or create a new version of it with --if-exists "
        "new-version."
    )


def test_an_integer_that_would_be_rounded_is_refused(client, cluster_url, index_name, tmp_path):
    exact = {"serial": 2**63 - 1, "large": 1e30, "deep": [{"n": -(2**63)}], "part": {"n": 2**53 + 1}}
    rounded = ({"serial": 2**64}, {"deep": [{"n": -(2**63) - 1}]}, {"serial": 10**100})
    corpus = write_lines(tmp_path / "corpus.jsonl", documents(exact, *rounded))
    done = langshift("ingest", corpus, "--index", index_name, *GIVEN, url=cluster_url)
    assert done.returncode == 3
    reason = "the integer {} is too large to be stored exactly; make it a string."
    shown = (repr("18446744073709551616"), repr("-9223372036854775809"), f"'1{'0' * 59}…'")
    assert [letter.reason for letter in letters(client, index_name)] == [reason.format(one) for one in shown]
    source = client.get(index=index_name, id="0")["_source"]
    assert {name: source[name] for name in exact} == exact
    assert count(client, index_name, serial={"gte": 2**63 - 1}) == 1
    assert count(client, index_name, **{"part.n": {"gt": 2**53}}) == 1


def test_a_template_has_the_last_word(client, cluster_url, index_name, tmp_path):
    template = tmp_path / "own.json"
    own = [{"own": {"path_match": "pub*", "mapping": {"type": "text"}}}]
    fields = {"price": {"type": "scaled_float", "scaling_factor": 100}, "day": {"type": "keyword"}}
    template.write_text(json.dumps({"mappings": {"properties": fields, "dynamic_templates": own}}))
    corpus = write_lines(tmp_path / "corpus.jsonl", documents(*MIXED))
    options = ("--index", index_name, *GIVEN, "--date-field", "day", "--template", template)
    done = langshift("ingest", corpus, *options, url=cluster_url)
    assert done.returncode == 0, done.stderr
    ((_, found),) = client.indices.get_mapping(index=index_name).items()
    types = {name: field.get("type") for name, field in found["mappings"]["properties"].items()}
    assert {name: types[name] for name in ("price", "day", "published", "year")} == {
        "price": "scaled_float",
        "day": "keyword",
        "published": "text",
        "year": "double",
    }
