"""Should I shift this index? One sentence: what is gained, what it costs, for whom, how sure that is, and what to do.

The same sentence answers for any two sides of a paired comparison, wherever the figures come from. It rests on
conditions, each tested by itself and corrected together after Holm: nDCG@20 over all questions, over those with and
without an answer in the searcher's language, and over those in each language; SLR@20, recall of answers in the
searcher's own language; own@3, how often one of these is among the first three hits; TLR@20, recall of answers in
others. A loss in own@3, which readers see at once, is told first, in a sentence of its own. The last one says which
language crowds the others out, where one does that now and did not before.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import ceil, log10
from statistics import fmean
from typing import Any, Literal, NamedTuple

from msgspec import to_builtins

from langshift.evaluate.compare.comparison import ALL, NONE, OWN, Comparison
from langshift.evaluate.compare.next_commands import NextCommand
from langshift.evaluate.compare.remedies import PREFERENCES, Remedy, cheapest_remedy, measured_remedies, preferred_runs
from langshift.evaluate.compare.significance import TestResult, paired_tests
from langshift.evaluate.datasets.dataset import Dataset, clusters, gather
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift.evaluate.measures import default_measures
from langshift.evaluate.measures.base import Run, Scores
from langshift.evaluate.measures.most_shown import MOST_SHOWN_20, crowding
from langshift.evaluate.replay.overlap import Overlap
from langshift.evaluate.replay.replay import ReplayResult
from langshift.evaluate.runs import scored
from langshift.wording import format_change, format_score, join_words

RANKING, OTHERS, OWN_ANSWERS, FIRST_OWN = "nDCG@20", "TLR@20", "SLR@20", "own@3"
#: A mean loss of more than this is one whatever its p, where there are enough questions: so many of them, and a 95 %
#: interval that reaches no further than a change that is worth seeing.
MOST_LOSS, ENOUGH, VISIBLE = 0.005, 300, 0.01
# Of a test that finds a change in four of five samples, how far that is beyond a half interval: (1.96 + .84) / 1.96.
_POWER = 1.43
# Below both, a language in which nothing is found: the second as a share of the best language's figure.
_NOTHING, _NOTHING_SHARE = 0.1, 0.2
# Languages that a sentence names.
_LISTED = 8
_FLIPS = 10_000
_OWN = "answers in the searcher's own language"
_WHOSE = {
    OTHERS: "answers in other languages are found",
    OWN_ANSWERS: f"{_OWN} are found",
    FIRST_OWN: f"{_OWN} are among the first three hits",
}
_WHERE = {ALL: "", OWN: " where an answer is in the searcher's language", NONE: " where none is in the searcher's"}

Kind = Literal["shift", "at a cost", "do not shift", "no difference", "too few", "no judgements"]


class Choice(NamedTuple):
    """How a sentence calls what is to be chosen from, and what it advises where that has a cost.

    Attributes:
        take: to choose the later side.
        leave: to stay with the earlier one.
        between: what cannot be told where there are too few questions.
        remedy: what to do where answers in the searcher's own language are lost, and no remedy was measured.
        more: what to do where there are too few questions.
        uncrowd: what to do where one language crowds the others out.
    """

    take: str = "Shift it"
    leave: str = "Do not shift it"
    between: str = ""
    remedy: str = "measure by langshift evaluate replay what gives those back: a calibration, or a language preference"
    more: str = "judge more of them first"
    uncrowd: str = ", which --gamma .97 prevents"

    @property
    def shifts(self) -> bool:
        """Whether it is a shift that is decided on."""
        return not self.between


SHIFT = Choice()
# Of a fingerprint, what a shift may change.
_SCALES = {"alpha", "alphas", "gamma", "own", "own_vectors", "vectors", "pivot", "langshift"}


def choice(before: Mapping[str, Any], after: Mapping[str, Any], names: Sequence[str]) -> Choice:
    """Tell a shift of an index, all else being the same, from any other two runs, which are called by their names.

    Args:
        before: of the earlier run what ``result.json`` has: ``fingerprint``, ``mode``, ``setting``, ``resolved``,
            ``beta`` and ``within``.
        after: the same of the later one.
        names: of both.
    """
    made = [side.get("fingerprint") or {} for side in (before, after)]
    moved = [
        bool(one.get("vectors") and any((*map(one.get, ("alpha", "gamma", "own")), *one.get("alphas", {}).values())))
        for one in made
    ]
    rest = [
        [
            {key: one[key] for key in one.keys() - _SCALES},
            *map(side.get, ("mode", "setting", "resolved", "beta", "within")),
        ]
        for one, side in zip(made, (before, after), strict=True)
    ]
    if moved == [False, True] and all(made) and rest[0] == rest[1]:
        return SHIFT._replace(uncrowd="") if made[1].get("gamma") else SHIFT
    one, other = names
    words = f"Use {other} rather than {one}", f"Keep {one} rather than {other}", f" {one} and {other} apart"
    return Choice(*words, uncrowd="")


class PairedFigures(NamedTuple):
    """What two sides give for the same questions.

    Attributes:
        before: measure -> question -> figure; one that a measure does not count is missing, and so may a measure be.
        after: the same of the later side.
        languages: question -> language, None where unknown.
        clusters: question -> article, group or whatever else shares its luck.
        shown: MostShown@20 of the earlier and the later side; None where it was not measured.
        remedies: other searches of the later side, for where answers in the searcher's language are lost; None where
            none can be made of it.
        tried_on: on how many of the questions these were tried; None for all.
    """

    before: Mapping[str, Mapping[str, float]]
    after: Mapping[str, Mapping[str, float]]
    languages: Mapping[str, str | None]
    clusters: Mapping[str, str]
    shown: tuple[Scores, Scores] | None = None
    remedies: Sequence[Remedy] | None = None
    tried_on: int | None = None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        languages: DatasetLanguages,
        before: Run,
        after: Run,
        remedies: Mapping[str, Run] | None = None,
        former: Dataset | None = None,
        sample: Collection[str] | None = None,
    ) -> "PairedFigures":
        """Score two runs of a dataset, and what could be done instead, for the questions that ``languages`` knows.

        ``former`` is the dataset as the earlier run searched it, if not as the later one did. ``sample`` are the
        questions that remedies are tried on, if not all.
        """
        names = [name for name in (RANKING, OTHERS, OWN_ANSWERS, FIRST_OWN) if name in default_measures(dataset.judged)]
        scored_sides = ((former or dataset, before), (dataset, after))
        sides = [scored([*names, MOST_SHOWN_20], of, languages, run) for of, run in scored_sides]
        old, new = ({name: side[name].per_query for name in names} for side in sides)
        shown = (sides[0][MOST_SHOWN_20], sides[1][MOST_SHOWN_20])
        paired = cls(old, new, languages.queries, clusters(dataset).of, shown)
        if not remedies or not any(one.lost and one.slice == OWN for one in _figures(paired)):
            return paired
        on = None
        if sample is not None and len(sample) < len(languages.queries):
            languages = replace(languages, queries={name: languages.queries[name] for name in sample})
            on = len(sample)
        tried = [
            Remedy(words, {name: found.per_query for name, found in scored(names, dataset, languages, run).items()})
            for words, run in remedies.items()
        ]
        return paired._replace(remedies=tried, tried_on=on)

    def remedy(self, lost: "VerdictFigure") -> str:
        """What gives back what is lost where an answer is in the searcher's language, in a clause."""
        on = f" on {self.tried_on:,} of the {len(self.languages):,} questions" if self.tried_on else ""
        own = self.both(OWN_ANSWERS)
        kept = [name for name in (RANKING, OTHERS) if name in self.after]
        found = measured_remedies((lost.measure, list(own)), kept, self.before, self.after, self.remedies or ())
        if best := max((one for one in found if one.cost <= MOST_LOSS), key=lambda one: one.share, default=None):
            back = f"gives back {best.share:.0%} of what is lost in {lost.measure}"
            return f"{best.words}, which {back} ({RANKING} {_score(best.means[RANKING][1])}{on and f'; tried{on}'})"
        priced = cheapest_remedy(found)
        free, at_a_price = "gives a tenth of those back", ""
        if priced:
            costs = join_words(
                [f"{name} {_score(to)} instead of {_score(of)}" for name, (of, to) in priced.means.items()]
            )
            free = f"{free} at no cost to {join_words(kept)}"
            at_a_price = f"; for {priced.share:.0%} of what is lost in {lost.measure}, {priced.words}, at {costs}"
        return (
            f"weigh one against the other: no language preference up to {_short(PREFERENCES[-1])} and nothing else "
            f"that was tried{on} {free}{at_a_price}"
        )

    def both(self, measure: str) -> dict[str, tuple[float, float]]:
        """Question -> both figures."""
        old, new = self.before.get(measure, {}), self.after.get(measure, {})
        return {question: (figure, new[question]) for question, figure in old.items() if question in new}


