"""``logstore preflight``: says whether a broker would start here, what it would lose, and what to do before.

This module has the words around the answer, and its JSON; :mod:`reconciler.preflight` has every rule.
"""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from logstore.log_dir import discover
from reconciler.cli.frame import (
    NO_METADATA,
    Exit,
    Format,
    Inputs,
    broker_in_question,
    check_output,
    check_question,
    choose_metadata,
    destination,
    is_inventory,
    open_page,
    refuse_part_of_log_dir,
    report_unreadable,
    say,
    say_assumed_release,
    say_problems,
    warn,
    warn_unfinished,
    write_document,
    write_rows,
)
from reconciler.cli.settings import Level
from reconciler.desired import DesiredState, by_cluster
from reconciler.errors import UsageError
from reconciler.next_steps import Call, step_of_rule
from reconciler.preflight import (
    FINDING_SCHEMA,
    SCHEMA_VERSION,
    Finding,
    Preflight,
    SeenBroker,
    StartEffect,
    is_anything_there,
    look_at_broker,
    preflight,
)
from reconciler.text import NOTHING, Column, count, listed

SHOWN_ON_TERMINAL = 50
STEPS_SHOWN = 5
"""Number of rules for which the next command is printed below a table."""


def run(
    *,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    kafka: str | None,
    mode: str | None,
    metadata_log_dir: str | None,
    form: str,
    output: str | None,
    notes: bool,
    limit: int | None,
    fallback_folder: str | None,
    policy: str | None,
) -> Exit:
    """Tell before a broker is started whether it would start here, and what it would do to what lies here."""
    if not is_anything_there(paths):
        raise UsageError(f"{', '.join(paths)}: there is no such directory: are the disks mounted?")
    for path in paths:
        refuse_part_of_log_dir(path)
    places = [*paths, *([] if metadata_log_dir is None else [metadata_log_dir])]
    report_unreadable(places)
    check_output(Format(form), output, places)
    check_question(kafka, mode)
    file = next((path for path in places if is_inventory(path)), None)
    if file is not None:
        raise UsageError(f"{file} is an inventory: a preflight needs the log dirs themselves")
    now_ms = time.time_ns() // 1_000_000
    seen = look_at_broker(paths, metadata_log_dir)
    _say_what_lies_below(paths)
    states = _metadata(specs, places, seen, now_ms)
    say_assumed_release(kafka, states.values())
    asked = broker_in_question(kafka, mode, seen, states.values())
    answer = preflight(seen, asked, states, now_ms)
    sources = () if NO_METADATA in specs else specs or tuple(state.identity.location for state in states.values())
    rows = _rows(answer, Call(paths, sources, fallback_folder, kafka, mode, metadata_log_dir, policy), notes=notes)
    match Format(form):
        case Format.TABLE:
            _show(rows, output, limit)
            for step in _steps(rows):
                say(step)
        case Format.JSON:
            _write_json(answer, seen, states, rows, output)
        case format_:
            _write(format_, rows, output)
    say(answer.sentence, Level.INFO if answer.is_clean else Level.WARNING)
    return Exit.CLEAN if answer.is_clean else Exit.FINDINGS


def _say_what_lies_below(paths: Sequence[str]) -> None:
    """Say which given paths are folders of log dirs: a broker would not look for log dirs in them either."""
    for path in paths:
        below = discover(path)
        if below != [path]:
            warn(f"{path} is taken for a log dir itself, as a broker would; log dirs lie below it: {listed(below)}")


def _metadata(specs: Sequence[str], places: Sequence[str], seen: SeenBroker, now_ms: int) -> Mapping[str, DesiredState]:
    folders = tuple(dict.fromkeys(os.path.abspath(path) for path in places if os.path.isdir(path)))
    states = choose_metadata(specs, Inputs(folders, folders), now_ms)
    say_problems(states)
    warn_unfinished(folders)
    return by_cluster(states, {row["cluster_id"] for row in seen.rows() if row["cluster_id"]})


