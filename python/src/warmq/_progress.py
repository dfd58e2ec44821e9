"""How far a sweep is: a bar on a terminal or in a notebook, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time

_WIDTH = 30


class Progress:
    """Shows progress on standard error."""

    def __init__(self, done: int, total: int, shown: bool) -> None:
        self._total, self._first, self._shown = total, done, shown
        self._is_live = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._every = 0.2 if self._is_live else 10.0
        self._began = self._last = time.monotonic()
        self._drawn = False

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._shown:
            print(f"warmq: {text}", file=sys.stderr, flush=True)

    def see(self, done: int) -> None:
        """So many runs are done."""
        now = time.monotonic()
        if not self._shown or (now - self._last < self._every and done < self._total):
            return
        self._last = now
        text = f"{done}/{self._total} runs, {_left(now - self._began, done - self._first, self._total - done)}"
        if self._is_live:
            full = _WIDTH * done // max(self._total, 1)
            print(f"\r[{'#' * full}{'.' * (_WIDTH - full)}] {text}\033[K", end="", file=sys.stderr, flush=True)
            self._drawn = True
        else:
            self.say(text)

    def end(self) -> None:
        """Leaves the line of the bar."""
        if self._drawn:
            print(file=sys.stderr, flush=True)


def _left(elapsed: float, made: int, left: int) -> str:
    """
    >>> _left(10.0, 100, 50), _left(0.0, 0, 9), _left(7320.0, 1, 1), _left(9.0, 9, 0)
    ('5 s left', 'begun', '2 h 2 min left', 'done')
    """
    if left == 0:
        return "done"
    if made == 0:
        return "begun"
    seconds = elapsed / made * left
    if seconds < 120:
        return f"{seconds:.0f} s left"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min left" if minutes >= 120 else f"{minutes} min left"
