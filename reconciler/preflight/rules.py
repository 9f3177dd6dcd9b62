"""Findings, their order and columns, and the table of rules: the source of each, and the next safe command.

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

SCHEMA_VERSION = 1
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
        pa.field("source", pa.string()),  # where the rule is known from
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
    source: str = ""
    """Where the finding is known from; empty: the rule's source."""
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

    source: str
    """Where the rule is known from."""
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
    "no_log_dir_online": Rule("FACTS §1.5"),
    "metadata_log_dir_offline": Rule("FACTS §1.5"),
    "migration_needs_all_log_dirs": Rule("FACTS §1.5"),
    "same_directory": Rule("FACTS §1.5", "realpath {log_dir}"),
    "identity": Rule("FACTS §1.5, §2.2", _IDENTITIES),
    "not_formatted": Rule("FACTS §1.5, §2.2", _MOUNT),
    "metadata_log_elsewhere": Rule("FACTS §1.5", "logstore preflight {log_dirs} --metadata-log-dir {log_dir}"),
    # One log dir
    "absent_log_dir": Rule("FACTS §1.5", _MOUNT),
    "unusable_log_dir": Rule("FACTS §1.5", "ls -lad {log_dir}"),
    "damaged_identity": Rule("FACTS §1.5, §2.2", _EXPLAIN),
    "lock_held": Rule("FACTS §1.5, §2.7", "fuser -v {path}"),
    "damaged_checkpoint": Rule("FACTS §1.6, §2.3, §2.4", "logstore repair {log_dir} --only rebuild_checkpoint"),
    "scheme_not_flat": Rule("DESIGN §5, FACTS §1.6", "logstore convert {log_dir} --to flat --dry-run"),
    "unclean_stop": Rule("FACTS §1.6, §2.6"),
    "no_segment": Rule("FACTS §1.6", "logstore scan {log_dir}"),
    # Directories by name
    "foreign_name": Rule("FACTS §1.3, §1.6", _LOOK),
    "staging_inside": Rule("FACTS §1.6, DESIGN §5", "logstore staged {log_dir}"),
    "unknown_to_release": Rule("FACTS §1.3, §1.6", _EXPLAIN),
    "link": Rule("FACTS §1.1", "readlink -f {path}"),
    "unreadable_directory": Rule("FACTS §1.9", "ls -lad {path}"),
    "marked_delete": Rule("FACTS §1.6, §1.8", _EXPLAIN_WITH_METADATA),
    "stray": Rule("FACTS §1.6", _EXPLAIN_WITH_METADATA),
    "duplicate": Rule("FACTS §1.7", _REPAIR),
    # Replicas by topic ID and by what the cluster wants
    "partition_metadata": Rule("FACTS §1.6, §2.1", _REPAIR),
    "no_topic_id": Rule("FACTS §6.1, §6.3", _REPAIR),
    "stray_search_fails": Rule("FACTS §6.1", _REPAIR),
    "full_request_fails": Rule("FACTS §6.2", _REPAIR),
    "unwanted": Rule("FACTS §6.1, §6.2, §6.3", _EXPLAIN_WITH_METADATA),
    "inconsistent_topic_id": Rule("FACTS §4.2", _EXPLAIN_WITH_METADATA),
    "future": Rule("FACTS §1.6, §6.3", _EXPLAIN_WITH_METADATA),
    "future_promoted": Rule("FACTS §1.8, §6.3, §6.5", _EXPLAIN_WITH_METADATA),
    "missing": Rule("FACTS §4.2, §4.3", _DESCRIBE),
    "empty_metadata": Rule("FACTS §6.3", "logstore audit {log_dirs} --metadata SOURCE"),
    # Files in partition dirs
    "odd_file_name": Rule("FACTS §1.9", _LOOK),
    "unreadable_file": Rule("FACTS §1.9", _LOOK),
    "linked_file": Rule("FACTS §1.9", "readlink -f {path}"),
    "leader_epochs": Rule("FACTS §2.3, §2.5", _EXPLAIN),
    "leftovers": Rule("FACTS §1.9"),
    # The metadata log
    "no_metadata_log": Rule("FACTS §7.1"),
    "metadata_log_damaged": Rule("FACTS §1.9, §2.1, §2.5, §2.8", _EXPLAIN),
    "metadata_log_topic_id": Rule("FACTS §2.1", _EXPLAIN),
    "metadata_log_snapshot": Rule("FACTS §7.2", _LOOK),
    "quorum_state_too_new": Rule("FACTS §2.8", "cat {path}"),
}
"""All rules by name; a test triggers each of them."""


def source_of(finding: Finding) -> str:
    """Return where a finding is known from."""
    return finding.source or RULES[finding.rule].source


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
