"""In place of threads that wait for a barrier while work goes on: two fixed orders, so that a history has one log."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest


class AtOnce:
    """A barrier is over before the next batch is begun."""

    def __init__(self, workers: int, **_: object) -> None:
        assert workers == 1

    def __enter__(self) -> AtOnce:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: object) -> Future[Any]:
        done = Future[Any]()
        try:
            done.set_result(work(*arguments))
        except OSError as error:
            done.set_exception(error)
        return done


class AtTheEnd(AtOnce):
    """A barrier begins when the next batch is as far as it gets without it."""

    def submit(self, work: Callable[..., Any], *arguments: object) -> Future[Any]:
        class Late(Future[Any]):
            def result(self, timeout: float | None = None) -> Any:
                return work(*arguments)

        return Late()


BARRIERS = pytest.mark.parametrize("barriers", [AtOnce, AtTheEnd])
