"""Small random fleets for property tests: few names, few IDs, so that every kind of collision happens."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from logstore.rows import ROW_SCHEMA
from reconciler.desired import Completeness, DesiredBuilder, DesiredState, MetadataIdentity

NOW_MS = 1_700_000_000_000
IDS = [f"{letter * 21}A" for letter in "bcdefg"]
TOPICS = ["t", "t.u", "ns:t", "it's", "__consumer_offsets"]
KINDS = ["live"] * 8 + ["future", "delete", "stray", "staged", "internal", "foreign", "checkpoint_entry", "leftover"]
STATES = ["ok"] * 8 + ["missing", "missing", "empty", "malformed", "zero_id", "contradicts", "unreadable"]


def random_fleet(seed: int) -> tuple[pa.Table, list[DesiredState]]:
    """Rows of several brokers' log dirs and the desired state of their clusters, all from one seed."""
    random = Random(seed)
    clusters: list[str | None] = random.choice([["c1"], ["c1", "c2"], ["c1", None]])
    rows: list[dict[str, Any]] = []
    for cluster in clusters:
        for node in [None] if cluster is None else random.sample(range(4), 3):
            for disk in range(random.randint(1, 2)):
                rows.extend(_log_dir(random, cluster, node, disk))
    states = [_state(random, cluster) for cluster in ("c1", "c2") if cluster in clusters and random.random() < 0.85]
    return pa.Table.from_pylist(rows, schema=ROW_SCHEMA), states


def _log_dir(random: Random, cluster: str | None, node: int | None, disk: int) -> list[dict[str, Any]]:
    common = dict.fromkeys(ROW_SCHEMA.names) | {
        "host": random.choice(["h1", "h2"]),
        "cluster_id": cluster,
        "node_id": node,
        "directory_id": random.choice([None, f"d{node}{disk}", "d00"]),
        "log_dir": f"/data/{cluster}/{node}/{disk}",
        "scanned_ms": random.choice([NOW_MS, NOW_MS, NOW_MS - 5_000, None]),
    }
    state = "missing" if cluster is None else random.choice(["ok", "ok", "ok", "absent"])
    rows = [
        common | {"name": ".", "kind": "log_dir", "metadata_state": state, "problem": None if state == "ok" else state}
    ]
    for number in range(random.randint(0, 12)):
        rows.append(common | _entry(random, number))
    return rows


def _entry(random: Random, number: int) -> dict[str, Any]:
    kind = random.choice(KINDS)
    named = kind not in ("foreign", "leftover")
    state = random.choice(STATES) if named and kind != "checkpoint_entry" else None
    has_id = state in ("ok", "contradicts")
    topic = random.choice(TOPICS) if named else None
    return {
        "name": f"{topic}-{number}",
        "kind": kind,
        "namespace": "",
        "topic": topic,
        "partition": random.randint(0, 2) if named else None,
        "topic_id": random.choice(IDS) if has_id else None,
        "metadata_state": state,
        "problem": None if state in (None, "ok") else f"{state}: it's \\ {number}",
        "bytes": random.choice([None, 0, random.randint(1, 10**12)]),
        "files": 1,
        "modified_ms": random.choice([None, NOW_MS - 20_000, NOW_MS - 10_000, NOW_MS - 1]),
        "due_ms": random.choice([None, NOW_MS - 1, NOW_MS, NOW_MS + 1]) if kind == "staged" else None,
        "end_offset": random.choice([None, 0, 7]),
        "leader_epoch": random.choice([None, 0, 3]),
    }


def _state(random: Random, cluster: str) -> DesiredState:
    builder = DesiredBuilder()
    ids = random.sample(IDS, len(IDS))
    for topic in random.sample(TOPICS, random.randint(0, len(TOPICS))):
        topic_id = random.choice([ids.pop(), None]) if random.random() < 0.3 else ids.pop()
        builder.topic(topic, topic_id)
        for partition in range(random.randint(0, 3)):
            replicas = random.sample(range(5), random.randint(1, 3))
            moving = [node for node in replicas if random.random() < 0.15]
            builder.partition(
                topic,
                topic_id,
                partition,
                replicas,
                isr=random.sample(replicas, random.randint(1, len(replicas))),
                adding=moving,
                removing=[4] if random.random() < 0.1 else [],
                directories=[random.choice([None, None, f"d{node}0", f"d{node}1"]) for node in replicas],
            )
    completeness = random.choice([Completeness.FULL] * 4 + [Completeness.INCREMENTAL])
    scope = random.choice([None, None, None, frozenset({1, 2})])
    timestamp_ms = random.choice([None, 0, NOW_MS - 10_000, NOW_MS - 1])
    return builder.build(
        MetadataIdentity("kraft", "/metadata", cluster, completeness, scope, timestamp_ms=timestamp_ms)
    )


def many_fleets(seeds: range) -> tuple[pa.Table, list[DesiredState]]:
    """Several random fleets as one, each with clusters, hosts and paths of its own."""
    tables, states = [], []
    for seed in seeds:
        rows, fleet_states = random_fleet(seed)
        named = [
            row | {name: f"{seed}-{row[name]}" for name in ("cluster_id", "host", "log_dir") if row[name] is not None}
            for row in rows.to_pylist()
        ]
        tables.append(pa.Table.from_pylist(named, schema=ROW_SCHEMA))
        for state in fleet_states:
            identity = replace(state.identity, cluster_id=f"{seed}-{state.identity.cluster_id}")
            states.append(replace(state, identity=identity))
    return pa.concat_tables(tables), states


def healthy_fleet(cluster: str, partitions: int) -> tuple[pa.Table, DesiredState]:
    """A topic on three brokers of two disks each, nearly all of whose replicas are in order.

    Some lie under another ID, are missing, lie twice, or have a staged directory beside them.
    """
    builder = DesiredBuilder()
    rows = []
    for node in range(3):
        for disk in range(2):
            common = dict.fromkeys(ROW_SCHEMA.names) | {"host": "h", "cluster_id": cluster, "node_id": node}
            common |= {"log_dir": f"/{cluster}/{node}/{disk}", "directory_id": f"{cluster}{node}{disk}"}
            common |= {"metadata_state": "ok", "scanned_ms": NOW_MS}
            rows.append(common | {"name": ".", "kind": "log_dir"})
            for partition in range(partitions):
                odd = (node + partition) % 29
                if odd == 1 or (partition % 2 != disk and odd != 2):
                    continue  # missing, or on the other disk
                topic_id = IDS[1] if odd == 3 else IDS[0]
                entry = {"name": f"t-{partition}", "kind": "live", "topic": "t", "partition": partition, "bytes": 1}
                rows.append(common | entry | {"topic_id": topic_id})
                if odd == 4:
                    rows.append(common | entry | {"kind": "staged", "name": "s", "topic_id": IDS[0], "due_ms": NOW_MS})
    for partition in range(partitions):
        builder.partition("t", IDS[0], partition, range(3), isr=range(3))
    identity = MetadataIdentity("kraft", "/metadata", cluster, timestamp_ms=NOW_MS)
    return pa.Table.from_pylist(rows, schema=ROW_SCHEMA), builder.build(identity)
