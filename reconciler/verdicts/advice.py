"""Advice on a finding: what its verdict means, why it matters, and how urgent it is.

The command line and the reports show these texts; the case table (``verdicts.table``) decides which verdict holds, and
:mod:`reconciler.next_steps` what comes next. Source: DESIGN §3.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from reconciler.desired import Mode
from reconciler.verdicts.doubt import Doubt
from reconciler.verdicts.table import BENIGN, URGENCY, Verdict


@dataclass(frozen=True, slots=True)
class Advice:
    """Texts for one kind of finding."""

    meaning: str
    """What was found, one sentence."""
    why: str
    """What follows from the finding, and what not to do."""


_OLD_DATA = (
    "The data is the old topic's: do not write the new topic ID over the old one unless the metadata was lost and made "
    "anew; then 'logstore repair --adopt-topic-id' does it."
)
_MOVED = "It is left over from a move that was interrupted or cancelled."
_NEEDED = "It takes space, and is needed only while the partition has no other copy in sync."
_DELETED_OR_OLD = (
    "Either the topic was deleted, or the metadata is older than the topic. Look at newer metadata before you believe "
    "the first."
)
_KRAFT_RENAMES = "When it starts, a broker of 3.7 or later renames it to -stray, and one of 3.0 to 3.6 deletes it."
_ZOOKEEPER_KEEPS = "A broker in ZooKeeper mode leaves it there for ever."

ADVICE: Mapping[Verdict, Advice] = {
    Verdict.ABSENT: Advice(
        "A log dir was not there, was not the expected one, or was not among those that were scanned.",
        "A disk that is not mounted looks like an empty one. Nothing may be concluded about its replicas before it is "
        "back; a broker that starts now creates an empty log dir in its place. Only where the disk is lost for good, "
        "and a new one is in its place, it starts on that, makes the replicas anew and fetches them from the leaders.",
    ),
    Verdict.DAMAGED: Advice(
        "A metadata file or its directory cannot be read, or the file does not say what it should.",
        "One such file takes the whole log dir offline, or keeps the broker from starting. Do not delete it: in KRaft "
        "mode a replica without its topic ID is set aside with all its data. 'logstore repair' plans what is certain.",
    ),
    Verdict.DUPLICATE: Advice(
        "The same replica is live in more than one directory of a broker.",
        "The broker does not start while both are there. The copies are ranked, and rank 1 is the one to keep; "
        "'logstore repair', given all the broker's log dirs, plans to stage the other where the rank is certain.",
    ),
    Verdict.FOREIGN: Advice(
        "Something lies in the log dir that is not Kafka's.",
        "A directory whose name is no partition's keeps the broker from starting; a plain file only confuses people. "
        "Whoever put it there should move it out.",
    ),
    Verdict.STALE_ID: Advice(
        "The replica belongs to a topic that was deleted; another topic has its name now.",
        "In ZooKeeper mode the broker refuses to use it (INCONSISTENT_TOPIC_ID) and makes no new one; in KRaft mode a "
        f"broker of 3.7 or later renames it to -stray when it starts, and makes the new one. {_OLD_DATA} Never delete "
        "the file: KRaft brokers then set the replica aside, and others take it for the new topic's.",
    ),
    Verdict.NO_ID: Advice(
        "The replica is wanted here, but its directory carries no topic ID.",
        "A ZooKeeper broker writes the ID by itself; a KRaft broker since 3.7.1 takes the replica for a stray and sets "
        "it aside. Settle this before a migration to KRaft.",
    ),
    Verdict.MISSING: Advice(
        "The metadata wants a replica here, and none was found.",
        "The broker will fetch it anew from the leader. Make sure first that another replica is in sync.",
    ),
    Verdict.RENAMED: Advice(
        "The directory's topic ID belongs to a topic of another name.",
        "The data is wanted, under the other name. Nothing should be removed.",
    ),
    Verdict.NOT_ASSIGNED: Advice(
        "The topic lives on, but this broker is not among the partition's replicas.",
        f"{_MOVED} {_NEEDED}",
    ),
    Verdict.UNKNOWN_TOPIC: Advice(
        "The metadata knows neither the topic's name nor its ID.",
        _DELETED_OR_OLD,
    ),
    Verdict.STRAY: Advice(
        "A broker found that it should not have this replica, and moved it aside.",
        "No release of Kafka ever deletes it, no tool of Kafka lists it, and every start loads it again.",
    ),
    Verdict.FUTURE_ABANDONED: Advice(
        "A copy on its way between two log dirs that nobody will finish.",
        "It takes space and is loaded at every start. The broker's own listing tells whether a move is still going on.",
    ),
    Verdict.MARKED_DELETE: Advice(
        "A broker has marked this replica for deletion.",
        "A running broker deletes it within a minute, a stopped one a minute after its next start. If the metadata "
        "still wants it, keep the broker from starting until a copy is made.",
    ),
    Verdict.STAGED_DUE: Advice(
        "A replica that was staged, and whose delay is over.",
        "A purge may take it; until then it can be brought back whole.",
    ),
    Verdict.CHECKPOINT_ENTRY: Advice(
        "An offset checkpoint names a partition that has no directory here.",
        "Harmless: the broker drops the entry when it next writes the file. Many of them tell of directories that were "
        "removed by hand.",
    ),
    Verdict.LEFTOVER: Advice(
        "A file from a write that did not finish.",
        "Harmless: a broker never reads it, and writes over it.",
    ),
    Verdict.IN_FLIGHT: Advice(
        "A reassignment is moving this replica, or its partition is being deleted while the topic stays.",
        "Its data is in use, or about to be. Leave it alone until the reassignment or the deletion is over.",
    ),
    Verdict.STAGED: Advice(
        "A replica that was staged, and whose delay is not over.",
        "It can be brought back whole until it is purged, where its line in .logstore_ledger can be read.",
    ),
    Verdict.FUTURE: Advice(
        "A copy on its way between two log dirs of this broker.",
        "The broker swaps it in when it has caught up.",
    ),
    Verdict.NOT_COMPARED: Advice(
        "No metadata says whether this replica is wanted.",
        "Nothing is wrong with what lies on the disk, as far as the disk alone can tell.",
    ),
    Verdict.OK: Advice("What lies on the disk is what should lie there.", "There is nothing to do."),
}
"""By verdict; complete. Where the mode of the cluster is known, :func:`advice_of` says what holds for it alone."""

_WHY_IN_MODE: Mapping[tuple[Verdict, Mode], str] = {
    (Verdict.STALE_ID, Mode.ZOOKEEPER): "The broker answers INCONSISTENT_TOPIC_ID, does not use the replica and makes "
    "no new one, so the partition lacks a copy for good; a broker of 2.8 takes the old records for the new topic's "
    f"while another broker leads. {_OLD_DATA} Never delete partition.metadata: a broker then takes the old records for "
    "the new topic's.",
    (Verdict.STALE_ID, Mode.KRAFT): "When it starts, a broker of 3.7 or later renames it to -stray and makes the new "
    "replica from the leader's; the old one then lies there for ever. One of 3.0 to 3.6 deletes it. "
    f"{_OLD_DATA} Never delete partition.metadata: a replica without it is set aside as well.",
    (Verdict.NO_ID, Mode.ZOOKEEPER): "A broker in ZooKeeper mode writes the ID by itself, one of 2.8 late, and for a "
    "replica that only follows not at all. Settle this before a migration to KRaft, whose brokers take the replica for "
    "a stray.",
    (Verdict.NO_ID, Mode.KRAFT): "When it starts, a broker of 3.7.1 or later takes the replica for a stray and sets it "
    "aside with all its data, and one of 3.7.0 does not start. Put the ID back before.",
    (Verdict.NOT_ASSIGNED, Mode.ZOOKEEPER): f"{_MOVED} {_NEEDED} {_ZOOKEEPER_KEEPS}",
    (Verdict.NOT_ASSIGNED, Mode.KRAFT): f"{_MOVED} {_NEEDED} {_KRAFT_RENAMES}",
    (Verdict.UNKNOWN_TOPIC, Mode.ZOOKEEPER): f"{_DELETED_OR_OLD} {_ZOOKEEPER_KEEPS}",
    (Verdict.UNKNOWN_TOPIC, Mode.KRAFT): f"{_DELETED_OR_OLD} {_KRAFT_RENAMES}",
    (Verdict.STRAY, Mode.ZOOKEEPER): "No release of Kafka ever deletes it, no tool of Kafka lists it, and every start "
    "loads it again; a broker before 3.6.1 does not start with it at all.",
    (Verdict.DUPLICATE, Mode.KRAFT): "The broker does not start while both are there, unless the metadata want one of "
    "two topic IDs alone: the other is then set aside first, since 3.7.1. The copies are ranked, and rank 1 is the one "
    "to keep; 'logstore repair', given all the broker's log dirs, plans to stage the other where the rank is certain.",
}
"""What follows from a verdict, where a broker's mode decides it."""


