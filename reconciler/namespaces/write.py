"""Read the configs and ACLs of a namespace in a live ZooKeeper, and write them, through kazoo.

A write is one transaction: checks that ``/controller_epoch``, the namespace's own node and the registrations of all
brokers are as they were read, and a write of one node at the version that was read. So a newly elected controller, a
deleted namespace, a broker that came back older and any other writer win, and nothing is written. A broker that
registers for the first time in that very moment is not noticed. The paths are those of the simulator (KIP37-4)::

    /config/topics/org/apache          configs        /config/brokers/<default>         the cluster's
    /kafka-acl/Namespace/org/apache    ACLs           /kafka-acl/Cluster/kafka-cluster  the cluster's
    /config/changes/config_change_0000000007          by which running brokers hear of new configs

A broker that knows namespaces says so in its registration, by the feature ``namespaces``. One that does not would go by
the cluster's defaults alone, and let in whom a namespace refuses. Source: KIP37-4, KIP37-5, KIP37-6; FACTS §8.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.errors import RefusedError
from reconciler.namespaces.held import CLUSTER, check_namespace_name, scopes_of
from reconciler.sources.zookeeper import (
    BROKERS,
    CLUSTER_ACLS,
    CLUSTER_CONFIG,
    CONFIG_CHANGES,
    CONFIGS,
    CONTROLLER_EPOCH,
    MIGRATION,
    NAMESPACE_ACLS,
    NAMESPACES_FEATURE,
    TOPICS,
    Acl,
    decode_acls,
    decode_config,
    decode_features,
    encode_acls,
    encode_config,
    encode_config_change,
    migrated_to,
    node_at,
    path_of,
)
from reconciler.text import listed


@dataclass(frozen=True, slots=True)
class NamespaceSeen:
    """A namespace as read from ZooKeeper.

    Attributes:
        namespace: its name.
        configs: scope → its own configs; the scopes are the namespace, the tiers above it, and the cluster (empty).
        acls: scope → its own ACLs.
        brokers: ID of each registered broker → whether its registration says that it knows namespaces.
        versions: path of each node that was looked for → its version; None: there is no such node.
    """

    namespace: str
    configs: Mapping[str, Mapping[str, str]]
    acls: Mapping[str, Collection[Acl]]
    brokers: Mapping[str, bool]
    versions: Mapping[str, int | None] = field(repr=False)


def read_namespace(client: Any, address: str, namespace: str) -> NamespaceSeen:
    """Read what belongs to a namespace and to the tiers above it; ``client`` is from ``reconciler.topic_ids.connect``.

    Raises:
        UsageError: the text names no namespace.
        RefusedError: the namespace was not created, or the cluster has migrated to KRaft.
    """
    from kazoo.exceptions import NoNodeError

    check_namespace_name(namespace)
    kraft = node_at(client, MIGRATION)
    if kraft is not None and migrated_to(kraft[0]) is not None:
        raise RefusedError(
            f"{address}: the KRaft controller {migrated_to(kraft[0])} has taken this cluster over, and what ZooKeeper "
            "says of its namespaces counts no more"
        )
    tier = f"{TOPICS}/{path_of(namespace)}"
    versions: dict[str, int | None] = {}

    def read(path: str) -> bytes | None:
        found = node_at(client, path)
        versions[path] = None if found is None else found[1].version
        return None if found is None else found[0]

    read(CONTROLLER_EPOCH)
    here = read(tier)
    if here is None or here:
        what = "is a topic" if here else "was not created"
        raise RefusedError(f"{address}: {namespace} {what}, for {tier} {'holds one' if here else 'is not there'}")
    scopes = scopes_of(namespace)
    configs = {scope: decode_config(read(_config_path(scope)) or b"") for scope in scopes}
    acls = {scope: decode_acls(read(_acl_path(scope)) or b"") for scope in scopes}
    try:
        registered = sorted(client.get_children(BROKERS))
    except NoNodeError:
        registered = []
    found = {node_id: read(f"{BROKERS}/{node_id}") for node_id in registered}
    brokers = {node_id: NAMESPACES_FEATURE in decode_features(data) for node_id, data in found.items() if data}
    return NamespaceSeen(namespace, configs, acls, brokers, versions)


def check_all_newer(seen: NamespaceSeen, address: str, override: str) -> None:
    """Make sure that brokers are registered, and that none of them is one that does not know namespaces.

    ``override``: the option that does without, for the message.

    Raises:
        RefusedError: some do not, and the message names them; or none is registered, so that nobody says it.
    """
    if not seen.brokers:
        raise RefusedError(
            f"{address}: no broker is registered, so nothing says whether all of them know namespaces: start them, and "
            f"run this again (override: {override})"
        )
    older = [node_id for node_id, knows in seen.brokers.items() if not knows]
    if older:
        who = f"{'broker' if len(older) == 1 else 'brokers'} {listed(older)} of {len(seen.brokers)}"
        raise RefusedError(
            f"{address}: {who} registered without the feature {NAMESPACES_FEATURE}, and would go by the configs and "
            f"ACLs of the cluster and of topics alone: upgrade all brokers first (override: {override})"
        )


def write_configs(client: Any, seen: NamespaceSeen, configs: Mapping[str, str]) -> str | None:
    """Write a namespace's own configs, with a notice to running brokers.

    Returns:
        None after the write, or else the reason against it, as a clause.
    """
    path = _config_path(seen.namespace)
    notice = encode_config_change(path.removeprefix("/config/"))
    return _write(client, seen, path, encode_config(configs), notice)


def write_acls(client: Any, seen: NamespaceSeen, acls: Collection[Acl]) -> str | None:
    """Write a namespace's own ACLs; None after the write, or else the reason against it, as a clause."""
    return _write(client, seen, _acl_path(seen.namespace), encode_acls(acls))


