"""Values that pages keep between requests, as many as were used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """The values that were used last, by key; safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        """The value; None where it is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: T) -> T:
        """Keep a value, in place of that which was used longest ago."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        return value

    def of(self, key: Hashable, make: Callable[[], T], *, fresh: bool = False) -> T:
        """The value that is kept, else, or where a fresh one is wanted, one that is made."""
        found = None if fresh else self.get(key)
        return self.put(key, make()) if found is None else found
