"""The words of a scenario's lines, each parsed to what it means; a ValueError says what a word is not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import InvalidSettingError, KafkaError, parse_duration
from reconciler.simulator.kernel import PartitionMode
from reconciler.simulator.placement import Placement
from reconciler.sources.zookeeper import AclOperation

_PARTITION = re.compile(r"(.+)-([0-9]{1,9})", re.ASCII)
_MOST_BROKERS = 50
_MODES = {
    "ReadWrite": PartitionMode.READ_WRITE,
    "ReadOnly": PartitionMode.READ_ONLY,
    "None": PartitionMode.NONE,
}


class NodeId(int):
    """A broker's number, which must exist."""


class DiskNumber(int):
    """The number of one of a broker's log dirs, from 0, which must exist."""


def parse_number(text: str, least: int = 0, most: int = 1_000_000) -> int:
    """Parse a whole number."""
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not least <= int(text) <= most:
        raise ValueError(f"{text!r:.20} is no number from {least} to {most}")
    return int(text)


def parse_error(text: str) -> int:
    """Parse the number of an error of Kafka's."""
    number = parse_number(text, 1)
    if number not in list(KafkaError):
        raise ValueError(f"{number} is no error number that a broker here answers with")
    return number


def parse_count(text: str) -> int:
    """Parse a number of brokers or log dirs."""
    return parse_number(text, 1, _MOST_BROKERS)


def parse_racks(text: str) -> tuple[str, ...]:
    """Parse racks, one for each broker."""
    racks = tuple(text.split(","))
    if not all(racks):
        raise ValueError(f"{text!r:.40} are no racks such as a,a,b")
    return racks


def parse_placement(text: str) -> Placement:
    """Parse the rules by which replicas are placed."""
    if text not in tuple(Placement):
        raise ValueError(f"there is no placement {text!r:.20}; there are {', '.join(Placement)}")
    return Placement(text)


def parse_scheme(text: str) -> Scheme:
    """Parse how the log dirs of the brokers are laid out."""
    if text not in (Scheme.FLAT, Scheme.NAMESPACED):
        raise ValueError(f"{text!r:.30} is no scheme for a scenario: {Scheme.FLAT} or {Scheme.NAMESPACED}")
    return Scheme(text)


def parse_node(text: str) -> NodeId:
    """Parse a broker's number."""
    return NodeId(parse_number(text))


def parse_disk(text: str) -> DiskNumber:
    """Parse the number of a log dir."""
    return DiskNumber(parse_number(text))


def parse_nodes(text: str) -> tuple[NodeId, ...]:
    """Parse brokers, with commas between."""
    return tuple(parse_node(each) for each in text.split(","))


def parse_partition(text: str) -> TopicPartition:
    """Parse a partition."""
    match = _PARTITION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r:.40} is no partition such as orders-0")
    return TopicPartition(match[1], int(match[2]))


def parse_mode(text: str) -> PartitionMode:
    """Parse who may use a partition (KIP694-1)."""
    if text not in _MODES:
        raise ValueError(f"{text!r:.20} is no mode: {', '.join(_MODES)}")
    return _MODES[text]


def parse_milliseconds(text: str) -> int:
    """Parse a span of time."""
    try:
        return parse_duration(text)
    except InvalidSettingError as error:
        raise ValueError(str(error)) from error


def parse_principal(text: str) -> str:
    """Parse a principal."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"{text!r:.40} is no principal such as User:ann")
    return text


def parse_principals(text: str) -> tuple[str, ...]:
    """Parse principals, with commas between."""
    return tuple(map(parse_principal, text.split(",")))


def parse_operation(text: str) -> AclOperation:
    """Parse what an ACL is about."""
    if text not in list(AclOperation):
        raise ValueError(f"{text!r:.30} is no operation; there are {', '.join(AclOperation)}")
    return AclOperation(text)


def parse_scope(text: str) -> str:
    """Parse to what an ACL belongs: a topic, a namespace with ``:`` at its end, or ``*``, the cluster."""
    return "" if text == "*" else text


def parse_names(text: str) -> tuple[str, ...]:
    """Parse topics, with commas between; ``none`` is none."""
    return () if text == "none" else tuple(text.split(","))


def parse_assignment(words: Sequence[str]) -> Mapping[int, Sequence[int]]:
    """Parse the brokers of each partition by hand."""
    found: dict[int, Sequence[int]] = {}
    for word in words:
        text, colon, brokers = word.partition(":")
        if not colon:
            raise ValueError(f"{word!r:.30} is no assignment such as 0:1,2,3")
        number = parse_number(text)
        if number in found:
            raise ValueError(f"partition {number} is assigned twice")
        found[number] = parse_nodes(brokers)
    return found


def parse_config(text: str) -> Mapping[str, str]:
    """Parse one config."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"{text!r:.40} is no config such as retention.ms=1000")
    return {name: value}


_CHANGES = ("partitions", "factor", "replicas", "set", "unset")


def parse_alter(words: Sequence[str]) -> Sequence[object]:
    """Parse one change of a topic: its name, and the fields of an ``AlterTopic``."""
    if len(words) < 3:
        raise ValueError(f"alter wants a topic, one of {', '.join(_CHANGES)}, and its new value")
    topic, what, *new = words
    change: Mapping[str, object]
    match what:
        case "partitions":
            change = {"partitions": parse_number(new[0]), "assignment": parse_assignment(new[1:])}
        case "factor" if len(new) == 1:
            change = {"factor": parse_number(new[0])}
        case "replicas":
            change = {"assignment": parse_assignment(new)}
        case "set":
            change = {"configs": {name: value for word in new for name, value in parse_config(word).items()}}
        case "unset":
            change = {"deleted_configs": tuple(new)}
        case "factor":
            raise ValueError(f"alter {topic} factor wants one number, and has {len(new)} words")
        case _:
            raise ValueError(f"{what!r:.30} is nothing that alter changes: {', '.join(_CHANGES)}")
    return topic, change


def parse_configs(words: Sequence[str]) -> tuple[Mapping[str, str], Sequence[str]]:
    """Parse ``retention.ms=5`` and ``-segment.ms``: configs to be set, and names to be deleted."""
    wanted, deleted = dict[str, str](), list[str]()
    for word in words:
        name, sign, value = word.partition("=")
        if sign and name and name not in wanted:
            wanted[name] = value
        elif not sign and name.startswith("-"):
            deleted.append(name[1:])
        else:
            raise ValueError(f"{word!r:.40} is no config such as retention.ms=60000 or -retention.ms, or comes twice")
    return wanted, deleted
