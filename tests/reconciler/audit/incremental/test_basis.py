"""What the verdicts of a broker rest on: the content of its inventories, and what the metadata wants on it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from logstore.rows import (
    ROW_SCHEMA,
    InventoryForm,
    LogDirOnHost,
    inventory_content,
    read_inventory_set,
    write_inventory,
)
from reconciler.audit import BASIS_SCHEMA, Basis
from reconciler.audit.dimension_tables import DesiredTables, keep_metadata, register_desired
from reconciler.audit.duckdb_join import make_observed
from reconciler.audit.incremental import just_scanned, note_basis, read_basis
from reconciler.desired import BrokerKey, DesiredBuilder, JudgedBroker, MetadataIdentity

T = "T" * 21 + "A"


def inventory(
    path: Path, node: int, *names: str, scanned_ms: int = 1, form: InventoryForm = InventoryForm.PARQUET
) -> str:
    plain = dict.fromkeys(ROW_SCHEMA.names) | {
        "host": "h", "cluster_id": "c1", "node_id": node, "log_dir": f"/disks/{node}", "scanned_ms": scanned_ms,
    }  # fmt: skip
    log_dir = plain | {"name": ".", "kind": "log_dir", "metadata_state": "ok"}
    live = [plain | {"name": name, "kind": "live", "topic": "t", "partition": 0, "topic_id": T} for name in names]
    with path.open("wb") as out:
        write_inventory([pa.Table.from_pylist([log_dir, *live], schema=ROW_SCHEMA)], out, form)
    return str(path)


def basis_of(*paths: str, nodes: list[int] | None = None, as_of_ms: int = 5, **options: Any) -> dict[int, Basis]:
    """The basis of each broker, where topic ``t`` is wanted on some nodes, in that order."""
    builder = DesiredBuilder()
    builder.partition("t", T, 0, nodes or [1, 2])
    state = builder.build(MetadataIdentity("kraft", "/m", "c1"))
    superseded = options.pop("superseded", {})
    contents = {path: inventory_content(path) for path in paths} | options.pop("contents", {})
    with duckdb.connect() as connection:
        brokers = make_observed(connection, options.pop("tables", []), paths, 9, superseded)
        keep_metadata(connection, ["c1"], [JudgedBroker(*broker, True, as_of_ms) for broker in brokers])
        register_desired(connection, {"c1": DesiredTables(state.replicas, state.topics)})
        note_basis(connection, contents, superseded, "the rules")
        return {each.node: each for each in read_basis(connection)}


@pytest.mark.parametrize("form", list(InventoryForm))
def test_an_inventory_is_known_by_its_content_and_by_no_name(tmp_path: Path, form: InventoryForm) -> None:
    path = inventory(tmp_path / "a", 1, "t-0", form=form)
    copy = str(shutil.copy(path, tmp_path / "another"))
    assert inventory_content(path) == inventory_content(copy)
    others = [
        inventory(tmp_path / "b", 1, "u-0", form=form),
        inventory(tmp_path / "c", 1, "t-0", scanned_ms=2, form=form),
    ]
    assert len({inventory_content(each) for each in (path, *others)}) == 3


def test_a_broker_rests_on_its_own_files_and_its_own_replicas(tmp_path: Path) -> None:
    one, two = (inventory(tmp_path / f"{node}.parquet", node, "t-0") for node in (1, 2))
    before = basis_of(one, two)
    assert list(before) == [1, 2] and before[1].inventories != before[2].inventories
    assert before[1].rules == "the rules" and set(BASIS_SCHEMA.names) == set(Basis.__slots__)
    inventory(tmp_path / "2.parquet", 2, "t-0", "u-0")
    scanned = basis_of(one, two)
    assert (scanned[1], scanned[2] == before[2]) == (before[1], False)
    moved = basis_of(one, two, nodes=[1, 3])
    assert (moved[1], moved[2].metadata == scanned[2].metadata) == (before[1], False)
    assert basis_of(one, two, nodes=[2, 1]) == scanned
    later = basis_of(one, two, as_of_ms=7)
    assert {each.metadata for each in later.values()} == {each.metadata for each in scanned.values()}


def test_what_does_not_count_in_a_file_makes_it_another(tmp_path: Path) -> None:
    old, new = (inventory(tmp_path / f"{ms}.parquet", 1, "t-0", scanned_ms=ms) for ms in (1, 2))
    counting = read_inventory_set([old, new])
    assert basis_of(*counting.paths)[1] == basis_of(new)[1]
    assert basis_of(old, superseded={old: [LogDirOnHost("h", "/disks/2")]})[1] != basis_of(old)[1]


def test_what_was_scanned_just_now_or_has_no_fingerprint_has_no_basis(tmp_path: Path) -> None:
    path = inventory(tmp_path / "1.parquet", 1, "t-0")
    assert basis_of(path, contents={path: None})[1].inventories is None
    scanned = pa.Table.from_pylist([{"cluster_id": "c1", "node_id": 1, "kind": "live"}], schema=ROW_SCHEMA)
    assert basis_of(path, tables=[scanned])[1].inventories is None
    of_scan = just_scanned([BrokerKey("c1", 2), BrokerKey("c1", 1)])
    assert [(each.node, each.inventories) for each in of_scan] == [(1, None), (2, None)]
