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

Namespaces (KIP-37), their configs, and what is refused::

    scheme namespaced                        before everything else, as brokers and log-dirs: how disks are laid out
    namespace create org:apache              all tiers at once
    namespace delete org:apache              with its topics
    namespace move org com:shop              with all that is in it
    older-brokers 2,3                        before everything else: of a release that knows no namespaces
    upgrade 2                                which it does from then on
    config org:apache retention.ms=60000     -retention.ms: inherited again; *: of the cluster
    refused 17 create org:apache 2 3         the line after the number is refused with this error of Kafka's
    expect offsets 2 org:a-0 3 6             the log of a broker begins at 3 and ends at 6

Others: ``partitions orders 1 20s`` (another number of them; what goes can be read for so long), ``fail-over``,
``disk-fails 2 0``, ``disk-back``, ``disk-replaced``, and ``expect absent | leader | no-leader | nothing-staged |
topics``. ``expect mode orders-1 ReadOnly`` asks who may use a partition, also as a client that knows no modes, and
``expect refused orders-1`` sends it a record, as a producer that does not know its mode. ``brokers``, ``log-dirs``,
``racks a,a,b`` (of each broker), ``placement kraft`` and ``scheme namespaced`` (of the log dirs) come first.

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from layout.scheme import Scheme
from reconciler.errors import UsageError
from reconciler.simulator.controller import FewerPartitionsSettings
from reconciler.simulator.placement import Placement
from reconciler.simulator.runs.scenario_words import (
    DiskNumber,
    NodeId,
    parse_alter,
    parse_assignment,
    parse_configs,
    parse_count,
    parse_disk,
    parse_error,
    parse_milliseconds,
    parse_mode,
    parse_names,
    parse_node,
    parse_nodes,
    parse_number,
    parse_operation,
    parse_partition,
    parse_placement,
    parse_principal,
    parse_principals,
    parse_racks,
    parse_scheme,
    parse_scope,
)


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
    older_brokers: tuple[int, ...] = ()
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
        "older-brokers": (),
    }
    heads_at: dict[str, tuple[int, str]] = {}
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
                heads_at[words[0]] = number, plain
            elif words[0].startswith("delete.topic.partition."):
                settings |= _setting(words, begun=bool(lines))
            else:
                lines.append(_line(number, words))
        except ValueError as error:
            wrong.append((number, plain, str(error)))
    if head["racks"] and len(head["racks"]) != head["brokers"]:
        wrong.append((*heads_at["racks"], f"there are {head['brokers']} brokers, and each has one rack"))
    wrong += [(*heads_at["older-brokers"], why) for why in _unknown_numbers(head["older-brokers"], head)]
    wrong += [(each.number, each.text, why) for each in lines for why in _unknown_numbers(each.values, head)]
    if wrong:
        reasons = [f"line {number}, {plain!r:.60}: {why}" for number, plain, why in sorted(wrong)]
        raise UsageError(f"{name} is no scenario: {'; '.join(reasons)}")
    counts = head["brokers"], head["log-dirs"]
    others = head["racks"], head["placement"], head["scheme"], head["super-users"], head["older-brokers"]
    return Scenario(name, *counts, tuple(lines), *others, settings)


def shipped_scenarios() -> dict[str, str]:
    """The scenarios that come with the simulator: name → text, sorted."""
    folder = resources.files("reconciler.simulator") / "scenarios"
    found = [file for file in folder.iterdir() if file.name.endswith(".txt")]
    return {file.name.removesuffix(".txt"): file.read_text("utf-8") for file in sorted(found, key=lambda f: f.name)}


def _unknown_numbers(values: object, head: Mapping[str, Any]) -> Iterator[str]:
    """Find brokers and log dirs that a line names and the scenario does not have, in nested arguments too."""
    if isinstance(values, NodeId) and not 1 <= values <= head["brokers"]:
        yield f"there is no broker {int(values)}; there are {head['brokers']}, from 1"
    elif isinstance(values, DiskNumber) and values >= head["log-dirs"]:
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
            refused = parse_error(left[1])
        elif what == "as" and principal is None:
            principal = parse_principal(left[1])
        else:
            raise ValueError(f"{what} comes once in a line")
        left = left[2:]
    words_of_verb = 2 if left[0] in ("expect", "namespace") else 1
    verb = " ".join(left[:words_of_verb])
    values = _read(verb, left[words_of_verb:])
    if principal is not None and verb not in _SOMEBODYS:
        raise ValueError(f"{verb} is nobody's; of a principal are {', '.join(_SOMEBODYS)}")
    if refused is not None and verb not in _SOMEBODYS:
        raise ValueError(f"nobody refuses {verb}; what may be refused are {', '.join(_SOMEBODYS)}")
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


