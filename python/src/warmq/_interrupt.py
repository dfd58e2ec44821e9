"""Ctrl-C while a sweep is at work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType


class Interrupt:
    """Raises `KeyboardInterrupt` where a sweep waits for results, and nowhere else.

    Python raises it wherever the main thread is. In the middle of a file's writing that would write rows twice; and
    in a finaliser, of which Dask has a few for each run, Python drops it and the sweep goes on. So it is remembered
    until the next wait. The second Ctrl-C is raised at once.
    """

    def __init__(self) -> None:
        self._seen = False
        self._waiting = False
        self._before: signal._HANDLER = None

    def __enter__(self) -> Interrupt:
        # Signals are the main thread's; no other one can be interrupted.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._see)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if kind is None and self._seen:
            raise KeyboardInterrupt

    @contextmanager
    def while_waiting(self) -> Iterator[None]:
        """What is done inside may be interrupted at any point."""
        self._raise_if_seen()
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False
        self._raise_if_seen()

    def _raise_if_seen(self) -> None:
        if self._seen:
            raise KeyboardInterrupt

    def _see(self, number: int, frame: FrameType | None) -> None:
        raised = self._waiting or self._seen
        self._seen = True
        if raised:
            raise KeyboardInterrupt