def advice_of(verdict: Verdict, mode: Mode | None) -> Advice:
    """The advice on a verdict, as it holds for clusters of one mode; None: the mode is not known."""
    advice = ADVICE[verdict]
    why = None if mode is None else _WHY_IN_MODE.get((verdict, mode))
    return advice if why is None else replace(advice, why=why)


FLEET_ADVICE: Mapping[str, Advice] = {
    "TOPIC_UNDER_SEVERAL_IDS": Advice(
        "Brokers hold one topic name under several topic IDs.",
        "The topic was re-created while some broker was away, or its ID was lost. Replicas under the wrong ID do not "
        "replicate.",
    ),
    "DUPLICATE_DIRECTORY_ID": Advice(
        "Several log dirs carry the same directory.id.",
        "One is a copy of the other. A broker that has both does not start; on two brokers the controller takes one "
        "for the other.",
    ),
    "DUPLICATE_NODE_ID": Advice(
        "Several machines or metadata logs carry the same node.id.",
        "Two brokers share a number, or the disks of a broker that moved were left behind. Nothing that is said of "
        "this broker's replicas can be trusted before that is settled.",
    ),
    "NODE_IN_SEVERAL_CLUSTERS": Advice(
        "The log dirs of one node belong to more than one cluster.",
        "A broker that is given disks of two clusters does not start.",
    ),
    "OTHER_CLUSTER": Advice(
        "Log dirs of a cluster for which no metadata was given.",
        "They were not compared. If they should be part of this cluster, the broker that has them will not start.",
    ),
    "LOG_DIR_NOT_REGISTERED": Advice(
        "A log dir lies there that its broker did not register with the controller.",
        "The broker was not started with it yet, or it is a disk of old. No replica is assigned to it.",
    ),
    "LOG_DIR_NOT_SEEN": Advice(
        "A log dir of a broker was not among those scanned.",
        "Either it was not given, or its disk is not mounted. Nothing is known of the replicas on it.",
    ),
    "ONLY_KNOWN_COPY": Advice(
        "No other copy of this partition was found on any disk that was scanned.",
        "If this one goes, the data is gone.",
    ),
    "ONLY_IN_SYNC_COPY": Advice(
        "Where the metadata has the only in-sync replica of a partition, there is a finding.",
        "If it goes, the partition is offline or loses records.",
    ),
    "OWN_METADATA": Advice(
        "The only metadata is the own copy of a broker that does not run.",
        "It ends where the broker stopped. What was deleted, re-created or moved since looks wanted, as it was on that "
        "day: OK says nothing of it. Audit with a running broker's or a controller's metadata. Of an only "
        "voter, whose own copy ends early, there is no other: start it, and ask it.",
    ),
    "INVENTORY_AGE": Advice(
        "An inventory and the metadata are of very different times.",
        "What changed in between looks like a finding, or hides one. Scan that broker again, or give metadata of the "
        "time of the scan.",
    ),
    "INVENTORY_UNREADABLE": Advice(
        "A file of the inventories cannot be read.",
        "What it holds was not judged, and its broker may look as if it had not been scanned. Copy it again, or scan "
        "that broker again.",
    ),
    "BROKER_NOT_REPORTED": Advice(
        "The metadata has replicas on a broker of which no scan that can be read was given.",
        "Nothing is known of its disks: its job may have failed, or the broker is down. Scan it, or accept it with "
        "'--accept not-reported'.",
    ),
    "TOPIC_ID_CHANGED": Advice(
        "The topic has another ID than in the audit before: it was deleted and created again.",
        "Clients that still go by the old one may commit offsets of the old topic to the new one: tell their owners.",
    ),
}
"""By the kind of a fleet finding; complete."""


