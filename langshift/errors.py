"""Errors that a person can act on: one sentence that says what, where, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from errno import ELOOP
from importlib.util import find_spec
from pathlib import Path
from stat import S_ISDIR, S_ISFIFO, S_ISREG
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self


class LangshiftError(Exception):
    """The work could not be done; the message is one sentence for the user.

    The command line prints it without a traceback and exits with ``exit_code``.

    Attributes:
        sentence: the message.
        log: lines that belong below it, such as the end of a server's log.
    """

    exit_code = 1

    def __init__(self, sentence: str = "", *, log: Sequence[str] = ()) -> None:
        super().__init__("\n".join((sentence, *log)))
        self.sentence, self.log = sentence, log

    def reworded(self, sentence: str) -> Self:
        """Return the same error with another sentence, whatever its class is made of."""
        return _again(type(self), {**self.__dict__, "sentence": sentence})

    def __reduce__(self) -> tuple[Any, ...]:
        """How it gets to another process."""
        return _again, (type(self), self.__dict__)


E = TypeVar("E", bound=LangshiftError)


def _again(kind: type[E], attributes: Mapping[str, Any]) -> E:
    """The error of these attributes, whatever its class is made of."""
    made = kind.__new__(kind)
    made.__dict__.update(attributes)
    LangshiftError.__init__(made, attributes["sentence"], log=attributes["log"])
    return made


class UsageError(LangshiftError):
    """What was given cannot be used: a missing file, a bad line, an unknown language."""

    exit_code = 2


class ClusterError(LangshiftError):
    """The cluster cannot be reached, refuses, or lacks something."""


class UnavailableError(ClusterError):
    """The cluster cannot be reached, or cannot answer for now: the same may work a moment later."""


class MissingIndexError(ClusterError):
    """There is no index of that name, or it is not langshift's.

    Attributes:
        name: what was asked for.
    """

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.name = name

    @property
    def for_clients(self) -> str:
        """The sentence for others than the operator, who learn nothing of indices that are not langshift's."""
        return f"There is no index {self.name}: choose one from the list of indices."


class FingerprintError(LangshiftError):
    """An index, vector file and encoder that do not belong together."""


#: What a report is made with.
REPORT = ("jinja2",)


def installed(*modules: str) -> bool:
    """Whether all of these modules are there; a package stands before what is in it."""
    return all(find_spec(name) is not None for name in modules)


def require_extra(who: str, extra: str, *modules: str, otherwise: str = "") -> None:
    """Refuse, before any work, what cannot be done without an extra.

    Args:
        who: what needs it, with the verb: ``the report needs``.
        extra: its name.
        modules: what comes with it.
        otherwise: what can be done instead; the end of the sentence.

    Raises:
        LangshiftError: one of the modules is missing.
    """
    if not installed(*modules):
        raise LangshiftError(f"{who} an extra: pip install 'langshift[{extra}]'{otherwise}.")


def special_file(path: Path) -> str:
    """What stands at a path in place of a file, as the beginning of a sentence.

    Returns:
        Empty where nothing stands there, or a file or folder.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"{path} is a symbolic link that leads back to itself" if error.errno == ELOOP else ""
    if S_ISREG(mode) or S_ISDIR(mode):
        return ""
    return f"{path} is {'a pipe' if S_ISFIFO(mode) else 'a socket or a device'}, not a file"


def no_file(path: Path, otherwise: str = "") -> str:
    """Say, as the beginning of a sentence, that there is no file of a name, in other words if need be, or what is."""
    return special_file(path) or otherwise or f"There is no file {path}"
