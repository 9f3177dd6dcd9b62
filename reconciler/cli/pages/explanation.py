"""The explanation of one path, which ``logstore explain`` shows, and its verdicts.

The verdict comes from the case table, by the same comparison as in an audit, over the rows of this one log dir. For a
future replica, the live one is taken to lie in another log dir.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logstore.log_dir import FallbackRecords
from logstore.rows import VARYING
from logstore.scan import Folder, ScanOptions, scan, scan_directories
from reconciler.cli.frame import PathInLogDir
from reconciler.cli.pages.at_start import AtStart, possible_brokers
from reconciler.desired import DesiredState, Mode, by_cluster
from reconciler.next_steps import Call, step_of_finding
from reconciler.text import moment
from reconciler.verdicts import CASES, Doubt, Judged, Verdict, advice_of, broker_of, compare, with_doubt

_JUDGED_MOST = 20
_UNSEEN = (
    "its live copy lies in another log dir, which was not looked at: 'logstore audit' of all log dirs of this broker "
    "tells whether the move goes on"
)

_ALONE = (
    "So it is as far as this log dir alone tells; that the same replica lies in another log dir of this broker, with "
    "which the broker would not start, is seen where that one is named with --log-dir."
)


@dataclass(frozen=True, slots=True)
class ExplainedVerdict:
    """A verdict, its evidence, what it means, and the next safe command."""

    verdict: str
    evidence: str
    meaning: str
    why: str
    next: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that is known about a path."""

    path: str
    what: str
    """What the path is, in one sentence."""
    rule: str
    """The rule by which the path is recognised."""
    facts: tuple[tuple[str, str], ...] = ()
    """The facts that were found, each a label and a text."""
    at_start: tuple[AtStart, ...] = ()
    verdicts: tuple[ExplainedVerdict, ...] = ()


def scan_rows(log_dir: str, fallback: FallbackRecords | None = None) -> list[dict[str, Any]]:
    """Scan a log dir, without sizes and times."""
    rows: list[dict[str, Any]] = scan(log_dir, sizes=False, fallback=fallback).rows.to_pylist()
    return rows


def _dated(row: dict[str, Any], home: PathInLogDir) -> dict[str, Any]:
    """Return the row of a replica with the time of its newest file, on which a doubt depends; others as they are."""
    if row["name"] != home.name or row["partition"] is None or row["kind"] == "checkpoint_entry":
        return row
    folder, _, name = posixpath.normpath(f"{home.log_dir}/{home.name}").rpartition("/")
    found = scan_directories(ScanOptions(sizes=True), Folder("", f"{folder}/"), [(name, row["inode"] or 0)])
    return {**row, "modified_ms": found[0][VARYING.index("modified_ms")]} if found else row


def judge_name(
    home: PathInLogDir, rows: Sequence[dict[str, Any]], states: Sequence[DesiredState], call: Call, now_ms: int
) -> tuple[ExplainedVerdict, ...]:
    """Judge the name in the log dir; it has one verdict, none, or one for each entry of a checkpoint.

    The rows are of that log dir; the other ones of the call are looked at too.

    Raises:
        RefusedError: the metadata does not fit the log dir.
    """
    others = [row for log_dir in call.log_dirs if log_dir != home.log_dir for row in scan_rows(log_dir)]
    has_more = not others and not _is_sole_log_dir(rows[0]["node_id"], states)
    clusters = by_cluster(states, {row["cluster_id"] for row in rows if row["cluster_id"]})
    unseen = [] if others else _live_copy(home, rows)
    judged = [
        each
        for each in compare(clusters, [*(_dated(row, home) for row in rows), *others, *unseen], now_ms)
        if each.observed is not None
        and each.observed["name"] == home.name
        and each.observed["log_dir"] == rows[0]["log_dir"]
    ]
    limit = " ".join(filter(None, (_limit(rows[0]["node_id"], states), _ALONE if has_more else "")))
    modes = {each.mode for each in possible_brokers(home, states)}
    mode = modes.pop() if len(modes) == 1 else None
    return tuple(
        ExplainedVerdict(
            each.verdict.value,
            _UNSEEN if unseen and each.verdict is Verdict.FUTURE else _evidence(each, clusters),
            *_words(each, mode, limit),
            _next(each, rows[0]["node_id"], call),
        )
        for each in judged[:_JUDGED_MOST]
    )


def _evidence(judged: Judged, clusters: Mapping[str, DesiredState]) -> str:
    """Return the evidence, with the doubt that the verdict is in, or with why none is known."""
    observed = judged.observed or {}
    if judged.doubt is not None or CASES[judged.case].doubt is not Doubt.CHANGED_SINCE_METADATA:
        return with_doubt(judged.evidence, judged.doubt)
    state = clusters.get(broker_of(observed).cluster)
    if state is not None and state.identity.as_of_ms is None:
        why = f"{state.identity.location} does not say as of when it speaks"
    elif observed.get("modified_ms") is None:
        why = "no file says when it was last written to"
    else:
        return judged.evidence
    return f"{judged.evidence}; whether it is newer than the metadata is not known, because {why}"


def _words(judged: Judged, mode: Mode | None, limit: str) -> tuple[str, str]:
    """Say what a verdict means and what follows from it; what is OK is so no further than was looked."""
    advice = advice_of(judged.verdict, mode)
    if judged.verdict is not Verdict.OK:
        return advice.meaning, advice.why
    if judged.observed is not None and judged.observed["kind"] == "log_dir":
        return "The log dir is there, and says whose it is.", "What lies in it is judged by 'logstore doctor'."
    return advice.meaning, limit or advice.why


def _is_sole_log_dir(broker: int | None, states: Sequence[DesiredState]) -> bool:
    """Whether the metadata has the broker with a single log dir; before Kafka 3.7 it does not say."""
    return any(
        each["node_id"] == broker and len(each["directory_ids"] or ()) == 1
        for state in states
        for each in state.brokers.to_pylist()
    )


def _limit(broker: int | None, states: Sequence[DesiredState]) -> str:
    """Say where the own copy of a broker that does not run ends; empty: the metadata are no such copy."""
    for identity in (state.identity for state in states):
        if identity.keeper_decides and not identity.ends_early:
            continue  # nothing was decided since
        if identity.keeper is not None and identity.keeper == broker and not identity.keeper_runs:
            return (
                f"So it was at {moment(identity.timestamp_ms)}, where {identity.location} ends: it is this broker's "
                "own copy, and nothing since is known. Name a running broker or a controller with --metadata."
            )
    return ""


def _next(judged: Judged, broker: int | None, call: Call) -> str:
    wanted = judged.row.wanted_topic_id or None
    known = {
        "broker": broker,
        "wanted_topic_id": wanted,
        "metadata_topic_id": wanted or judged.row.name_topic_id or None,
    }
    step = step_of_finding(judged.verdict, {**(judged.observed or {}), **known}, call, explained=True)
    return (None if step is None else step.text) or ""


def _live_copy(home: PathInLogDir, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make the row of a future replica's live copy, which lies in another log dir, so it is taken to be there."""
    copies = (row for row in rows if row["name"] == home.name and row["kind"] == "future")
    return [row | {"kind": "live", "name": f"{row['topic']}-{row['partition']}"} for row in copies]
