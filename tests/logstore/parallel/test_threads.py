from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from logstore.parallel import AdaptiveThreadPool, map_chunks
from logstore.parallel import threads as threads_module
from tests.patience import PATIENCE_S


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A disk that makes a thread wait ``waits`` times for each piece; the count stands for the system's."""
    state = {"waits": 0, "count": 0}
    monkeypatch.setattr(threads_module, "waits", lambda: state["count"])
    return state


def _pool_of(disk: dict[str, int]) -> AdaptiveThreadPool[int, tuple[int, str]]:
    def work(piece: int) -> tuple[int, str]:
        disk["count"] += disk["waits"]
        return piece * 2, threading.current_thread().name

    return AdaptiveThreadPool(work)


def test_while_nothing_waits_one_thread_does_it_all(disk: dict[str, int]) -> None:
    with _pool_of(disk) as pool:
        done = pool.map(range(50), 8)
    assert [result for result, _ in done] == [2 * n for n in range(50)]
    assert {name for _, name in done} == {threading.current_thread().name}


def test_when_the_first_piece_waits_threads_do_the_others_in_order(disk: dict[str, int]) -> None:
    disk["waits"] = 8
    with _pool_of(disk) as pool:
        done = pool.map(range(50), 8)
    assert [result for result, _ in done] == [2 * n for n in range(50)]
    assert done[0][1] == threading.current_thread().name
    assert all(name.startswith("pace") for _, name in done[1:])


def test_so_many_threads_as_were_asked_for_work_at_once(disk: dict[str, int]) -> None:
    together = threading.Barrier(3)

    def work(piece: int) -> str:
        disk["count"] += 8
        if piece:
            together.wait(PATIENCE_S)
        return threading.current_thread().name

    with AdaptiveThreadPool(work, 3) as pool:
        done = pool.map(range(13), 8)
    assert len(set(done[1:])) == 3


def test_each_batch_is_thought_over_anew(disk: dict[str, int]) -> None:
    with _pool_of(disk) as pool:
        disk["waits"] = 100
        pool.map(range(3), 8)
        disk["waits"] = 0
        warm = pool.map(range(3), 8)
    assert {name for _, name in warm} == {threading.current_thread().name}


@pytest.mark.parametrize("waits", [0, 8])
def test_items_are_cut_into_pieces_and_their_results_stand_in_their_order(disk: dict[str, int], waits: int) -> None:
    pieces = []

    def work(piece: Sequence[int]) -> list[int]:
        disk["count"] += waits
        pieces.append(list(piece))
        return [2 * item for item in piece if item != 4]

    with AdaptiveThreadPool(work) as pool:
        assert map_chunks(pool, range(8), 3, 8) == [0, 2, 4, 6, 10, 12, 14]
    assert sorted(pieces) == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_no_pieces_are_no_results(disk: dict[str, int]) -> None:
    with _pool_of(disk) as pool:
        assert pool.map([], 8) == []


def test_what_the_work_raises_comes_out_of_threads_too_and_no_thread_is_left(disk: dict[str, int]) -> None:
    disk["waits"] = 8

    def work(piece: int) -> int:
        disk["count"] += 8
        if piece == 5:
            raise ValueError("five")
        return piece

    with pytest.raises(ValueError, match="five"), AdaptiveThreadPool(work) as pool:
        pool.map(range(40), 8)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pace")]


def test_the_system_counts_waits() -> None:
    before = threads_module.waits()
    threading.Event().wait(0.001)
    assert threads_module.waits() > before
