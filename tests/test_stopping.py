"""SIGTERM and SIGHUP are handled like Ctrl-C, and nobody else's handlers are touched."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest

from fair_envs.support.stopping import SIGNALS, StoppedError, delayed_signals, raise_pending, stoppable


@pytest.fixture(autouse=True)
def default_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_raised_once_and_cleaning_up_is_left_alone(number: signal.Signals) -> None:
    cleaned = False
    with pytest.raises(StoppedError, match=number.name) as stopped, stoppable():
        try:
            os.kill(os.getpid(), number)
        finally:
            for again in SIGNALS:
                os.kill(os.getpid(), again)
            cleaned = True
    assert cleaned and stopped.value.number == number and isinstance(stopped.value, KeyboardInterrupt)
    assert [signal.getsignal(one) for one in SIGNALS] == [signal.SIG_DFL] * len(SIGNALS)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_a_signal_that_is_ignored_or_handled_already_stays_so(handler: Any) -> None:
    signal.signal(signal.SIGHUP, handler)
    with pytest.raises(StoppedError), stoppable():
        os.kill(os.getpid(), signal.SIGHUP)  # as nohup has it
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGHUP) is handler
    with stoppable(), stoppable():
        assert signal.getsignal(signal.SIGHUP) is handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_other_threads_change_nothing() -> None:
    found: list[Any] = []

    def work() -> None:
        with stoppable():
            found.extend(map(signal.getsignal, SIGNALS))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL] * len(SIGNALS)


@pytest.mark.parametrize("number", [*SIGNALS, signal.SIGINT])
def test_a_signal_waits_until_what_must_not_be_disturbed_is_done(number: signal.Signals) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt) as stopped, stoppable():
        with delayed_signals():
            with delayed_signals():
                signal.raise_signal(number)
                done.append("inside")
            signal.raise_signal(number)
            done.append("outside")
        done.append("afterwards")
    assert done == ["inside", "outside"]
    assert isinstance(stopped.value, StoppedError) == (number != signal.SIGINT)
    with stoppable(), delayed_signals():
        pass  # nothing is left over
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_whose_exception_was_dropped_is_raised_again() -> None:
    with pytest.raises(StoppedError, match="SIGTERM"), stoppable():
        with suppress(KeyboardInterrupt):  # as some libraries do with what they did not expect
            signal.raise_signal(signal.SIGTERM)
        with delayed_signals():
            pass
        pytest.fail("it went on")
    with pytest.raises(StoppedError, match="SIGTERM"), stoppable():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        raise_pending()
        pytest.fail("it went on")
    with pytest.raises(StoppedError, match="SIGTERM"), stoppable():
        for number in SIGNALS:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(number)
        signal.raise_signal(signal.SIGHUP)
        pytest.fail("it went on")


def test_nothing_is_raised_again_while_a_signal_is_handled() -> None:
    with pytest.raises(StoppedError), stoppable():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            with suppress(ValueError):
                try:
                    raise ValueError("in the midst of cleaning up")
                finally:
                    signal.raise_signal(signal.SIGTERM)
            with delayed_signals():
                signal.raise_signal(signal.SIGHUP)


def test_work_that_is_begun_while_an_earlier_signal_is_handled_can_be_stopped() -> None:
    try:
        with stoppable():
            signal.raise_signal(signal.SIGTERM)
    except StoppedError as first:
        with pytest.raises(StoppedError) as second, stoppable():
            signal.raise_signal(signal.SIGTERM)
            pytest.fail("it went on")
        assert second.value is not first


def test_ctrl_c_does_not_hide_a_signal_that_came_with_it() -> None:
    with pytest.raises(StoppedError, match="SIGTERM"), stoppable(), delayed_signals():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
