"""Language maps that are measured in the background, one at a time, and kept."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock, Thread
from typing import Final

from langshift.web.language_map.asking import Tell
from langshift.web.language_map.shown import Shown

Measuring = Callable[[Tell], Shown]

_KEPT: Final = 16
# Seconds after which a map of an index that has other documents now is measured again.
_LASTS: Final = 300.0


class Work:
    """One map, being measured or done.

    Attributes:
        documents: how many the index had when it was begun.
        told: what is being done, in a few words.
        done: the map, or why there is none; None while it is measured.
        ended: when, by the monotonic clock; 0 while it is measured.
    """

    def __init__(self, documents: int | None) -> None:
        self.documents = documents
        self.told = "Waiting for another map"
        self.done: Shown | Exception | None = None
        self.ended = 0.0

    def carry_out(self, measuring: Measuring, one_at_a_time: Lock) -> None:
        """Measure it."""
        with one_at_a_time:
            try:
                done: Shown | Exception = measuring(self._tell)
            except Exception as error:
                done = error
        self.ended = time.monotonic()
        self.done = done

    def stale(self, documents: int | None) -> bool:
        """Whether it is better measured again."""
        return self.done is not None and documents != self.documents and time.monotonic() - self.ended > _LASTS

    def _tell(self, told: str) -> None:
        self.told = told


class Maps:
    """The maps that were asked for last; safe to use from several threads."""

    def __init__(self) -> None:
        self._works: OrderedDict[str, Work] = OrderedDict()
        self._lock, self._one_at_a_time = Lock(), Lock()

    def of(self, uuid: str, documents: int | None, measuring: Measuring) -> Work:
        """The map of an index; begun in the background where there is none yet.

        Args:
            uuid: the server's own id of the version.
            documents: how many it has now.
            measuring: measures it.

        Raises:
            Exception: what measuring it ended with; the next one who asks begins it again.
        """
        with self._lock:
            work = self._works.get(uuid)
            if work is None or work.stale(documents):
                work = self._works[uuid] = Work(documents)
                # Whoever ends the console does not wait for it.
                Thread(target=work.carry_out, args=(measuring, self._one_at_a_time), daemon=True).start()
            self._works.move_to_end(uuid)
            while len(self._works) > _KEPT:
                self._works.popitem(last=False)
            if isinstance(work.done, Exception):
                del self._works[uuid]
                raise work.done
        return work
