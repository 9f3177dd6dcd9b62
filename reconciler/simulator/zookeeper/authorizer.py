"""Who may do what: an authorizer that reads the ACLs of namespaces, topics and the cluster (KIP37-6).

In a namespace, the innermost tier with ACLs decides; a Deny counts at every tier. If the namespace refuses, the topic's
own ACLs are not read; if it allows and the topic has none, the topic inherits. As in Kafka, a principal that may read,
write, delete or alter may describe, one that may alter configs may describe them, one that may create in the cluster
may create any topic that no namespace refuses, and if there are no ACLs at all, the authorizer's default counts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from layout.topic import NAMESPACE_SEPARATOR, namespace_of
from logstore import check_fields
from reconciler.errors import UsageError
from reconciler.simulator.zookeeper.kafka_paths import CLUSTER_ACLS, NAMESPACE_ACLS, TOPIC_ACLS, path_below
from reconciler.simulator.zookeeper.server import Session
from reconciler.sources.zookeeper import EVERYBODY, Acl, AclOperation, decode_acls

_IMPLYING = {
    AclOperation.DESCRIBE: frozenset({AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""Operation → those whose permission includes it."""


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """Settings of every broker's authorizer, by Kafka's names and with its defaults.

    Attributes:
        super_users: principals that may do everything (``super.users``).
        allow_everyone_if_no_acl_found: whether what no ACL is about is allowed (``allow.everyone.if.no.acl.found``).

    Raises:
        UsageError: one is of another type.
    """

    super_users: tuple[str, ...] = ()
    allow_everyone_if_no_acl_found: bool = False

    def __post_init__(self) -> None:
        check_fields(self, UsageError)


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

    @classmethod
    def of(cls, session: Session, settings: AuthorizerSettings) -> Authorizer:
        """Make the authorizer of a broker with these settings."""
        default = settings.allow_everyone_if_no_acl_found
        return cls(session, super_users=settings.super_users, allow_when_nothing_is_said=default)

    def allows(self, principal: str, operation: AclOperation, topic: str) -> bool:
        """Whether a principal may do something with a topic, by full name; without a session, only super users may.

        Kafka keeps the ACLs in memory and would go on by those.
        """
        if principal in self._super_users:
            return True
        if self._session.expired:
            return False
        by_namespace = self.in_namespace(principal, operation, namespace_of(topic))
        if by_namespace is False:
            return False
        own = self._said(path_below(TOPIC_ACLS, topic), principal, operation)
        answers = [answer for answer in (own, by_namespace) if answer is not None]
        if answers and answers[0]:
            return True
        if operation is AclOperation.CREATE and self._said(CLUSTER_ACLS, principal, operation):
            return not self._denies(path_below(TOPIC_ACLS, topic), principal, operation)
        return not answers and self._default

    def allows_in(self, principal: str, operation: AclOperation, namespace: str) -> bool:
        """Whether a principal may do something with a namespace, or, for the empty name, with the cluster.

        Where no ACL of the namespace or of a tier above it speaks of it, those of the cluster count.
        """
        answer = self.in_namespace(principal, operation, namespace)
        if answer is None:
            answer = self._said(CLUSTER_ACLS, principal, operation)
        return self._default if answer is None else answer

    def in_namespace(self, principal: str, operation: AclOperation, namespace: str) -> bool | None:
        """Whether a namespace allows an operation in it; None: neither it nor a tier above it has ACLs that say so."""
        if principal in self._super_users:
            return True
        if self._session.expired:
            return False
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
    implied = acl.allow and acl.operation in _IMPLYING.get(operation, ())
    return implied or acl.operation in (operation, AclOperation.ALL)
