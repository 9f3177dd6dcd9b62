"""The trees of the audit benchmark, and the contenders that are no Spark: a scan, and Python as people write it.

    FLEET/trees/broker-001/disk-0/   a log dir, with five files in every partition dir
    FLEET/desired/                   the desired state, as in :mod:`tools.benchmarks.data`

One partition dir in 500 has a topic ID of old, and one in 1,000 is missing. ``python -m tools.benchmarks.fleet FLEET
BROKERS DIRECTORIES`` builds them, about DIRECTORIES for each broker.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tools.benchmarks import data as bench_data
from tools.benchmarks.peers import Answer

OLD_EVERY, MISSING_EVERY = 500, 1000


def build(fleet: str, brokers: int, directories: int) -> None:
    """Make the trees and the desired state of a fleet."""
    from layout.ids import DirectoryId, TopicId
    from layout.meta_properties import FILE_NAME, MetaProperties, encode
    from reconciler.desired import DesiredBuilder, MetadataIdentity
    from reconciler.sources import save_state
    from tools.benchmarks.tree import fill

    homes = {node: f"{bench_data.trees(fleet)}/broker-{node:03}/disk-0" for node in range(1, brokers + 1)}
    for node, home in homes.items():
        os.makedirs(home)
        identity = MetaProperties(1, bench_data.CLUSTER, node, DirectoryId(node.to_bytes(16, "big")))
        Path(home, FILE_NAME).write_bytes(encode(identity, "Fri Nov 20 08:49:38 UTC 2026"))
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
                    fill(f"{homes[node]}/{name}-{partition}", old if written % OLD_EVERY == 1 else topic_id)
    os.makedirs(bench_data.desired(fleet))
    save_state(builder.build(MetadataIdentity("kraft", "/metadata", bench_data.CLUSTER)), bench_data.desired(fleet))


def pathlib_naive(fleet: str, out: str) -> Answer:
    """``pathlib`` and dictionaries: read all the files, load all that is wanted, compare row by row."""
    del out
    import pyarrow.parquet as pq

    seen: dict[tuple[int, str, int], str] = {}
    ids: dict[str, set[str]] = {}
    for file in Path(bench_data.trees(fleet)).glob("*/*/*/partition.metadata"):
        topic, _, partition = file.parent.name.rpartition("-")
        topic_id = file.read_text().splitlines()[1].removeprefix("topic_id: ")
        seen[int(file.parts[-4].removeprefix("broker-")), topic, int(partition)] = topic_id
        ids.setdefault(topic, set()).add(topic_id)
    totals: dict[str, int] = {}
    for row in pq.read_table(f"{bench_data.desired(fleet)}/replicas.parquet").to_pylist():
        topic_id = seen.pop((row["node_id"], row["topic"], row["partition"]), "")
        verdict = "MISSING" if not topic_id else "OK" if topic_id == row["topic_id"] else "STALE_ID"
        totals[verdict] = totals.get(verdict, 0) + 1
    if seen:
        totals["NOT_ASSIGNED"] = len(seen)
    return Answer({name: (rows, 0) for name, rows in totals.items()}, sum(len(known) > 1 for known in ids.values()))


if __name__ == "__main__":
    build(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
