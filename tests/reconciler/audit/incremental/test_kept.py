"""What is kept of an earlier audit: only what this one would say as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.audit import BASIS_SCHEMA, FINDING_SCHEMA, EarlierAudit
from reconciler.audit.duckdb_join import DuckDBDialect
from reconciler.audit.incremental import files_to_judge, keep_findings
from reconciler.errors import UsageError
from reconciler.verdicts import CASES, Verdict

BASIS = {"cluster": "c1", "node": 1, "inventories": "i", "metadata": "m", "as_of_ms": 100_000, "rules": "r"}
SINCE, BEFORE = "CHANGED_SINCE_METADATA", "SCANNED_BEFORE_METADATA"


def earlier(folder: Path, *findings: dict[str, Any], **basis: Any) -> EarlierAudit:
    """What an audit left that knew topic ``t``, and judged one broker."""
    plain = dict.fromkeys(FINDING_SCHEMA.names) | {"cluster_id": "c1", "broker": 1}
    tables = {
        "findings": pa.Table.from_pylist([plain | finding for finding in findings], FINDING_SCHEMA),
        "topics": pa.table({"cluster": ["c1"], "topic": ["t"], "topic_id": ["T"]}),
        "basis": pa.Table.from_pylist([BASIS | basis], BASIS_SCHEMA),
    }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return EarlierAudit(**{name: str(folder / f"{name}.parquet") for name in tables})


def kept(audit: EarlierAudit, *, topic_id: str = "T", disk: str = "t", now_ms: int = 50, **basis: Any) -> Any:
    """Verdict and doubt of each finding that is kept; None: the broker is judged again."""
    now = BASIS | basis
    with duckdb.connect() as connection:
        connection.register("rows_of_basis", pa.Table.from_pylist([now], BASIS_SCHEMA))
        connection.execute("CREATE TABLE basis AS FROM rows_of_basis")
        connection.execute(f"CREATE TABLE topics AS SELECT 'c1' AS cluster, 't' AS topic, '{topic_id}' AS topic_id")
        connection.execute(
            f"CREATE TABLE observed AS SELECT 'c1' AS cluster, 1 AS node, '{disk}' AS topic, 'X' AS disk_topic_id"
        )
        connection.execute(
            "CREATE TABLE held AS FROM (VALUES ('a', 'c1', 1), ('b', 'c1', 1), (NULL, 'c1', 1), ('z', 'c1', 7)) "
            "held (file, cluster, node)"
        )
        connection.execute("CREATE TABLE speaks AS SELECT 'c1' AS cluster, 1 AS node, 150_000 AS scanned_ms")
        number = keep_findings(connection, DuckDBDialect(), DuckDBDialect(as_of_ms="was_as_of_ms"), audit, now_ms)
        again = connection.execute("SELECT node FROM again").fetchall()
        assert (number, again) in ((1, []), (0, [(1,)]))
        assert files_to_judge(connection) == (["a", "b", None] if again else [])
        found = connection.execute("SELECT verdict, doubt FROM kept ORDER BY ALL").fetchall()
        assert not (again and found)
        return None if again else found


def test_what_rests_on_the_same_is_kept(tmp_path: Path) -> None:
    assert kept(earlier(tmp_path, {"verdict": "RENAMED"}, {"verdict": "FOREIGN", "broker": 2})) == [("RENAMED", None)]


@pytest.mark.parametrize(
    "other", [{"inventories": "j"}, {"inventories": None}, {"metadata": "n"}, {"rules": "s"}, {"node": 2}]
)
def test_what_rests_on_anything_else_or_is_not_known_is_judged_again(tmp_path: Path, other: dict[str, Any]) -> None:
    assert kept(earlier(tmp_path, {"verdict": "RENAMED"}, **other)) is None


@pytest.mark.parametrize(("disk", "topic_id", "again"), [("t", "U", True), ("other", "U", False), ("other", "X", True)])
def test_a_topic_that_changed_concerns_the_brokers_that_hold_its_name_or_its_id(
    tmp_path: Path, disk: str, topic_id: str, again: bool
) -> None:
    assert (kept(earlier(tmp_path), disk=disk, topic_id=topic_id) is None) is again


@pytest.mark.parametrize(
    ("verdict", "now_ms", "again"),
    [("STAGED", 50, False), ("STAGED", 60, True), ("STAGED_DUE", 60, False), ("STAGED_DUE", 50, True)],
)
def test_a_replica_that_became_due_is_judged_again(tmp_path: Path, verdict: str, now_ms: int, again: bool) -> None:
    audit = earlier(tmp_path, {"verdict": verdict, "kind": "staged", "due_ms": 60})
    assert (kept(audit, now_ms=now_ms) is None) is again


@pytest.mark.parametrize(
    ("finding", "as_of_ms", "expected"),
    [
        ({"verdict": "STALE_ID", "modified_ms": 99_000, "doubt": SINCE}, 200_000, [("STALE_ID", None)]),
        ({"verdict": "STALE_ID", "modified_ms": 199_000}, 200_000, [("STALE_ID", SINCE)]),
        ({"verdict": "MISSING"}, 200_000, [("MISSING", BEFORE)]),
        ({"verdict": "MISSING", "doubt": BEFORE}, None, [("MISSING", None)]),
        # Of these two verdicts some cases are open to a doubt and some are not.
        ({"verdict": "STRAY", "modified_ms": 99_000}, 200_000, None),
        ({"verdict": "STRAY", "modified_ms": 90_000}, 200_000, [("STRAY", None)]),
        ({"verdict": "ABSENT"}, 140_000, [("ABSENT", None)]),
        ({"verdict": "ABSENT"}, 200_000, None),
        ({"verdict": "RENAMED", "modified_ms": 99_000}, 200_000, [("RENAMED", None)]),
    ],
)
def test_newer_metadata_that_says_the_same_changes_doubts_alone(
    tmp_path: Path, finding: dict[str, Any], as_of_ms: int | None, expected: Any
) -> None:
    assert kept(earlier(tmp_path, finding), as_of_ms=as_of_ms) == expected


def test_no_verdict_is_open_to_two_doubts() -> None:
    for verdict in Verdict:
        assert len({case.doubt for case in CASES if case.verdict is verdict} - {None}) < 2


@pytest.mark.parametrize("which", EarlierAudit._fields)
def test_a_damaged_page_is_found_before_it_becomes_a_finding(tmp_path: Path, which: str) -> None:
    path = Path(getattr(earlier(tmp_path, {"verdict": "RENAMED"}), which))
    pq.write_table(pq.read_table(path), path, write_page_checksum=True, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    at = pq.read_metadata(path).row_group(0).column(1).data_page_offset
    end = at + pq.read_metadata(path).row_group(0).column(1).total_compressed_size
    data[end - 1] ^= 1
    path.write_bytes(data)
    audit = EarlierAudit(*(str(tmp_path / f"{name}.parquet") for name in EarlierAudit._fields))
    with pytest.raises(UsageError, match="audit once without --incremental"):
        kept(audit)
