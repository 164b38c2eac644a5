import signal

import pytest

from noonmark.devstack.processes.interrupts import Interrupts, StopRequested


def test_a_signal_ends_what_welcomes_it_and_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    interrupts = Interrupts()
    with interrupts.installed(), pytest.raises(StopRequested), interrupts.welcome():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_outside_is_remembered_until_it_is_welcome() -> None:
    interrupts = Interrupts()
    with interrupts.installed():
        signal.raise_signal(signal.SIGINT)
        assert interrupts.requested
        with pytest.raises(StopRequested), interrupts.welcome():
            pytest.fail("not reached")
        interrupts.forget()
        with interrupts.welcome():
            pass
