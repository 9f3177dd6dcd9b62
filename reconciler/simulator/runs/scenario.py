"""Scenarios: histories that a person wrote, with a line for each action and each expectation.

::

    # Stale state (KIP-516): a topic is re-created while a broker is away.
    brokers 3
    delete.topic.partition.enable false    or its interval.delay.ms: Kafka's own settings
    create orders 1 3            topic, partitions, replicas of each; or orders 0:1,2,3 1:2,3,1 by hand
    produce orders 5
    stop 2                       or crash 2, which loses what was not synced
    delete orders
    create orders 1 3
    start 2
    wait 30s
    expect staged 2 orders-0 1   broker, partition, and which topic of that name: the first
    expect live 2 orders-0 2     the second
    expect records orders 0
    rest                         put everything right, wait, and check every disk

An administrator's commands are answered at once, and done later (KIP4-1)::

    alter orders partitions 4                    or partitions 4 3:1,2, with the new ones by hand
    alter orders factor 2                        or replicas 0:1,3, set retention.ms=1000, unset retention.ms
    reassign orders-0 1,3 2      the 2: by the ID of the second topic of that name; without it, by name
    elect orders-0               its first replica as the leader; without a partition, of all
    describe orders 2            into the history: brokers, topic and partitions; by name or ID; or all topics
    delete orders 2              by name or ID, and wait until it is gone
    list                         the topics, into the history

Others: ``partitions orders 1 20s`` (another number of them; what goes can be read for so long), ``namespace create
org:apache``, ``config org retention.ms=1000`` (of a namespace), ``fail-over``, ``disk-fails 2 0``, ``disk-back``,
``disk-replaced``, and ``expect absent | leader | nothing-staged | topics``. ``expect mode orders-1 ReadOnly`` asks who
may use a partition, also as a client that knows no modes, and ``expect refused orders-1`` sends it a record, as a
producer that does not know its mode. ``brokers``, ``log-dirs``, ``racks a,a,b``
(of each broker), ``placement kraft`` and ``scheme namespaced`` (of the log dirs) come first.

``super-users User:root``, which comes first too, gives every broker an authorizer (KIP37-6). Then a line can be
somebody's, can be expected to be refused with an error of Kafka's, or both; and rights are given and taken::

    super-users User:root
    as User:root namespace create alpha
    as User:root allow User:ann All alpha:       to a namespace, with : at its end; to a topic; or, *, to the cluster
    as User:ann create alpha:orders 1 3
    refused 29 as User:bob produce alpha:orders 1
    as User:bob expect topics none               or their names, with commas between

``deny`` is written as ``allow`` is. Lines that cannot be parsed are all reported at once, with their numbers, and
nothing is played.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import InvalidSettingError, parse_duration
from reconciler.errors import UsageError
from reconciler.simulator.controller import FewerPartitionsSettings
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


@dataclass(frozen=True, slots=True)
class ScenarioLine:
    """A line of a scenario: its number in the file, its verb, and the verb's parsed arguments."""

    number: int
    verb: str
    values: Sequence[object]
    text: str
    principal: str | None = None
    """Whose line it is; None: nobody's in particular."""
    refused: int | None = None
    """The number of the error with which it has to be refused; None: it has to be done."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A parsed scenario; without super users its brokers have no authorizer."""

    name: str
    brokers: int = 3
    log_dirs: int = 2
    lines: tuple[ScenarioLine, ...] = field(default=())
    racks: tuple[str, ...] = ()
    """One for each broker; empty: they have none."""
    placement: Placement = Placement.ZOOKEEPER
    scheme: Scheme = Scheme.FLAT
    super_users: tuple[str, ...] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """By Kafka's names, those of fewer partitions (KIP694-3); what is not given is on, and looked at every 2 s."""


