"""Which modules a command goes through, and in which order a search does."""

import functools
import gc
import inspect
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import langshift

#: The rooms that count: the shell has its settings, client and commands in every way.
ROOMS = ("debias", "plugin", "ingest", "retrieval", "evaluate")
_IMPORTS = "<frozen importlib._bootstrap>"


@contextmanager
def core_path():
    """Gather the modules of the rooms, such as ``ingest/load.py``, in which a function's body runs meanwhile.

    What runs while a module is imported does not count: a decorator or a table that is made once. What the process
    remembers of earlier commands, such as an open encoder, is forgotten first, but not the model below it: to read its
    weights under the eyes of this function takes ten seconds.
    """
    # By type: what pretends to be of a class, as some of torch's objects do, may warn when it is asked.
    for cached in gc.get_objects():
        ours = type(cached) is functools._lru_cache_wrapper and cached.__module__.startswith("langshift.")
        if ours and cached.__name__ != "_model":
            cached.cache_clear()
    seen = {}

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename not in seen and code.co_flags & inspect.CO_OPTIMIZED:
            module = _module(code.co_filename)
            if module is None or not _is_imported(frame):
                seen[code.co_filename] = module

    modules = []
    with _watched(watch):
        yield modules
    modules += filter(None, seen.values())


@contextmanager
def stays():
    """Gather the modules of the rooms and of ``web`` that somebody visits who reads what runs meanwhile, in order.

    Each function is read once, where it is first entered; functions that follow each other in one module are one stay.
    Comprehensions and lambdas are read with the function around them.
    """
    read, modules = set(), []

    def watch(frame, event, _):
        code = frame.f_code
        function = (code.co_filename, code.co_firstlineno)
        if (
            event != "call"
            or function in read
            or code.co_name.startswith("<")
            or not code.co_flags & inspect.CO_OPTIMIZED
        ):
            return
        read.add(function)
        module = _module(code.co_filename, (*ROOMS, "web"))
        if module is not None and modules[-1:] != [module]:
            modules.append(module)

    with _watched(watch):
        yield modules


@contextmanager
def _watched(watch):
    # A generator that an earlier test has left half run is entered once more where it is collected: now, not meanwhile.
    gc.collect()
    gc.freeze()
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        gc.unfreeze()


@functools.cache
def _module(filename, rooms=ROOMS):
    for root in langshift.__path__:
        if filename.startswith(f"{root}/"):
            path = Path(filename).relative_to(root)
            return path.as_posix() if path.parts[0] in rooms else None
    return None


def _is_imported(frame):
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False
