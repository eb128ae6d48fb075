"""A load whose languages are limited, and what the index keeps of that; and queries in a language that it lacks."""

from command_line import langshift, refusal
from given_data import write_lines

MALAY = "Air laut naik dan turun dua kali sehari kerana tarikan bulan, dan nelayan tahu waktunya."
INDONESIAN = "Air laut naik dan turun dua kali sehari karena tarikan bulan, kata seorang nelayan kemarin."
TEXTS = {
    "ms": MALAY,
    "en": "The sea rises and falls twice a day because the Moon pulls at it.",
    "fi": "Meri nousee ja laskee kahdesti päivässä, koska kuu vetää sitä puoleensa.",
}
GIVEN = ("--encoder", "given", "--alpha", 0)


def corpus(path, **texts):
    rows = ({"_id": name, "text": text, "embedding": [1.0, 2.0]} for name, text in texts.items())
    return write_lines(path, rows)


def languages(client, name):
    hits = client.search(index=name, body={"size": 100})["hits"]["hits"]
    return {hit["_id"]: hit["_source"]["language"] for hit in hits}


def kept(client, name):
    ((_, found),) = client.indices.get_mapping(index=name).items()
    return found["mappings"]["_meta"]["langshift"]["languages"]


def test_a_load_detects_only_the_languages_given_and_so_do_later_ones(client, cluster_url, index_name, tmp_path):
    limited = ("--languages", "ms,en", "--index", index_name, *GIVEN)
    done = langshift("ingest", corpus(tmp_path / "first.jsonl", **TEXTS), *limited, url=cluster_url)
    assert (done.returncode, done.stderr) == (0, "1 document without a clear language: not shifted by language.\n")
    assert languages(client, index_name) == {"ms": "ms", "en": "en", "fi": "und"}
    assert kept(client, index_name) == ["en", "ms"]
    described = langshift("index", "describe", index_name, url=cluster_url).stdout
    assert "Languages were detected by lid.176.ftz, limited to en and ms;" in " ".join(described.split())
    append = ("--index", index_name, *GIVEN, "--if-exists", "append")
    more = corpus(tmp_path / "second.jsonl", more=MALAY.replace("dua", "tiga"), finnish=TEXTS["fi"])
    done = langshift("ingest", more, *append, url=cluster_url)
    assert languages(client, index_name) == {"ms": "ms", "en": "en", "fi": "und", "more": "ms", "finnish": "und"}
    done = langshift("ingest", more, *append, "--languages", "fi", url=cluster_url)
    assert f"Loads into {index_name} detect only fi from now on (en and ms before).\n" in done.stderr
    assert kept(client, index_name) == ["fi"]
    assert languages(client, index_name)["finnish"] == "fi"


def test_an_index_is_adopted_with_the_languages_given(client, cluster_url, index_name):
    old = f"{index_name}-old"
    vec = {"type": "knn_vector", "dimension": 2, "space_type": "cosinesimil"}
    vec["method"] = {"name": "hnsw", "engine": "lucene"}
    client.indices.create(index=old, body={"settings": {"index.knn": True}, "mappings": {"properties": {"vec": vec}}})
    for name, text in TEXTS.items():
        client.index(index=old, id=name, body={"body": text, "vec": [1.0, 2.0]}, params={"refresh": "true"})
    options = ("--vector-field", "vec", "--text-field", "body", *GIVEN, "--languages", "en,ms")
    done = langshift("adopt", old, "--name", index_name, *options, url=cluster_url)
    assert (done.returncode, done.stderr) == (0, "1 document without a clear language: not shifted by language.\n")
    assert languages(client, index_name) == {"ms": "ms", "en": "en", "fi": "und"}
    assert kept(client, index_name) == ["en", "ms"]


def test_languages_that_are_hard_to_tell_apart_are_named_at_the_end(cluster_url, index_name, tmp_path):
    both = corpus(
        tmp_path / "both.jsonl", a=MALAY + " Demikian kata beliau kepada pemberita.", b=INDONESIAN, c=TEXTS["en"]
    )
    done = langshift("ingest", both, "--index", index_name, *GIVEN, url=cluster_url)
    assert done.stderr.splitlines() == [
        "id and ms are hard to tell apart: 37 of 100 single sentences are taken for another language, and 37 of 100 "
        "texts of three. If the corpus has only one of the two, name its languages with --languages."
    ]
    named = tmp_path / "named.jsonl"
    write_lines(named, [{"text": text, "language": tag, "embedding": [1, 2]} for tag, text in TEXTS.items()])
    done = langshift("ingest", named, "--index", index_name, "--if-exists", "new-version", *GIVEN, url=cluster_url)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_language_that_is_none_is_refused_before_anything_is_read(cluster_url, index_name, tmp_path):
    given = corpus(tmp_path / "first.jsonl", **TEXTS), "--index", index_name, "--encoder", "use-m"
    assert refusal(langshift("ingest", *given, "--languages", "en,Malay", url=cluster_url)) == (
        "'Malay' is not a valid language: use a BCP 47 tag such as th or zh-TW."
    )
    assert refusal(langshift("ingest", *given, "--languages", "en,fj", url=cluster_url)) == (
        "lid.176.ftz does not detect fj: name languages that it knows."
    )


def test_a_query_that_is_surely_in_another_language_is_not_taken_for_one_of_the_index(
    cluster_url, index_name, tmp_path
):
    documents = corpus(tmp_path / "first.jsonl", en=TEXTS["en"])
    langshift("ingest", documents, "--index", index_name, *GIVEN, url=cluster_url)
    search = ("search", index_name, "--mode", "lexical", "--json")
    done = langshift(*search, "Wie oft am Tag steigt und fällt das Meer?", url=cluster_url)
    assert '"language": "de"' in done.stdout
    assert f"The query was read as de, in which {index_name} has no document." in done.stdout
    assert '"language": "en"' in langshift(*search, "Meer", url=cluster_url).stdout
    named = langshift(*search, "--language", "de", "Wie oft am Tag steigt und fällt das Meer?", url=cluster_url)
    assert "was read as" not in named.stdout