def parse_scenario(text: str, name: str) -> Scenario:
    """Parse a scenario.

    Raises:
        UsageError: with every line that cannot be parsed, and why.
    """
    head: dict[str, Any] = {
        "brokers": 3,
        "log-dirs": 2,
        "racks": (),
        "placement": Placement.ZOOKEEPER,
        "scheme": Scheme.FLAT,
        "super-users": None,
    }
    racks_at = 0, ""
    settings: dict[str, str] = {}
    lines: list[ScenarioLine] = []
    wrong: list[tuple[int, str, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        plain = raw.partition("#")[0].strip()
        if not plain:
            continue
        words = plain.split()
        try:
            if words[0] in head:
                head[words[0]] = _head(words, begun=bool(lines))
                racks_at = (number, plain) if words[0] == "racks" else racks_at
            elif words[0].startswith("delete.topic.partition."):
                settings |= _setting(words, begun=bool(lines))
            else:
                lines.append(_line(number, words))
        except ValueError as error:
            wrong.append((number, plain, str(error)))
    if head["racks"] and len(head["racks"]) != head["brokers"]:
        wrong.append((*racks_at, f"there are {head['brokers']} brokers, and each has one rack"))
    wrong += [(each.number, each.text, why) for each in lines for why in _unknown_numbers(each.values, head)]
    if wrong:
        reasons = [f"line {number}, {plain!r:.60}: {why}" for number, plain, why in sorted(wrong)]
        raise UsageError(f"{name} is no scenario: {'; '.join(reasons)}")
    counts = head["brokers"], head["log-dirs"]
    others = head["racks"], head["placement"], head["scheme"], head["super-users"]
    return Scenario(name, *counts, tuple(lines), *others, settings)


def shipped_scenarios() -> dict[str, str]:
    """The scenarios that come with the simulator: name → text, sorted."""
    folder = resources.files("reconciler.simulator") / "scenarios"
    found = [file for file in folder.iterdir() if file.name.endswith(".txt")]
    return {file.name.removesuffix(".txt"): file.read_text("utf-8") for file in sorted(found, key=lambda f: f.name)}


class _NodeId(int):
    """A broker's number, which must exist."""


class _DiskNumber(int):
    """The number of one of a broker's log dirs, from 0, which must exist."""


def _unknown_numbers(values: object, head: Mapping[str, Any]) -> Iterator[str]:
    """Find brokers and log dirs that a line names and the scenario does not have, in nested arguments too."""
    if isinstance(values, _NodeId) and not 1 <= values <= head["brokers"]:
        yield f"there is no broker {int(values)}; there are {head['brokers']}, from 1"
    elif isinstance(values, _DiskNumber) and values >= head["log-dirs"]:
        yield f"there is no log dir {int(values)}; each broker has {head['log-dirs']}, from 0"
    elif isinstance(values, Mapping):
        yield from _unknown_numbers(tuple(values.values()), head)
    elif isinstance(values, tuple):
        for each in values:
            yield from _unknown_numbers(each, head)


def _head(words: Sequence[str], *, begun: bool) -> object:
    wants, read = _HEADS[words[0]]
    if begun:
        raise ValueError(f"{words[0]} comes before everything else")
    if len(words) != 2:
        raise ValueError(f"{words[0]} wants one {wants}")
    return read(words[1])


def _line(number: int, words: Sequence[str]) -> ScenarioLine:
    """Parse one line: ``refused ERROR`` and ``as PRINCIPAL``, in either order or missing; then a verb and its words."""
    left, refused, principal = list(words), None, None
    while left[:1] in (["refused"], ["as"]):
        what = left[0]
        if len(left) < 3:
            wants = "the number of an error" if what == "refused" else "a principal"
            raise ValueError(f"{what} wants {wants}, and a line")
        if what == "refused" and refused is None:
            refused = _number(left[1], 1)
        elif what == "as" and principal is None:
            principal = _principal(left[1])
        else:
            raise ValueError(f"{what} comes once in a line")
        left = left[2:]
    words_of_verb = 2 if left[0] in ("expect", "namespace") else 1
    verb = " ".join(left[:words_of_verb])
    values = _read(verb, left[words_of_verb:])
    if principal is not None and verb not in _SOMEBODYS:
        raise ValueError(f"{verb} is nobody's; of a principal are {', '.join(_SOMEBODYS)}")
    return ScenarioLine(number, verb, values, " ".join(words), principal, refused)


def _setting(words: Sequence[str], *, begun: bool) -> dict[str, str]:
    if begun:
        raise ValueError(f"{words[0]} comes before everything else")
    found = {words[0]: " ".join(words[1:])}
    try:
        FewerPartitionsSettings.of(found)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return found


def _number(text: str, least: int = 0, most: int = 1_000_000) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not least <= int(text) <= most:
        raise ValueError(f"{text!r:.20} is no number from {least} to {most}")
    return int(text)


def _count(text: str) -> int:
    return _number(text, 1, _MOST_BROKERS)


def _racks(text: str) -> tuple[str, ...]:
    racks = tuple(text.split(","))
    if not all(racks):
        raise ValueError(f"{text!r:.40} are no racks such as a,a,b")
    return racks


def _placement(text: str) -> Placement:
    if text not in tuple(Placement):
        raise ValueError(f"there is no placement {text!r:.20}; there are {', '.join(Placement)}")
    return Placement(text)


def _scheme(text: str) -> Scheme:
    if text not in (Scheme.FLAT, Scheme.NAMESPACED):
        raise ValueError(f"{text!r:.30} is no scheme for a scenario: {Scheme.FLAT} or {Scheme.NAMESPACED}")
    return Scheme(text)


def _node(text: str) -> _NodeId:
    return _NodeId(_number(text))


def _disk(text: str) -> _DiskNumber:
    return _DiskNumber(_number(text))


def _nodes(text: str) -> tuple[_NodeId, ...]:
    return tuple(_node(each) for each in text.split(","))


def _partition(text: str) -> TopicPartition:
    match = _PARTITION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r:.40} is no partition such as orders-0")
    return TopicPartition(match[1], int(match[2]))


def _mode(text: str) -> PartitionMode:
    if text not in _MODES:
        raise ValueError(f"{text!r:.20} is no mode: {', '.join(_MODES)}")
    return _MODES[text]


def _milliseconds(text: str) -> int:
    try:
        return parse_duration(text)
    except InvalidSettingError as error:
        raise ValueError(str(error)) from error


def _principal(text: str) -> str:
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"{text!r:.40} is no principal such as User:ann")
    return text


