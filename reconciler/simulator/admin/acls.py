"""Who may do what: ACLs of topics and namespaces, and an authorizer that reads both (KIP37-6).

In a namespace, the innermost tier with ACLs decides; a Deny counts at every tier. If the namespace refuses, the topic's
own ACLs are not read; if it allows and the topic has none, the topic inherits. As in Kafka, a principal that may read,
write, delete or alter may describe, one that may alter configs may describe these, and if there are no ACLs at all, the
authorizer's default counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from layout.topic import NAMESPACE_SEPARATOR, namespace_of
from reconciler.simulator.zookeeper import NAMESPACE_ACLS, TOPIC_ACLS, Session, path_below

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
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"


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


_IMPLIED_BY: Mapping[AclOperation, frozenset[AclOperation]] = {
    AclOperation.DESCRIBE: frozenset({AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One entry: a principal, an operation, and whether it is allowed or denied."""

    principal: str
    """``User:alice``, or ``User:*`` for everybody."""
    operation: AclOperation
    allow: bool = True


def decode_acls(data: bytes) -> tuple[Acl, ...]:
    """Decode ACLs as Kafka writes them, sorted; an entry that cannot be parsed denies everything to everybody."""
    try:
        found = orjson.loads(data) if data else {}
    except orjson.JSONDecodeError:
        found = {"acls": [None]}
    entries = found.get("acls", []) if isinstance(found, dict) else [None]
    return tuple(sorted({_acl(entry) for entry in (entries if isinstance(entries, list) else [None])}))


class Authorizer:
    """Decides whether a principal may do something, by the ACLs that ZooKeeper has now."""

    def __init__(
        self, session: Session, *, super_users: Collection[str] = (), allow_when_nothing_is_said: bool = True
    ) -> None:
        """Read through a broker's session.

        ``allow_when_nothing_is_said`` is Kafka's ``allow.everyone.if.no.acl.found``, which is false there.
        """
        self._session = session
        self._super_users = frozenset(super_users)
        self._default = allow_when_nothing_is_said

    def allows(self, principal: str, operation: AclOperation, topic: str) -> bool:
        """Whether a principal may do something with a topic, by full name."""
        if principal in self._super_users:
            return True
        by_namespace = self.in_namespace(principal, operation, namespace_of(topic))
        if by_namespace is False:
            return False
        own = self._said(path_below(TOPIC_ACLS, topic), principal, operation)
        answers = [answer for answer in (own, by_namespace) if answer is not None]
        return answers[0] if answers else self._default

    def in_namespace(self, principal: str, operation: AclOperation, namespace: str) -> bool | None:
        """Whether a namespace allows an operation in it; None: neither it nor a tier above it has ACLs that say so."""
        if principal in self._super_users:
            return True
        answer: bool | None = None
        while namespace:
            path = path_below(NAMESPACE_ACLS, namespace)
            if self._denies(path, principal, operation):
                return False
            if answer is None:
                answer = self._said(path, principal, operation)
            namespace = namespace.rpartition(NAMESPACE_SEPARATOR)[0]
        return answer

    def _acls(self, path: str) -> tuple[Acl, ...]:
        node = self._session.find(path)
        return decode_acls(node.data) if node is not None else ()

    def _said(self, path: str, principal: str, operation: AclOperation) -> bool | None:
        acls = self._acls(path)
        if not acls:
            return None
        return not self._denies(path, principal, operation) and any(
            acl.allow and _meets(acl, principal, operation) for acl in acls
        )

    def _denies(self, path: str, principal: str, operation: AclOperation) -> bool:
        return any(not acl.allow and _meets(acl, principal, operation) for acl in self._acls(path))


def _meets(acl: Acl, principal: str, operation: AclOperation) -> bool:
    if acl.principal not in (principal, EVERYBODY):
        return False
    implied = acl.allow and acl.operation in _IMPLIED_BY.get(operation, ())
    return implied or acl.operation in (operation, AclOperation.ALL)


def _acl(entry: Any) -> Acl:
    match entry:
        case {"principal": str(principal), "permissionType": "Allow" | "Deny" as kind, "operation": str(operation)} if (
            operation in [each.value for each in AclOperation]
        ):
            return Acl(principal, AclOperation(operation), kind == "Allow")
    return Acl(EVERYBODY, AclOperation.ALL, allow=False)
