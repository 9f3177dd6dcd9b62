"""The queue: by time, then by the order of asking; without what was cancelled or belongs to a life that is over."""

from __future__ import annotations

from reconciler.simulator.kernel.events import Event, EventQueue


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