_Reader = Callable[[str], object]

_HEADS: Mapping[str, tuple[str, _Reader]] = {
    "brokers": ("number", parse_count),
    "log-dirs": ("number", parse_count),
    "racks": ("list such as a,a,b", parse_racks),
    "placement": ("name", parse_placement),
    "scheme": ("word", parse_scheme),
    "super-users": ("list such as User:ann,User:bob", parse_principals),
    "older-brokers": ("list such as 2,3", parse_nodes),
}
"""Each line that comes before everything else: what it wants, and its parser."""

_VERBS: Mapping[str, tuple[_Reader, ...]] = {
    "delete": (str,),
    "namespace create": (str,),
    "namespace delete": (str,),
    "namespace move": (str, str),
    "allow": (parse_principal, parse_operation, parse_scope),
    "deny": (parse_principal, parse_operation, parse_scope),
    "produce": (str, parse_number),
    "stop": (parse_node,),
    "start": (parse_node,),
    "crash": (parse_node,),
    "upgrade": (parse_node,),
    "reassign": (parse_partition, parse_nodes),
    "elect": (),
    "describe": (),
    "list": (),
    "partitions": (str, parse_number, parse_milliseconds),
    "disk-fails": (parse_node, parse_disk),
    "disk-back": (parse_node, parse_disk),
    "disk-replaced": (parse_node, parse_disk),
    "fail-over": (),
    "wait": (parse_milliseconds,),
    "rest": (),
    "expect live": (parse_node, parse_partition, parse_number),
    "expect staged": (parse_node, parse_partition, parse_number),
    "expect absent": (parse_node, parse_partition),
    "expect nothing-staged": (parse_node,),
    "expect records": (str, parse_number),
    "expect leader": (parse_partition, parse_node),
    "expect no-leader": (parse_partition,),
    "expect offsets": (parse_node, parse_partition, parse_number, parse_number),
    "expect topics": (parse_names,),
    "expect mode": (parse_partition, parse_mode),
    "expect refused": (parse_partition,),
}
"""The parsers of each verb's arguments."""

_MORE: Mapping[str, tuple[_Reader, ...]] = {
    "delete": (parse_number,),
    "reassign": (parse_number,),
    "elect": (parse_partition,),
    "describe": (str, parse_number),
}
"""The parsers of arguments that may be left out."""

_SOMEBODYS = (
    *("create", "alter", "delete", "partitions", "reassign", "elect", "describe", "list"),
    *("namespace create", "namespace delete", "namespace move", "config", "allow", "deny"),
    *("produce", "expect records", "expect topics"),
)
"""The verbs for which a principal asks the cluster."""


def _read(verb: str, words: Sequence[str]) -> Sequence[object]:
    if verb == "create":
        if len(words) < 2:
            raise ValueError("create wants a topic, and partitions and replicas, or an assignment")
        if ":" in words[1]:
            return (words[0], 0, 0, parse_assignment(words[1:]))
        if len(words) != 3:
            raise ValueError("create wants a topic, partitions, and replicas of each")
        return (words[0], parse_number(words[1], 1), parse_number(words[2], 1), None)
    if verb == "alter":
        return parse_alter(words)
    if verb == "config":
        if len(words) < 2:
            raise ValueError("config wants a namespace or *, and configs such as retention.ms=60000")
        return (words[0], *parse_configs(words[1:]))
    wants, more = _VERBS.get(verb), _MORE.get(verb, ())
    if wants is None:
        raise ValueError(f"there is no {verb!r:.30}; there are create, alter, config, {', '.join(_VERBS)}")
    if not len(wants) <= len(words) <= len(wants) + len(more):
        most = f" to {len(wants) + len(more)}" if more else ""
        raise ValueError(f"{verb} wants {len(wants)}{most} words after it, and has {len(words)}")
    return tuple(read(word) for read, word in zip((*wants, *more), words, strict=False))
