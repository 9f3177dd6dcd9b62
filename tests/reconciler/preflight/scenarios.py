"""For each rule a disk that triggers it: the contents, the broker in question, and the effect."""

from __future__ import annotations

import dataclasses
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from layout import meta_properties
from logstore.scan import Denied
from reconciler.desired import DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.preflight import Preflight, SeenBroker, StartEffect, look_at_broker
from tests.reconciler.preflight.disks import (
    CLUSTER,
    HEX,
    METADATA_LOG,
    ORDERS,
    OTHER,
    ask,
    directory_id,
    identity,
    kraft_log_dir,
    log_dir,
    metadata_log,
    replica,
    wanted,
)

Scenario = Callable[[Path], Preflight]


def zookeeper(path: Path, *names: str) -> Path:
    return log_dir(path, names, identity(0))


def with_file(folder: Path, name: str, data: bytes = b"") -> Path:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    return folder


def with_link(folder: Path, name: str, target: str) -> Path:
    (folder / name).symlink_to(target)
    return folder


def unreadable(folder: Path) -> SeenBroker:
    """A log dir whose first partition dir cannot be read, which root cannot arrange on a disk."""
    seen = look_at_broker([str(folder)])
    (only,) = seen.log_dirs
    directories = [
        dataclasses.replace(each, obstacle="the directory cannot be read: Permission denied")
        if each.name == "orders-0"
        else each
        for each in only.directories
    ]
    return SeenBroker.of([dataclasses.replace(only, directories=directories)])


def closed(folder: Path) -> SeenBroker:
    """A log dir whose first partition dir only this user may not read."""
    (only,) = unreadable(folder).log_dirs
    return SeenBroker.of([dataclasses.replace(only, closed=frozenset({"orders-0"}))])


def full(folder: Path, free: int = 0) -> SeenBroker:
    """A log dir on a disk with few bytes free, or none."""
    seen = look_at_broker([str(folder)])
    return SeenBroker.of([dataclasses.replace(each, free_bytes=free) for each in seen.log_dirs])


def of_another_owner(folder: Path, denied: Denied = Denied.READ, name: str = "orders-0") -> SeenBroker:
    """One directory of a log dir that the owner of the log dir may not use."""
    (only,) = look_at_broker([str(kraft_log_dir(folder, ["orders-0"]))]).log_dirs
    directories = [dataclasses.replace(each, denied=denied) if each.name == name else each for each in only.directories]
    return SeenBroker.of([dataclasses.replace(only, directories=directories)])


def mounted_read_only(folder: Path) -> SeenBroker:
    seen = look_at_broker([str(kraft_log_dir(folder / "1")), str(second_log_dir(folder / "2"))])
    first, second = seen.log_dirs
    return SeenBroker.of([first, dataclasses.replace(second, read_only=True)])


def may_not_read(folder: Path) -> SeenBroker:
    seen = look_at_broker([str(folder)])
    (only,) = seen.log_dirs
    directories = [
        dataclasses.replace(each, unreadable=["00000000000000000000.log"]) if each.name == "orders-0" else each
        for each in only.directories
    ]
    return SeenBroker.of([dataclasses.replace(only, directories=directories)])


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a log dir as a broker does."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def in_use(path: Path) -> Preflight:
    kraft_log_dir(path)
    with held(path):
        return ask(path)


def two(first: Path, second: Path, release: str = "3.9", mode: str = "kraft", **states: object) -> Preflight:
    return ask([first, second], release, mode, **states)  # type: ignore[arg-type]


def second_log_dir(path: Path, *names: str) -> Path:
    return log_dir(path, names, identity(number=2))


def future(path: Path, beside: bool, release: str) -> Preflight:
    first = kraft_log_dir(path / "1", ["orders-0"] if beside else [])
    second = second_log_dir(path / "2", f"orders-0.{HEX}-future")
    homes = (str(directory_id(2)), None)
    return two(first, second, release, states=wanted(0, directories=homes))


def without_log_start(path: Path) -> Path:
    kraft_log_dir(path)
    (path / METADATA_LOG / "00000000000000000000.log").rename(path / METADATA_LOG / "00000000000000000100.log")
    return path