def _principals(text: str) -> tuple[str, ...]:
    return tuple(map(_principal, text.split(",")))


def _operation(text: str) -> AclOperation:
    if text not in list(AclOperation):
        raise ValueError(f"{text!r:.30} is no operation; there are {', '.join(AclOperation)}")
    return AclOperation(text)


def _scope(text: str) -> str:
    """Parse to what an ACL belongs: a topic, a namespace with ``:`` at its end, or ``*``, the cluster."""
    return "" if text == "*" else text


def _names(text: str) -> tuple[str, ...]:
    return () if text == "none" else tuple(text.split(","))


def _assignment(words: Sequence[str]) -> Mapping[int, Sequence[int]]:
    found: dict[int, Sequence[int]] = {}
    for word in words:
        text, colon, brokers = word.partition(":")
        if not colon:
            raise ValueError(f"{word!r:.30} is no assignment such as 0:1,2,3")
        number = _number(text)
        if number in found:
            raise ValueError(f"partition {number} is assigned twice")
        found[number] = _nodes(brokers)
    return found


def _config(text: str) -> Mapping[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"{text!r:.40} is no config such as retention.ms=1000")
    return {name: value}


_CHANGES = ("partitions", "factor", "replicas", "set", "unset")


def _alter(words: Sequence[str]) -> Sequence[object]:
    """Parse one change of a topic: its name, and the fields of an ``AlterTopic``."""
    if len(words) < 3:
        raise ValueError(f"alter wants a topic, one of {', '.join(_CHANGES)}, and its new value")
    topic, what, *new = words
    change: Mapping[str, object]
    match what:
        case "partitions":
            change = {"partitions": _number(new[0]), "assignment": _assignment(new[1:])}
        case "factor" if len(new) == 1:
            change = {"factor": _number(new[0])}
        case "replicas":
            change = {"assignment": _assignment(new)}
        case "set":
            change = {"configs": {name: value for word in new for name, value in _config(word).items()}}
        case "unset":
            change = {"deleted_configs": tuple(new)}
        case "factor":
            raise ValueError(f"alter {topic} factor wants one number, and has {len(new)} words")
        case _:
            raise ValueError(f"{what!r:.30} is nothing that alter changes: {', '.join(_CHANGES)}")
    return topic, change


