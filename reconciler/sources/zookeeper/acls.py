"""Encode and decode ACLs as Kafka keeps them in ZooKeeper, one node for each topic, namespace, or the cluster itself.

::

    {"version": 1, "acls": [{"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}]}

An entry counts for every host, whatever host it names. Source: FACTS §8; KIP37-4, KIP37-6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

TOPIC_ACLS, NAMESPACE_ACLS = "/kafka-acl/Topic", "/kafka-acl/Namespace"
CLUSTER_ACLS = "/kafka-acl/Cluster/kafka-cluster"

EVERYBODY = "User:*"


class AclOperation(StrEnum):
    """Kafka's names of operations."""

    ALL = "All"
    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    CLUSTER_ACTION = "ClusterAction"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"
    IDEMPOTENT_WRITE = "IdempotentWrite"


TOPIC_OPERATIONS: Mapping[AclOperation, int] = {
    AclOperation.READ: 3,
    AclOperation.WRITE: 4,
    AclOperation.CREATE: 5,
    AclOperation.DELETE: 6,
    AclOperation.ALTER: 7,
    AclOperation.DESCRIBE: 8,
    AclOperation.DESCRIBE_CONFIGS: 10,
    AclOperation.ALTER_CONFIGS: 11,
}
"""The operations that a topic has, with Kafka's numbers for them."""


def operation_bits(operations: Iterable[AclOperation]) -> int:
    """Give Kafka's bit field of operations of a topic: bit 3 for Read, and so on."""
    return sum(1 << TOPIC_OPERATIONS[each] for each in set(operations))


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One entry: a principal, an operation, and whether it is allowed or denied."""

    principal: str
    """``User:alice``, or ``User:*`` for everybody."""
    operation: AclOperation
    allow: bool = True

    def __str__(self) -> str:
        return f"{self.principal} {'Allow' if self.allow else 'Deny'} {self.operation}"


def encode_acls(acls: Iterable[Acl]) -> bytes:
    """Encode ACLs as Kafka writes them, sorted, for every host."""
    entries = [
        {
            "principal": acl.principal,
            "permissionType": "Allow" if acl.allow else "Deny",
            "operation": acl.operation.value,
            "host": "*",
        }
        for acl in sorted(set(acls))
    ]
    return orjson.dumps({"version": 1, "acls": entries})


def decode_acls(data: bytes) -> tuple[Acl, ...]:
    """Decode ACLs as Kafka writes them, sorted; an entry that cannot be parsed denies everything to everybody."""
    try:
        found = orjson.loads(data) if data else {}
    except orjson.JSONDecodeError:
        found = {"acls": [None]}
    entries = found.get("acls", []) if isinstance(found, dict) else [None]
    return tuple(sorted({_acl(entry) for entry in (entries if isinstance(entries, list) else [None])}))


def _acl(entry: Any) -> Acl:
    match entry:
        case {"principal": str(principal), "permissionType": "Allow" | "Deny" as kind, "operation": str(operation)} if (
            operation in [each.value for each in AclOperation]
        ):
            return Acl(principal, AclOperation(operation), kind == "Allow")
    return Acl(EVERYBODY, AclOperation.ALL, allow=False)
