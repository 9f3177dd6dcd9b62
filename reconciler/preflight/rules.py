"""Findings, their order and columns, and the table of rules: the next safe command for each.

Every command here only reads, or shows what would be done; none changes a disk. A finding carries the name of its rule.
The rule itself is the function that makes the finding.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from reconciler.text import quoted

SCHEMA_VERSION = 2
"""Version of the columns and of the JSON document; goes up when a field changes its meaning or is removed."""

FINDING_SCHEMA = pa.schema(
    [
        pa.field("effect", pa.string()),  # an Effect
        pa.field("rule", pa.string()),  # a name in rules.RULES
        pa.field("log_dir", pa.string()),  # null: the broker as a whole
        pa.field("name", pa.string()),  # path below the log dir; "." for the log dir itself
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("topic_id", pa.string()),  # as the disk holds it
        pa.field("replicas", pa.int64()),  # number of replicas that the finding is about
        pa.field("only_in_sync", pa.bool_()),  # the metadata's only in-sync replica of the partition
        pa.field("problem", pa.string()),  # the problem and its consequence, one sentence
        pa.field("next", pa.string()),  # the next safe command; null where there is none
    ]
)


class Effect(StrEnum):
    """What a broker does because of a finding, the gravest first."""

    STARTUP_ABORTS = "startup_aborts"
    """The broker does not start, or halts at once."""
    LOG_DIR_OFFLINE = "log_dir_offline"
    """The broker goes on without this disk."""
    DELETED = "deleted"
    """Data is deleted for ever, within about a minute."""
    RENAMED_TO_STRAY = "renamed_to_stray"
    """A replica becomes a stray with its data, and is replicated again from another broker, if one has it."""
    REPLACED = "replaced"
    """A future replica takes the place of the current one, which is then deleted."""
    CREATED_EMPTY = "created_empty"
    """A log dir or replica is created empty where data was expected."""
    NOT_SERVED = "not_served"
    """Data stays as it is, and the broker does not use it."""
    UNKNOWN = "unknown"
    """The effect is not known from here."""
    NOTE = "note"
    """Worth knowing; nothing is lost."""


ORDER = {effect: number for number, effect in enumerate(Effect)}
"""Rank of each effect; the gravest has the lowest number."""


@dataclass(frozen=True, slots=True)
class FindingPlace:
    """The object of a finding; all fields None: the broker as a whole."""

    log_dir: str | None = None
    name: str | None = None
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, and what a broker does because of it."""

    effect: Effect
    rule: str
    """A name in :data:`reconciler.preflight.rules.RULES`."""
    problem: str
    """The problem and its consequence, without a full stop."""
    place: FindingPlace = FindingPlace()
    replicas: int = 0
    only_in_sync: bool = False

    @property
    def order(self) -> tuple[int, str, str, str, int]:
        """Sort key: the gravest findings first, and findings of one rule together."""
        place = self.place
        return ORDER[self.effect], self.rule, place.log_dir or "", place.name or "", place.partition or 0


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a broker's start."""

    next: str = ""
    """A command with ``{path}``, ``{log_dir}``, ``{log_dirs}``, ``{topic}`` or ``{metadata}`` in it; empty: none."""


_EXPLAIN = "logstore explain {path}"
_EXPLAIN_WITH_METADATA = "logstore explain {path} --metadata {metadata}"
_LOOK = "ls -la {path}"
_REPAIR = "logstore repair {log_dirs} --metadata {metadata}"
_MOUNT = "findmnt --target {log_dir}"
_IDENTITIES = "grep -H = {identities}"
_DESCRIBE = "kafka-topics.sh --bootstrap-server HOST:PORT --describe --topic {topic}"

