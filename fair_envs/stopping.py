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
    a handler already stays as it is, and nothing changes outside the main thread. Ctrl-C does what it always does, but
    for `undisturbed`.
    """
    usual = {number: signal.SIG_DFL for number in SIGNALS} | {signal.SIGINT: signal.default_int_handler}
    ours = {number: kept for number, kept in usual.items() if _here() and signal.getsignal(number) is kept}

    def stop(number: int, frame: Any) -> None:
        if _undisturbed:
            _waiting.append(number)
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        for other in ours.keys() & {*SIGNALS}:  # cleaning up and writing the last state must not be broken off
            signal.signal(other, disregard)
        raise StoppedError(number)

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, kept in ours.items():
            signal.signal(number, kept)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let the signals that `stoppable` turns into exceptions wait until this ends; the first one is raised then.

    An exception between two instructions of a queue leaves it locked, or another thread waiting for what is there.
    """
    if not _here():
        yield
        return
    _undisturbed.append(True)
    try:
        yield
    finally:
        _undisturbed.pop()
        if _waiting and not _undisturbed:
            number = _waiting[0]
            _waiting.clear()
            signal.raise_signal(number)


_undisturbed: list[bool] = []
_waiting: list[int] = []


def _here() -> bool:
    """Return whether this is the main thread, where signals arrive."""
    return threading.current_thread() is threading.main_thread()
