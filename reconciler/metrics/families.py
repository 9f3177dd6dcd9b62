"""Every metric that this program exports: its name, its labels, what it means; and the readings that a command takes.

Names follow Prometheus' conventions: the base unit as a suffix, ``_total`` for counters alone. ``command`` is a label
of all of them, so that the files of several commands lie side by side in one folder and never say the same thing twice.
No label grows without a bound: brokers and log dirs are those that were given, verdicts and kinds are lists of ours,
and topics are the largest few, with the rest added up as :data:`OTHER_TOPICS`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

OTHER_TOPICS = "(other)"
"""The value of the label ``topic`` for all topics but the largest; no topic has such a name."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric, with a sample for each combination of its labels.

    Attributes:
        name: as Prometheus shows it.
        text: what a sample says, one sentence without a full stop.
        labels: their names, beside ``command``.
        is_counter: whether it only grows while the process lives; else it is a gauge.
    """

    name: str
    text: str
    labels: tuple[str, ...] = ()
    is_counter: bool = False


_LOG_DIR = ("cluster", "broker", "log_dir")

ORPHANS = Family(
    "kafka_log_orphan_partition_count",
    "Replicas on the disk that the cluster does not want there, as KIP-370 asks: STALE_ID, NOT_ASSIGNED, "
    "UNKNOWN_TOPIC and STRAY",
    _LOG_DIR,
)
ORPHAN_BYTES = Family(
    "kafka_log_orphan_partition_size_bytes",
    "Space on the disk of replicas that the cluster does not want there, as KIP-370 asks",
    _LOG_DIR,
)
REPLICAS = Family(
    "logstore_replicas",
    "Replicas, and other entries of log dirs, by verdict; log_dir is empty for what is on no disk",
    (*_LOG_DIR, "verdict"),
)
REPLICA_BYTES = Family("logstore_replicas_size_bytes", "Space on the disk by verdict", (*_LOG_DIR, "verdict"))
IN_DOUBT = Family(
    "logstore_replicas_in_doubt",
    "Replicas whose verdict is in doubt, because metadata or scan is too old for it",
    (*_LOG_DIR, "verdict"),
)
TOPIC_ORPHANS = Family(
    "logstore_topic_orphan_partitions",
    f"Replicas that the cluster does not want, of the topics that waste most space; {OTHER_TOPICS} is all others",
    ("cluster", "topic"),
)
TOPIC_ORPHAN_BYTES = Family(
    "logstore_topic_orphan_size_bytes",
    "Space on the disk of replicas that the cluster does not want, by topic",
    ("cluster", "topic"),
)
FLEET_FINDINGS = Family("logstore_fleet_findings", "Findings that only many log dirs together show", ("kind",))
ENTRIES = Family("logstore_scanned_entries", "Entries of log dirs by what they are", (*_LOG_DIR, "kind"))
ENTRY_BYTES = Family(
    "logstore_scanned_size_bytes", "Space on the disk by what an entry of a log dir is", (*_LOG_DIR, "kind")
)
STAGED = Family(
    "logstore_staged_replicas",
    "Replicas that are staged and wait for their purge; state is due or waiting",
    (*_LOG_DIR, "state"),
)
STAGED_BYTES = Family("logstore_staged_size_bytes", "Space on the disk of staged replicas", (*_LOG_DIR, "state"))
FIRST_DUE = Family(
    "logstore_staged_first_due_timestamp_seconds", "Earliest time at which a staged replica is due", _LOG_DIR
)
LOG_DIRS = Family(
    "logstore_log_dirs",
    "Log dirs by state: online; absent, or not the expected one; offline, which the system lets nobody read; "
    "unidentified, without a usable meta.properties",
    ("cluster", "broker", "state"),
)
LOG_DIR_ONLINE = Family("logstore_log_dir_online", "Whether a log dir is online: 1, else 0", _LOG_DIR)
METADATA_TIME = Family(
    "logstore_metadata_timestamp_seconds", "Time as of which the metadata speaks", ("cluster", "source")
)
METADATA_AGE = Family(
    "logstore_metadata_age_seconds", "Age of the metadata when it was compared", ("cluster", "source")
)
PLAN_ACTIONS = Family("logstore_plan_actions", "Actions of the plan", ("kind",))
PLAN_BYTES = Family("logstore_plan_size_bytes", "Space on the disk of what the actions of the plan move", ("kind",))
PLAN_LEFT_ALONE = Family("logstore_plan_left_alone", "Findings that need attention and get no action", ("verdict",))
PLAN_GATES_SHUT = Family("logstore_plan_gates_shut", "Reasons for which the plan was refused", ("gate",))
APPLY_ACTIONS = Family("logstore_apply_actions", "Actions of the applied plan by their result", ("kind", "status"))
APPLY_STAGED_BYTES = Family("logstore_apply_staged_size_bytes", "Space that was staged, which is not free yet")
PURGE_DIRECTORIES = Family(
    "logstore_purge_directories",
    "Staged directories by what the purge did: purged; not_due; waiting for the broker to stop; kept; failed",
    (*_LOG_DIR, "outcome"),
)
PURGE_EXPECTED_BYTES = Family(
    "logstore_purge_expected_size_bytes", "Space that the purge should have given back", _LOG_DIR
)
PURGE_FREED_BYTES = Family(
    "logstore_purge_freed_size_bytes", "Growth of the file system's free space, to which others write too", _LOG_DIR
)
PURGE_HELD_BYTES = Family(
    "logstore_purge_held_open_size_bytes", "Space of purged files that comes back when processes close them", _LOG_DIR
)
PURGE_COMPLETE = Family("logstore_purge_complete", "Whether everything due was deleted: 1, else 0", _LOG_DIR)
PURGE_RUNNING = Family(
    "logstore_purge_running", "Whether the purge was still under way when this was written: 1, else 0"
)
PURGE_REMOVED = Family(
    "logstore_purge_removed_directories", "Staged directories that the purge under way has removed up to now"
)
PURGE_REMOVED_BYTES = Family(
    "logstore_purge_removed_size_bytes", "Space on the disk of what the purge under way has removed up to now"
)
PURGE_PROGRESS_TIME = Family(
    "logstore_purge_progress_timestamp_seconds", "When the purge under way was last seen to remove something"
)
RUN_TIME = Family("logstore_run_timestamp_seconds", "When the command ended, in seconds since 1970")
RUN_SECONDS = Family("logstore_run_duration_seconds", "How long the command took")
RUN_EXIT = Family("logstore_run_exit_code", "Exit code of the command")
WATCH_START = Family("logstore_watch_start_timestamp_seconds", "Since when the watch runs, in seconds since 1970")
WATCH_CHANGES = Family(
    "logstore_watch_verdict_changes_total",
    "Verdicts that changed since the watch began, by the new one; GONE is a replica that is on no disk any more",
    ("verdict",),
    is_counter=True,
)
SCAN_SECONDS = Family("logstore_scan_duration_seconds", "How long the scan of the log dirs took")

FAMILIES: tuple[Family, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Family))
"""All of them, in the order above."""

Labels = tuple[str, ...]


@dataclass(slots=True)
class Readings:
    """The samples of one command, by family and by the values of its labels, each once."""

    command: str
    """The verb."""
    samples: dict[Family, dict[Labels, float]] = field(default_factory=dict)

    def add(self, family: Family, value: float, *labels: str) -> None:
        """Add a value to a sample, in the order of the family's labels; a sample begins at 0."""
        assert len(labels) == len(family.labels), family.name
        samples = self.samples.setdefault(family, {})
        samples[labels] = samples.get(labels, 0) + value

    def least(self, family: Family, value: float, *labels: str) -> None:
        """Keep the smaller one of a value and the sample so far."""
        assert len(labels) == len(family.labels), family.name
        samples = self.samples.setdefault(family, {})
        samples[labels] = min(samples.get(labels, value), value)

    def end(self, now_s: float, seconds: float, exit_code: int) -> None:
        """Say when the command ended, in seconds since 1970, how long it took, and how it ended."""
        self.add(RUN_TIME, now_s)
        self.add(RUN_SECONDS, seconds)
        self.add(RUN_EXIT, exit_code)

    def scanned(self, seconds: float) -> None:
        """Say how long the scan of the log dirs took."""
        self.add(SCAN_SECONDS, seconds)

    def named(self) -> Iterator[tuple[Family, Mapping[str, str], float]]:
        """Yield each sample with its labels by name, in the order of :data:`FAMILIES`."""
        for family in FAMILIES:
            for labels, value in sorted(self.samples.get(family, {}).items()):
                yield family, {"command": self.command, **dict(zip(family.labels, labels, strict=True))}, value


def broker_label(node: int | None) -> str:
    """Write a node.id as a label; a log dir without one has an empty label."""
    return "" if node is None or node < 0 else str(node)
