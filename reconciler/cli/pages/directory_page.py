"""Explains a directory: the meaning of its name, its content, and what a broker does with it at start.

:mod:`layout.directory_name` says what a name means, ``at_start`` what a broker does; this module adds the words.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from layout import partition_metadata, segment_name
from layout.directory_name import DirectoryKind, DirectoryName, parse, parse_by_topic_id, parse_staged
from layout.errors import BrokerEffect
from layout.scheme import INTENT_FILE, STAGING_DIR
from layout.segment_files import removed_at_load
from logstore.fs import refusal
from logstore.log_dir import find_lock_holder, read_identity
from logstore.rows import MetadataState
from logstore.scan import read_metadata_file
from reconciler.cli.frame import PathInLogDir, closed_at
from reconciler.cli.pages.at_start import possible_brokers, starts_of, with_metadata
from reconciler.cli.pages.explanation import Explanation
from reconciler.desired import DesiredState
from reconciler.next_steps import Call
from reconciler.text import count, listed, size

_WHAT: Mapping[DirectoryKind, str] = {
    DirectoryKind.LIVE: "a live replica: partition {partition} of topic {topic}",
    DirectoryKind.FUTURE: "a copy of partition {partition} of topic {topic} on its way from another log dir",
    DirectoryKind.DELETE: "a replica of partition {partition} of topic {topic} that waits for its deletion",
    DirectoryKind.STRAY: "a replica of partition {partition} of topic {topic} that a broker has set aside",
    DirectoryKind.STAGED: "a staged replica: partition {partition} of topic ID {topic_id}",
    DirectoryKind.INTERNAL: "a directory of the broker itself, and no replica of a topic",
    DirectoryKind.FOREIGN: "not Kafka's: its name is none that a broker gives to a directory",
}
_CUT = "a long topic is cut in such a name, so the ID in partition.metadata is what counts"
_RULE: Mapping[DirectoryKind, str] = {
    DirectoryKind.LIVE: "the name is topic, '-', partition, cut at the last '-'",
    DirectoryKind.FUTURE: "the name is topic, '-', partition, '.', a unique part, '-future'",
    DirectoryKind.DELETE: f"the name is topic, '-', partition, '.', a unique part, '-delete'; {_CUT}",
    DirectoryKind.STRAY: f"the name is topic, '-', partition, '.', a unique part, '-stray'; {_CUT}",
    DirectoryKind.STAGED: "the name is topic ID, '_', partition, in a staging directory",
    DirectoryKind.INTERNAL: "__cluster_metadata is KRaft's own log, remote-log-index-cache belongs to tiered storage",
}
_BY_TOPIC_ID = "the path is the first two digits of a topic ID in hex, the ID in hex, '_', partition"
_IN_PLACE = "the name is a stray's, and a line of .logstore_ledger says what it was and when a purge may take it"


def explain_log_dir(home: PathInLogDir, rows: Sequence[Mapping[str, Any]]) -> Explanation:
    """Explain a log dir as a whole, from the rows of its scan."""
    found = read_identity(home.log_dir)
    holder = find_lock_holder(home.log_dir)
    kinds = Counter(str(row["kind"]).replace("_", " ") for row in rows if row["kind"] != "log_dir")
    facts = [("identity", found.problem or "meta.properties is in order")]
    if found.identity is not None:
        facts += [
            ("cluster", found.identity.cluster_id or "not named"),
            ("broker", str(found.identity.node_id)),
            ("directory.id", str(found.identity.directory_id or "none, as before Kafka 3.7")),
            ("belongs to", "a real broker" if found.identity.scheme is None else f"logstore ({found.identity.scheme})"),
        ]
    facts.append(("in use by", "nobody who can be seen from here" if holder is None else str(holder)))
    if os.path.lexists(f"{home.log_dir}/{INTENT_FILE}"):
        facts.append(("unfinished", "a change of many steps; 'logstore doctor' says how it comes to its end"))
    facts.append(("holds", ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common()) or "nothing"))
    stoppers = [
        row["name"] for row in rows if "/" not in row["name"] and row["kind"] == "foreign" and _is_directory(home, row)
    ]
    if stoppers:
        facts.append(("stops a broker", listed(stoppers)))
    rule = "it holds meta.properties or an offset checkpoint"
    return Explanation(home.log_dir, "a log dir: the root of one disk of a broker", rule, tuple(facts))


def explain_directory(
    path: str, home: PathInLogDir | None, row: Mapping[str, Any] | None, states: Sequence[DesiredState] = ()
) -> Explanation:
    """Explain any other directory, from its row of the scan; without a log dir only its name is explained.

    With metadata the brokers' answers hang on what the cluster wants here.

    Raises:
        RefusedError: the metadata does not fit the log dir.
    """
    if home is not None and home.name == f"../{os.path.basename(home.log_dir)}.{STAGING_DIR}":
        return _explain_staging_root(path, home)
    name = read_name(path, home)
    kind = name.kind if row is None else DirectoryKind(row["kind"])
    topic = name.topic if row is None else row["topic"]
    topic_id = row["topic_id"] if row is not None and name.topic_id is None else name.topic_id
    values = {"topic": topic or "not told", "partition": name.partition, "topic_id": topic_id}
    rule = name.problem if kind is DirectoryKind.FOREIGN else _RULE[kind]
    if kind is DirectoryKind.LIVE and name.topic_id is not None:
        rule = _BY_TOPIC_ID
    elif kind is DirectoryKind.STAGED and name.kind is DirectoryKind.STRAY:
        rule = _IN_PLACE
    facts = [("log dir", "none above it, so this is told by its name alone" if home is None else home.log_dir)]
    if home is None and kind is DirectoryKind.LIVE and _is_empty(path):
        seen = Call((path,)).doctor().text
        what = "a log dir without meta.properties, whose disk is not mounted, for nothing lies in it"
        facts.append(("or it is", f"{what}: {seen} says what to do then"))
    if kind is not DirectoryKind.FOREIGN:
        facts += _metadata_facts(path, row)
    facts += _file_facts(path, is_loaded=kind not in (DirectoryKind.FOREIGN, DirectoryKind.STAGED))
    closed = None if home is None else closed_at(home.log_dir, home.name)
    if closed is not None:
        unknown = "not known: this user may not read it; become the broker's own user, or root, and look again"
        return Explanation(path, _WHAT[kind].format_map(values), rule or "", (*facts, ("at start", unknown)))
    if kind is DirectoryKind.FOREIGN and home is not None and home.name.startswith("../"):
        unseen = f"nothing: no broker looks into {os.path.dirname(os.path.abspath(path))}, which is beside the log dir"
        return Explanation(path, _WHAT[kind].format_map(values), rule or "", (*facts, ("at start", unseen)))
    first = parse(home.name.split("/")[0]) if home is not None and not home.name.startswith("../") else name
    brokers = possible_brokers(home, states)
    starts = starts_of(path, first if first.kind is DirectoryKind.FOREIGN else name, brokers)
    if home is not None and states and kind not in (DirectoryKind.STAGED, DirectoryKind.INTERNAL):
        starts = with_metadata(starts, home, brokers, states)
    return Explanation(path, _WHAT[kind].format_map(values), rule or "", tuple(facts), starts)


def _explain_staging_root(path: str, home: PathInLogDir) -> Explanation:
    """Explain the directory beside a log dir in which its staged replicas lie."""
    try:
        held = count(
            sum(parse_staged(each).kind is DirectoryKind.STAGED for each in os.listdir(path)), "staged replica"
        )
    except OSError as error:
        held = f"not known: the directory {refusal(error)}"
    what = "the staging directory of a log dir, beside it: no broker looks into it"
    rule = f"the name is the log dir's and .{STAGING_DIR}"
    listing = Call((home.log_dir,)).staged().text
    return Explanation(path, what, rule, (("log dir", home.log_dir), ("holds", held), ("to list it", listing)))


def _is_empty(path: str) -> bool:
    try:
        return set(os.listdir(path)) <= {"lost+found"}
    except OSError:
        return False


def _is_directory(home: PathInLogDir, row: Mapping[str, Any]) -> bool:
    return os.path.isdir(os.path.join(home.log_dir, str(row["name"])))


def read_name(path: str, home: PathInLogDir | None) -> DirectoryName:
    """Parse the name of a directory by the rule of the place where it lies."""
    name = os.path.basename(os.path.abspath(path))
    parent = os.path.basename(os.path.dirname(os.path.abspath(path)))
    if home is not None and (home.name.startswith("../") or parent == "deleting"):
        return parse_staged(name)
    by_id = parse_by_topic_id(f"{parent}/{name}")
    return parse(name) if by_id.kind is DirectoryKind.FOREIGN else by_id


def _metadata_facts(path: str, row: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Tell the topic ID of a directory, and whether its ``partition.metadata`` is in order."""
    read = read_metadata_file(path)
    if row is not None and row["metadata_state"] in (None, MetadataState.OK) and read.state is MetadataState.OK:
        said = "in order"
    else:
        effects = "" if read.found is not None or read.effect is BrokerEffect.NONE else f"; {read.effect}"
        problem = (row or {}).get("problem") or f"{read.state.value.replace('_', ' ')}{effects}"
        said = problem.removeprefix(f"{partition_metadata.FILE_NAME}: ")
    return [("topic ID", str(read.topic_id or "none")), (partition_metadata.FILE_NAME, said)]