DOUBT_CLAUSE: Mapping[Doubt, str] = {
    Doubt.CHANGED_SINCE_METADATA: "in doubt, because it was written to after the metadata was",
    Doubt.SCANNED_BEFORE_METADATA: "in doubt, because the scan is older than the metadata",
}
"""What is said beside a verdict that is in doubt, by the doubt; complete."""


class Severity(StrEnum):
    """How urgent a finding is."""

    CRITICAL = "critical"
    """A broker may not start, a log dir may go offline, or a wanted replica is not there."""
    ATTENTION = "attention"
    """Somebody should act, but nothing breaks in the meantime."""
    CALM = "calm"
    """Worth knowing; no action is needed."""
    OK = "ok"


_CRITICAL = frozenset(URGENCY[: URGENCY.index(Verdict.MISSING) + 1])


def severity(verdict: Verdict) -> Severity:
    """How urgent a finding of this verdict is."""
    if verdict is Verdict.OK:
        return Severity.OK
    if verdict in BENIGN:
        return Severity.CALM
    return Severity.CRITICAL if verdict in _CRITICAL else Severity.ATTENTION


IGNORED_FILE = "a plain file"
"""How the evidence of a FOREIGN finding begins, where a broker ignores what lies there."""


def severity_of(finding: Mapping[str, Any]) -> Severity:
    """How urgent a finding is by its own evidence: a broker ignores a plain file that is not Kafka's."""
    verdict = Verdict(finding["verdict"])
    is_ignored = verdict is Verdict.FOREIGN and finding["evidence"].startswith(IGNORED_FILE)
    return Severity.CALM if is_ignored else severity(verdict)


