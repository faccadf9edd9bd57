"""Orderly stops: SIGTERM and SIGHUP are handled like Ctrl-C."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class StoppedError(KeyboardInterrupt):
    """Raised when SIGTERM or SIGHUP arrives.

    Args:
        number: The number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


def ignore_signal(number: int, frame: Any) -> None:
    """Do nothing; a handler to use instead of SIG_IGN.

    With SIG_IGN, Python complains about signals that are already pending, and child processes inherit the setting.
    """


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `StoppedError`, a KeyboardInterrupt, when SIGTERM or SIGHUP arrives.

    A cluster sends SIGTERM before it kills a job; a closed terminal sends SIGHUP. Further signals do not interrupt the
    ``except`` and ``finally`` blocks that handle the error. Signals that are ignored (``nohup``) or already have a
    handler do not change, and nothing changes outside the main thread. Ctrl-C works as usual, except in
    `delayed_signals`.
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
def delayed_signals() -> Iterator[None]:
    """Delay the signals of `stoppable` until this block ends, and raise them then.

    An exception between two instructions of a queue can leave the queue locked, or another thread waiting for an entry
    that exists. A signal that arrived earlier is raised too, unless it is being handled, because some libraries drop
    unexpected exceptions.
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
    """Raise the exception of a signal again if it was dropped; call this between two parts of long work."""
    if _here():
        _raise()


_undisturbed: list[bool] = []
_came: list[int] = []
"""Received signals whose exception has not ended the `stoppable` block yet."""
_raised: list[StoppedError] = []
"""The exceptions raised for them."""


def _stop(number: int, frame: Any) -> None:
    if number == signal.SIGINT and not _undisturbed:
        raise KeyboardInterrupt
    _came.append(number)
    _raise()


def _raise() -> None:
    """Raise the received signals, unless they are delayed, or would interrupt the cleanup or the final save."""
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
