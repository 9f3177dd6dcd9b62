"""The layout of a folder of inventories: a file for each scan of a broker, partitioned by cluster, day and broker.

::

    FOLDER/cluster=<cluster.id>/day=<YYYY-MM-DD>/broker=<node.id>/scan-<scanned_ms>-<log dirs>.parquet

Folders have the form that Hive, Spark, DuckDB and Arrow know, and the same word for a value that is not known. The day
is that of the scan, in UTC. ``<log dirs>`` stands for the host and the paths that were scanned together: 12 hex digits
of their SHA-256, so that all scans of the same log dirs share it, and no two hosts write one name.

A log dir that tells no identity, because its disk is away, lies in the file of the broker whose log dirs were scanned
with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from logstore.rows.rows import Kind
from logstore.rows.uris import is_uri, join_uri, put, uri_of_path

if TYPE_CHECKING:
    import pyarrow as pa

UNKNOWN = "__HIVE_DEFAULT_PARTITION__"
"""The name of a value that is not known."""

_DIGITS = 12
_NAME = re.compile(
    rf"(?:^|/)cluster=([^/]+)/day=\d{{4}}-\d\d-\d\d/broker=(-?\d+|{UNKNOWN})/scan-(\d+)-([0-9a-f]{{{_DIGITS}}})\.parquet"
    r"(?:\?.*)?"
)

_FOLDER = re.compile(r"(?:cluster|day|broker)=.+")


class ScanName(NamedTuple):
    """What the name of an inventory in the layout says."""

    log_dirs: tuple[str, str, str]
    """Cluster, broker and the digits of host and paths, as written: the same in every scan of the same log dirs."""
    scanned_ms: int


def name_of_scan(log_dirs: Sequence[Mapping[str, Any]]) -> str:
    """Name the inventory of some log dirs below its folder, by their ``log_dir`` rows, at least one."""
    from hashlib import sha256  # here, because every command asks this module what an inventory is named

    brokers = {(row["cluster_id"], row["node_id"]) for row in log_dirs} - {(None, None)}
    cluster, node = brokers.pop() if len(brokers) == 1 else (None, None)
    scanned_ms = min(row["scanned_ms"] for row in log_dirs)
    paths = sorted(f"{row['host'] or ''}\0{row['log_dir']}" for row in log_dirs)
    digits = sha256("\0".join(paths).encode()).hexdigest()[:_DIGITS]
    day = datetime.fromtimestamp(scanned_ms / 1000, UTC).date().isoformat()
    return "/".join(
        (
            f"cluster={quote(cluster, safe='') if cluster else UNKNOWN}",
            f"day={day}",
            f"broker={UNKNOWN if node is None else node}",
            f"scan-{scanned_ms}-{digits}.parquet",
        )
    )


def parse_scan_name(path: str) -> ScanName | None:
    """Read the name of an inventory, by a path or a URI that ends in the layout; None: it does not."""
    match = _NAME.search(path)
    if match is None or match.end() != len(path):
        return None
    cluster, broker, scanned_ms, digits = match.groups()
    return ScanName((cluster, broker, digits), int(scanned_ms))


def is_layout_folder(name: str) -> bool:
    """Whether a folder has a name of the layout, which no replica has: there is no equals sign in a topic's name."""
    return _FOLDER.fullmatch(name) is not None


def write_scan(tables: Iterable[pa.Table], target: str) -> tuple[str, int]:
    """Write the rows of log dirs as one inventory, whole or not at all; return where it lies and its number of rows.

    Args:
        tables: the rows of one log dir each, in ROW_SCHEMA, the ``log_dir`` row first; at least one.
        target: the folder of the layout, a path or a URI; a URI that ends in ``.parquet`` is the file itself.

    Raises:
        InventoryStoreError: it cannot be written there.
        OSError: there is no room for temporary files.
    """
    from logstore.rows.inventory import InventoryForm, write_inventory

    log_dirs: list[dict[str, Any]] = []

    def noted() -> Iterator[pa.Table]:
        for table in tables:
            log_dirs.extend(row for row in table.slice(0, 1).to_pylist() if row["kind"] == Kind.LOG_DIR)
            yield table

    import tempfile

    with tempfile.NamedTemporaryFile(prefix="logstore-scan-", suffix=".parquet") as file:
        rows = write_inventory(noted(), file, InventoryForm.PARQUET)  # type: ignore[arg-type]
        file.flush()
        if not (is_uri(target) and target.partition("?")[0].endswith(".parquet")):
            target = join_uri(target, name_of_scan(log_dirs))
        put(file.name, target if is_uri(target) else uri_of_path(target))
    return target, rows
