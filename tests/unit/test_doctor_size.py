"""What an index takes, by formulas; and what `langshift doctor --size` prints, measures and refuses."""

import json

import pytest
from command_line import langshift, refusal
from given_data import write_lines

from langshift.plugin.sizing import IndexSize, hours, index_sizes, shards_of_corpus

# Of 384 dimensions and 800 bytes of texts, bytes a document. In memory, 1.1 times components and links (8 · 16 = 128):
#   float: 1.1 · (4 · 384 + 128) = 1,830.4; of 16 bits: 1.1 · (768 + 128) = 985.6; of one bit: 1.1 · (48 + 128) = 193.6
# On disk, with Lucene 4 · 384 + 200 + 800 = 2,536; with faiss 8.5 · 384 = 3,264 and as much as in memory besides:
#   float: 7,630.4; of 16 bits: 6,785.6; of one bit: 5,993.6
# A shard for each 30 GB of disk that are begun: of 10 million documents in Lucene 25.36 / 30 = 0.85, so 1.
SIZES = {
    10**7: [(18.304e9, 25.36e9, 1), (18.304e9, 76.304e9, 3), (9.856e9, 67.856e9, 3), (1.936e9, 59.936e9, 2)],
    10**8: [(183.04e9, 253.6e9, 9), (183.04e9, 763.04e9, 26), (98.56e9, 678.56e9, 23), (19.36e9, 599.36e9, 20)],
    10**9: [
        (1830.4e9, 2536e9, 85),
        (1830.4e9, 7630.4e9, 255),
        (985.6e9, 6785.6e9, 227),
        (193.6e9, 5993.6e9, 200),
    ],
}
# At 12 a second 10 million take 10,000,000 / 43,200 = 231.5 hours; at 930 a second 10,000,000 / 3,348,000 = 2.987.
HOURS = {10**7: (231.4815, 2.98686), 10**8: (2314.815, 29.8686), 10**9: (23148.15, 298.686)}


@pytest.mark.parametrize("documents", SIZES)
def test_sizes_are_those_of_the_formulas(documents):
    engines = ("lucene", "faiss", "faiss-fp16", "faiss-on-disk")
    for found, engine, (memory, disk, shards) in zip(
        index_sizes(documents, 384, 800), engines, SIZES[documents], strict=True
    ):
        assert found == IndexSize(engine, pytest.approx(memory), pytest.approx(disk), shards)
    encoding, writing = HOURS[documents]
    assert (hours(documents, 12), hours(documents, 930)) == (pytest.approx(encoding), pytest.approx(writing, rel=1e-5))


def test_a_corpus_has_another_shard_from_30_gigabytes_on():
    # 2,536 bytes a document: 30e9 / 2,536 = 11,829,652.99...
    assert [shards_of_corpus(lines, 384, "lucene", 800) for lines in (11_829_652, 11_829_653)] == [1, 2]
    assert [shards_of_corpus(lines, 384, "lucene", 800) for lines in (0, 1, 10**8)] == [1, 1, 9]
    assert shards_of_corpus(10**8, 384, "faiss-on-disk", 800) == 20
    # The server's limit.
    assert shards_of_corpus(10**12, 384, "lucene", 800) == 1024
    # Standard input; or no document among the lines that were drawn.
    assert shards_of_corpus(None, 384, "lucene", 800) == shards_of_corpus(10**12, 384, "lucene", None) == 1


@pytest.fixture
def corpus(tmp_path):
    rows = [{"_id": "a", "text": "abc", "year": 1}, {"_op": "delete", "_id": "b"}, {"_id": "c", "text": "abcde"}]
    return write_lines(tmp_path / "corpus.jsonl", rows)


def test_without_a_corpus_it_says_what_it_does_not_know():
    done = langshift("doctor", "--size", "--documents", "1e9", "--dimension", 384)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "1,000,000,000 documents of 384 dimensions, one copy:\n"
        "            lucene  faiss  faiss-fp16  faiss-on-disk  source\n"
        "memory, GB   1,830  1,830         986            194  formula of OpenSearch; page cache with lucene\n"
        "disk, GB     1,736  6,830       5,986          5,194  measured with 20,000 documents; without the "
        "texts, unless --measure is given\n"
        "shards          58    228         200            174  30 GB of disk each, as AWS advises\n"
        "          hours  source\n"
        "encoding      -  not known: --measure CORPUS measures it\n"
        "writing     299  930/s, measured on two cores with 20,000 documents; your cluster differs: measure it\n"
        "Each replica takes the same memory and disk again, and so does the version before while it is there. With "
        "weights of tokens (ingest --sparse) a document takes 7 to 12 KB of disk more, with vectors of them (--tokens) "
        "some 17 KB. Formulas and sources: docs/scale.md.\n"
    )
    told = json.loads(langshift("doctor", "--size", "--documents", 30, "--dimension", 8, "--json").stdout)
    assert (told["encoding"], told["text_bytes"], told["engines"][0]["shards"]) == (None, None, 1)


