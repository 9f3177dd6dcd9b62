"""For each rule of preflight that a broker can confirm: the damage, who is asked, and what must be seen besides.

What the answer itself foretells (start or not, disks offline, directories deleted, replaced or set aside) is compared
for every case; ``says`` and ``then`` are what tells the rest: the broker's own words, and what must come true.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping

from layout import meta_properties, partition_metadata
from layout.checkpoint import OFFSET_CHECKPOINTS
from tests.broker.preflight_bench import HEX, Case
from tests.broker.preflight_damage import (
    OTHER_ID,
    Holder,
    a_plain_file,
    all_is_well,
    all_of,
    all_replicas_again,
    copied,
    directory,
    fenced,
    future_elsewhere,
    future_in_its_place,
    in_identity,
    in_log_dir,
    in_replica,
    is_not_served,
    is_served,
    is_there,
    laid_out_in_tiers,
    late_start,
    linked_file,
    linked_log_dir,
    linked_replica,
    log_dir_again,
    metadata_log,
    metadata_log_again,
    metadata_log_too,
    migrating,
    much,
    renamed,
    same_directory_id,
    topic_id_again,
    unwanted,
    with_topic_id,
    without_file,
    without_log_dir,
)

ZOOKEEPER, KRAFT = ("2.8-zk", "3.9-zk"), ("3.9-kraft", "4.3-kraft")
OLDEST, NEWER = ("2.8-zk",), ("3.9-kraft", "3.9-zk", "4.3-kraft")
ALL_BUT_ONE = ("2.8-zk", "3.9-zk", "4.3-kraft")
BROKEN = b"0\n1\nmalformed line of text here\n"
NO_NUMBER = b"0\n1\norders 0 many\n"
LATE_TOPIC_ID = r"Error while writing to partition metadata file .*\n.*FileNotFoundException"
"""ZooKeeper's broker writes the topic ID of a replica that it has just made in another thread than the one that swaps
it with its future replica: where it comes too late, the directory is not there any more, and the disk goes offline."""

_ID = partition_metadata.FILE_NAME


def _as_kraft(found: re.Match[bytes]) -> bytes:
    """Version 0 becomes 1, and ``broker.id`` becomes ``node.id``."""
    return b"version=1" if found[1] else b"node.id"


CASES: Mapping[str, Case] = {
    # All log dirs together
    "no disk is a directory": Case(
        ("no_log_dir_online", "unusable_log_dir"), all_of(*map(a_plain_file, range(3)))),
    "the disk with the metadata log has a broken recovery point checkpoint": Case(
        ("metadata_log_dir_offline", "damaged_checkpoint"),
        in_log_dir("recovery-point-offset-checkpoint", BROKEN, 0), KRAFT),
    "the disk with the metadata log has a broken cleaner checkpoint": Case(
        ("metadata_log_dir_offline", "damaged_checkpoint"),
        in_log_dir("cleaner-offset-checkpoint", BROKEN, 0), KRAFT),
    "one log dir has two names": Case(("same_directory",), linked_log_dir),
    "the disks are of two brokers": Case(
        ("identity",), in_identity(lambda data: re.sub(rb"(node|broker)\.id=\d+", rb"\1.id=77", data))),
    "the disks are of two clusters": Case(
        ("identity",), in_identity(lambda data: re.sub(rb"cluster\.id=.*", rb"cluster.id=another-cluster", data))),
    "two disks have one directory id": Case(("identity",), same_directory_id, KRAFT),
    "a disk of KRaft is given to ZooKeeper's broker": Case(
        ("identity",), in_identity(lambda data: re.sub(rb"(version=)0|broker(\.id)", _as_kraft, data)), ZOOKEEPER),
    "a disk has no meta.properties": Case(
        ("not_formatted",), lambda bench: (bench.disks[2] / meta_properties.FILE_NAME).unlink(), KRAFT),
    "a disk is not mounted in KRaft": Case(("not_formatted",), without_log_dir, KRAFT),
    "the metadata log lies on two disks": Case(("metadata_log_elsewhere",), metadata_log_too, KRAFT),
    "a broker that migrates has a broken checkpoint on one disk": Case(
        ("migration_needs_all_log_dirs",),
        all_of(migrating, in_log_dir("recovery-point-offset-checkpoint", BROKEN)), ("3.9-zk",),
        says=("failed during migration mode",)),
    # One log dir
    "a disk is laid out in tiers": Case(
        ("scheme_not_flat",), laid_out_in_tiers, ZOOKEEPER, then=is_there(1, "team-7/inner-0")),
    "a disk is not mounted": Case(("absent_log_dir", "missing"), without_log_dir, ZOOKEEPER, then=log_dir_again),
    "a disk is a plain file": Case(("unusable_log_dir",), a_plain_file(2)),
    "a disk has a meta.properties of version 9": Case(
        ("damaged_identity",), in_identity(lambda data: re.sub(rb"version=\d", b"version=9", data)), ALL_BUT_ONE),
    "the first disk has a meta.properties of version 9": Case(
        ("damaged_identity",), in_identity(lambda data: re.sub(rb"version=\d", b"version=9", data), 0)),
    "another process has the lock": Case(("lock_held",), Holder),
    "the cleaner checkpoint is broken": Case(("damaged_checkpoint",), in_log_dir("cleaner-offset-checkpoint", BROKEN)),
    "the recovery point checkpoint is broken": Case(
        ("damaged_checkpoint",), in_log_dir("recovery-point-offset-checkpoint", BROKEN)),
    "the log start checkpoint is broken": Case(
        ("damaged_checkpoint",), in_log_dir("log-start-offset-checkpoint", BROKEN)),
    "the high watermark checkpoint is broken": Case(
        ("damaged_checkpoint",), in_log_dir("replication-offset-checkpoint", BROKEN)),
    "the cleaner checkpoint has no number": Case(
        ("damaged_checkpoint",), in_log_dir("cleaner-offset-checkpoint", NO_NUMBER), NEWER,
        says=("cleaner-thread-0.*Error due to", "NumberFormatException"), then=is_served),
    "the recovery point checkpoint has no number": Case(
        ("damaged_checkpoint",), in_log_dir("recovery-point-offset-checkpoint", NO_NUMBER), NEWER, then=is_served),
    "the log start checkpoint has no number": Case(
        ("damaged_checkpoint",), in_log_dir("log-start-offset-checkpoint", NO_NUMBER), NEWER, then=is_served),
    "the high watermark checkpoint has no number": Case(
        ("damaged_checkpoint",), in_log_dir("replication-offset-checkpoint", NO_NUMBER), NEWER,
        says=("NumberFormatException",), then=lambda bench: not is_served(bench)),
    **{
        f"{file} has no number, on 2.8": Case(("damaged_checkpoint",), in_log_dir(file, NO_NUMBER), OLDEST)
        for file in OFFSET_CHECKPOINTS
    },
    "the broker was killed": Case(("unclean_stop",), lambda bench: None, killed=True, says=("no clean shutdown file",)),
    # Directories by name
    "lost+found": Case(("foreign_name",), directory("lost+found"), says=("lost\\+found",)),
    "a staging directory inside": Case(("staging_inside",), directory("deleting"), says=("deleting",)),
    "a stray for a release that knows none": Case(
        ("unknown_to_release",), copied(f".{HEX}-stray"), ("2.8-zk",), says=(f"{HEX}-stray",)),
    "a cache of remote indexes for a release that knows none": Case(
        ("unknown_to_release",), directory("remote-log-index-cache"), ("2.8-zk",), says=("remote-log-index-cache",)),
    "one replica is on two disks": Case(("duplicate",), copied("", 1, 2), says=("[Dd]uplicate",)),
    "one replica is on one disk twice": Case(
        ("duplicate",), lambda bench: shutil.copytree(
            bench.replicas(1)[0], bench.disks[1] / f"{bench.topic}-0{bench.replicas(1)[0].name[-1]}")),
    "one replica is on its way twice": Case(
        ("duplicate",), all_of(copied(f".{HEX}-future", 1, 0), copied(f".{HEX}-future", 1, 2))),
    # partition.metadata
    "partition.metadata is empty": Case(("partition_metadata",), in_replica(_ID, b"")),
    "partition.metadata has a topic ID that is none": Case(
        ("partition_metadata",), in_replica(_ID, b"version: 0\ntopic_id: too-short")),
    "partition.metadata has the zero ID": Case(
        ("partition_metadata",), in_replica(_ID, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"), ALL_BUT_ONE),
    "partition.metadata has a negative version": Case(
        ("partition_metadata",), in_replica(_ID, b"version: -1\ntopic_id: UXyU9i5ARn6W00ON2taeWA")),
    "partition.metadata is no UTF-8": Case(("partition_metadata",), in_replica(_ID, b"\xff\xfe\xfd")),
    "partition.metadata is of a design": Case(
        ("partition_metadata",), in_replica(
            _ID, json.dumps({"schema_version": 0, "id": str(OTHER_ID), "name": "orders", "partition": 0}).encode())),
    "partition.metadata has a later version": Case(
        ("partition_metadata",), in_replica(_ID, b"version: 1\ntopic_id: UXyU9i5ARn6W00ON2taeWA"), OLDEST),
    # Many at once that do not disturb each other, on a broker that starts
    "much that ends nothing": Case(
        ("marked_delete", "stray", "no_segment", "leftovers", "missing", "future"),
        all_of(copied(f".{HEX}-stray", 0), much), NEWER, then=all_is_well),
    "much that ends nothing, on 2.8": Case(
        ("marked_delete", "no_segment", "leftovers", "missing", "future"), much, OLDEST, then=all_is_well),
    "directory IDs of later releases": Case(
        ("identity",), in_identity(lambda data: data + b"directory.id=s33AdXtkR8Gf_xRO-R_dpA\n"), OLDEST),
    "a future replica alone": Case(
        ("future_alone", "missing"), renamed(f".{HEX}-future"), ZOOKEEPER, then=all_replicas_again,
        race=LATE_TOPIC_ID),
    # Topic IDs
    "replicas that the cluster does not want": Case(
        ("unwanted",), unwanted, then=is_there(1, "{}-0") and all_replicas_again),
    "replicas without topic ID, and of another topic ID": Case(
        ("no_topic_id", "unwanted"), all_of(without_file(_ID), with_topic_id(OTHER_ID, 2)), KRAFT,
        then=lambda bench: all_replicas_again(bench) and topic_id_again(bench)),
    "a replica without topic ID for ZooKeeper's broker": Case((), without_file(_ID), ZOOKEEPER, then=topic_id_again),
    "a replica of another topic ID for ZooKeeper's broker": Case(
        ("inconsistent_topic_id",), with_topic_id(OTHER_ID), ZOOKEEPER, says=("does not match the topic I",),
        then=is_not_served),
    "a future replica where the controller wants it": Case(
        ("future_promoted",), renamed(f".{HEX}-future"), KRAFT, then=all_replicas_again),
    "a future replica where the controller wants it, and the current one elsewhere": Case(
        ("future_promoted",), future_in_its_place, KRAFT, then=all_replicas_again),
    # Files in partition dirs
    "a file whose name should be a number": Case(("odd_file_name",), in_replica("backup.log", b"")),
    "leader epochs of zeros": Case(("leader_epochs",), in_replica("leader-epoch-checkpoint", bytes(20)), ALL_BUT_ONE),
    "leader epochs with no number": Case(
        ("leader_epochs",), in_replica("leader-epoch-checkpoint", b"0\n1\none two\n")),
    "a partition dir that is a link": Case(("link",), linked_replica, then=all_replicas_again),
    "a segment that is a link": Case(("linked_file",), linked_file, then=all_replicas_again),
    # The metadata log
    "there is no metadata log": Case(
        ("no_metadata_log",), metadata_log(shutil.rmtree), KRAFT, then=metadata_log_again),
    "a snapshot in the metadata log has no number": Case(
        ("metadata_log_damaged",),
        metadata_log(lambda folder: (folder / "bootstrap.checkpoint").write_bytes(b"")), KRAFT),
    "the quorum state is empty": Case(
        ("metadata_log_damaged",), metadata_log(lambda folder: (folder / "quorum-state").write_bytes(b"")), KRAFT),
    "the metadata log has another topic ID": Case(
        ("metadata_log_topic_id",),
        metadata_log(lambda folder: (folder / _ID).write_bytes(partition_metadata.encode(OTHER_ID))), KRAFT),
    "the metadata log begins late": Case(("metadata_log_snapshot",), metadata_log(late_start), KRAFT),
    # The last ones, because the controller assigns the replica to the other disk then, and other cases go by its place;
    # so each takes another replica.
    "a future replica alone on another disk than it is assigned to": Case(
        ("future_alone", "missing"), future_elsewhere(0), KRAFT),
    "a future replica alone on another disk, after the broker has been away for long": Case(
        ("future_alone", "missing"), all_of(fenced, future_elsewhere(1)), KRAFT),
}  # fmt: skip
"""By a sentence."""
