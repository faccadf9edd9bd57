"""Ends work in an orderly way when the system asks for it: SIGTERM and SIGHUP are handled like Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class StoppedError(KeyboardInterrupt):
    """Raised where SIGTERM or SIGHUP arrives.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


def disregard(number: int, frame: Any) -> None:
    """Do nothing. Python complains of signals that are on their way when SIG_IGN is set, and processes inherit it."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `StoppedError`, a KeyboardInterrupt, when SIGTERM or SIGHUP arrives; the next ones are ignored.

    A cluster sends SIGTERM before it kills a job, a closed terminal SIGHUP. A signal that is ignored (``nohup``) or has
    a handler already stays as it is, and nothing changes outside the main thread.
    """
    here = threading.current_thread() is threading.main_thread()
    ours = [number for number in SIGNALS if here and signal.getsignal(number) is signal.SIG_DFL]

    def stop(number: int, frame: Any) -> None:
        for other in ours:  # cleaning up and writing the last state must not be broken off
            signal.signal(other, disregard)
        raise StoppedError(number)

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
