"""The lines that a person reads, and the digests that tell two runs apart."""

from __future__ import annotations

from reconciler.simulator.kernel.history import History, first_difference


def test_a_line_says_when_who_and_what() -> None:
    now_ms = 12_345
    history = History(lambda: now_ms)
    history.say("broker-2", "stages orders-0")
    now_ms = 1_000_000_007
    history.say("world", "two\nlines")
    assert history.lines == ["+000012.345s broker-2  stages orders-0", "+1000000.007s world  two lines"]


def test_two_runs_have_the_same_digest_when_they_say_the_same() -> None:
    runs = [History(lambda: 0) for _ in range(3)]
    for run, text in zip(runs, ("a", "a", "b"), strict=True):
        run.say("broker-1", text)
        run.happened("broker-1", text)
    assert runs[0].digest == runs[1].digest != runs[2].digest
    assert runs[0].trace_digest == runs[1].trace_digest != runs[2].trace_digest
    assert len(runs[0].digest) == 32
    assert runs[2].trace == [(0, "broker-1", "b")]


def test_where_a_run_lies_is_not_said() -> None:
    history = History(lambda: 0)
    history.folder = "/dev/shm/run-1"
    history.say("broker-1", "/dev/shm/run-1/1/disk-1/data is offline, and /dev/shm/run-10/x is not")
    assert history.lines == ["+000000.000s broker-1  1/disk-1/data is offline, and /dev/shm/run-10/x is not"]


def test_a_name_that_is_no_text_can_be_said() -> None:
    history = History(lambda: 0)
    history.say("broker-1", "stages \udcff-0")
    assert history.digest != History(lambda: 0).digest


def test_the_first_difference_is_where_one_run_is_longer_or_says_something_else() -> None:
    assert first_difference("abc", "abc") is None
    assert first_difference("abc", "abx") == 2
    assert first_difference("abc", "ab") == 2
    assert first_difference("", "a") == 0
