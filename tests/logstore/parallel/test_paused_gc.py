"""The garbage collector rests while much is loaded, and is afterwards as it was."""

from __future__ import annotations

import gc

import pytest

from logstore.parallel.paused_gc import paused_gc


def test_the_collector_rests_inside_and_runs_again_afterwards() -> None:
    with paused_gc():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_runs_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="broken"), paused_gc():
        raise ValueError("broken")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
