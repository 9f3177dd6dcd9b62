"""Check control requests, and give every reason why one is not valid at once. Pure.

A request that is malformed is refused whole, with every reason (DESIGN §4). Decoders check the requests that they make,
and a broker checks again before it changes anything. The types of the fields are right, see ``requests``; those of
broker ids in a list are checked here, a list at a time.
Source: FACTS §1.4, §5; KIP516-4, KIP516-7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter

from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.topic import METADATA_TOPIC, check_full_topic_name
from reconciler.errors import InvalidRequestError
from reconciler.protocol.requests import LeaderAndIsrRequest, StopPartition, StopTopic, TopicState
from reconciler.protocol.update_metadata import ControllerRequest, UpdateMetadataRequest, UpdateMetadataTopic

MAX_PARTITIONS = 1_000_000
"""Topics and partitions of one request: ten times those of the largest broker that this program is made for."""

_MOST_COMMAS = 40 * MAX_PARTITIONS
_MOST_OBJECTS = MAX_PARTITIONS + 100_000
"""The most JSON objects in a request of so many partitions and their leaders; a text with more is not even parsed."""

_INT32 = 1 << 31


def check_extent(data: bytes, location: str) -> None:
    """Refuse JSON that is too large to be a request, before it takes time and memory to parse.

    ``location`` names the text in the message.

    Raises:
        InvalidRequestError: it holds more objects or values than the longest request.
    """
    if data.count(b"{") > _MOST_OBJECTS or data.count(b",") > _MOST_COMMAS:
        reason = f"it has more in it than {MAX_PARTITIONS} partitions, the most that one request may name"
        raise InvalidRequestError(location, [reason], "control request")


def check_request(request: ControllerRequest, location: str) -> None:
    """Refuse a request that is not valid.

    ``location`` names it in the message.

    Raises:
        InvalidRequestError: with every reason, each with its topic.
    """
    found = reasons(request)
    if found:
        what = type(request).__name__.removesuffix("Request")
        raise InvalidRequestError(location, found, f"{what} request")


def reasons(request: ControllerRequest) -> list[str]:
    """Every reason why a request is not valid; none for a valid one. One that is too long is not checked further."""
    count = sum(len(topic.partitions) for topic in request.topics) + len(request.topics)
    if count > MAX_PARTITIONS:
        return [f"it names {count} topics and partitions, and {MAX_PARTITIONS} are the most that one request may name"]
    found = list(_about_topics(request.topics))
    if isinstance(request, LeaderAndIsrRequest):
        for topic in request.topics:
            found += _about_numbers(topic.topic, [state.partition for state in topic.partitions])
            found += _about_brokers(topic, ("replicas", "isr", "adding", "removing"))
    elif isinstance(request, UpdateMetadataRequest):
        for known in request.topics:
            found += _about_numbers(known.topic, [state.partition for state in known.partitions])
            found += _about_brokers(known, ("replicas", "isr", "offline"))
    else:
        for stopped in request.topics:
            found += _about_numbers(stopped.topic, [state.partition for state in stopped.partitions])
            found += _about_epochs(stopped.topic, stopped.partitions)
    return found


def _about_topics(topics: Sequence[TopicState | StopTopic | UpdateMetadataTopic]) -> Iterator[str]:
    for topic in topics:
        try:
            check_full_topic_name(topic.topic)
        except InvalidNameError as error:
            yield str(error)
        if topic.topic == METADATA_TOPIC:
            yield f"{METADATA_TOPIC} is the controllers' own log, and no request gives or takes a replica of it"
        if topic.topic_id is not None and topic.topic_id.is_zero:
            yield f"topic {topic.topic!r:.80}: the zero ID stands for none, and None is expected"
    for name, times in Counter(topic.topic for topic in topics).items():
        if times > 1:
            yield f"topic {name!r:.80} is there {times} times"
    owners: dict[TopicId, str] = {}
    for topic in topics:
        if topic.topic_id is not None and owners.setdefault(topic.topic_id, topic.topic) != topic.topic:
            one, other = owners[topic.topic_id], topic.topic
            yield f"topic ID {topic.topic_id} is expected of one topic, and found of {one!r:.80} and {other!r:.80}"


def _about_numbers(topic: str, numbers: Sequence[int]) -> Iterator[str]:
    """Check that partitions are from 0 to 2147483647, each once. A valid request costs a few passes in C."""
    if not numbers or (min(numbers) >= 0 and max(numbers) < _INT32 and len(set(numbers)) == len(numbers)):
        return
    for number, times in Counter(numbers).items():
        if not 0 <= number < _INT32:
            yield f"partition {number} of topic {topic!r:.80}: 0 to {_INT32 - 1} is expected"
        if times > 1:
            yield f"partition {number} of topic {topic!r:.80} is there {times} times"


def _about_brokers(topic: TopicState | UpdateMetadataTopic, names: tuple[str, ...]) -> Iterator[str]:
    """Check lists of broker ids, equal ones of a topic once."""
    try:
        lists = {each for name in names for each in map(attrgetter(name), topic.partitions)}
    except TypeError:  # what cannot be hashed is no number
        yield f"{topic.topic!s:.80}: {', '.join(names[:-1])} or {names[-1]} has something else than broker ids"
        return
    bad = {each for each in lists if not _are_brokers(each)}
    if not bad:
        return
    for state in topic.partitions:
        for name in names:
            if getattr(state, name) in bad:
                shown = ", ".join(map(str, getattr(state, name)[:10]))
                yield f"{topic.topic!s:.80}-{state.partition}: {name} are no distinct broker ids: {shown}"


def _are_brokers(numbers: tuple[int, ...]) -> bool:
    if not numbers:
        return True
    if not set(map(type, numbers)) <= {int} or len(set(numbers)) != len(numbers):
        return False
    return 0 <= min(numbers) <= max(numbers) < _INT32


def _about_epochs(topic: str, partitions: Sequence[StopPartition]) -> Iterator[str]:
    for state in partitions:
        if state.leader_epoch < -2:
            yield f"{topic!s:.80}-{state.partition}: leader epoch {state.leader_epoch} is none: -2 or more is expected"
