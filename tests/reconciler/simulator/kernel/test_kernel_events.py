"""The queue by time, without cancelled events and those of an earlier life; and the lines and digests of a history."""

from __future__ import annotations

from reconciler.simulator.kernel.events import Event, EventQueue, History


def drained(queue: EventQueue, lives: dict[str, int] | None = None) -> list[str]:
    labels = []
    while (taken := queue.take(lives or {})) is not None:
        labels.append(taken[0].label)
    return labels


def event(due_ms: int, label: str, machine: str = "", life: int = -1) -> Event:
    return Event(due_ms, machine, life, label, lambda: None)


def test_events_come_by_time_and_those_of_one_time_in_the_order_they_were_added() -> None:
    queue = EventQueue()
    for due_ms, label in ((5, "e"), (3, "b"), (5, "f"), (3, "c"), (1, "a"), (4, "d")):
        queue.add(event(due_ms, label))
    assert drained(queue) == list("abcdef")


def test_an_event_that_was_cancelled_does_not_come() -> None:
    queue = EventQueue()
    events = [queue.add(event(number, str(number))) for number in range(3)]
    events[0].cancel()
    events[0].cancel()
    assert queue.next_ms({}) == 1
    assert drained(queue) == ["1", "2"]
    events[1].cancel()


def test_an_event_of_a_life_that_is_over_does_not_come() -> None:
    queue = EventQueue()
    for label, life in (("first life", 0), ("second life", 1), ("any life", -1)):
        queue.add(event(1, label, "broker-1", life))
    assert drained(queue, {"broker-1": 1}) == ["second life", "any life"]


def test_an_empty_queue_has_no_next_event() -> None:
    queue = EventQueue()
    assert (queue.take({}), queue.next_ms({}), len(queue)) == (None, None, 0)


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
