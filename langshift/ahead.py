"""Making the next things while one is worked on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from queue import Full, Queue
from typing import TypeVar

T = TypeVar("T")
_LOOK_EVERY = 0.1  # seconds


def ahead(things: Iterator[T]) -> Iterator[T]:
    """The same things, always one of them made in advance, in a thread of its own.

    Who closes the iterator early does not wait for a thing that takes long: standard input may never give one.
    """
    coming: Queue[tuple[T] | BaseException | None] = Queue(1)
    left = threading.Event()

    def put(thing: tuple[T] | BaseException | None) -> None:
        while not left.is_set():
            with suppress(Full):
                coming.put(thing, timeout=_LOOK_EVERY)
                return

    def make() -> None:
        try:
            for thing in things:
                put((thing,))
                if left.is_set():
                    return
        except BaseException as error:
            put(error)
        else:
            put(None)

    threading.Thread(target=make, name="ahead", daemon=True).start()
    try:
        while (made := coming.get()) is not None:
            if isinstance(made, BaseException):
                raise made
            yield made[0]
    finally:
        left.set()
