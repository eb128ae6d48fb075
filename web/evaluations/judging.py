"""The page on which a person judges two runs, list against list, without knowing which is which."""

import secrets
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import parse_qs, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.judging import judgements as stored
from langshift.evaluate.judging.judgements import Judgements, Preference
from langshift.evaluate.judging.needed import RATES, Tally, needed, preference_test
from langshift.evaluate.judging.pairing import DEPTH, PairedQuery, Pairing, left_side, pair_runs
from langshift.ingest.documents import Document
from langshift.languages import UNDETERMINED
from langshift.web.context import LruCache, context_of, page
from langshift.web.evaluations.folder import path_inside
from langshift.web.evaluations.results import describe_run, files_state

_HERE = "/evaluations/judging"
#: The folder of all judgements, in the results folder.
FOLDER: Final = "judgements"
# Two large runs take much memory.
_MOST_OPEN = 2
#: Bytes of a form that is sent.
MOST_FORM: Final = 1 << 16
_FORM = "application/x-www-form-urlencoded"
# Characters of a text that are shown at once.
_SHOWN = 400
_SIDES: Final[tuple[Preference, Preference]] = ("first", "second")


class Pairings(LruCache[Pairing]):
    """Pairs of runs that are judged, each read once."""

    def __init__(self) -> None:
        super().__init__(_MOST_OPEN)


class JudgedHit(NamedTuple):
    """A document as it is shown.

    Attributes:
        id: the document's.
        language: its tag, ``und`` where unknown.
        title: may be empty.
        text: the beginning of its text; empty where the dataset does not have the document.
        rest: what follows it.
        other: its rank in the other list, from 1; None where that does not show it.
    """

    id: str
    language: str
    title: str
    text: str
    rest: str
    other: int | None


class _Session(NamedTuple):
    """Two runs and what was judged of them; ``judged`` is None where that has not begun."""

    pairing: Pairing
    folder: Path
    address: str
    judged: Judgements | None

    def remaining(self) -> list[str]:
        judged = self.judged
        if judged is None:
            return list(self.pairing.queries)
        return [query for query in self.pairing.shuffled(judged.seed) if query not in judged.preferences]

    def preferences(self) -> Mapping[str, Preference]:
        return {} if self.judged is None else self.judged.preferences


def _session(request: Request) -> _Session:
    console = context_of(request)
    names = sorted(set(request.query_params.getlist("run")))
    if len(names) != 2:
        raise UsageError(f"Two runs are judged side by side, and {len(names)} are selected: select two in the table.")
    runs = [describe_run(path_inside(console.results, name), name) for name in names]
    for run in runs:
        if run.problem:
            raise UsageError(f"{run.name}: {run.problem}")
        if not run.complete:
            raise UsageError(f"{run.name} is an interrupted replay: resume it before it is judged.")
    first, second = runs
    pairing = console.shared(Pairings, Pairings).of(
        (*names, files_state([first.folder, second.folder], first.dataset_folder)),
        lambda: pair_runs((first.name, second.name), (first.folder, second.folder)),
    )
    folder = console.results / FOLDER / pairing.key
    if folder.is_symlink() or folder.parent.is_symlink():
        raise UsageError(f"{folder} is a link, so nothing is written there: remove it.")
    address = f"{_HERE}?{urlencode([('run', name) for name in names])}"
    return _Session(pairing, folder, address, stored.read_judgements(folder, pairing))


def judging(request: Request) -> Response:
    """The page: how many queries there are, the next one to judge, or what was found."""
    session = _session(request)
    pairing, judged, remaining = session.pairing, session.judged, session.remaining()
    tally = Tally.of(session.preferences().values())
    replay = ["langshift", "evaluate", "replay", str(session.folder), "--index", "NAME", "--output"]
    context: dict[str, Any] = {
        "pairing": pairing,
        "address": session.address,
        "begun": judged is not None,
        "tally": tally,
        "total": len(pairing.queries),
        "depth": DEPTH,
        "rates": [(rate, needed(rate, tally.decided_share)) for rate in RATES],
        "observed": None if tally.rate is None else needed(tally.rate, tally.decided_share),
        "replay": shlex.join([*replay, str(context_of(request).results / "NAME")]),
    }
    if judged is not None and judged.revealed:
        test = preference_test(judged.preferences, pairing.clusters)
        graded = sum(bool(stored.grades(pairing.queries[one], given)) for one, given in judged.preferences.items())
        return page(request, "judged.html", test=test, graded=graded, **context)
    shown: PairedQuery | None = None
    sides: list[list[JudgedHit]] = []
    if judged is not None and remaining:
        shown = pairing.queries[remaining[0]]
        left = left_side(shown.query.id, judged.seed)
        sides = [_hits(pairing, shown, side) for side in (left, 1 - left)]
    return page(request, "judging.html", shown=shown, sides=sides, **context)


