"""The parameters of ``logstore simulate``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import Exit, Format, carry_out, output_options
from reconciler.simulator.placement import Placement

_EPILOG = """\b
Examples:
  logstore simulate --seed 7 --brokers 5 --steps 2000
  logstore simulate --seed 7 --faults default,crash=0.05,disk_full=0
  logstore simulate --scenario stale-state --keep /root/simulated
  logstore simulate --seed 7 --placement kraft

\b
--faults takes 'none', 'default' or KIND=RATE, by commas; a rate is a number from 0 to 1 for each message, or for each
machine and simulated second. A wrong kind lists them all. --scenario takes a file, or the name of one that is shipped:
  admin-commands, stale-state, stale-reads, reassigned-while-down, fewer-partitions, failed-disk, kraft-placement,
  two-tenants, namespace-and-partition, namespace-configs
"""


@click.command("simulate", epilog=_EPILOG)
@output_options(Format.TABLE, Format.JSON)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Gives the whole history.")
@click.option("--brokers", type=click.IntRange(1, 50), default=5, show_default=True, metavar="N", help="How many.")
@click.option(
    "--steps", type=click.IntRange(0), default=2000, show_default=True, metavar="N", help="Events, then rest."
)
@click.option("--faults", default="default", show_default=True, metavar="RATES", help="How often what goes wrong.")
@click.option("--durable", is_flag=True, help="Sync before acknowledging, lose no disk, and look for every record.")
@click.option(
    "--placement", type=click.Choice([each.value for each in Placement]),
    help="Whose rules place partitions; kraft's know brokers that are down.  [default: zookeeper, or the scenario's]",
)  # fmt: skip
@click.option("--without", default="", metavar="NAMES", help="Leave out features and faults, by commas.")
@click.option("--skip", default="", metavar="NUMBERS", help="Leave out single actions, such as 0-3,7.")
@click.option("--scenario", metavar="FILE", help="Play this instead of a history from the seed.")
@click.option("--keep", metavar="DIR", help="Leave the disks in this folder, which must be empty or not there yet.")
def command(**given: Any) -> Exit:
    """Play one history of a simulated cluster, look at every event, bring it to rest, and check every disk.

    The same seed and options give the same history, byte for byte. A history that breaks a promise is played again, for
    the least that still does: fewer steps, and without what it does not need. What is left out is not done, and changes
    nothing of what else the seed draws.

    Exit code 0: every promise was kept. 1: one was broken; standard error has the seed, the number of steps and why.
    """
    return carry_out("simulate", given)