def _file_facts(path: str, *, is_loaded: bool) -> list[tuple[str, str]]:
    """Count the files of each kind and their space, and list those that a broker removes, and those it fails on."""
    numbers, weights, leftovers, wrong = Counter[str](), Counter[str](), list[str](), list[str]()
    names: list[str] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False):
                    numbers["directories and others"] += 1
                    continue
                names.append(entry.name)
                read = segment_name.parse(entry.name)
                numbers[read.kind.value] += 1
                weights[read.kind.value] += entry.stat(follow_symlinks=False).st_blocks * 512
                if read.transient is not None:
                    leftovers.append(entry.name)
                if read.problem is not None:
                    wrong.append(f"{entry.name}: {read.problem}")
    except OSError as error:
        return [("files", f"the directory {refusal(error)}")]
    kinds = [f"{number:,} {kind} ({size(weights[kind])})" for kind, number in sorted(numbers.items())]
    facts = [("files", f"{size(sum(weights.values()))} in {', '.join(kinds)}" if kinds else "none")]
    if leftovers:
        facts.append(
            ("leftovers", f"{count(len(leftovers), 'file')} of a change under way: {listed(sorted(leftovers))}")
        )
    unfit = [name for name in removed_at_load(names) if name not in leftovers]
    if unfit and is_loaded:
        facts.append(("removed at start", f"{count(len(unfit), 'file')} without a segment: {listed(unfit)}"))
    return [*facts, *(("stops a broker", each) for each in sorted(wrong)[:5])]
