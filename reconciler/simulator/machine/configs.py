"""The configs that a running broker goes by: ZooKeeper's, by scope, with the broker's own properties below them.

They are read when the broker registers, and again at each notification (``zookeeper.kafka_configs``), so that a change
to a topic, a namespace or the cluster is in force at once (KIP37-5). As in Kafka, a topic's own are also read when its
first replica comes. A topic or a namespace that is deleted takes its configs out of ZooKeeper before its replicas are
staged; a broker keeps them until it has no replica left that they are of. What is staged keeps its due time.
"""

from __future__ import annotations

import re

from layout.topic import NAMESPACE_SEPARATOR
from logstore.store import LogStore
from reconciler.simulator.machine.host import Host
from reconciler.simulator.zookeeper import (
    CONFIG_CHANGES,
    Session,
    config_scopes,
    engine_settings,
    own_configs,
    read_configs,
    topic_path,
)

_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_FOR_EVER = -1
"""A ``retention.ms`` of this deletes nothing."""


class BrokerConfigs:
    """One broker's configs, from its start to its end."""

    def __init__(self, host: Host, store: LogStore) -> None:
        """Begin with the broker's own properties; the store's settings follow every change."""
        self._host, self._store = host, store
        self._known: dict[str, dict[str, str]] = {}
        self._session: Session | None = None

    def follow(self, session: Session) -> None:
        """Read everything in a new session, and at every change from now on."""
        self._session = session
        session.watch(CONFIG_CHANGES, lambda path: self._host.guarded("configs", self._changed))
        self._read(session)

    def learn(self, topic: str) -> None:
        """Read the configs of a topic of which the first replica comes."""
        session = self._session
        if session is not None and not session.expired and session.find(topic_path(topic)) is not None:
            self._known[topic] = own_configs(session, topic)
            self._apply()

    def min_insync_replicas(self, topic: str) -> int:
        """How many replicas must be in sync for a record to be accepted."""
        return self._number(topic, "min.insync.replicas", 1, self._host.settings.min_insync_replicas)

    def retention_ms(self, topic: str) -> int | None:
        """The age at which a record is deleted; None: records stay, for ever or for compaction."""
        policies = [each.strip() for each in (self._value(topic, "cleanup.policy") or "delete").split(",")]
        found = self._number(topic, "retention.ms", _FOR_EVER, self._host.settings.retention_ms)
        return found if "delete" in policies and found != _FOR_EVER else None

    def _changed(self) -> None:
        session = self._session
        if session is not None and not session.expired:
            self._read(session)

    def _read(self, session: Session) -> None:
        kept = {
            scope: values
            for scope, values in self._known.items()
            if session.find(topic_path(scope.removesuffix(NAMESPACE_SEPARATOR))) is None and self._is_used(scope)
        }
        self._known = {**kept, **read_configs(session)}
        self._apply()

    def _is_used(self, scope: str) -> bool:
        """Whether a replica here has this scope; the cluster's is always there."""
        return any(scope in config_scopes(topic) for topic, _ in self._store.entries()) if scope else False

    def _apply(self) -> None:
        self._store.settings = engine_settings(self._known, self._host.settings.delays)

    def _value(self, topic: str, name: str) -> str | None:
        """The nearest value; None: it is given nowhere."""
        values = (self._known.get(scope, {}).get(name) for scope in config_scopes(topic))
        return next((value for value in values if value is not None), None)

    def _number(self, topic: str, name: str, least: int, otherwise: int) -> int:
        """A number in force; one that another tool wrote and that cannot be read counts as not given."""
        value = self._value(topic, name)
        number = int(value) if value is not None and _INTEGER.fullmatch(value) else None
        return otherwise if number is None or number < least else number
