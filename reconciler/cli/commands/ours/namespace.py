"""``logstore namespace``: creates, lists, moves and deletes namespaces, and moves and renames topics.

:mod:`logstore.namespaces` plans each change. ``list`` takes no lock.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from layout.scheme import INTENT_FILE
from layout.topic import namespace_of
from logstore import STALE_DELAY, Settings, parse_duration
from logstore.journal import find_namespace_dirs, namespace_at
from logstore.log_dir import ReadOnlyLogDir
from logstore.namespaces import (
    PlannedChange,
    plan_create,
    plan_delete,
    plan_move,
    plan_move_namespace,
    plan_rename,
)
from logstore.rows import Kind
from logstore.scan import scan_all
from logstore.store import LogStore
from reconciler.cli.frame import (
    CHANGE_SCHEMA_VERSION,
    Exit,
    Format,
    change_store,
    check_output,
    log_dirs_in,
    warn,
    write_change,
)
from reconciler.errors import RefusedError, UsageError


def create(*, namespace: str, paths: tuple[str, ...], **how: Any) -> Exit:
    """Create a namespace with all its tiers."""
    return change_store(paths, lambda store: plan_create(store, namespace), **how)


def delete(*, namespace: str, paths: tuple[str, ...], recursive: bool, delay: str | None, **how: Any) -> Exit:
    """Delete a namespace, empty or with all that is in it."""

    def plan(store: LogStore) -> PlannedChange:
        if delay is not None:
            store.settings = Settings({"": {STALE_DELAY: parse_duration(delay)}})
        return plan_delete(store, namespace, recursive=recursive)

    return change_store(paths, plan, **how)


def move(*, topic: str | None, paths: tuple[str, ...], namespace: str, from_namespace: str | None, **how: Any) -> Exit:
    """Move a topic, or a namespace, to another namespace."""
    if from_namespace is not None and paths:
        return change_store(paths, lambda store: plan_move_namespace(store, from_namespace, namespace), **how)
    if topic is None or not paths:
        raise UsageError("name the topic and then every log dir, or, with --from-namespace, the log dirs alone")
    return change_store(paths, lambda store: plan_move(store, topic, namespace), **how)


def rename(*, topic: str, new_topic: str, paths: tuple[str, ...], **how: Any) -> Exit:
    """Give a topic another name."""
    return change_store(paths, lambda store: plan_rename(store, topic, new_topic), **how)


def list_(*, paths: tuple[str, ...], below: str, form: str, output: str | None) -> Exit:
    """List the namespaces of log dirs, with how many topics and replicas are in each, those below it not counted."""
    log_dirs = log_dirs_in(paths)
    check_output(Format(form), output, log_dirs)
    with_directory, half_done = _namespaces_with_directory(log_dirs)
    topics, replicas = _topics(log_dirs)
    known = with_directory | {
        ":".join(name.split(":")[:length]) for name in topics for length in range(1, name.count(":") + 2)
    }
    if below and below not in known:
        raise UsageError(f"there is no namespace {below!r:.80} in these log dirs")
    names = sorted(name for name in known if name and name.startswith(f"{below}:" if below else ""))
    rows = [{"namespace": name, "topics": topics[name], "replicas": replicas[name]} for name in names]
    document = {"schema_version": CHANGE_SCHEMA_VERSION, "namespaces": rows}
    write_change(rows, ("namespace", "topics", "replicas"), Format(form), output, document)
    for path in half_done:
        warn(f"{path}: a change of many steps is under way there, or was cut short by a crash")
    return Exit.FINDINGS if half_done else Exit.CLEAN


def _namespaces_with_directory(log_dirs: tuple[str, ...]) -> tuple[set[str], list[str]]:
    """Find the namespaces with a directory in some log dir, and the log dirs with an unfinished change."""
    found, half_done = set[str](), list[str]()
    for path in log_dirs:
        with ReadOnlyLogDir.open(path) as log_dir:
            if not log_dir.is_ours:
                raise RefusedError(f"{log_dir.path} is a real broker's log dir, which has no namespaces")
            found |= {namespace_at(path) for path in find_namespace_dirs(log_dir)}
            if log_dir.root.holds(INTENT_FILE):
                half_done.append(log_dir.path)
    return found, half_done


def _topics(log_dirs: tuple[str, ...]) -> tuple[Counter[str], Counter[str]]:
    """Count the topics and the live replicas of each namespace; the default one has the empty name."""
    replicas: Counter[str] = Counter()
    for seen in scan_all(log_dirs, sizes=False):
        kinds, topics = (seen.rows.column(name).to_pylist() for name in ("kind", "topic"))
        replicas.update(
            topic for kind, topic in zip(kinds, topics, strict=True) if kind == Kind.LIVE and topic is not None
        )
    by_namespace: Counter[str] = Counter()
    for topic, number in replicas.items():
        by_namespace[namespace_of(topic)] += number
    return Counter(map(namespace_of, replicas)), by_namespace
