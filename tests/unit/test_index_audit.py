"""What an audit computes: mean cosines, nearest documents, what is there of a shift; and what it says of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from langshift.commands.audit import show
from langshift.debias.similarity import (
    Draws,
    LanguageRows,
    NormalisedVectors,
    same_language_nearest,
    spread,
    with_norm_1,
)
from langshift.evaluate.audit.audit import (
    Audit,
    Interval,
    LanguageFinding,
    ShiftFit,
    SimilarityGap,
    fit,
    removed_share,
)
from langshift.evaluate.audit.nearness import NearestShare, Nearness
from langshift.evaluate.audit.report import document, findings, verdict
from langshift.evaluate.audit.sample import AuditQueries, LanguageMix


def rows_of(queries, documents, *, own):
    asked, languages = (list(dict.fromkeys(of)) for of in (queries, documents))
    return LanguageRows(
        {tag: np.flatnonzero(np.array(queries) == tag) for tag in asked},
        {tag: np.flatnonzero(np.array(documents) == tag) for tag in languages},
        own,
    )


@pytest.fixture
def made():
    """Documents in three languages, and queries in two."""
    numbers = np.random.default_rng(5)
    documents = numbers.standard_normal((40, 6)).astype(np.float32)
    queries = numbers.standard_normal((11, 6)).astype(np.float32)
    return SimpleNamespace(
        documents=with_norm_1(documents),
        queries=with_norm_1(queries),
        tags=["en"] * 20 + ["de"] * 12 + ["th"] * 8,
        asked=["de"] * 6 + ["en"] * 5,
    )


def test_mean_cosines_are_those_of_all_pairs(made):
    sides = NormalisedVectors(made.queries, made.documents)
    rows = rows_of(made.asked, made.tags, own=False)
    cosines = made.queries @ made.documents.T
    expected = [[cosines[np.ix_(of, down)].mean() for down in rows.documents.values()] for of in rows.queries.values()]
    assert Draws(rows).cosines(sides)[0] == pytest.approx(np.array(expected))


def test_a_document_is_not_compared_with_itself(made):
    sides = NormalisedVectors(made.documents, made.documents)
    rows = rows_of(made.tags, made.tags, own=True)
    cosines = made.documents @ made.documents.T
    np.fill_diagonal(cosines, np.nan)
    languages = rows.documents.values()
    expected = [[np.nanmean(cosines[np.ix_(of, down)]) for down in languages] for of in languages]
    drawn = Draws(rows).cosines(sides)
    assert drawn[0] == pytest.approx(np.array(expected))
    # Nor in a draw that holds it twice: else draws would lie above the sample.
    assert drawn[1:].mean(axis=0) == pytest.approx(drawn[0], abs=0.02)


def test_a_language_of_one_document_has_no_cosine_with_itself(made):
    rows = rows_of(["en"] * 39 + ["th"], ["en"] * 39 + ["th"], own=True)
    found = Draws(rows).cosines(NormalisedVectors(made.documents, made.documents))[0]
    assert np.isnan(found).tolist() == [[False, False], [False, True]]


def test_the_nearest_documents_are_those_of_a_full_sort(made):
    rows = rows_of(made.tags, made.tags, own=True)
    cosines = made.documents @ made.documents.T
    np.fill_diagonal(cosines, -2)
    nearest = np.argsort(-cosines, axis=1)[:, :5]
    same = np.array(made.tags)[nearest] == np.array(made.tags)[:, np.newaxis]
    expected = [same[of].mean() for of in rows.queries.values()]
    assert same_language_nearest(NormalisedVectors(made.documents, made.documents), rows, 5) == pytest.approx(expected)


def test_of_documents_that_are_as_near_as_the_last_a_part_counts():
    rows = rows_of(["en"] * 2, ["en"] * 3 + ["de"] * 9, own=False)
    queries = np.array([[1.0, 0.0]] * 2)
    documents = np.array([[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 10)
    # Two nearer ones in English; one of ten for the four that are left.
    assert same_language_nearest(NormalisedVectors(queries, documents), rows, 6) == [pytest.approx((2 + 4 / 10) / 6)]


def test_the_spread_is_that_of_one_query_among_documents(made):
    sides = NormalisedVectors(made.documents, made.documents)
    of = np.arange(20)
    expected = np.mean([np.std(np.delete(made.documents[:20] @ made.documents[row], row)) for row in of])
    assert spread(sides, of, of, own=True) == pytest.approx(expected)


def test_how_much_of_what_is_taken_is_there():
    numbers = np.random.default_rng(6)
    offset = np.float32([3, 0, 0, 0])
    reference = numbers.standard_normal((4000, 4)).astype(np.float32)
    raw = numbers.standard_normal((4000, 4)).astype(np.float32) + offset
    for taken, there in ((offset, 1), (2 * offset, 0.5), (-offset, -1)):
        found = fit(raw, raw - np.float32(taken), reference, reference)
        assert found.there.value == pytest.approx(there, abs=0.05)
        assert found.there.low < found.there.value < found.there.high
        assert found.cosine == pytest.approx(np.sign(there), abs=0.05)
    assert fit(raw, raw, reference, reference) is None
    assert removed_share(2 * raw, raw) == pytest.approx(0.5)


ALL = Interval(1, 0.9, 1.1)
LEVEL = Interval(0.0, -0.01, 0.01)
FAR, NEAR = Interval(0.12, 0.1, 0.14), Interval(-0.12, -0.14, -0.1)


def audit_of(gaps, *, there=ALL, near=(), spread=0.1, share=0.3, encoder="given"):
    """An audit with English as the reference and other languages with these gaps."""
    tags = ["en", *gaps]
    counts = [50] * len(tags)
    rows = rows_of(np.repeat(tags, counts).tolist(), np.repeat(tags, counts).tolist(), own=True)
    means = np.full((len(tags), len(tags)), -0.1234)
    known = SimpleNamespace(pivot="en", vectors=dict.fromkeys(gaps), hash="0" * 16, source="made up")
    making = SimpleNamespace(
        debias=SimpleNamespace(vectors=known),
        encoder=SimpleNamespace(id=encoder),
        fingerprint=lambda: SimpleNamespace(to_dict=dict),
    )
    opened = SimpleNamespace(
        reader=SimpleNamespace(old=SimpleNamespace(name="old", index="old", uuid="u", shown="old"), total=1, bearing=1),
        own=False,
        fields=SimpleNamespace(vector="vec"),
        pipeline=making,
    )
    all_tags = np.repeat(tags, counts).tolist()
    sample = SimpleNamespace(tags=all_tags, unusable=0)
    judged = [
        LanguageFinding(
            tag, 50, tag if tag in gaps else None, share if tag in gaps else 0.0, gap and ShiftFit(0.9, there), gap
        )
        for tag, gap in {"en": None, **gaps}.items()
    ]
    mixes = [LanguageMix(tag, 50, 0.1, 0.999, 50, 49, 1, 1.2345, 1.1, 1.3) for tag in tags]
    asking = AuditQueries(None, len(all_tags), all_tags, np.empty((0, 0), np.float32))
    return Audit(
        opened,
        sample,
        mixes,
        [],
        asking,
        Nearness(rows, (), (means[np.newaxis],) * 2),
        list(near),
        "en",
        spread,
        judged,
    )


def said(audit, kind):
    return [one.text for one in findings(audit) if one.kind == kind]


FURTHER = "lie .120 (.100 to .140) further from queries in en than those in en"
AS_NEAR = "lie about as near to queries in en as those in en"


@pytest.mark.parametrize(
    ("before", "after", "change", "told"),
    [
        (FAR, LEVEL, Interval(0.09, 0.08, 0.1), f"{FURTHER}; the shift removes .090 (.080 to .100) of that"),
        (FAR, NEAR, FAR, f"{FURTHER}; the shift removes more than that: after it, they lie .120 nearer to them"),
        (FAR, FAR, LEVEL, f"{FURTHER}; the shift has no effect that the sample would show"),
        (FAR, FAR, NEAR, f"{FURTHER}; the shift increases that by .120"),
        (NEAR, LEVEL, NEAR, "lie .120 (.100 to .140) nearer to queries in en than those in en; the shift removes "
         ".120 (.100 to .140) of that"),
        (LEVEL, LEVEL, LEVEL, f"{AS_NEAR}, before and after the shift"),
        (LEVEL, FAR, NEAR, f"{AS_NEAR}; after the shift they lie .120 further from them"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_gap(before, after, change, told):
    assert said(audit_of({"th": SimilarityGap(before, after, change)}), "gap") == [f"Documents in th {told}."]


MOVED = SimilarityGap(FAR, LEVEL, FAR)


def test_what_is_said_first():
    def first(*given, **more):
        return findings(audit_of(*given, **more))[0].kind

    still = SimilarityGap(LEVEL, LEVEL, LEVEL)
    assert first({"th": MOVED}) == "fits"
    assert first({"th": MOVED}, there=Interval(0.1, 0, 0.2)) == "not_fitting"
    assert first({"th": MOVED}, there=Interval(0.5, 0.2, 0.8)) == "unsure"
    assert first({"th": still}) == "little_to_gain"
    assert first({"th": still}, near=[NearestShare("th", 50, 0.1, 0.12, 0.1)]) == "little_to_gain"
    # Documents may lie apart by nearness alone, as those of a language about which nobody asks.
    assert first({"th": still}, near=[NearestShare("th", 50, 0.1, 0.4, 0.1)]) == "fits"
    assert first({"th": None}) == "too_few"
    assert first({"th": MOVED}, share=0.0) == "unmoved"


def test_vectors_that_are_hardly_as_long_as_rounding():
    assert said(audit_of({"th": MOVED}, share=0.004), "negligible") == [
        "The vector of th is only 0.4% as long as embeddings, so the effect is negligible."
    ]


def test_without_judgements_vectors_that_fit_are_no_reason_to_shift():
    near = [NearestShare("en", 50, 0.5, 0.9, 0.6), NearestShare("th", 50, 0.3, 0.7, 0.4)]
    answer = verdict(audit_of({"th": MOVED}, near=near))
    assert (answer.kind, answer.sentence) == (
        "no judgements",
        "No judgements to tell by: the searcher's language has about 16 of the first 20 hits before and about 10 after "
        "(80% to 50%), which is neither good nor bad by itself: it makes room for answers in other languages and takes "
        "it from those in the searcher's own language, whether there are any or not, so adopt the index with --alpha 0 "
        "and then run `langshift retune NAME --alpha A --gate DATASET`, which replays judged queries before and after "
        "the shift (`langshift dataset make NAME DATASET` has titles ask where nobody has judged any).",
    )
    # Vectors that do not fit are one not to.
    assert verdict(audit_of({"th": MOVED}, there=Interval(0.1, 0, 0.2))).kind == "do not shift"
    assert verdict(audit_of({"th": None})).kind == "too few"


def test_many_languages_are_folded_to_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    many = audit_of(dict.fromkeys(("ar", "de", "es", "fr", "hi", "it", "ja", "ko", "nl", "pt", "zh"), MOVED))
    show(many)
    told = capsys.readouterr()
    assert told.err == "Only the 8 most frequent languages are listed; --json lists all of them.\n"
    lines = [line.rstrip() for line in told.out.splitlines()]
    place = lines.index("Mean cosine before the shift, queries in rows, documents in columns:")
    assert lines[place + 1].split() == ["en", "ar", "de", "es", "fr", "hi", "it", "ja", "others"]
    assert lines[place + 10].split() == ["others", *["-.123"] * 9]
    tables = [line for line in lines if "  " in line]
    assert max(map(len, tables)) <= 80
    assert len(document(many)["similarity"]["before"]) == 12


def test_rows_are_brought_to_length_1_and_zeros_stay_zeros():
    assert with_norm_1(np.array([[3, 4], [0, 0]], np.float32)).tolist() == [[0.6, 0.8], [0.0, 0.0]]