def _write(client: Any, seen: NamespaceSeen, path: str, data: bytes, notice: bytes | None = None) -> str | None:
    from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

    transaction = client.transaction()
    tier = f"{TOPICS}/{path_of(seen.namespace)}"
    for each in (CONTROLLER_EPOCH, tier, *(f"{BROKERS}/{node_id}" for node_id in seen.brokers)):
        version = seen.versions[each]
        if version is not None:
            transaction.check(each, version)
    known, change = seen.versions[path], f"{CONFIG_CHANGES}/config_change_"
    parents = [*(_missing_parents(client, path) if known is None else ())]
    parents += _missing_parents(client, change) if notice is not None else ()
    for parent in dict.fromkeys(parents):
        transaction.create(parent, b"")
    if known is not None:
        transaction.set_data(path, data, known)
    else:
        transaction.create(path, data)
    if notice is not None:
        transaction.create(change, notice, sequence=True)
    failed = [each for each in transaction.commit() if isinstance(each, Exception)]
    if not failed:
        return None
    if any(isinstance(each, (BadVersionError, NodeExistsError, NoNodeError)) for each in failed):
        return "the namespace, a broker or the controller has changed since it was read: run it again"
    named = ", ".join(sorted({type(each).__name__ for each in failed if isinstance(each, KazooException)}))
    return f"ZooKeeper refused to write it ({named})"


def _missing_parents(client: Any, path: str) -> list[str]:
    """List the nodes above a path that are not there, the outermost first."""
    missing: list[str] = []
    above = path.rpartition("/")[0]
    while above and node_at(client, above) is None:
        missing.append(above)
        above = above.rpartition("/")[0]
    return missing[::-1]


def _config_path(scope: str) -> str:
    return CLUSTER_CONFIG if scope == CLUSTER else f"{CONFIGS}/{path_of(scope)}"


def _acl_path(scope: str) -> str:
    return CLUSTER_ACLS if scope == CLUSTER else f"{NAMESPACE_ACLS}/{path_of(scope)}"
