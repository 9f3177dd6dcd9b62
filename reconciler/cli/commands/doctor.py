"""``logstore doctor``: looks at everything on the disks of a broker, and says what is wrong and what to do first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from reconciler.cli.frame import (
    NO_METADATA,
    Exit,
    Format,
    broker_options,
    check_output,
    check_question,
    destination,
    fallback_records,
    fallback_records_option,
    metadata_option,
    output_options,
    say_assumed_release,
)
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.cli.frame import ExaminedBroker

SCHEMA_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""

_EPILOG = """\b
Examples:
  logstore doctor /disks/*/kafka --metadata kafka:broker-1:9092
  logstore doctor /var/lib/kafka/data
  logstore doctor /disks/*/kafka --metadata /var/lib/kafka/metadata/__cluster_metadata-0 --format json

\b
Give all log dirs of the broker, in the order of its log.dirs. Where the broker does not run, give the metadata of one
that does, or of a controller: the copy in its own log dirs ends when it stopped.
"""


@click.command("doctor", epilog=_EPILOG, short_help="What is wrong with a broker's disks, and what to do first.")
@click.argument("paths", metavar="LOG_DIR...", nargs=-1, required=True)
@metadata_option
@broker_options
@output_options(Format.TABLE, Format.JSON)
@fallback_records_option
def command(
    *,
    paths: tuple[str, ...],
    specs: tuple[str, ...],
    kafka: str | None,
    mode: str | None,
    metadata_log_dir: str | None,
    form: str,
    output: str | None,
    fallback_folder: str | None,
) -> Exit:
    """Say what is wrong with the disks of a broker, in which order it is put right, and what to paste first.

    Looks at all there is: what lies on the disks, what the metadata wants there, whether the broker would start, what
    is staged, who holds the locks, and how much room is left. Takes no lock and changes nothing; each command that it
    prints has every option that it needs.

    Exit code 0: nobody has to act. 1: there is something to do. 3: the metadata cannot be trusted.
    """
    from reconciler.cli.frame import choose_metadata, examine, sort_inputs
    from reconciler.cli.pages import show_examination
    from reconciler.next_steps import Call

    inputs = sort_inputs(paths)
    if inputs.inventories:
        raise UsageError(f"{inputs.inventories[0]} is an inventory: a doctor looks at the log dirs themselves")
    check_output(Format(form), output, inputs.log_dirs)
    check_question(kafka, mode)
    now_ms = time.time_ns() // 1_000_000
    states = choose_metadata(specs, inputs, now_ms)
    say_assumed_release(kafka, states)
    sources = specs if specs and specs != (NO_METADATA,) else tuple(each.identity.location for each in states)
    call = Call((), sources, fallback_folder, kafka, mode, metadata_log_dir)
    brokers = examine(inputs, states, call, fallback_records(fallback_folder), now_ms)
    if Format(form) is Format.JSON:
        _write_json(brokers, output)
    else:
        show_examination(brokers, output)
    return Exit.CLEAN if all(each.is_clean for each in brokers) else Exit.FINDINGS


def _write_json(brokers: Sequence[ExaminedBroker], output: str | None) -> None:
    import orjson

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
            "fleet": [{"kind": kind, "detail": detail} for kind, detail in each.fleet],
            "starts": each.start.starts,
            "sentence": each.start.sentence,
            "staged": each.situation.staged,
            "due": each.situation.due,
            "clean": each.is_clean,
            "next": [step.as_row() for step in each.steps],
        }
        for each in brokers
    ]
    with destination(output) as out:
        document = {"schema_version": SCHEMA_VERSION, "brokers": documents}
        out.write(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
