"""Reading Parquet: rows as documents, their columns as fields."""

import datetime
import hashlib
import sys
from decimal import Decimal

import numpy as np
import orjson
import pytest

from langshift.debias.encoders.base import VectorSpec
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.bulk.journal_store import LineRanges
from langshift.ingest.documents import Delete, InvalidRow
from langshift.ingest.open_corpus import open_source

pa = pytest.importorskip("pyarrow", reason="Parquet needs an extra: pip install 'langshift[parquet]'")
from pyarrow import parquet  # noqa: E402

UTC = datetime.timezone.utc


def save(path, row_group_size=None, **columns):
    parquet.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return path


def read(path, embeddings="refused", skip=()):
    with open_source(str(path), embeddings=embeddings) as source:
        return list(source.read(skip))


def refused(path, embeddings="refused"):
    with pytest.raises(UsageError) as caught, open_source(str(path), embeddings=embeddings):
        pass
    return str(caught.value)


def test_columns_are_fields(tmp_path):
    moment = datetime.datetime(2024, 2, 29, 12, 30, 1, 500, tzinfo=UTC)
    path = save(
        tmp_path / "whatever its name",
        _id=pa.array([1, 2]),
        title=["A", None],
        text=pa.array(["first", "second"]).dictionary_encode(),
        language=["de", None],
        year=pa.array([1990, None], pa.int16()),
        big=pa.array([2**64 - 1, 1], pa.uint64()),
        score=[0.5, float("nan")],
        price=[Decimal("12.34"), None],
        flag=[True, False],
        tags=[["x", "y"], []],
        place=[{"name": "p", "at": [1.5, 2.5]}, None],
        naive=pa.array([1_000_000_001, None], pa.timestamp("ns")),
        moment=pa.array([moment, None], pa.timestamp("ms", tz="Europe/Berlin")),
        day=[datetime.date(2024, 2, 29), None],
        clock=[datetime.time(1, 2, 3), None],
        nothing=pa.nulls(2),
    )
    with open_source(str(path)) as source:
        assert (source.total, source.resumable, source.shown, source.vector_spec) == (2, True, str(path), None)
        assert source.content == hashlib.sha256(path.read_bytes()).hexdigest()
        first, second = source.read(())
        assert len(list(source.read(()))) == 2
    one, two = first.content, second.content
    assert (first.line, one.id, one.title, one.text, one.language) == (1, "1", "A", "first", "de")
    assert one.other == {
        "year": 1990,
        "big": 2**64 - 1,
        "score": 0.5,
        "price": 12.34,
        "flag": True,
        "tags": ["x", "y"],
        "place": {"name": "p", "at": [1.5, 2.5]},
        "naive": "1970-01-01T00:00:01",
        "moment": "2024-02-29T12:30:01+00:00",
        "day": "2024-02-29",
        "clock": "01:02:03",
    }
    assert (second.line, two.id, two.title, two.text, two.language) == (2, "2", "", "second", None)
    assert two.other == {"big": 1, "flag": False, "tags": []}
    assert first.original == {"_id": 1, "title": "A", "text": "first", "language": "de", **one.other}


def vectors(kind):
    rows = [[1.0, 2.0], None, [3.0, 4.0], [0.0, 0.0], [1.0, None], [5.0, 6.0]]
    return pa.array(rows, kind)


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float64()),
        pa.list_(pa.float32(), 2),
        pa.large_list(pa.float32()),
        pa.list_(pa.float16()),
        pa.list_(pa.int32()),
    ],
    ids=str,
)
def test_given_vectors(kind, tmp_path):
    if pa.types.is_fixed_size_list(kind) and int(pa.__version__.split(".")[0]) < 26:
        pytest.skip("this pyarrow cannot write such a column with an empty place; it reads those of others")
    found = read(save(tmp_path / "c", text=["t"] * 6, embedding=vectors(kind)), "needed")
    sound = [one.content.embedding for one in found if not isinstance(one.content, InvalidRow)]
    assert [vector.dtype for vector in sound] == [np.float32] * 3
    assert np.array_equal(sound, [[1, 2], [3, 4], [5, 6]])
    assert [(one.line, one.content) for one in found if isinstance(one.content, InvalidRow)] == [
        (
            2,
            InvalidRow("invalid_embedding", "the document has no 'embedding', which --encoder given needs; add one."),
        ),
        (
            4,
            InvalidRow(
                "invalid_embedding",
                "the field 'embedding' must be a list of numbers that are not all zero: "
                "such a vector has no direction.",
            ),
        ),
        (
            5,
            InvalidRow(
                "invalid_embedding",
                "the field 'embedding' must be a list of numbers, but one of them is not a number (NaN).",
            ),
        ),
    ]
    for one in found:
        written = orjson.loads(orjson.dumps(one.original, option=orjson.OPT_SERIALIZE_NUMPY))
        assert written["text"] == "t"
    assert orjson.loads(orjson.dumps(found[2].original, option=orjson.OPT_SERIALIZE_NUMPY))["embedding"] == [3, 4]


