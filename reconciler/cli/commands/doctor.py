"""``logstore doctor``: looks at everything on the disks of a broker, and says what is wrong and what to do first."""

from __future__ import annotations

import time
from collections.abc import Sequence

from reconciler.cli.examination import ExaminedBroker, examine
from reconciler.cli.frame import (
    NO_METADATA,
    Exit,
    Format,
    check_output,
    check_question,
    choose_metadata,
    fallback_records,
    fit_address_space,
    say_assumed_release,
    say_problems,
    sort_log_dirs,
    write_document,
)
from reconciler.cli.pages import show_examination
from reconciler.next_steps import Call

SCHEMA_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""


def run(
    *,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    kafka: str | None,
    mode: str | None,
    metadata_log_dir: str | None,
    form: str,
    output: str | None,
    fallback_folder: str | None,
    policy: str | None,
) -> Exit:
    """Say what is wrong with the disks of a broker, in which order it is put right, and what to paste first."""
    fit_address_space()
    inputs = sort_log_dirs(paths, ": a doctor looks at the log dirs themselves")
    check_output(Format(form), output, inputs.log_dirs)
    check_question(kafka, mode)
    now_ms = time.time_ns() // 1_000_000
    states = choose_metadata(specs, inputs, now_ms)
    say_problems(states)
    say_assumed_release(kafka, states)
    sources = specs if specs and specs != (NO_METADATA,) else tuple(each.identity.location for each in states)
    call = Call((), sources, fallback_folder, kafka, mode, metadata_log_dir, policy)
    brokers = examine(inputs, states, call, fallback_records(fallback_folder), now_ms)
    if Format(form) is Format.JSON:
        _write_json(brokers, output)
    else:
        show_examination(brokers, output)
    return Exit.CLEAN if all(each.is_clean for each in brokers) else Exit.FINDINGS


def _write_json(brokers: Sequence[ExaminedBroker], output: str | None) -> None:
    documents = [
        {
            "cluster_id": each.cluster_id,
            "broker": each.node_id,
            "log_dirs": each.situation.call.log_dirs,
            "in_use": each.situation.in_use,
            "full": each.situation.full,
            "metadata": {"trust": each.situation.trust.value, "why": each.situation.trust_why or None},
            "totals": each.totals,
            "evidence": each.evidence,
            "fleet": [{"kind": kind, "subject": subject, "detail": detail} for kind, subject, detail in each.fleet],
            "starts": each.start.starts,
            "sentence": each.start.sentence,
            "staged": each.situation.staged,
            "due": each.situation.due,
            "clean": each.is_clean,
            "next": [step.as_row() for step in each.steps],
        }
        for each in brokers
    ]
    write_document({"schema_version": SCHEMA_VERSION, "brokers": documents}, output)
