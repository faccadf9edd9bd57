"""Ends work in an orderly way when the system asks for it: SIGTERM and SIGHUP are handled like Ctrl-C."""

import signal
import sys
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
    """Raise `StoppedError`, a KeyboardInterrupt, when SIGTERM or SIGHUP arrives.

    A cluster sends SIGTERM before it kills a job, a closed terminal SIGHUP. More of them do not interrupt the
    ``except`` and ``finally`` blocks that the error passes. A signal that is ignored (``nohup``) or has a handler
    already stays as it is, and nothing changes outside the main thread. Ctrl-C does what it always does, but for
    `undisturbed`.
    """
    usual = {number: signal.SIG_DFL for number in SIGNALS} | {signal.SIGINT: signal.default_int_handler}
    ours = {number: kept for number, kept in usual.items() if _here() and signal.getsignal(number) is kept}
    if ours:
        _forget()
    try:
        for number in ours:
            signal.signal(number, _stop)
        yield
    finally:
        for number, kept in ours.items():
            signal.signal(number, kept)
        if ours:
            _forget()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let the signals of `stoppable` wait until this ends, and raise then what came.

    An exception between two instructions of a queue leaves it locked, or another thread waiting for what is there. A
    signal that came before is raised too, unless it is being handled: some libraries drop exceptions that they did not
    expect.
    """
    if not _here():
        yield
        return
    _undisturbed.append(True)
    try:
        yield
    finally:
        _undisturbed.pop()
        _raise()


def raise_pending() -> None:
    """Raise again a signal whose exception was dropped, between two parts of long work."""
    if _here():
        _raise()


_undisturbed: list[bool] = []
_came: list[int] = []
"""Signals of which no exception has ended what is stoppable."""
_raised: list[StoppedError] = []
"""The exceptions that were raised for them."""


def _stop(number: int, frame: Any) -> None:
    if number == signal.SIGINT and not _undisturbed:
        raise KeyboardInterrupt
    _came.append(number)
    _raise()


def _raise() -> None:
    """Raise what came, unless that has to wait, or cleaning up and writing the last state would be broken off."""
    if _undisturbed or not _came:
        return
    interrupted = signal.SIGINT in _came
    _came[:] = [number for number in _came if number != signal.SIGINT]
    if _came and not _is_handled():
        _raised.append(StoppedError(_came[0]))
        raise _raised[-1]
    if interrupted:
        raise KeyboardInterrupt


def _is_handled() -> bool:
    """Return whether an exception for a signal of this `stoppable` is being handled further up."""
    error, seen = sys.exc_info()[1], set()
    while error is not None and id(error) not in seen:
        if any(error is own for own in _raised):
            return True
        seen.add(id(error))
        error = error.__context__
    return False


def _forget() -> None:
    _came.clear()
    _raised.clear()


def _here() -> bool:
    """Return whether this is the main thread, where signals arrive."""
    return threading.current_thread() is threading.main_thread()