class VerdictFigure(NamedTuple):
    """One condition: a measure over some of the questions.

    Attributes:
        measure: its name.
        slice: ``all``, ``own`` (an answer is in the searcher's language) or ``none``.
        language: of the questions; None for all languages.
        before: mean of the earlier side.
        after: mean of the later one.
        test: of the difference, corrected after Holm for all conditions.
    """

    measure: str
    slice: str
    language: str | None
    before: float
    after: float
    test: TestResult

    @property
    def enough(self) -> bool:
        """Whether there are enough questions to see a change that is worth seeing."""
        reach = self.reach
        return self.test.queries >= ENOUGH and reach is not None and reach <= VISIBLE

    @property
    def reach(self) -> float | None:
        """How far the 95 % interval reaches to either side; None where all questions are of one cluster."""
        return self.test.interval and (self.test.interval[1] - self.test.interval[0]) / 2

    @property
    def gained(self) -> bool:
        """Whether more is found, by more than chance."""
        return self.test.significant and self.test.difference > 0

    @property
    def lost(self) -> bool:
        """Whether less is found, by more than chance, or by more than is to be lost at all."""
        change = self.test.difference
        return change < 0 and (self.test.significant or (self.enough and change < -MOST_LOSS))

    @property
    def sentence(self) -> str:
        """``nDCG@20 for questions in de falls from .980 to .945 (corrected p .001)``."""
        where = f" for questions in {self.language}" if self.language else _WHERE[self.slice]
        where = where if self.measure == RANKING else ""
        return f"{self.measure}{where} {_moves(self, 'falls')} ({_probability([self])})"

    def to_dict(self) -> dict[str, Any]:
        """As JSON gives it."""
        rest = {name: getattr(self, name) for name in ("gained", "lost", "enough")}
        return {**self._asdict(), "test": self.test.to_dict(), **rest}


