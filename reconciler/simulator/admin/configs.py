"""Configs of topics and namespaces: their checks, and the commands that change them (KIP37-5).

A change and its notification, by which running brokers hear of it, are one transaction. How values are inherited:
``zookeeper.kafka_configs``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from logstore import DEFAULTS, ChangeRefusedError, KafkaError, parse_duration
from reconciler.simulator.admin.commands import CommandRefusedError
from reconciler.simulator.admin.controller_node import ControllerNode, check_all_newer
from reconciler.simulator.zookeeper import (
    Create,
    Operation,
    Set,
    config_change,
    config_path,
    configs_path,
    topic_path,
)
from reconciler.sources.zookeeper import decode_config, encode_config

_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)


def _at_least(least: int) -> Callable[[str], bool]:
    return lambda value: _INTEGER.fullmatch(value) is not None and int(value) >= least


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value in values


def _policies(value: str) -> bool:
    return bool(value) and all(each.strip() in ("compact", "delete") for each in value.split(","))


def _duration(value: str) -> bool:
    try:
        parse_duration(value)
    except ChangeRefusedError:
        return False
    return True


_ALLOWED: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "cleanup.policy": (_policies, "compact, delete, or both"),
    "compression.type": (
        _one_of("uncompressed", "producer", "gzip", "snappy", "lz4", "zstd"),
        "a compression that Kafka has",
    ),
    "max.message.bytes": (_at_least(0), "a number of bytes"),
    "min.insync.replicas": (_at_least(1), "1 or more"),
    "retention.bytes": (_at_least(-1), "a number of bytes, or -1"),
    "retention.ms": (_at_least(-1), "a number of ms, or -1"),
    "segment.bytes": (_at_least(14), "14 or more"),
    "segment.ms": (_at_least(1), "1 or more"),
    "unclean.leader.election.enable": (_one_of("true", "false"), "true or false"),
    **dict.fromkeys(DEFAULTS, (_duration, "a duration such as 4h, or a number of ms")),
}


def check_configs(configs: Mapping[str, str], deleted: Iterable[str] = ()) -> None:
    """Check that configs exist and can have their values.

    Raises:
        CommandRefusedError: 40, with every reason.
    """
    reasons = [f"{name!r:.60} is not among them" for name in (*configs, *deleted) if name not in _ALLOWED]
    for name, value in configs.items():
        check, meaning = _ALLOWED.get(name, (None, ""))
        if check is not None and not check(value):
            reasons.append(f"{name} is {meaning}, not {value!r:.60}")
    if reasons:
        known = ", ".join(sorted(_ALLOWED))
        raise CommandRefusedError(KafkaError.INVALID_CONFIG, f"configs are {known}; {'; '.join(reasons)}")


def changed_configs(
    node: ControllerNode, name: str, configs: Mapping[str, str], deleted: Sequence[str] = ()
) -> list[Operation]:
    """Operations that set configs of a topic or namespace and delete others.

    Raises:
        CommandRefusedError: 40, there are no such configs or values, or one is both set and deleted.
    """
    check_configs(configs, deleted)
    both = sorted(set(configs) & set(deleted))
    if both:
        raise CommandRefusedError(KafkaError.INVALID_CONFIG, f"{', '.join(both)} cannot be set and deleted at once")
    path = configs_path(name)
    before = node.session.find(path)
    if before is None:
        return [*node.with_parents(Create(path, encode_config(configs))), config_change(name)]
    wanted = {key: value for key, value in decode_config(before.data).items() if key not in deleted} | dict(configs)
    return [Set(path, encode_config(wanted), before.version), config_change(name)]


def first_configs(node: ControllerNode, topic: str, configs: Mapping[str, str]) -> list[Operation]:
    """Operations that give a new topic its configs, in place of those that an older topic of its name left."""
    path = config_path(topic)
    if node.session.find(path) is None:
        return node.with_parents(Create(path, encode_config(configs)))
    return [Set(path, encode_config(configs))]


def alter_namespace_configs(
    node: ControllerNode, namespace: str, configs: Mapping[str, str], deleted: Sequence[str] = ()
) -> None:
    """Set configs that the topics in a namespace inherit; the empty namespace: that all topics inherit.

    Raises:
        CommandRefusedError: 17, it does not exist; 35, a broker does not know namespaces; 40, there are no such configs
            or values.
    """
    tier = node.session.find(topic_path(namespace)) if namespace else None
    if namespace and (tier is None or tier.data):
        raise CommandRefusedError(
            KafkaError.INVALID_TOPIC_EXCEPTION, f"there is no namespace {namespace}; create it first"
        )
    if namespace:
        check_all_newer(node)
    node.commit(changed_configs(node, namespace, configs, deleted))