STOPS, OFFLINE, STRAY = StartEffect.STARTUP_ABORTS, StartEffect.LOG_DIR_OFFLINE, StartEffect.RENAMED_TO_STRAY
JSON_METADATA = b'{"schema_version": 0, "id": "%s", "name": "orders", "partition": 0}' % str(ORDERS).encode()
BROKEN = b"0\n1\nmalformed line of text here\n"
METADATA = "orders-0/partition.metadata"

SCENARIOS: list[tuple[str, StartEffect, Scenario]] = [
    ("no_log_dir_online", STOPS, lambda p: ask(with_file(p, "a-file") / "a-file", mode="zookeeper")),
    ("metadata_log_dir_offline", STOPS, lambda p: two(
        with_file(kraft_log_dir(p / "1"), "cleaner-offset-checkpoint", BROKEN), second_log_dir(p / "2"))),
    ("migration_needs_all_log_dirs", STOPS, lambda p: two(
        kraft_log_dir(p / "1"), with_file(second_log_dir(p / "2"), "cleaner-offset-checkpoint", BROKEN),
        mode="migration")),
    ("same_directory", STOPS, lambda p: two(kraft_log_dir(p / "1"), with_link(p, "2", "1") / "2")),
    ("identity", STOPS, lambda p: two(
        kraft_log_dir(p / "1"), log_dir(p / "2", (), identity(number=2, node_id=7)))),
    ("not_formatted", STOPS, lambda p: two(kraft_log_dir(p / "1"), p / "2")),
    ("metadata_log_elsewhere", STOPS, lambda p: two(
        log_dir(p / "1"), metadata_log(second_log_dir(p / "2")).parent)),
    ("absent_log_dir", StartEffect.CREATED_EMPTY, lambda p: two(zookeeper(p / "1"), p / "2", mode="zookeeper")),
    ("unusable_log_dir", OFFLINE, lambda p: two(kraft_log_dir(p / "1"), with_file(p, "2") / "2")),
    ("damaged_identity", OFFLINE, lambda p: two(
        kraft_log_dir(p / "1"), with_file(log_dir(p / "2"), meta_properties.FILE_NAME, b"version=9\n"))),
    ("closed_to_this_user", StartEffect.UNKNOWN, lambda p: ask(closed(kraft_log_dir(p, ["orders-0"])))),
    ("lock_held", STOPS, in_use),
    ("read_only_disk", OFFLINE, lambda p: ask(mounted_read_only(p))),
    ("another_owner", OFFLINE, lambda p: ask(of_another_owner(p))),
    ("full_disk", StartEffect.UNKNOWN, lambda p: ask(full(log_dir(p, ["orders-0"])))),
    ("damaged_checkpoint", OFFLINE, lambda p: two(
        kraft_log_dir(p / "1"), with_file(second_log_dir(p / "2"), "recovery-point-offset-checkpoint", BROKEN))),
    ("scheme_not_flat", StartEffect.NOT_SERVED, lambda p: ask(
        replica(with_file(log_dir(p, (), identity(scheme="namespaced")), "org/.logstore_tier") / "org" / "a-0")
        .parent.parent)),
    ("unclean_stop", StartEffect.NOTE, lambda p: (
        kraft_log_dir(p, ["orders-0"]), (p / ".kafka_cleanshutdown").unlink(), ask(p))[-1]),
    ("no_segment", StartEffect.NOTE, lambda p: (kraft_log_dir(p), (p / "orders-0").mkdir(), ask(p))[-1]),
    ("foreign_name", STOPS, lambda p: (kraft_log_dir(p), (p / "lost+found").mkdir(), ask(p))[-1]),
    ("staging_inside", STOPS, lambda p: (
        log_dir(p, (), identity(scheme="flat")), (p / "deleting").mkdir(), ask(p))[-1]),
    ("unknown_to_release", STOPS, lambda p: ask(kraft_log_dir(p, [f"orders-0.{HEX}-stray"]), "3.6.0")),
    ("link", StartEffect.UNKNOWN, lambda p: ask(with_link(kraft_log_dir(p), "orders-1", "/nowhere"))),
    ("unreadable_directory", OFFLINE, lambda p: ask(unreadable(kraft_log_dir(p, ["orders-0"])))),
    ("marked_delete", StartEffect.DELETED, lambda p: ask(kraft_log_dir(p, [f"orders-0.{HEX}-delete"]))),
    ("stray", StartEffect.NOTE, lambda p: ask(kraft_log_dir(p, [f"orders-0.{HEX}-stray"]))),
    ("duplicate", STOPS, lambda p: ask(kraft_log_dir(p, ["orders-0", "orders-00"]))),
    ("partition_metadata", OFFLINE, lambda p: ask(
        with_file(kraft_log_dir(p, ["orders-0"]), METADATA, JSON_METADATA))),
    ("no_topic_id", STRAY, lambda p: ask(kraft_log_dir(p, {"orders-0": None}))),
    ("stray_search_fails", StartEffect.NOTE, lambda p: ask(kraft_log_dir(p, {"orders-0": None}), "3.5")),
    ("full_request_fails", StartEffect.NOT_SERVED, lambda p: ask(
        kraft_log_dir(p, {"orders-0": None}), "3.6.2", "migration")),
    ("unwanted", STRAY, lambda p: ask(kraft_log_dir(p, ["orders-5"]), states=wanted(0))),
    ("inconsistent_topic_id", StartEffect.NOT_SERVED, lambda p: ask(
        zookeeper(p, "orders-0"), mode="zookeeper", states=wanted(0, topic_id=OTHER))),
    ("future", StartEffect.REPLACED, lambda p: ask(kraft_log_dir(p, ["orders-0", f"orders-0.{HEX}-future"]))),
    ("future_alone", StartEffect.DELETED, lambda p: ask(
        zookeeper(p, f"orders-0.{HEX}-future"), mode="zookeeper", states=wanted(0, isr=[1]))),
    ("future_promoted", StartEffect.REPLACED, lambda p: future(p, True, "3.9")),
    ("missing", StartEffect.CREATED_EMPTY, lambda p: ask(kraft_log_dir(p), states=wanted(0, isr=[1]))),
    ("empty_metadata", STRAY, lambda p: ask(kraft_log_dir(p, ["orders-0"]), states=empty_metadata())),
    ("odd_file_name", STOPS, lambda p: ask(with_file(kraft_log_dir(p, ["orders-0"]), "orders-0/backup.log"))),
    ("unreadable_file", OFFLINE, lambda p: ask(may_not_read(kraft_log_dir(p, ["orders-0"])))),
    ("linked_file", StartEffect.UNKNOWN, lambda p: ask(
        with_link(kraft_log_dir(p, ["orders-0"]), "orders-0/leader-epoch-checkpoint", "/nowhere"))),
    ("leader_epochs", OFFLINE, lambda p: ask(
        with_file(kraft_log_dir(p, ["orders-0"]), "orders-0/leader-epoch-checkpoint", bytes(20)))),
    ("leftovers", StartEffect.NOTE, lambda p: ask(
        with_file(kraft_log_dir(p, ["orders-0"]), "orders-0/00000000000000000007.log.deleted"))),
    ("no_metadata_log", StartEffect.NOTE, lambda p: ask(log_dir(p))),
    ("metadata_log_damaged", STOPS, lambda p: ask(
        with_file(kraft_log_dir(p), f"{METADATA_LOG}/bootstrap.checkpoint"))),
    ("metadata_log_topic_id", STOPS, lambda p: (
        log_dir(p), replica(p / METADATA_LOG, OTHER), ask(p))[-1]),
    ("metadata_log_snapshot", STOPS, lambda p: ask(without_log_start(p))),
    ("quorum_state_too_new", STOPS, lambda p: ask(with_file(
        kraft_log_dir(p), f"{METADATA_LOG}/quorum-state",
        b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"J8aAPcfLQt2bqs1JT_rMgQ","data_version":1}'),
        "3.7.1")),
    ("feature_level_too_new", STOPS, lambda p: ask(kraft_log_dir(p), "3.3", states=of_level(21))),
]  # fmt: skip
"""One for each rule; what else a rule says is tested with its module."""


def of_level(level: int) -> dict[str, DesiredState]:
    """Metadata of the right cluster, of a level of ``metadata.version``."""
    builder = DesiredBuilder()
    builder.topic("another", str(OTHER))
    return {CLUSTER: builder.build(MetadataIdentity("kraft", "a test", CLUSTER, metadata_version=level))}


def empty_metadata() -> dict[str, DesiredState]:
    """Metadata of the right cluster that know no topic."""
    return {CLUSTER: DesiredBuilder().build(MetadataIdentity("kraft", "a test", CLUSTER))}
