"""Configs of topics, namespaces and the cluster: their nodes, their inheritance, and how brokers hear of a change.

A topic's own value takes precedence over its namespace's, a namespace's over that of the tier above it, and the
cluster's default comes last (KIP37-5). A running broker hears of a change by a node, as in Kafka 2.8::

    /config/changes/config_change_0000000007     {"version":2,"entity_path":"topics/org/apache"}

Kafka deletes such a node after a quarter of an hour; here it stays. Source: FACTS §8.
"""

from __future__ import annotations

from layout.topic import NAMESPACE_SEPARATOR, namespace_of
from logstore import DEFAULTS, ChangeRefusedError, Settings, parse_duration
from reconciler.simulator.zookeeper.kafka_nodes import read_namespaces, read_topics
from reconciler.simulator.zookeeper.kafka_paths import CLUSTER_CONFIG, CONFIG_CHANGES, config_path
from reconciler.simulator.zookeeper.nodes import Create
from reconciler.simulator.zookeeper.server import Session
from reconciler.sources.zookeeper import decode_config, encode_config_change


def configs_path(name: str) -> str:
    """The path of the configs of a topic or namespace; for the empty name, of the cluster."""
    return config_path(name) if name else CLUSTER_CONFIG


def config_change(name: str) -> Create:
    """The operation that tells brokers of a change to the configs of a topic, a namespace, or the cluster."""
    entity = configs_path(name).removeprefix("/config/")
    return Create(f"{CONFIG_CHANGES}/config_change_", encode_config_change(entity), sequence=True)


def own_configs(session: Session, name: str) -> dict[str, str]:
    """The configs of a topic or namespace itself; for the empty name, of the cluster."""
    node = session.find(configs_path(name))
    return decode_config(node.data) if node is not None else {}


def config_scopes(topic: str) -> list[str]:
    """The scopes whose configs a topic has, the nearest first, as :class:`logstore.Settings` calls them.

    The topic itself, each tier with ``:`` behind it, and ``""`` for the cluster.
    """
    scopes, namespace = [topic], namespace_of(topic)
    while namespace:
        scopes.append(namespace + NAMESPACE_SEPARATOR)
        namespace = namespace_of(namespace)
    return [*scopes, ""]


def effective_configs(session: Session, topic: str) -> dict[str, str]:
    """A topic's configs in force: its own, then its namespace's and those of the tiers above, then the cluster's."""
    found: dict[str, str] = {}
    for scope in reversed(config_scopes(topic)):
        found |= own_configs(session, scope.removesuffix(NAMESPACE_SEPARATOR))
    return dict(sorted(found.items()))


def read_configs(session: Session) -> dict[str, dict[str, str]]:
    """Read the configs of the cluster, of every namespace and of every topic, by scope; empty ones are left out."""
    namespaces = {namespace + NAMESPACE_SEPARATOR: namespace for namespace in read_namespaces(session)}
    names = {"": "", **namespaces, **{topic: topic for topic in read_topics(session)}}
    found = {scope: own_configs(session, name) for scope, name in names.items()}
    return {scope: values for scope, values in found.items() if values}


def engine_settings(configs: dict[str, dict[str, str]], static: Settings | None = None) -> Settings:
    """The engine's own settings out of configs by scope; a broker's store resolves them along the tiers by itself.

    ``static`` are the broker's own, from its properties, which the configs override scope by scope. A value that is no
    duration, which another tool wrote, counts as not given.
    """
    scopes = {scope: dict(values) for scope, values in (static or Settings()).by_scope.items()}
    for scope, values in configs.items():
        for name in DEFAULTS.keys() & values.keys():
            try:
                scopes.setdefault(scope, {})[name] = parse_duration(values[name])
            except ChangeRefusedError:
                continue
    return Settings({scope: values for scope, values in scopes.items() if values})