class Verdict(NamedTuple):
    """The answer.

    Attributes:
        kind: ``shift`` (take the later side), ``at a cost`` (take it, but something is lost), ``do not shift``,
            ``no difference``, ``too few`` questions, or ``no judgements``.
        sentence: the same for a person.
        figures: what it rests on; none without judgements.
        next: what to do, those of least effort first; none where the sentence says it.
    """

    kind: Kind
    sentence: str
    figures: Sequence[VerdictFigure] = ()
    next: Sequence[NextCommand] = ()

    @property
    def lines(self) -> list[str]:
        """The sentence, and below it what to do."""
        listed = [f"{place}. {one.effort}: {one.command}" for place, one in enumerate(self.next, 1)]
        return [self.sentence, *(["Next, the least effort first:", *listed] if listed else [])]

    @property
    def lost(self) -> list[VerdictFigure]:
        """The conditions that a gate fails by."""
        return [figure for figure in self.figures if figure.lost]

    @property
    def loses_own(self) -> bool:
        """Whether less is found where an answer is in the searcher's language."""
        return any(figure.slice == OWN for figure in self.lost)

    def to_dict(self) -> dict[str, Any]:
        """As JSON gives it."""
        listed = {"figures": [one.to_dict() for one in self.figures], "next": [one._asdict() for one in self.next]}
        return {"kind": self.kind, "sentence": self.sentence, **listed}


