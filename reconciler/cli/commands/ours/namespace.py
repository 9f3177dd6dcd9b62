"""``logstore namespace``: creates, lists and deletes namespaces, moves a topic between them, and renames a topic.

:mod:`logstore.namespaces` plans each change. ``list`` takes no lock.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.frame import (
    CHANGE_SCHEMA_VERSION,
    TEXT_FORMATS,
    Exit,
    Format,
    SuggestingGroup,
    change_options,
    change_store,
    check_output,
    output_options,
    say,
    write_change,
)
from reconciler.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from logstore.namespaces import PlannedChange
    from logstore.store import LogStore

_EPILOG = """\b
Examples:
  logstore namespace create org:apache /disks/*/logstore
  logstore namespace list /disks/*/logstore --below org
  logstore namespace move orders /disks/*/logstore --to org:apache
  logstore namespace rename org:apache:orders org:apache:purchases /disks/*/logstore
  logstore namespace delete org /disks/*/logstore --recursive --dry-run

\b
Give every log dir of the broker. A change is done in all of them or in none; if a crash cuts it short, whatever opens
them next carries it out to its end. Exit code 3: refused, and nothing was changed.
"""


def _example(arguments: str) -> str:
    return f"\b\nExample:\n  logstore namespace {arguments}"


@click.group(
    "namespace",
    cls=SuggestingGroup,
    epilog=_EPILOG,
    short_help="Create, list and delete namespaces; move and rename topics.",
)
def command() -> None:
    """Namespaces of log dirs: directories for the tiers of org:apache, with the topics in them."""


@command.command(
    "create",
    epilog=_example("create org:apache /disks/*/logstore --dry-run"),
    short_help="Create a namespace with all its tiers.",
)
@click.argument("namespace")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@change_options
def create(*, namespace: str, paths: tuple[str, ...], **how: Any) -> Exit:
    """Create a namespace with all its tiers: org:apache makes org and org:apache."""

    def plan(store: LogStore) -> PlannedChange:
        from logstore.namespaces import plan_create

        return plan_create(store, namespace)

    return change_store(paths, plan, **how)


@command.command(
    "delete",
    epilog=_example("delete org /disks/*/logstore --recursive --dry-run"),
    short_help="Delete a namespace, empty or with all that is in it.",
)
@click.argument("namespace")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@click.option("--recursive", is_flag=True, help="With all namespaces below it; the topics in them are staged.")
@click.option(
    "--delay", metavar="TIME", help="How long what is staged is kept: 4h, 7d, or ms. [default: 4h]", default=None
)
@change_options
def delete(*, namespace: str, paths: tuple[str, ...], recursive: bool, delay: str | None, **how: Any) -> Exit:
    """Delete a namespace that is empty, or with --recursive whatever is in it.

    Topics are staged, not deleted: 'logstore staged' lists them, and until their time is over 'logstore restore' brings
    them back, once the namespace was created again.
    """

    def plan(store: LogStore) -> PlannedChange:
        from logstore import STALE_DELAY, Settings, parse_duration
        from logstore.namespaces import plan_delete

        if delay is not None:
            store.settings = Settings({"": {STALE_DELAY: parse_duration(delay)}})
        return plan_delete(store, namespace, recursive=recursive)

    return change_store(paths, plan, **how)


@command.command(
    "move",
    epilog=_example("move orders /disks/*/logstore --to org:apache"),
    short_help="Move a topic to another namespace.",
)
@click.argument("topic")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@click.option("--to", "namespace", required=True, metavar="NAMESPACE", help="Where it goes; '' is the default one.")
@change_options
def move(*, topic: str, paths: tuple[str, ...], namespace: str, **how: Any) -> Exit:
    """Move a topic, by its full name, to another namespace."""

    def plan(store: LogStore) -> PlannedChange:
        from logstore.namespaces import plan_move

        return plan_move(store, topic, namespace)

    return change_store(paths, plan, **how)


@command.command(
    "rename",
    epilog=_example("rename org:apache:orders org:apache:purchases /disks/*/logstore"),
    short_help="Give a topic another name.",
)
@click.argument("topic")
@click.argument("new_topic")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@change_options
def rename(*, topic: str, new_topic: str, paths: tuple[str, ...], **how: Any) -> Exit:
    """Give a topic another name; both are full names."""

    def plan(store: LogStore) -> PlannedChange:
        from logstore.namespaces import plan_rename

        return plan_rename(store, topic, new_topic)

    return change_store(paths, plan, **how)


@command.command(
    "list", epilog=_example("list /disks/*/logstore --below org"), short_help="List namespaces, with what is in them."
)
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@click.option("--below", metavar="NAMESPACE", default="", help="Only those below this one.")
@output_options(*TEXT_FORMATS)
def list_(*, paths: tuple[str, ...], below: str, form: str, output: str | None) -> Exit:
    """List the namespaces of log dirs, with how many topics and replicas are in each, those below it not counted.

    Takes no lock. Exit code 1: a change is under way in a log dir, or was cut short, so the list may be half of it.
    """
    from reconciler.cli.frame import log_dirs_in

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
        say(f"{path}: a change of many steps is under way there, or was cut short by a crash")
    return Exit.FINDINGS if half_done else Exit.CLEAN


def _namespaces_with_directory(log_dirs: tuple[str, ...]) -> tuple[set[str], list[str]]:
    """Find the namespaces with a directory in some log dir, and the log dirs with an unfinished change."""
    from layout.scheme import INTENT_FILE
    from logstore.journal import find_namespace_dirs, namespace_at
    from logstore.log_dir import ReadOnlyLogDir

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
    from layout.topic import namespace_of
    from logstore.rows import Kind
    from logstore.scan import scan_all

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
