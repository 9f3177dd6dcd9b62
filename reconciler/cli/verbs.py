"""The group of commands of ``logstore``, listed without loading any of them.

Data goes to standard output, prose to standard error. Importing this module costs as much as click does: a command
is loaded when it is called, its parameters first, and what it does only when it runs.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

import click

from logstore.parallel import do_without_pandas
from reconciler.cli.frame import SETTINGS, Commands, note_json
from reconciler.cli.settings import (
    DEFAULT_PLACES,
    GENERAL,
    LOG_FORMAT,
    LOG_FORMATS,
    add_verbosity,
    choose_log_format,
    read_settings,
)
from reconciler.cli.signals import ignore_signals, interrupt_on_signals

_OBJECTS_BETWEEN_COLLECTIONS = 100_000

_EPILOG = """\b
Examples:
  logstore doctor /disks/*/kafka --metadata kafka:broker-1:9092
  logstore scan /var/lib/kafka/data
  logstore audit /disks/*/kafka --metadata /disks/1/kafka
  logstore where orders /srv/inventories/*.parquet
  logstore diff previous latest --history /var/lib/logstore/history
  logstore explain /var/lib/kafka/data/orders-0
  logstore preflight /disks/*/kafka --kafka 3.9
  logstore watch /disks/*/kafka --metadata /disks/1/kafka
  logstore plan /disks/*/kafka --metadata /disks/1/kafka -o plan.json
  logstore policy check /etc/logstore-policy.toml /disks/*/kafka --metadata /disks/1/kafka
  logstore apply /root/plan.json
  logstore reconcile /root/request.json /disks/*/logstore --dry-run
  logstore topic-ids zk1:2181/kafka
  logstore repair /disks/*/kafka --metadata /disks/1/kafka -o plan.json
  logstore staged /disks/*/kafka
  logstore restore /disks/*/kafka --topic orders --dry-run
  logstore purge /disks/*/kafka --dry-run
  logstore namespace create org:apache /disks/*/logstore
  logstore convert /disks/*/logstore --to by-topic-id --dry-run
  logstore simulate --seed 7 --steps 2000
  logstore help sources
  logstore runbook disk-full
  eval "$(logstore completion bash)"

\b
Exit codes:
  0  clean: done, and nobody has to act
  1  findings: done, and somebody should look
  2  usage: no such path, option or scheme, or two that do not fit together
  3  refused: the input cannot be trusted, or the engine cannot run here
  4  partly failed: a log dir could not be read, or output is incomplete
  130  interrupted, by Ctrl-C, SIGTERM or SIGHUP; 141: whoever read the output stopped before its end

\b
All but apply, reconcile, restore, purge, namespace, convert and repair only read, and a repair is planned first;
topic-ids, namespace configs and namespace acls write to ZooKeeper when asked to.
LOGSTORE_TRACEBACK=1 shows where an error came from.
"""


_VERBS = {
    "doctor": "What is wrong with a broker's disks, and what to do first.",
    "scan": "What lies in log dirs, as a table, JSON, CSV or an inventory.",
    "audit": "Compare log dirs with the cluster's metadata: a verdict for each replica.",
    "where": "Where a topic lies in the fleet, since when, and who wants it.",
    "diff": "What changed from one audit to another.",
    "explain": "What one path is, what a broker does with it, and what to do next.",
    "preflight": "Would a broker start here, and what would it lose?",
    "plan": "Turn verdicts into actions, as a file that is reviewed.",
    "policy": "What a policy file means for these disks: holds, delays, gates.",
    "apply": "Carry out a plan that was reviewed; what has changed is skipped.",
    "reconcile": "Handle one LeaderAndIsr or StopReplica request on the disks.",
    "topic-ids": "Topics without an ID in ZooKeeper, and IDs for them.",
    "repair": "Plan what can be repaired; apply a plan; take it back.",
    "watch": "Tell each verdict that changes, as a line of NDJSON.",
    "staged": "What waits for its purge, and how to bring it back.",
    "restore": "Bring staged replicas back, byte for byte.",
    "namespace": "Create, list, move, delete namespaces; their configs and ACLs.",
    "convert": "Lay out log dirs by another scheme, and back.",
    "purge": "Delete for ever what is staged and due.",
    "simulate": "A controller and brokers in one process, with faults.",
    "help": "The page of a topic: metadata sources, verdicts, many brokers, and more.",
    "runbook": "The steps out of one kind of trouble: a full disk, strays, and more.",
    "completion": "What makes bash, zsh or fish complete all of this.",
}
"""Verb → its line in ``--help``."""

_FOLDERS = {
    **dict.fromkeys(("namespace", "convert"), "ours."),
    **dict.fromkeys(("where", "diff", "policy"), "fleet."),
    **dict.fromkeys(("help", "runbook", "completion"), "guide."),
}
"""The folder of a verb's module, where it has one: verbs for log dirs of ours alone, for a whole fleet, or about us."""


def _module(verb: str) -> str:
    return f"reconciler.cli.parameters.{_FOLDERS.get(verb, '')}{verb.replace('-', '_')}"


@click.group(
    cls=Commands,
    commands_by_name={verb: (_module(verb), line) for verb, line in _VERBS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog=_EPILOG,
)
@click.version_option(package_name="kafka-logstore", prog_name="logstore")
@click.option(
    "--settings",
    "settings_file",
    metavar="FILE",
    envvar="LOGSTORE_SETTINGS",
    help=f"Settings as TOML: {', '.join((*GENERAL, LOG_FORMAT))}, and a table of options for each verb. What the "
    "command line says counts more, and so does a variable such as LOGSTORE_METADATA or LOGSTORE_AUDIT_HISTORY. "
    f"[default: {' and '.join(DEFAULT_PLACES)}, where they are there]",
)
@click.option(
    "--log-format",
    type=click.Choice(LOG_FORMATS),
    help="What is said on standard error: sentences, or an object of JSON to a line, with time, level, message and "
    "fields. [default: text]",
)
@click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=note_json,
    help="As --json behind the name of a verb that has it.",
)
@click.pass_context
def logstore(context: click.Context, settings_file: str | None, log_format: str | None) -> None:
    """Look after the disks of Kafka-style brokers: what lies in a log dir, and what should."""
    choose_log_format(log_format or "text")
    verb = context.invoked_subcommand
    command = None if verb is None else logstore.get_command(context, verb)
    below = command.commands if isinstance(command, click.Group) else ()
    settings = read_settings(settings_file, [*_VERBS, *(f"{verb} {name}" for name in below)], os.environ)
    choose_log_format(log_format or settings.log_format(LOG_FORMATS) or "text")
    context.meta[SETTINGS] = settings
    if verb is not None and command is not None:
        context.default_map = {verb: settings.defaults_of(verb, command)}


add_verbosity(logstore)


def run() -> None:
    """Run the command line and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal or a locale that lacks a character must not end the run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # A command makes millions of small objects and few cycles; by default the collector would walk them every 700.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    if "--spark" not in sys.argv:
        do_without_pandas()
    # SIGTERM and SIGHUP end a command as Ctrl-C does: with a sentence and an exit code, and without temporary files.
    interrupt_on_signals()
    # It is registered first, so it is called last.
    atexit.register(ignore_signals)
    logstore(prog_name="logstore")
