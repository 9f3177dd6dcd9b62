"""Counts what histories came to: operations, faults, verdicts, answers, and the engine's ways of recovery.

A history counts most of it where it happens. What the engine does by itself, at an open or when a disk fails, is read
from its own log. :data:`EXPECTED` is what a soak must come to; what it does not come to, its promises do not cover.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields

from reconciler.plan import Gate
from reconciler.simulator.checks import Damage
from reconciler.simulator.drills.purging import Obstacle
from reconciler.simulator.kernel import FaultRates
from reconciler.verdicts import Verdict

_RECOVERIES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "temporary_file_removed": "was left by a write that did not finish",
        "topic_id_draft_removed": "was never finished, and is removed",
        "draft_replica_removed": "was about to be created, and is removed",
        "staging_undone": "was about to be staged or restored, and is live",
        "purge_finished": "was purged, and its empty directory is removed",
        "move_dropped": "its move to .* was cut short, and the copy goes",
        "move_finished": "is moved from .* as a crash had left to be done",
        "move_record_removed": "was moved here, and is live",
        "move_waits_for_disk": "waits until .* can be opened",
        "intent_carried_out": "this was cut short, and is carried out to its end$",
        "intent_waits_for_disk": "this was cut short, and is carried out to its end; ",
        "intent_traces_removed": "this came to its end before, and its last traces are removed",
        "namespace_made_again": "was not there, and is made",
        "full_disk_one_by_one": "; trying one by one",
        "checkpoints_put_off": "the checkpoints cannot be written",
        "stage_without_room": "replicas should be staged, and not all of them are",
        "not_staged": "is not staged:",
        "not_created": "is not created:",
        "not_restored": "is not brought back:",
    }.items()
}
"""Name of a way of recovery → what the engine's log says of it."""

_FAULTS = tuple(each.name for each in fields(FaultRates))

_VERDICTS = (
    *("ABSENT", "IN_FLIGHT", "MARKED_DELETE", "MISSING", "NOT_ASSIGNED", "NOT_COMPARED", "OK", "STAGED", "STAGED_DUE"),
    *("STALE_ID", "UNKNOWN_TOPIC"),
)
_ANSWERS = (
    *("LeaderAndIsr KAFKA_STORAGE_ERROR", "LeaderAndIsr STALE_BROKER_EPOCH", "LeaderAndIsr STALE_CONTROLLER_EPOCH"),
    *("StopReplica KAFKA_STORAGE_ERROR", "UpdateMetadata STALE_BROKER_EPOCH", "UpdateMetadata STALE_CONTROLLER_EPOCH"),
    *("Fetch FENCED_LEADER_EPOCH", "Fetch UNKNOWN_LEADER_EPOCH", "Fetch UNKNOWN_TOPIC_ID", "Produce UNKNOWN_TOPIC_ID"),
)
_WAYS = (
    *("temporary_file_removed", "draft_replica_removed", "move_dropped", "move_record_removed", "intent_carried_out"),
    "namespace_made_again",
)

