"""A random fleet whose disks, inventories, metadata and time change from audit to audit, for incremental audits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from logstore.rows import ROW_SCHEMA, InventoryForm, write_inventory
from reconciler.audit import AuditResult
from reconciler.desired import REPLICA_SCHEMA, TOPIC_SCHEMA, Completeness, DesiredState, in_memory
from tests.fleets import IDS, NOW_MS, random_fleet

Rows = list[dict[str, Any]]


class ChangingFleet:
    """Inventories of some brokers and the metadata of their clusters, which change from run to run."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.folder = folder
        self.now_ms = NOW_MS - 1
        self.paths: list[str] = []
        self.scanned: Rows = []
        """The rows of log dirs that the audit scans itself."""
        rows, self.states = random_fleet(seed)
        for of_broker in brokers_of(rows.to_pylist()):
            # Few rows on some brokers, so that many a change does not concern them.
            share = self.random.choice([1.0, 0.3, 0.1])
            self.write([row for row in of_broker if row["kind"] == "log_dir" or self.random.random() < share])

    def write(self, rows: Rows) -> None:
        path = self.folder / f"{len(list(self.folder.iterdir()))}.parquet"
        with path.open("wb") as out:
            write_inventory([pa.Table.from_pylist(rows, schema=ROW_SCHEMA)], out, InventoryForm.PARQUET)
        self.paths.append(str(path))

    def change(self) -> None:
        """Change nothing, or a few things of all that may change."""
        changes: list[Callable[[], None]] = [
            self.scan_again, self.scan_one_log_dir_again, self.rename_a_file, self.lose_a_file, self.scan_here,
            self.wait, self.take_new_metadata, self.change_a_topic, self.change_a_replica, self.change_the_identity,
            self.change_the_identity,
        ]  # fmt: skip
        for act in self.random.sample(changes, self.random.choice([0, 1, 1, 2, 3])):
            act()

    def scan_again(self) -> None:
        later = self.random.choice([0, 1, 7_000])
        rows, _ = random_fleet(self.random.randrange(10**6))
        of_broker = self.random.choice(brokers_of(rows.to_pylist()))
        self.write([row | {"scanned_ms": (row["scanned_ms"] or NOW_MS) + later} for row in of_broker])

    def scan_one_log_dir_again(self) -> None:
        rows = self.rows_of(self.random.choice(self.paths))
        log_dir = self.random.choice(rows)["log_dir"]
        kept = [row for row in rows if row["log_dir"] == log_dir and self.random.random() < 0.9]
        if any(row["kind"] == "log_dir" for row in kept):
            self.write([row | {"scanned_ms": NOW_MS + 5} for row in kept])

    def rename_a_file(self) -> None:
        path = Path(self.paths.pop(self.random.randrange(len(self.paths))))
        self.paths.append(str(path.rename(path.with_name(f"renamed-{path.name}"))))

    def lose_a_file(self) -> None:
        if len(self.paths) > 2:
            self.paths.pop(self.random.randrange(len(self.paths)))

    def scan_here(self) -> None:
        self.scanned = [] if self.scanned else self.rows_of(self.random.choice(self.paths))

    def wait(self) -> None:
        self.now_ms += self.random.choice([-1, 1, 1, 2])

    def take_new_metadata(self) -> None:
        _, states = random_fleet(self.random.randrange(10**6))
        self.states = states

    def change_a_topic(self) -> None:
        """Delete a topic, or create it anew."""
        state, topics = self.some_state(), []
        if state is None or not state.topics.num_rows:
            return
        name = self.random.choice(state.topics.column("topic").to_pylist())
        topic_id = self.random.choice([None, *sorted({*IDS} - {*state.topics.column("topic_id").to_pylist()})])
        is_deleted = self.random.random() < 0.4
        new = {}
        for table, schema in (("topics", TOPIC_SCHEMA), ("replicas", REPLICA_SCHEMA)):
            topics = in_memory(getattr(state, table)).to_pylist()
            rows = [row | ({"topic_id": topic_id} if row["topic"] == name else {}) for row in topics]
            kept = [row for row in rows if not (is_deleted and row["topic"] == name)]
            new[table] = pa.Table.from_pylist(kept, schema=schema)
        self.put(state, replace(state, **new))

    def change_a_replica(self) -> None:
        state = self.some_state()
        if state is None or not state.replicas.num_rows:
            return
        rows = in_memory(state.replicas).to_pylist()
        changed = self.random.choice(
            [{"directory_id": "d10"}, {"adding": True}, {"adding": False}, {"isr_size": 1, "in_sync": True}]
        )
        rows[self.random.randrange(len(rows))].update(changed)
        self.random.shuffle(rows)
        self.put(state, replace(state, replicas=pa.Table.from_pylist(rows, schema=REPLICA_SCHEMA)))

    def change_the_identity(self) -> None:
        state = self.some_state()
        if state is None:
            return
        change: dict[str, Any] = self.random.choice(
            [
                *({"timestamp_ms": NOW_MS - ms, "offset": ms} for ms in (30_000, 19_000, 9_000, 0, -30_000)),
                {"timestamp_ms": None},
                {"completeness": Completeness.INCREMENTAL},
                {"scope": frozenset({1, 2})},
                {"scope": None},
            ]
        )
        self.put(state, replace(state, identity=replace(state.identity, **change)))

    def some_state(self) -> DesiredState | None:
        return self.random.choice(self.states) if self.states else None

    def put(self, old: DesiredState, new: DesiredState) -> None:
        self.states = [new if state is old else state for state in self.states]

    def rows_of(self, path: str) -> Rows:
        return list(pq.read_table(path).to_pylist())


def brokers_of(rows: Rows) -> list[Rows]:
    grouped: dict[Any, Rows] = {}
    for row in rows:
        grouped.setdefault((row["cluster_id"], row["node_id"]), []).append(row)
    return list(grouped.values())


def sorted_findings(result: AuditResult) -> list[str]:
    """Every column of every finding, in an order of their own."""
    return sorted(repr(row) for batch in result.batches() for row in batch.to_pylist())
