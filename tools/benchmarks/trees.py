"""Log dirs for the benchmarks: one alone, with partition dirs as a KRaft broker leaves them, or those of a whole fleet.

    FLEET/trees/broker-001/disk-0/   a log dir, with five files in every partition dir
    FLEET/desired/                   the desired state, as in :mod:`tools.benchmarks.data`

In a fleet, one partition dir in 500 has an old topic ID, and one in 1,000 is missing. ``python -m
tools.benchmarks.trees FLEET BROKERS DIRECTORIES`` builds it, with about DIRECTORIES partition dirs for each broker.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from layout import meta_properties, partition_metadata
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.scheme import STAGING_DIR, Scheme
from tools.benchmarks import data as bench_data

PARTITIONS = 12
FILES = 5
MADE = "Fri Nov 20 08:49:38 UTC 2026"
"""The time in every ``meta.properties``."""


def build_log_dir(log_dir: Path, directories: int, *, ours: bool = False) -> None:
    """Make a log dir with that many partition dirs, a broker's or one of ours; only its parent exists yet.

    A topic has twelve partitions and a topic ID of its own.
    """
    log_dir.mkdir()
    if ours:
        (log_dir / STAGING_DIR).mkdir()
    scheme = Scheme.FLAT.value if ours else None
    identity = MetaProperties(1, "AtgGav8yQjiaJ3rTXE7VCA", 1, DirectoryId(bytes(range(100, 116))), scheme)
    (log_dir / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, MADE))
    for number in range(directories):
        topic, partition = divmod(number, PARTITIONS)
        fill_partition_dir(f"{log_dir}/topic-{topic:05}-{partition}", TopicId((topic + 1).to_bytes(16, "big")))


def fill_partition_dir(path: str, topic_id: TopicId) -> None:
    """Make a partition dir, which does not exist yet."""
    os.mkdir(path)
    _write(f"{path}/{partition_metadata.FILE_NAME}", partition_metadata.encode(topic_id))
    _write(f"{path}/leader-epoch-checkpoint", b"0\n1\n0 0\n")
    _write(f"{path}/{0:020}.log", b"\0" * 100)
    for suffix in ("index", "timeindex"):
        _write(f"{path}/{0:020}.{suffix}", b"")


def _write(path: str, data: bytes) -> None:
    """Create a file with few system calls: half a million of them are made."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    if data:
        os.write(descriptor, data)
    os.close(descriptor)


OLD_EVERY, MISSING_EVERY = 500, 1000


def build_fleet(fleet: str, brokers: int, directories: int) -> None:
    """Make the trees and the desired state of a fleet."""
    from reconciler.desired import DesiredBuilder, MetadataIdentity
    from reconciler.sources import save_state

    homes = {node: f"{bench_data.trees(fleet)}/broker-{node:03}/disk-0" for node in range(1, brokers + 1)}
    for node, home in homes.items():
        os.makedirs(home)
        identity = MetaProperties(1, bench_data.CLUSTER, node, DirectoryId(node.to_bytes(16, "big")))
        Path(home, meta_properties.FILE_NAME).write_bytes(
            meta_properties.encode(identity, "Fri Nov 20 08:49:38 UTC 2026")
        )
    builder, written = DesiredBuilder(), 0
    per_topic = bench_data.PARTITIONS * bench_data.REPLICAS
    for topic in range(brokers * directories // per_topic):
        name = f"topic-{topic:05}"
        topic_id, old = (TopicId((2 * topic + number).to_bytes(16, "big")) for number in (2, 3))
        for partition in range(bench_data.PARTITIONS):
            nodes = [(topic * 7 + partition * 3 + k * 37) % brokers + 1 for k in range(bench_data.REPLICAS)]
            builder.partition(name, str(topic_id), partition, nodes, isr=nodes, leader=nodes[0])
            for node in nodes:
                written += 1
                if written % MISSING_EVERY:
                    fill_partition_dir(
                        f"{homes[node]}/{name}-{partition}", old if written % OLD_EVERY == 1 else topic_id
                    )
    os.makedirs(bench_data.desired(fleet))
    save_state(builder.build(MetadataIdentity("kraft", "/metadata", bench_data.CLUSTER)), bench_data.desired(fleet))


if __name__ == "__main__":
    build_fleet(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
