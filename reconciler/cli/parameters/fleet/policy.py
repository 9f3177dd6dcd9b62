"""The parameters of ``logstore policy check``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import (
    Exit,
    Format,
    SuggestingGroup,
    carry_out,
    fallback_records_option,
    metadata_option,
    output_options,
)

_EPILOG = """\b
Examples:
  logstore policy check /etc/logstore-policy.toml
  logstore policy check /etc/logstore-policy.toml /disks/*/kafka --metadata kafka:broker-1:9092
  logstore policy check policy.toml /disks/*/kafka --json | jq '.rules[] | select(.names_nothing)'

\b
'logstore help operate' shows a whole policy. The commands that plan, stage, list and purge take it by --policy FILE, by
policy = "FILE" at the top of the settings, or by LOGSTORE_POLICY.
"""


@click.group("policy", cls=SuggestingGroup, epilog=_EPILOG)
def command() -> None:
    """Rules that are laid down once for all plans and purges: holds, topics never to touch, delays, foreign names."""


@command.command("check", epilog=_EPILOG, short_help="Check a policy file, and say what it means for these disks.")
@click.argument("policy_file", metavar="FILE")
@click.argument("paths", metavar="[LOG_DIR...]", nargs=-1)
@metadata_option
@output_options(Format.TABLE, Format.JSON)
@fallback_records_option
def check(**given: Any) -> Exit:
    """Check a policy file, and say what it means for the disks of these log dirs. Nothing is changed.

    Of each rule it tells how many replicas it names and how large they are, of each hold how long it holds, of each
    gate its number and where that stands; then what would be staged now and when it would be due, and what lies staged
    and is held. Without LOG_DIR only the file is checked.

    Exit code 0: every rule names something. 1: a rule names nothing here, or a hold has ended. 2: there is a mistake in
    the file; the message has its line. 4: a log dir could not be read.
    """
    return carry_out("fleet.policy", given)
