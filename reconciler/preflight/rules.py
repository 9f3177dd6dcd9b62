"""Findings, their order and columns, and the names of the rules, with the source of each.

A finding carries the name of its rule. The rule itself is the function that makes the finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

SCHEMA_VERSION = 2
"""Version of the columns and of the JSON document; goes up when a field changes its meaning or is removed."""

FINDING_SCHEMA = pa.schema(
    [
        pa.field("effect", pa.string()),  # a StartEffect
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


class StartEffect(StrEnum):
    """What a broker does because of a finding, the gravest first."""

    STARTUP_ABORTS = "startup_aborts"
    """The broker does not start, or halts at once."""
    LOG_DIR_OFFLINE = "log_dir_offline"
    """The broker goes on without this disk."""
    DELETED = "deleted"
    """Data is deleted for ever, within about a minute."""
    OLD_RECORDS = "old_records"
    """Records of a deleted topic count as those of the topic that has its name now."""
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


ORDER = {effect: number for number, effect in enumerate(StartEffect)}
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

    effect: StartEffect
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


RULES: tuple[str, ...] = (
    # All log dirs together
    "no_log_dir_online",  # FACTS §1.5
    "metadata_log_dir_offline",  # FACTS §1.5
    "migration_needs_all_log_dirs",  # FACTS §1.5
    "same_directory",  # FACTS §1.5
    "identity",  # FACTS §1.5, §2.2
    "not_formatted",  # FACTS §1.5, §2.2
    "metadata_log_elsewhere",  # FACTS §1.5
    # One log dir
    "absent_log_dir",  # FACTS §1.5
    "unusable_log_dir",  # FACTS §1.5
    "damaged_identity",  # FACTS §1.5, §2.2
    "closed_to_this_user",  # nothing is found out about the broker
    "lock_held",  # FACTS §1.5, §2.7
    "read_only_disk",  # FACTS §1.5
    "another_owner",  # FACTS §1.9
    "full_disk",  # seen on 2.8.2, 3.9.2 and 4.3.1
    "damaged_checkpoint",  # FACTS §1.6, §2.3, §2.4
    "scheme_not_flat",  # DESIGN §5, FACTS §1.6
    "unclean_stop",  # FACTS §1.6, §2.6
    "no_segment",  # FACTS §1.6
    # Directories by name
    "foreign_name",  # FACTS §1.3, §1.6
    "staging_inside",  # FACTS §1.6, DESIGN §5
    "unknown_to_release",  # FACTS §1.3, §1.6
    "link",  # FACTS §1.1
    "unreadable_directory",  # FACTS §1.9
    "marked_delete",  # FACTS §1.6, §1.8
    "stray",  # FACTS §1.6
    "duplicate",  # FACTS §1.7
    # Replicas by topic ID and by what the cluster wants
    "partition_metadata",  # FACTS §1.6, §2.1
    "no_topic_id",  # FACTS §6.1, §6.3
    "stray_search_fails",  # FACTS §6.1
    "full_request_fails",  # FACTS §6.2
    "unwanted",  # FACTS §6.1, §6.2, §6.3
    "inconsistent_topic_id",  # FACTS §4.2
    "future",  # FACTS §1.6, §6.3
    "future_alone",  # seen on 2.8.2, 3.9.2 and 4.3.1
    "future_promoted",  # FACTS §1.8, §6.3, §6.5
    "missing",  # FACTS §4.2, §4.3
    "empty_metadata",  # FACTS §6.3
    # Files in partition dirs
    "odd_file_name",  # FACTS §1.9
    "unreadable_file",  # FACTS §1.9
    "linked_file",  # FACTS §1.9
    "leader_epochs",  # FACTS §2.3, §2.5
    "leftovers",  # FACTS §1.9
    # The metadata log
    "no_metadata_log",  # FACTS §7.1
    "metadata_log_damaged",  # FACTS §1.9, §2.1, §2.5, §2.8
    "metadata_log_topic_id",  # FACTS §2.1
    "metadata_log_snapshot",  # FACTS §7.2
    "quorum_state_too_new",  # FACTS §2.8
    "feature_level_too_new",  # FACTS §7.4
)
"""The names of all rules, each with its source in a comment; a test triggers each of them."""