def judge_pair(paired: PairedFigures, between: Choice = SHIFT) -> Verdict:
    """Return the verdict on two sides.

    It is ``shift`` where something is gained and nothing lost, ``at a cost`` where something is lost, but nDCG@20 over
    all questions is higher and it or TLR@20 rises by more than chance, else ``do not shift`` where anything is lost.
    """
    figures = _figures(paired)
    if not figures:
        return unjudged()
    whole, unread = figures[0], _unread(figures)
    lost = [one for one in figures if one.lost]
    gained = [one for one in figures if one.gained and one not in unread]
    said = f"over {whole.test.queries:,} questions, "
    late = next((one for one in lost if one.measure == FIRST_OWN), None)
    gains = _said(figures, gained, "rises", "more")
    losses = _said(figures, [one for one in lost if one is not late] or lost, "falls", "less")
    kept = next((one for one in figures if one.measure == OWN_ANSWERS and one not in gained), None)
    worth = whole.test.difference > 0 and any(one.measure == OTHERS or one is whole for one in gained)
    kind: Kind = "too few"
    if gained and not lost:
        cost = (
            ", at no measurable cost to" if kept and kept.enough else ", with too few questions to rule out a cost to"
        )
        cost = f"{cost} {_OWN} ({OWN_ANSWERS} {_shown(kept)})" if kept else ""
        kind, said = "shift", f"{between.take}: {said}{gains}{cost}; {_sure(gained)}"
    elif lost and worth and not whole.lost:
        kind, advice = "at a cost", _remedy(lost, between, paired)
        said = f"{between.take}: {said}{gains}, but {losses}; {_sure([*gained, *lost])}, so {advice}"
    elif lost:
        but = f", even though {gains}" if gained else ""
        rest = ", so leave the documents as they are" if between.shifts else ""
        kind, said = "do not shift", f"{between.leave}: {said}{losses}{but}; {_sure(lost)}{rest}"
    elif whole.enough:
        kind = "no difference"
        said = (
            f"{between.leave}: {said}{RANKING} {_moves(whole, 'goes')} and nothing is gained or lost, though a change "
            f"of {_short(VISIBLE)} would have shown"
        )
    else:
        more = "ask about others" if whole.reach is None else between.more
        said = f"Too few questions to tell{between.between}: {said}{_too_few(whole)}, so {more}"
    sentence = f"{_later(late)}{said}{_about_unread(unread)}.{_crowded(paired.shown, between.uncrowd)}"
    return Verdict(kind, sentence, figures)


def unjudged(found: str = "", advice: str = "") -> Verdict:
    """Return the verdict where no question is judged: what is known says nothing about quality.

    Args:
        found: what is known, in a clause.
        advice: what to do; empty where that is said beside the sentence.
    """
    known = found or "nobody has said which answers are right"
    return Verdict("no judgements", f"No judgements to tell by: {known}{f', so {advice}' if advice else ''}.")


def unjudged_runs(overlap: Overlap | None) -> Verdict:
    """Return the verdict on two runs of questions that nobody has judged; what to do is known to who runs them.

    Args:
        overlap: how alike the answers are; None where that is not known.
    """
    return unjudged("" if overlap is None else _alike(overlap))


