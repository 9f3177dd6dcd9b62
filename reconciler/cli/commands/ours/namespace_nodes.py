"""``logstore namespace configs`` and ``acls``: what holds for a namespace in ZooKeeper, and changes of it.

:mod:`reconciler.namespaces` decides what holds, and writes. Nothing is written unless a change is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from reconciler.cli.frame import (
    CHANGE_SCHEMA_VERSION,
    Exit,
    Format,
    check_output,
    may_be_unread,
    say,
    warn,
    write_change,
)
from reconciler.errors import UsageError
from reconciler.namespaces import (
    NamespaceSeen,
    changed_acls,
    changed_configs,
    check_all_newer,
    check_namespace_name,
    held_acls,
    held_configs,
    read_namespace,
    write_acls,
    write_configs,
)
from reconciler.sources.zookeeper import Acl, AclOperation
from reconciler.text import count
from reconciler.topic_ids import connect

OVERRIDE = "--older-brokers"
"""The option that writes though a broker does not know namespaces."""

_COLUMNS = {
    "configs": ("config", "value", "from"),
    "acls": ("principal", "permission", "operation", "from", "counts"),
}

_Pairs = Sequence[tuple[str, str]]


def configs(
    *, address: str, namespace: str, form: str, output: str | None, wanted: tuple[str, ...], removed: tuple[str, ...],
    dry_run: bool, older_brokers: bool,
) -> Exit:  # fmt: skip
    """Show the configs that hold for a namespace, after some were set or removed if that is asked for."""
    check_output(Format(form), output, [])
    check_namespace_name(namespace)
    pairs = dict(_pair(each) for each in wanted)
    with connect(address.removeprefix("zk:")) as client:
        seen = read_namespace(client, address, namespace)
        by_scope = dict(seen.configs)
        change = None
        if pairs or removed:
            new = by_scope[namespace] = changed_configs(seen.configs[namespace], pairs, removed)
            change = _change(
                seen, address, older_brokers, None if dry_run else lambda: write_configs(client, seen, new)
            )
    held = held_configs(namespace, seen.configs if change is Exit.PARTLY_FAILED else by_scope)
    rows = [{"config": each.name, "value": each.value, "from": _source(each.source)} for each in held]
    return _show(seen, "configs", rows, change, form=form, output=output, dry_run=dry_run)


def acls(
    *, address: str, namespace: str, form: str, output: str | None, allow: _Pairs, deny: _Pairs, remove_allow: _Pairs,
    remove_deny: _Pairs, dry_run: bool, older_brokers: bool,
) -> Exit:  # fmt: skip
    """Show the ACLs of a namespace and above it, after some were added or removed if that is asked for."""
    check_output(Format(form), output, [])
    check_namespace_name(namespace)
    added = [*_acls(allow, allowed=True), *_acls(deny, allowed=False)]
    removed = [*_acls(remove_allow, allowed=True), *_acls(remove_deny, allowed=False)]
    with connect(address.removeprefix("zk:")) as client:
        seen = read_namespace(client, address, namespace)
        by_scope = dict(seen.acls)
        change = None
        if added or removed:
            new = by_scope[namespace] = changed_acls(seen.acls[namespace], added, removed)
            write = None if dry_run else lambda: write_acls(client, seen, new)
            change = _change(seen, address, older_brokers, write)
    held = held_acls(namespace, seen.acls if change is Exit.PARTLY_FAILED else by_scope)
    rows = [
        {
            "principal": each.acl.principal,
            "permission": "Allow" if each.acl.allow else "Deny",
            "operation": str(each.acl.operation),
            "from": _source(each.source),
            "counts": "yes" if each.counts else "no",
        }
        for each in held
    ]
    return _show(seen, "acls", rows, change, form=form, output=output, dry_run=dry_run)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(
            f"{text!r:.80} is no config with its value: NAME=VALUE is expected, as in retention.ms=86400000"
        )
    return name.strip(), value.strip()


def _acls(pairs: _Pairs, *, allowed: bool) -> list[Acl]:
    return [Acl(principal, AclOperation(operation), allowed) for principal, operation in pairs]


def _change(seen: NamespaceSeen, address: str, older_brokers: bool, write: Callable[[], str | None] | None) -> Exit:
    """Write, unless a broker is older; None: it is a dry run."""
    if not older_brokers:
        check_all_newer(seen, address, OVERRIDE)
    problem = None if write is None else write()
    if problem is not None:
        warn(f"{seen.namespace}: nothing was written: {problem}")
        return Exit.PARTLY_FAILED
    return Exit.CLEAN


def _source(scope: str) -> str:
    return scope or "(cluster)"


def _show(
    seen: NamespaceSeen, what: str, rows: list[dict[str, Any]], change: Exit | None, *, form: str, output: str | None,
    dry_run: bool,
) -> Exit:  # fmt: skip
    """Write what holds, say what was done, and give the exit code."""
    head = {"schema_version": CHANGE_SCHEMA_VERSION, "namespace": seen.namespace, "dry_run": dry_run}
    with nullcontext() if change is None or dry_run else may_be_unread():
        write_change(rows, _COLUMNS[what], Format(form), output, {**head, what: rows})
    if change is None:
        say(f"{seen.namespace}: {count(len(rows), what.removesuffix('s'))}, its own and inherited ones")
        return Exit.CLEAN
    if change is Exit.CLEAN:
        known = sum(seen.brokers.values())
        brokers = f"{known} of {count(len(seen.brokers), 'registered broker')} know namespaces"
        say(f"{seen.namespace}: {'this would hold; nothing was written' if dry_run else 'written'}; {brokers}")
    return change