EXPECTED: tuple[str, ...] = (
    *(f"fault {kind}" for kind in _FAULTS),
    *(f"command {name}" for name in ("creates", "deletes", "grows", "reassigns", "elects", "sets")),
    *(f"operation {name}" for name in ("create", "stage", "restore", "move", "purge")),
    *(f"operator {name}" for name in ("restore", "move_disk", "convert")),
    *(f"plan {name}" for name in ("made", "stage_done", "stage_already", "create_done", "refused_old")),
    *(f"repair {name}" for name in (*Damage, "undone", "finished_after_crash")),
    *("watch changes", "audit rows"),
    *(f"drill {name}" for name in ("create", "offsets", "stage", "restore", "move", "purge", "rename", "convert")),
    *(f"drill {name}" for name in ("create_namespace", "move_namespace", "delete_namespace")),
    *(f"drill leader_and_isr_{kind}" for kind in ("FULL", "INCREMENTAL", "UNSPECIFIED")),
    "drill stop_replica",
    *(f"drill_fault {kind}" for kind in ("power", "disk", "system")),
    *(f"drill_ledger {name}" for name in ("stage", "note", "compact", "half_compacted", "reopen", "used_name")),
    "drill_ledger damaged",
    *(f"drill_staging {name}" for name in ("stage", "restore", "purge", "adopt", "forget", "damaged")),
    *(f"drill_purge {obstacle}" for obstacle in Obstacle),
    *(f"drill_{game}_fault {kind}" for game in ("ledger", "staging", "purge") for kind in ("power", "system")),
    *(f"drill_verdict {verdict}" for verdict in Verdict),
    *(f"drill_gate {gate}" for gate in Gate),
    *(f"drill_metadata {damage}" for damage in ("none", "cut", "flipped", "middle", "log of an older epoch")),
    *(f"drill_file {name}" for name in ("replace", "remove", "create", "batch", "batch_create")),
    *(f"drill_file {name}" for name in ("directory", "rename", "copy")),
    *(f"drill_file_fault {kind}" for kind in ("power", "system")),
    *(f"drill_log_dir ledger_{what}" for what in ("pages", "full")),
    *(f"drill_log_dir lock_{what}" for what in ("log_dir", "beside", "vanishing")),
    *(f"drill_log_dir {act}_{what}" for act in ("restore", "stage") for what in ("done", "refused", "offline")),
    *(f"drill_log_dir {what}" for what in ("checkpoints", "checkpoints_damaged", "spare", "half_purged")),
    *(f"drill_log_dir {what}" for what in ("records", "tier", "place")),
    *(
        f"drill_format {what}"
        for what in ("topic", "path", "suffix", "staged", "id", "identities", "due", "delay", "steps")
    ),
    *(f"drill_format {what}" for what in ("offsets", "epochs", "metadata", "properties")),
    *(f"drill_format {what}" for what in ("leader_and_isr", "stop_replica", "drawn", "contradiction", "ids")),
    *(f"drill_format zookeeper {damage}" for damage in ("none", "snapshot", "log", "no log")),
    *(f"drill_journal {name}" for name in ("rename", "convert", "move", "create_namespace", "move_namespace")),
    *(
        f"drill_journal {name}"
        for name in ("delete_namespace", "beside_refused", "beside_done", "used_meanwhile", "recovery_cut")
    ),
    *(f"drill_journal refused_{name}" for name in ("on_its_way", "one_id", "staged")),
    *(f"drill_journal stranger_{where}" for where in ("in_the_way", "in_a_tier")),
    *(f"drill_journal_fault {kind}" for kind in ("power", "early_power", "late_power", "system", "system_and_power")),
    *(f"drill_journal_fault {kind}" for kind in ("disk", "first_disk", "interrupt")),
    *(f"drill_scene {name}" for name in ("copies", "successor", "unreadable", "by_hand", "renamed", "moved")),
    *(f"drill_scene {name}" for name in ("created", "purger", "failed")),
    *(f"drill_controller {name}" for name in ("deleted", "marked", "recreated", "renamed", "reassigned", "dropped")),
    *(f"drill_controller {name}" for name in ("cancelled", "returned", "unreadable", "restarted", "fewer")),
    *(f"drill_controller {name}" for name in ("failed", "in_sync", "elected", "stopping", "fenced")),
    *(f"drill_repair undo_{what}" for what in ("nothing", "changed", "replaced", "gone")),
    *(f"drill_repair_fault {kind}" for kind in ("power", "system")),
    *(f"drill_scan {what}" for what in ("ok", "missing", "empty", "malformed", "zero_id", "contradicts", "copies")),
    *(f"drill_troubled {name}" for name in ("stopped", "unread", "unlisted_disk", "unlisted_system", "copies")),
    *(f"drill_troubled restored_{how}" for how in ("offline", "refused", "well")),
    *(f"drill_troubled recreated_{how}" for how in ("changed", "offline", "refused")),
    *(f"drill_by_hand {gate}" for gate in ("cluster", "epoch", "create", "sole-copy", "no-id", "internal")),
    *(f"drill_by_hand {which}" for which in ("older", "newer")),
    *(f"drill_plan stage_{what}" for what in ("none", "rewritten", "grown", "replaced", "gone", "other_id")),
    "drill_plan stage_held",
    *(f"drill_plan restore_{what}" for what in ("none", "rewritten", "grown", "replaced", "gone")),
    "drill_plan copy_none",
    *(f"drill_plan copy_{which}_{what}" for which in ("better", "worse") for what in ("gone", "replaced", "other_id")),
    *(f"drill_plan refused_{why}" for why in ("machine", "age", "log_dir")),
    *(f"verdict {name}" for name in _VERDICTS),
    *(f"answer {name}" for name in _ANSWERS),
    *(f"recovery {name}" for name in _WAYS),
)
"""What the soak of a thousand seeds must come to; the line at its end says how often it did."""


def unreached(reached: Mapping[str, int]) -> list[str]:
    """List what a soak had to come to and did not."""
    return [what for what in EXPECTED if not reached.get(what)]


@contextmanager
def recoveries_counted(reach: Callable[[str], None]) -> Iterator[None]:
    """Count the engine's ways of recovery, by its log, while a history is played."""
    handler, loggers = _Counting(reach), [logging.getLogger(name) for name in ("logstore", "reconciler")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


class _Counting(logging.Handler):
    def __init__(self, reach: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._reach = reach

    def emit(self, record: logging.LogRecord) -> None:
        """Count what a line of the log says."""
        said = record.getMessage()
        for name, pattern in _RECOVERIES.items():
            if pattern.search(said):
                self._reach(f"recovery {name}")
                return