RULES: Mapping[str, Rule] = {
    # All log dirs together
    "no_log_dir_online": Rule(),  # FACTS §1.5
    "metadata_log_dir_offline": Rule(),  # FACTS §1.5
    "migration_needs_all_log_dirs": Rule(),  # FACTS §1.5
    "same_directory": Rule("realpath {log_dir}"),  # FACTS §1.5
    "identity": Rule(_IDENTITIES),  # FACTS §1.5, §2.2
    "not_formatted": Rule(_MOUNT),  # FACTS §1.5, §2.2
    "metadata_log_elsewhere": Rule("logstore preflight {log_dirs} --metadata-log-dir {log_dir}"),  # FACTS §1.5
    # One log dir
    "absent_log_dir": Rule(_MOUNT),  # FACTS §1.5
    "unusable_log_dir": Rule("ls -lad {log_dir}"),  # FACTS §1.5
    "damaged_identity": Rule(_EXPLAIN),  # FACTS §1.5, §2.2
    "lock_held": Rule("fuser -v {path}"),  # FACTS §1.5, §2.7
    "damaged_checkpoint": Rule("logstore repair {log_dir} --only rebuild_checkpoint"),  # FACTS §1.6, §2.3, §2.4
    "scheme_not_flat": Rule("logstore convert {log_dir} --to flat --dry-run"),  # DESIGN §5, FACTS §1.6
    "unclean_stop": Rule(),  # FACTS §1.6, §2.6
    "no_segment": Rule("logstore scan {log_dir}"),  # FACTS §1.6
    # Directories by name
    "foreign_name": Rule(_LOOK),  # FACTS §1.3, §1.6
    "staging_inside": Rule("logstore staged {log_dir}"),  # FACTS §1.6, DESIGN §5
    "unknown_to_release": Rule(_EXPLAIN),  # FACTS §1.3, §1.6
    "link": Rule("readlink -f {path}"),  # FACTS §1.1
    "unreadable_directory": Rule("ls -lad {path}"),  # FACTS §1.9
    "marked_delete": Rule(_EXPLAIN_WITH_METADATA),  # FACTS §1.6, §1.8
    "stray": Rule(_EXPLAIN_WITH_METADATA),  # FACTS §1.6
    "duplicate": Rule(_REPAIR),  # FACTS §1.7
    # Replicas by topic ID and by what the cluster wants
    "partition_metadata": Rule(_REPAIR),  # FACTS §1.6, §2.1
    "no_topic_id": Rule(_REPAIR),  # FACTS §6.1, §6.3
    "stray_search_fails": Rule(_REPAIR),  # FACTS §6.1
    "full_request_fails": Rule(_REPAIR),  # FACTS §6.2
    "unwanted": Rule(_EXPLAIN_WITH_METADATA),  # FACTS §6.1, §6.2, §6.3
    "inconsistent_topic_id": Rule(_EXPLAIN_WITH_METADATA),  # FACTS §4.2
    "future": Rule(_EXPLAIN_WITH_METADATA),  # FACTS §1.6, §6.3
    "future_promoted": Rule(_EXPLAIN_WITH_METADATA),  # FACTS §1.8, §6.3, §6.5
    "missing": Rule(_DESCRIBE),  # FACTS §4.2, §4.3
    "empty_metadata": Rule("logstore audit {log_dirs} --metadata SOURCE"),  # FACTS §6.3
    # Files in partition dirs
    "odd_file_name": Rule(_LOOK),  # FACTS §1.9
    "unreadable_file": Rule(_LOOK),  # FACTS §1.9
    "linked_file": Rule("readlink -f {path}"),  # FACTS §1.9
    "leader_epochs": Rule(_EXPLAIN),  # FACTS §2.3, §2.5
    "leftovers": Rule(),  # FACTS §1.9
    # The metadata log
    "no_metadata_log": Rule(),  # FACTS §7.1
    "metadata_log_damaged": Rule(_EXPLAIN),  # FACTS §1.9, §2.1, §2.5, §2.8
    "metadata_log_topic_id": Rule(_EXPLAIN),  # FACTS §2.1
    "metadata_log_snapshot": Rule(_LOOK),  # FACTS §7.2
    "quorum_state_too_new": Rule("cat {path}"),  # FACTS §2.8
}
"""All rules by name, each with its source in a comment; a test triggers each of them."""


def next_command(finding: Finding, log_dirs: Sequence[str], metadata: str | None) -> str:
    """Return the next safe command for a finding, with its paths; unknown values stay in capitals.

    Args:
        finding: of a rule.
        log_dirs: all log dirs of the broker, as they were given.
        metadata: the source of the metadata, as ``--metadata`` takes it.
    """
    place = finding.place
    path = None if place.log_dir is None else posixpath.normpath(f"{place.log_dir}/{place.name or '.'}")
    return RULES[finding.rule].next.format(
        path="PATH" if path is None else quoted(path),
        log_dir="LOG_DIR" if place.log_dir is None else quoted(place.log_dir),
        log_dirs=" ".join(map(quoted, log_dirs)),
        identities=" ".join(quoted(f"{log_dir}/meta.properties") for log_dir in log_dirs),
        topic="TOPIC" if place.topic is None else quoted(place.topic),
        metadata="SOURCE" if metadata is None else quoted(metadata),
    )