_Reader = Callable[[str], object]

_HEADS: Mapping[str, tuple[str, _Reader]] = {
    "brokers": ("number", _count),
    "log-dirs": ("number", _count),
    "racks": ("list such as a,a,b", _racks),
    "placement": ("name", _placement),
    "scheme": ("word", _scheme),
    "super-users": ("list such as User:ann,User:bob", _principals),
}
"""Each line that comes before everything else: what it wants, and its parser."""

_VERBS: Mapping[str, tuple[_Reader, ...]] = {
    "delete": (str,),
    "namespace create": (str,),
    "config": (str, _config),
    "allow": (_principal, _operation, _scope),
    "deny": (_principal, _operation, _scope),
    "produce": (str, _number),
    "stop": (_node,),
    "start": (_node,),
    "crash": (_node,),
    "reassign": (_partition, _nodes),
    "elect": (),
    "describe": (),
    "list": (),
    "partitions": (str, _number, _milliseconds),
    "disk-fails": (_node, _disk),
    "disk-back": (_node, _disk),
    "disk-replaced": (_node, _disk),
    "fail-over": (),
    "wait": (_milliseconds,),
    "rest": (),
    "expect live": (_node, _partition, _number),
    "expect staged": (_node, _partition, _number),
    "expect absent": (_node, _partition),
    "expect nothing-staged": (_node,),
    "expect records": (str, _number),
    "expect leader": (_partition, _node),
    "expect topics": (_names,),
    "expect mode": (_partition, _mode),
    "expect refused": (_partition,),
}
"""The parsers of each verb's arguments."""

_MORE: Mapping[str, tuple[_Reader, ...]] = {
    "delete": (_number,),
    "reassign": (_number,),
    "elect": (_partition,),
    "describe": (str, _number),
}
"""The parsers of arguments that may be left out."""

_SOMEBODYS = (
    *("create", "alter", "delete", "partitions", "reassign", "elect", "describe", "list"),
    *("namespace create", "config", "allow", "deny", "produce", "expect records", "expect topics"),
)
"""The verbs for which a principal asks the cluster."""


def _read(verb: str, words: Sequence[str]) -> Sequence[object]:
    if verb == "create":
        if len(words) < 2:
            raise ValueError("create wants a topic, and partitions and replicas, or an assignment")
        if ":" in words[1]:
            return (words[0], 0, 0, _assignment(words[1:]))
        if len(words) != 3:
            raise ValueError("create wants a topic, partitions, and replicas of each")
        return (words[0], _number(words[1], 1), _number(words[2], 1), None)
    if verb == "alter":
        return _alter(words)
    wants, more = _VERBS.get(verb), _MORE.get(verb, ())
    if wants is None:
        raise ValueError(f"there is no {verb!r:.30}; there are create, alter, {', '.join(_VERBS)}")
    if not len(wants) <= len(words) <= len(wants) + len(more):
        most = f" to {len(wants) + len(more)}" if more else ""
        raise ValueError(f"{verb} wants {len(wants)}{most} words after it, and has {len(words)}")
    return tuple(read(word) for read, word in zip((*wants, *more), words, strict=False))