def _rows(answer: Preflight, call: Call, *, notes: bool) -> list[dict[str, Any]]:
    """List the findings with the columns of ``FINDING_SCHEMA``."""
    return [
        {
            "effect": each.effect.value,
            "rule": each.rule,
            "log_dir": each.place.log_dir,
            "name": each.place.name,
            "topic": each.place.topic,
            "partition": each.place.partition,
            "topic_id": each.place.topic_id,
            "replicas": each.replicas,
            "only_in_sync": each.only_in_sync,
            "problem": each.problem,
            "next": _next(each, call),
        }
        for each in answer.findings
        if notes or each.effect is not StartEffect.NOTE
    ]


def _next(finding: Finding, call: Call) -> str | None:
    place = finding.place
    step = step_of_rule(finding.rule, place.log_dir, place.name, finding.problem, call, topic_id=place.topic_id)
    return None if step is None else step.text


def _write(form: Format, rows: Sequence[Mapping[str, Any]], output: str | None) -> None:
    table = pa.Table.from_pylist(list(rows), schema=FINDING_SCHEMA)
    with destination(output) as out:
        write_rows(form, [table], FINDING_SCHEMA, SCHEMA_VERSION, out)


def _write_json(
    answer: Preflight,
    seen: SeenBroker,
    states: Mapping[str, DesiredState],
    rows: Sequence[Mapping[str, Any]],
    output: str | None,
) -> None:
    offline = {each.place.log_dir for each in answer.findings if each.effect is StartEffect.LOG_DIR_OFFLINE}
    log_dirs = [
        {
            "log_dir": each.path,
            "is_metadata_log_dir": answer.asked.reads_metadata_log and each.canonical == seen.metadata_log_dir,
            "would_be_online": None if "." in each.closed else each.path not in offline,
            "lock_held_by": each.lock_held_by,
        }
        for each in seen.log_dirs
    ]
    metadata = [
        {"location": state.identity.location, "cluster_id": cluster, "offset": state.identity.offset}
        for cluster, state in states.items()
    ]
    document = {
        "schema_version": SCHEMA_VERSION,
        "kafka": str(answer.asked.release),
        "mode": "migration" if answer.asked.migrating else answer.asked.mode.value.lower(),
        "starts": answer.starts,
        "nothing_lost": answer.is_clean,
        "sentence": answer.sentence,
        "totals": {effect.value: number for effect, number in answer.totals.items()},
        "log_dirs": log_dirs,
        "metadata_sources": metadata,
        "findings": rows,
    }
    write_document(document, output)


def _show(rows: Sequence[Mapping[str, Any]], output: str | None, limit: int | None) -> None:
    styles = {"startup_aborts": "bold red", "log_dir_offline": "bold red", "note": "dim"}
    columns = (Column("EFFECT"), Column("WHERE", path=True), Column("PROBLEM", prose=True))
    with open_page(output) as opened:
        most = SHOWN_ON_TERMINAL if limit is None and opened.is_terminal else limit
        shown = rows if most is None else rows[:most]
        cells = (
            (
                row["effect"],
                NOTHING if row["log_dir"] is None else posixpath.normpath(f"{row['log_dir']}/{row['name'] or '.'}"),
                row["problem"],
            )
            for row in shown
        )
        if shown:
            opened.table(columns, cells, {each["effect"]: styles.get(each["effect"], "yellow") for each in shown})
        elif not rows:
            opened.line("Nothing was found that a broker would stumble over.")
        if len(shown) < len(rows):
            opened.line(f"… and {count(len(rows) - len(shown), 'finding')} more: --limit N, or another --format")


def _steps(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Give the next safe command for the first finding of each of the gravest rules."""
    first: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if row["effect"] != "note" and row["next"] is not None:
            first.setdefault(row["rule"], row)
    named = dict[str, str]()
    lines = []
    for rule, row in first.items():
        words = rule.replace("_", " ")
        earlier = named.setdefault(row["next"], words)
        then = row["next"] if earlier == words else f"the same as for {earlier}"
        stop = "" if row["problem"].endswith("?") else "."
        lines.append(f"{words}: {row['problem']}{stop} Next: {then}")
    rest = f"--format json has the next command for {count(len(lines) - STEPS_SHOWN, 'rule')} more"
    return lines[:STEPS_SHOWN] + ([rest] if len(lines) > STEPS_SHOWN else [])
