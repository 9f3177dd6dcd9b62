"""What holds for a namespace, with the tier that says so, and what a change makes of its own configs and ACLs. Pure.

A config of the namespace itself comes before that of the tier above it, and so on, and the cluster's default comes last
(KIP37-5). Of ACLs, the innermost tier that has any decides what is allowed, and a Deny counts at every tier (KIP37-6);
where no tier has any, those of the cluster count. A topic's own configs and ACLs are not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from layout.errors import InvalidNameError
from layout.topic import Namespace, namespace_of
from logstore import DEFAULTS, ChangeRefusedError, parse_duration
from reconciler.errors import UsageError
from reconciler.sources.zookeeper import Acl
from reconciler.text import listed

CLUSTER = ""
"""The scope above the outermost tier: the cluster's own configs and ACLs."""

_NUMBERS = frozenset({
    *("compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "delete.retention.ms"),
    *("flush.messages", "flush.ms", "index.interval.bytes", "local.retention.bytes", "local.retention.ms"),
    *("max.compaction.lag.ms", "max.message.bytes", "message.timestamp.after.max.ms", "min.compaction.lag.ms"),
    *("message.timestamp.before.max.ms", "message.timestamp.difference.max.ms", "min.insync.replicas"),
    "retention.bytes",
    *("retention.ms", "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms"),
})  # fmt: skip
_TRUE_OR_FALSE = frozenset({
    *("message.downconversion.enable", "preallocate", "remote.storage.enable", "unclean.leader.election.enable"),
})  # fmt: skip
_TEXTS = frozenset({
    *("cleanup.policy", "compression.type", "message.format.version", "message.timestamp.type"),
    *("min.cleanable.dirty.ratio", "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"),
})  # fmt: skip
_KNOWN = _NUMBERS | _TRUE_OR_FALSE | _TEXTS | set(DEFAULTS)
"""The configs that a topic of Kafka 3.9 can have, and the engine's own settings."""


@dataclass(frozen=True, slots=True)
class HeldConfig:
    """One config in force: its value, and the namespace that gives it, empty for the cluster."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class HeldAcl:
    """One ACL at a namespace or above it; ``counts``: False where a tier further in has ACLs, which decide instead."""

    acl: Acl
    source: str
    counts: bool


def check_namespace_name(namespace: str) -> None:
    """Check that a text names a namespace other than the default one.

    Raises:
        UsageError: it does not.
    """
    try:
        if Namespace.parse(namespace).tiers:
            return
    except InvalidNameError as error:
        raise UsageError(str(error)) from error
    raise UsageError("the default namespace has no configs or ACLs of its own: name a namespace, such as org:apache")


def scopes_of(namespace: str) -> list[str]:
    """List a namespace, the tiers above it, and the cluster: the nearest first."""
    found = []
    while namespace:
        found.append(namespace)
        namespace = namespace_of(namespace)
    return [*found, CLUSTER]


def held_configs(namespace: str, by_scope: Mapping[str, Mapping[str, str]]) -> list[HeldConfig]:
    """List what holds for a namespace, by name; ``by_scope``: the own configs of each of its scopes."""
    found: dict[str, HeldConfig] = {}
    for scope in reversed(scopes_of(namespace)):
        found |= {name: HeldConfig(name, value, scope) for name, value in by_scope.get(scope, {}).items()}
    return [found[name] for name in sorted(found)]


def held_acls(namespace: str, by_scope: Mapping[str, Collection[Acl]]) -> list[HeldAcl]:
    """List the ACLs of a namespace and above it, the nearest first; ``by_scope``: the own ACLs of each scope."""
    found: list[HeldAcl] = []
    decided = False
    for scope in scopes_of(namespace):
        own = sorted(by_scope.get(scope, ()))
        found += [HeldAcl(acl, scope, not decided or (not acl.allow and scope != CLUSTER)) for acl in own]
        decided = decided or bool(own)
    return found


def changed_configs(own: Mapping[str, str], wanted: Mapping[str, str], removed: Collection[str]) -> dict[str, str]:
    """Give a namespace's own configs after some were set and others removed.

    Raises:
        UsageError: there is no such config, a value cannot be one, one to be removed is not there, or one is both set
            and removed; with every reason.
    """
    reasons = [reason for name, value in wanted.items() if (reason := _problem(name, value))]
    reasons += [f"{name} is to be set and removed" for name in wanted if name in removed]
    reasons += [f"{name} is not set for the namespace itself" for name in removed if name not in own]
    if reasons:
        raise UsageError("; ".join(reasons))
    return dict(sorted(({name: value for name, value in own.items() if name not in removed} | dict(wanted)).items()))


def changed_acls(own: Collection[Acl], added: Sequence[Acl], removed: Sequence[Acl]) -> list[Acl]:
    """Give a namespace's own ACLs after some were added and others removed.

    Raises:
        UsageError: a principal cannot be one, one to be removed is not there, or one is both added and removed; with
            every reason.
    """
    reasons = [f"{acl.principal!r:.60} is no principal such as User:ann" for acl in added if not _names(acl.principal)]
    reasons += [f"{acl} is to be added and removed" for acl in added if acl in removed]
    reasons += [f"the namespace itself has no {acl}" for acl in removed if acl not in own]
    if reasons:
        raise UsageError("; ".join(reasons))
    return sorted({*own, *added} - set(removed))


def _problem(name: str, value: str) -> str:
    """Say why a config cannot be set to a value; empty: it can."""
    if name not in _KNOWN:
        near = get_close_matches(name, _KNOWN)
        return f"there is no config {name!r:.60}{f': {listed(near)} is there' if near else ''}"
    if name in DEFAULTS:
        try:
            parse_duration(value)
        except ChangeRefusedError as error:
            return f"{name}: {error}"
    if name in _NUMBERS and not (value.removeprefix("-").isdecimal() and value.isascii() and len(value) < 20):
        return f"{name} is a number, not {value!r:.60}"
    if name in _TRUE_OR_FALSE and value not in ("true", "false"):
        return f"{name} is true or false, not {value!r:.60}"
    return "" if value else f"{name} is to be set to nothing: remove it instead"


def _names(principal: str) -> bool:
    kind, _, name = principal.partition(":")
    return bool(kind and name) and principal.isprintable()