def test_vectors_too_large_or_of_another_dimension(tmp_path):
    path = save(tmp_path / "c", text=["t"] * 4, embedding=[[0.6, 0.8], [1e39, 1.0], [1.0], [float("inf"), 1.0]])
    with open_source(str(path), embeddings="needed") as source:
        assert source.vector_spec.dimension == 2
        reasons = [one.content.reason for one in source.read(()) if isinstance(one.content, InvalidRow)]
    large = "the field 'embedding' must be a list of numbers, but one of them is too large for 32 bits."
    assert reasons == [
        large,
        "the field 'embedding' has 1 numbers, but others in the file have 2: all must come from the same model.",
        large,
    ]
    assert refused(path) == (
        f"{path}, row 1: the document has an 'embedding', which only --encoder given uses; "
        "choose that, or leave the field out."
    )


def test_norms_of_given_vectors(tmp_path):
    path = save(tmp_path / "c", text=["t"] * 3, embedding=[[0.6, 0.8]] * 3)
    with open_source(str(path), embeddings="needed") as source:
        assert source.vector_spec == VectorSpec(2, normalised=True)


def test_bad_rows_are_told_and_their_neighbours_come_through(tmp_path):
    wrong = pa.array([b"one", b"t\xffo", b"three", b" ", b"x"]).view(pa.string())
    path = save(tmp_path / "c", _id=["a", "b", "c", "d", "e"], text=wrong, _op=[None, None, "index", None, "delete"])
    one, two, three, four, five = read(path)
    assert (one.content.id, three.content.id) == ("a", "c")
    assert two.content == InvalidRow("invalid_document", "contains text that is not UTF-8.")
    assert two.original == {"_id": "b", "text": "t\\xffo"}
    assert four.content == InvalidRow("invalid_document", "has neither a text nor a title.")
    assert five.content == Delete("e")


def test_a_map_is_an_object(tmp_path):
    strings = pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int8()))
    path = save(tmp_path / "c", text=["t"] * 3, labels=strings)
    assert [one.content.other for one in read(path)] == [{"labels": {"a": 1, "b": None}}, {}, {"labels": {}}]


def test_a_date_that_python_does_not_know(tmp_path):
    path = save(tmp_path / "c", text=["a", "b"], day=pa.array([0, 10_000_000], pa.date32()))
    good, bad = read(path)
    assert good.content.other == {"day": "1970-01-01"}
    assert bad.content.type == "invalid_document"
    assert bad.content.reason.startswith("contains a value that cannot be read (")
    assert bad.original["text"] == "b"


@pytest.mark.parametrize("row_group_size", [None, 700, 5000])
def test_rows_to_skip(tmp_path, row_group_size):
    path = save(tmp_path / "c", row_group_size, _id=[str(row) for row in range(1, 10_001)], text=["t"] * 10_000)
    skip = LineRanges()
    for first, last in ((1, 4999), (5001, 8999), (9001, 10_000)):
        skip.add(first, last)
    assert [(one.line, one.content.id) for one in read(path, skip=skip)] == [(5000, "5000"), (9000, "9000")]


def test_a_file_without_a_document(tmp_path):
    assert refused(save(tmp_path / "c", text=pa.array([], pa.string()))) == f"{tmp_path / 'c'} contains no documents."
    path = save(tmp_path / "c", texts=["t"] * 1001)
    assert refused(path) == f"{path}, row 1: has neither a text nor a title."


@pytest.mark.parametrize(
    ("column", "named"),
    [
        (pa.array([b"x"]), "binary"),
        (pa.array([[(1, 1)]], pa.map_(pa.int8(), pa.int8())), "map<int8, int8>"),
        (pa.array([1], pa.duration("s")), "duration[s]"),
        (pa.array([[b"x"]]), "list<element: binary>"),
    ],
    ids=["binary", "map", "duration", "list of binary"],
)
def test_a_column_that_no_field_can_be(tmp_path, column, named):
    path = save(tmp_path / "c", text=["t"], strange=column)
    told = refused(path)
    assert told.startswith(f"{path}: the column 'strange' is ")
    assert told.endswith(", which a document cannot have: leave it out, or convert it to text.")
    assert named.split("<")[0] in told


def test_a_damaged_file(tmp_path):
    path = save(tmp_path / "c", text=["t"] * 1000)
    path.write_bytes(path.read_bytes()[:-20])
    assert refused(path) == f"{path} is damaged or not a Parquet file: download it again."


def test_without_the_extra(tmp_path, monkeypatch):
    path = save(tmp_path / "c", text=["t"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(LangshiftError) as caught, open_source(str(path)):
        pass
    assert str(caught.value) == f"{path} is a Parquet file, which needs an extra: pip install 'langshift[parquet]'."


def test_whole_decimals_are_never_rounded(tmp_path):
    numbers = [Decimal(2**63 - 1), Decimal(2**64)]
    path = save(tmp_path / "c.parquet", text=["a", "b"], serial=pa.array(numbers, pa.decimal128(38, 0)))
    kept, refused_row = read(path)
    assert kept.content.other == {"serial": 2**63 - 1}
    assert refused_row.content.reason == "cannot be written as JSON (Integer exceeds 64-bit range)."
    small = pa.array([Decimal("0.0000000001"), Decimal("25.0000000000")], pa.decimal128(20, 10))
    found = [row.content.other["price"] for row in read(save(tmp_path / "p.parquet", text=["a", "b"], price=small))]
    assert found == [1e-10, 25.0]
    assert {type(one) for one in found} == {float}
