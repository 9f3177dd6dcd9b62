"""What both engines answer: totals in memory, findings in a Parquet dataset, and the same shape for every output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from reconciler.audit.findings import FINDING_SCHEMA
from reconciler.desired import MetadataIdentity
from reconciler.verdicts import BENIGN, URGENCY, Verdict


@dataclass(frozen=True, slots=True)
class BrokerSummary:
    """One broker that was scanned."""

    cluster_id: str | None
    node_id: int | None
    hosts: tuple[str, ...]
    log_dirs: tuple[Mapping[str, Any], ...]
    """``{"log_dir", "directory_id", "state", "problem"}`` each."""
    replicas: int
    """Partition dirs of any kind that lie on its disks."""
    bytes: int


@dataclass(frozen=True, slots=True)
class FleetFinding:
    """Something that only several rows together tell."""

    kind: str
    """A name of :mod:`reconciler.audit.fleet`."""
    cluster_id: str | None
    subject: str
    """What it is about: a topic, a broker, a directory ID."""
    detail: str
    """What was seen, one sentence."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """One audit, whichever engine did it."""

    engine: str
    audited_ms: int
    metadata: tuple[MetadataIdentity, ...]
    brokers: tuple[BrokerSummary, ...]
    totals: Mapping[str, int]
    """Rows by verdict; a verdict without rows is not listed."""
    bytes: Mapping[str, int]
    """Bytes on disk by verdict."""
    fleet: tuple[FleetFinding, ...]
    findings_path: str
    """A Parquet file or a folder of them, in the columns of FINDING_SCHEMA."""
    notes: tuple[str, ...] = field(default=())
    """What a reader should know and nobody must act on."""

    @property
    def is_clean(self) -> bool:
        """Whether nobody has to act on anything that was found."""
        benign = {verdict.value for verdict in BENIGN}
        return not self.fleet and all(name in benign for name in self.totals)

    @property
    def count(self) -> int:
        """Findings that are listed in :attr:`findings_path`."""
        return int(self._dataset().count_rows())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All findings in no particular order, a batch at a time, however many there are."""
        yield from self._dataset().to_batches()

    def most_urgent(self, limit: int, verdicts: Sequence[Verdict] = URGENCY) -> pa.Table:
        """At most ``limit`` findings, by urgency and then by broker, topic and partition.

        Reads one verdict at a time and stops when it has enough, so a million findings cost no more than the first.
        """
        import pyarrow.dataset as ds  # as in _dataset

        tables: list[pa.Table] = []
        room = limit
        for verdict in verdicts:
            if room <= 0:
                break
            if not self.totals.get(verdict.value):
                continue
            found = self._dataset().to_table(filter=ds.field("verdict") == verdict.value)
            order = [(name, "ascending") for name in ("broker", "topic", "partition", "log_dir", "name")]
            tables.append(found.sort_by(order).slice(0, room))
            room -= tables[-1].num_rows
        return pa.concat_tables(tables) if tables else FINDING_SCHEMA.empty_table()

    def _dataset(self) -> Any:
        # With pandas on the machine this module imports it, which takes as long as the audit of a hundred brokers.
        import pyarrow.dataset as ds

        return ds.dataset(self.findings_path, schema=FINDING_SCHEMA, format="parquet")