def location_of(finding: Mapping[str, Any]) -> str:
    """The path of a finding, or the name of a replica that was not found."""
    if finding["log_dir"] is None:
        return f"{finding['topic']}-{finding['partition']}"
    # A staged replica lies beside its log dir, so its name begins with "..", which must not follow a link.
    return posixpath.normpath(f"{finding['log_dir']}/{finding['name']}")


def full_evidence(finding: Mapping[str, Any]) -> str:
    """The evidence, with the copy rank before it, and after it a remark on the only in-sync replica and the doubt."""
    rank = "" if finding["copy_rank"] is None else f"copy {finding['copy_rank']}: "
    only = _only_in_sync(finding) if finding["only_in_sync"] else ""
    return with_doubt(f"{rank}{finding['evidence']}{only}", finding["doubt"])


def _only_in_sync(finding: Mapping[str, Any]) -> str:
    """Remark that the partition's only in-sync replica is here, or should be: what has another topic ID is none."""
    here, wanted = finding["disk_topic_id"], finding["metadata_topic_id"]
    if here and wanted and here != wanted:
        return f"; this is not the metadata's only in-sync replica, which has topic ID {wanted} and should be here"
    return "; the metadata's only in-sync replica"


def with_doubt(evidence: str, doubt: str | None) -> str:
    """The evidence, and the doubt that its verdict is in, if any (:class:`Doubt`)."""
    return evidence if doubt is None else f"{evidence}; {DOUBT_CLAUSE[Doubt(doubt)]}"