def judge_runs(compared: Comparison, letter: str) -> Verdict:
    """Return the verdict on one of the compared runs against the first."""
    runs = [compared.candidates[0], compared.candidate(letter)]
    first, later = (one.result for one in runs)
    # Other searches of the same index are what could be done instead.
    remedies = {
        f"search in the setting {one.how} ({one.label})": one.run
        for one in compared.candidates[1:]
        if one is not runs[1] and later and one.how and _same_search(one.result, later)
    }
    languages = compared.languages
    preferred = preferred_runs(runs[1].run, later.get("resolved", {}), languages.documents, languages.queries)
    tried, datasets = {**remedies, **preferred}, [one.dataset for one in runs]
    paired = PairedFigures.of(datasets[1], languages, runs[0].run, runs[1].run, tried, datasets[0])
    return judge_pair(paired, choice(first, later, [one.label for one in runs]))


def _same_search(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two runs are of one version of an index, and of the same part of it."""
    return all(one.get(name) == other.get(name) for name in ("version", "within"))


def judge_replays(
    before: ReplayResult,
    after: ReplayResult,
    overlap: Overlap | None = None,
    remedies: Mapping[str, ReplayResult] | None = None,
    sample: Collection[str] = (),
) -> Verdict:
    """Return the verdict on two replays of the same questions, those left out that failed in either.

    Args:
        before: the earlier, or first, of them.
        after: the other.
        overlap: how alike their answers are; what is said where nothing is judged.
        remedies: what to do -> other replays of the later side's index; language preferences are tried anyway.
        sample: the questions of those replays, on which all remedies are tried; empty for all.
    """
    dataset, failed = after.dataset, {answer.query for side in (before, after) for answer in side.failed}
    asked = {query: tag for query, tag in after.languages.items() if query not in failed}
    if dataset is None or not any(dataset.relevant(query) for query in asked):
        shown = [side.scores.get(MOST_SHOWN_20) for side in (before, after)]
        verdict = unjudged_runs(overlap)
        return verdict._replace(
            sentence=verdict.sentence + _crowded((shown[0], shown[1]) if shown[0] and shown[1] else None)
        )
    old, new, *others = (
        {answer.query: dict(answer.hits) for answer in side.answers}
        for side in (before, after, *(remedies or {}).values())
    )
    setting = to_builtins(after.chosen.setting) if after.chosen else {}
    tried = {**dict(zip(remedies or {}, others, strict=True)), **preferred_runs(new, setting, after.documents, asked)}
    languages, on = DatasetLanguages({}, after.documents, asked, ()), [name for name in sample if name in asked]
    paired = PairedFigures.of(dataset, languages, old, new, tried, sample=on if sample else None)
    made = [
        {"fingerprint": side.fingerprint.to_dict(), "resolved": side.chosen and to_builtins(side.chosen.setting)}
        for side in (before, after)
    ]
    # Two versions of one index have one name.
    names = [side.index if before.index != after.index else side.version for side in (before, after)]
    return judge_pair(paired, choice(made[0], made[1], names))


def _alike(overlap: Overlap) -> str:
    """What is known of two indices' answers without judgements; empty where that is nothing."""
    parts = overlap.by_language.items()
    own = [[getattr(part, side).get(tag, 0.0) for tag, part in parts] for side in ("before", "after")]
    if overlap.whole.jaccard is None or not all(own):
        return ""
    shared = f"of the documents that either finds among its first 20, {overlap.whole.jaccard:.0%} are found by both"
    return f"{shared}, and {own_language(*map(fmean, own))}"


def own_language(before: float, after: float) -> str:
    """Say which share of the first 20 hits is in the searcher's language, and what that means."""
    old, new = f"{before:.0%}", f"{after:.0%}"
    few, then = f"{20 * before:.0f}", f"{20 * after:.0f}"
    shares = old if old == new else f"{old} to {new}"
    has, neither = f"the searcher's language has about {few} of the first 20 hits", "neither good nor bad by itself"
    if few == then:
        return f"{has}, before and after ({shares}), which is {neither}: it does not say whether these hits answer"
    gains, loses = "the searcher's own language", "other languages"
    gains, loses = (loses, gains) if after < before else (gains, loses)
    return (
        f"{has} before and about {then} after ({shares}), which is {neither}: it makes room for answers in {gains} and "
        f"takes it from those in {loses}, whether there are any or not"
    )


def _figures(paired: PairedFigures) -> list[VerdictFigure]:
    """The conditions, nDCG@20 over all questions first; empty where no question is judged."""
    ranked, others, own, first = (paired.both(name) for name in (RANKING, OTHERS, OWN_ANSWERS, FIRST_OWN))
    parts: dict[tuple[str, str, str | None], dict[str, tuple[float, float]]]
    parts = {(RANKING, ALL, None): ranked, (OTHERS, ALL, None): others}
    parts |= {(OWN_ANSWERS, OWN, None): own, (FIRST_OWN, OWN, None): first}
    with_own = {question: both for question, both in ranked.items() if question in own}
    without = {question: both for question, both in ranked.items() if question in others and question not in own}
    if with_own and without:
        parts |= {(RANKING, OWN, None): with_own, (RANKING, NONE, None): without}
    by_language = gather((paired.languages.get(question), question) for question in ranked)
    if len(by_language) > 1:
        for tag, questions in sorted(by_language.items()):
            parts[RANKING, ALL, tag] = {question: ranked[question] for question in questions}
    differences = {key: {question: new - old for question, (old, new) in of.items()} for key, of in parts.items()}
    # A log may ask what the dataset does not.
    together = {question: paired.clusters.get(question, question) for of in parts.values() for question in of}
    found = []
    for key, test in paired_tests(differences, together, _FLIPS).items():
        before, after = map(fmean, zip(*parts[key].values(), strict=True))
        found.append(VerdictFigure(*key, before, after, test))
    return found


def _unread(figures: Sequence[VerdictFigure]) -> list[VerdictFigure]:
    """The languages in which nothing is found, before or after, while in others it is."""
    languages = [one for one in figures if one.language]
    least = min(_NOTHING, _NOTHING_SHARE * max((one.after for one in languages), default=0.0))
    return [one for one in languages if max(one.before, one.after) < least]


def _said(figures: Sequence[VerdictFigure], changed: Sequence[VerdictFigure], verb: str, how: str) -> str:
    """What changes, in clauses: for all questions and for whom, then by where the answers are."""
    languages, all_languages = ([one for one in of if one.language] for of in (changed, figures))
    named = _named([str(one.language) for one in languages])
    whole = figures[0] in changed
    clauses = list[str]()
    for one in (one for one in changed if one.language is None):
        if one.measure in _WHOSE:
            same = f"{_OWN} " if clauses and clauses[-1].startswith(_OWN) else ""
            clauses.append(f"{_WHOSE[one.measure].removeprefix(same)} {how} often ({one.measure} {_shown(one)})")
        elif one is figures[0]:
            whom = f" (by more than chance for questions in {named})" if languages else ""
            whom = f" in every query language ({named})" if languages and len(languages) == len(all_languages) else whom
            clauses.append(f"{RANKING} {verb} from {_shown(one)}{whom}")
        elif not whole:
            clauses.append(f"{RANKING} {verb} from {_shown(one)}{_WHERE[one.slice]}")
    if languages and not whole:
        changes = join_words([format_change(one.test.difference, 3) for one in languages[:_LISTED]])
        clauses.append(f"questions in {named} do {'better' if how == 'more' else 'worse'} ({RANKING} {changes})")
    return join_words(clauses)


def _named(languages: Sequence[str]) -> str:
    return join_words(list(languages)) if len(languages) <= _LISTED else f"{len(languages)} languages"


def _sure(claimed: Sequence[VerdictFigure]) -> str:
    """How sure that is: by the least certain of what is claimed."""
    certain = [one for one in claimed if one.test.significant]
    doubtful = [one for one in claimed if not one.test.significant]
    if not certain:
        return f"that may be chance ({_probability(doubtful)}), but more than {_short(MOST_LOSS)} is too much to risk"
    said = f"chance alone would hardly do that ({_probability(certain)})"
    if not doubtful:
        return said
    names = _named(list(dict.fromkeys(one.language or one.measure for one in doubtful)))
    return f"{said}, though that may be chance for {names} ({_probability(doubtful)})"


def _probability(figures: Sequence[VerdictFigure]) -> str:
    highest = max(one.test.corrected for one in figures)
    return f"corrected p {'below .001' if highest < 0.001 else _score(highest)}"


def _remedy(lost: Sequence[VerdictFigure], between: Choice, paired: PairedFigures) -> str:
    own = [one for one in lost if one.slice == OWN]
    advice = [between.remedy if paired.remedies is None else paired.remedy(own[0])] if own else []
    if languages := [one.language for one in lost if one.language]:
        out = " ".join(f"--alpha-for {tag}=0" for tag in languages[:_LISTED])
        leave = f"leave documents in {_named(languages)} as they are ({out})"
        advice.append(leave if between.shifts else f"keep the other for questions in {_named(languages)}")
    return join_words(advice) or "weigh one against the other"


def _too_few(whole: VerdictFigure) -> str:
    """What the questions leave open, and how many would do: ``n (1.43 h / .01)²`` of a half interval h over n."""
    moves = f"{RANKING} {_moves(whole, 'goes')}"
    if whole.reach is None:
        return f"{moves}, but all are about one article or group"
    needed = max(ENOUGH, whole.test.queries * (_POWER * whole.reach / VISIBLE) ** 2)
    digits = 10 ** max(0, int(log10(needed)) - 1)
    doubt = "" if whole.reach < 0.0005 else f", give or take {_score(whole.reach)}"
    return f"{moves}{doubt}, and it takes about {ceil(needed / digits) * digits:,} to see a change of {_short(VISIBLE)}"


def _later(lost: VerdictFigure | None) -> str:
    """The first sentence where the answer in the reader's language comes later; empty where it does not."""
    if lost is None:
        return ""
    digits = 0 if abs(lost.test.difference) >= VISIBLE else 1
    before, after = (f"{share:.{digits}%}" for share in (lost.before, lost.after))
    return (
        f"Readers find the answer in their own language less often: within the first three hits for {after} of the "
        f"questions that have one, {before} before ({FIRST_OWN}). "
    )


def _crowded(shown: tuple[Scores, Scores] | None, remedy: str = "") -> str:
    """A further sentence where one language now crowds the others out."""
    said = crowding(*shown) if shown else ""
    return f" But {said}{remedy}." if said else ""


def _about_unread(unread: Sequence[VerdictFigure]) -> str:
    if not unread:
        return ""
    highest = _score(max(max(one.before, one.after) for one in unread))
    them = "it" if len(unread) == 1 else "them"
    return (
        f"; nothing helps questions in {_named([str(one.language) for one in unread])}, because the encoder cannot "
        f"read {them} ({RANKING} at most {highest}, before and after), so choose another encoder for {them}"
    )


def _moves(figure: VerdictFigure, verb: str) -> str:
    return f"{verb} from {_shown(figure)}" if figure.before != figure.after else f"stays at {_score(figure.after)}"


def _shown(figure: VerdictFigure) -> str:
    # What is real is to be seen.
    digits = 4 if 0 < abs(figure.test.difference) < 0.0005 else 3
    return f"{format_score(figure.before, digits)} to {format_score(figure.after, digits)}"


def _score(value: float) -> str:
    return format_score(value, 3)


def _short(value: float) -> str:
    return f"{value:g}".removeprefix("0")