def test_a_corpus_is_measured(corpus):
    options = ("doctor", "--size", "--documents", "1e8", "--dimension", 512, "--measure", corpus, "--encoder", "use-m")
    done = langshift(*options)
    assert done.returncode == 0, done.stderr
    assert "18 bytes of texts and fields each" in " ".join(done.stdout.split())
    assert "/s by this process, measured with 2 documents; G of its like take a G-th" in " ".join(done.stdout.split())
    told = json.loads(langshift(*options, "--json").stdout)
    # ["","abc",{"year":1}] and ["","abcde",{}] have 21 and 15 bytes.
    assert told["text_bytes"] == 18
    assert told["engines"][0]["disk_bytes"] == 1e8 * (4 * 512 + 200 + 18)
    assert told["encoding"]["documents_per_second"] > 0
    assert told["encoding"]["hours"] == pytest.approx(1e8 / 3600 / told["encoding"]["documents_per_second"])


def test_what_is_not_given_is_known_by_the_corpus_and_the_encoder(corpus):
    told = json.loads(langshift("doctor", "--size", "--measure", corpus, "--encoder", "use-m", "--json").stdout)
    assert (told["documents"], told["dimension"], told["text_bytes"]) == (3, 512, 18)
    told = json.loads(langshift("doctor", "--size", "--documents", 10, "--encoder", "use-m", "--json").stdout)
    assert (told["documents"], told["dimension"], told["text_bytes"]) == (10, 512, None)
    told = json.loads(langshift("doctor", "--size", "--documents", 10, "--json").stdout)
    # Of the tests' own usual encoder, use-m.
    assert told["dimension"] == 512
    own = ("--dimension", 8, "--encoder", "given")
    assert json.loads(langshift("doctor", "--size", "--documents", 10, *own, "--json").stdout)["dimension"] == 8


def test_a_number_of_documents_that_nobody_knows_is_asked_for(corpus):
    said = "It is not known how many documents there are: give --documents N, or a file with --measure."
    assert refusal(langshift("doctor", "--size")) == said
    piped = ("--measure", "-", "--encoder", "use-m")
    assert refusal(langshift("doctor", "--size", *piped, stdin=corpus.read_bytes())) == said


@pytest.mark.parametrize(
    "options",
    [("--documents", "9"), ("--dimension", "8"), ("--measure", "x"), ("--encoder", "use-m"), ("--text-field", "body")],
)
def test_options_of_the_size_need_it(options):
    said = f"{options[0]} is about the size of an index: give --size, too."
    assert refusal(langshift("doctor", *options)) == said


def test_texts_in_fields_of_other_names_are_measured(tmp_path):
    path = write_lines(tmp_path / "corpus.jsonl", [{"headline": "Tide", "body": "abc"}])
    options = (
        "doctor",
        "--size",
        "--documents",
        9,
        "--dimension",
        512,
        "--measure",
        path,
        "--encoder",
        "use-m",
        "--json",
    )
    assert "--text-field body" in refusal(langshift(*options))
    told = json.loads(langshift(*options, "--text-field", "headline", "--text-field", "body").stdout)
    # Both texts are encoded together: ["","Tide abc",{}] has 18 bytes.
    assert told["text_bytes"] == 18


@pytest.mark.parametrize("given", ["0", "-3", "2e12", "many", "nan", "inf", "1.5", ""])
def test_what_is_no_number_of_documents_is_refused(given):
    done = langshift("doctor", "--size", "--documents", given, "--dimension", 8)
    said = f"Error: Invalid value for '--documents': {given} is not a whole number from 1 to 1e12, such as 1e9."
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (2, "", said)


@pytest.mark.parametrize("given", [0, 16_001])
def test_what_is_no_dimension_of_vectors_is_refused(given):
    done = langshift("doctor", "--size", "--documents", 9, "--dimension", given)
    said = f"Error: Invalid value for '--dimension': {given} is not in the range 1<=x<=16000."
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (2, "", said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--text-field", "body"), "--text-field says how a corpus is measured: name one with --measure."),
        (
            ("--encoder", "use-m"),
            "The encoder use-m makes vectors of 512 dimensions: leave --dimension out, or name another.",
        ),
        (("--measure", "missing.jsonl"), "missing.jsonl: there is no such file."),
        (
            ("--measure", "{}", "--encoder", "given"),
            "--encoder given makes no vectors, so that nothing can be measured: give --documents and --dimension, or "
            "an encoder that does.",
        ),
        (
            ("--measure", "{}", "--encoder", "use-m"),
            "The encoder use-m makes vectors of 512 dimensions: leave --dimension out, or name another.",
        ),
        (
            ("--measure", "{}", "--encoder", "word2vec"),
            "Unknown encoder 'word2vec'; choose e5-small, use-m, st:NAME_OR_PATH (sentence-transformers), "
            "http:URL#MODEL (an embedding server), or given or given:NAME (vectors that come with the data).",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(corpus, options, said):
    done = langshift("doctor", "--size", "--documents", 9, "--dimension", 8, *(one.format(corpus) for one in options))
    assert refusal(done) == said


def test_a_corpus_without_documents_is_refused(tmp_path):
    path = write_lines(tmp_path / "corpus.jsonl", [{"_op": "delete", "_id": "b"}])
    done = langshift("doctor", "--size", "--documents", 9, "--dimension", 512, "--measure", path, "--encoder", "use-m")
    assert refusal(done) == f"{path}: none of the first 1,024 lines is a document that can be measured."
