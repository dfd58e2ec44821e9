"""Ctrl-C is neither lost nor raised in the middle of a write."""

from __future__ import annotations

import os
import signal

import pytest
from warmq._interrupt import Interrupt


class InterruptedInFinaliser:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_that_python_drops_in_a_finaliser_is_raised_after_the_wait() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupt() as interrupt:
        with interrupt.while_waiting():
            InterruptedInFinaliser()
        pytest.fail("the sweep would go on")


def test_work_between_two_waits_is_finished_first() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), Interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        done.append("written")
        with interrupt.while_waiting():
            done.append("waited")
    assert done == ["written"]


def test_the_last_one_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupt():
        os.kill(os.getpid(), signal.SIGINT)


def test_the_second_one_is_raised_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("still at work")


def test_the_handler_of_before_is_there_again() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