def _hits(pairing: Pairing, paired: PairedQuery, side: int) -> list[JudgedHit]:
    ranks = {name: rank for rank, name in enumerate(paired.hits[1 - side], 1)}
    return [_hit(pairing, name, ranks.get(name)) for name in paired.hits[side]]


def _hit(pairing: Pairing, name: str, other: int | None) -> JudgedHit:
    found = pairing.texts.get(name) or Document(name, "", "", None, {})
    known = pairing.documents.get(name)
    language = found.language or (known and known.language) or UNDETERMINED
    return JudgedHit(name, language, found.title, found.text[:_SHOWN], found.text[_SHOWN:], other)


async def judge(request: Request) -> Response:
    """Store what the page's form sends: ``do`` says what, and ``query`` of which query."""
    form = await _form(request)
    return await run_in_threadpool(_judge, request, form)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form.

    Raises:
        HTTPException: 415 or 413 where it is none, or larger than any of the console's.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise HTTPException(415, "This address accepts only the form of its own page.")
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > MOST_FORM:
            raise HTTPException(413, f"The form is larger than {MOST_FORM >> 10} KiB.")
    try:
        fields = parse_qs(read.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=8)
    except ValueError:
        raise HTTPException(400, "The form cannot be read: open the page again.") from None
    return {name: values[0] for name, values in fields.items()}


def _judge(request: Request, form: Mapping[str, str]) -> Response:
    session = _session(request)
    done = _ACTIONS.get(form.get("do", ""))
    if done is None:
        raise UsageError("The form does not say what to do: open the page again.")
    if session.judged is None and done is not _begin:
        raise UsageError("Judging has not begun: open the page again and begin.")
    try:
        with stored.locked(session.folder):
            # As it is now: another tab may have judged meanwhile.
            done(session._replace(judged=stored.read_judgements(session.folder, session.pairing)), form)
    except OSError as error:
        raise LangshiftError(
            f"The judgement is not stored, since {error.filename or session.folder} cannot be written "
            f"({error.strerror or error}): let the user that runs `langshift serve` write there."
        ) from error
    return RedirectResponse(session.address, 303)


def _begin(session: _Session, _form: Mapping[str, str]) -> None:
    stored.begin(session.folder, session.pairing, secrets.randbits(32))


def _open(session: _Session) -> Judgements:
    judged = session.judged
    if judged is None or judged.revealed:
        raise UsageError("It is known which run is which, so nothing more is judged: open the page again.")
    return judged


def _prefer(session: _Session, form: Mapping[str, str]) -> None:
    judged, query, choice = _open(session), form.get("query", ""), form["do"]
    if query not in session.pairing.queries:
        raise UsageError("The form names a query that is not judged here: open the page again.")
    sides = _SIDES if left_side(query, judged.seed) == 0 else _SIDES[::-1]
    preferred = cast(Preference, dict(zip(("left", "right"), sides, strict=True)).get(choice, choice))
    earlier = judged.preferences.get(query)
    if earlier is None:
        stored.add(session.folder, session.pairing, query, preferred)
    elif earlier != preferred:
        raise UsageError("This query is judged already, in another tab or before you went back: take that back first.")


def _withdraw(session: _Session, _form: Mapping[str, str]) -> None:
    judged = _open(session)
    if judged.preferences:
        stored.add(session.folder, session.pairing, list(judged.preferences)[-1], None)


def _reveal(session: _Session, _form: Mapping[str, str]) -> None:
    if not _open(session).preferences:
        raise UsageError("Nothing is judged yet: judge a query first.")
    stored.reveal(session.folder)


_ACTIONS: Final[Mapping[str, Callable[[_Session, Mapping[str, str]], None]]] = {
    "begin": _begin,
    **dict.fromkeys(("left", "right", "both", "neither"), _prefer),
    "back": _withdraw,
    "reveal": _reveal,
}

ROUTES = [Route(_HERE, judging), Route(_HERE, judge, methods=["POST"])]
