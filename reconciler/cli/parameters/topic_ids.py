"""The parameters of ``logstore topic-ids``."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.frame import Exit, Format, carry_out, output_options

_EPILOG = """\b
Examples:
  logstore topic-ids zk1:2181,zk2:2181/kafka
  logstore topic-ids zk1:2181 --topic 'orders*' --assign
  logstore topic-ids zk1:2181 --format json -o topics.json

\b
A controller of Kafka 2.8 or later gives every topic an ID when it takes office, so a cluster that runs one needs this
never. It is for clusters whose brokers stay older, and for ZooKeeper data that is brought back without a cluster.
Each node is written only if it, and the controller's epoch, are as they were read: whoever writes in between wins.
"""


@click.command("topic-ids", epilog=_EPILOG)
@click.argument("address", metavar="HOST:PORT[,...][/CHROOT]")
@output_options(Format.TABLE, Format.JSON)
@click.option("--topic", "patterns", multiple=True, metavar="PATTERN", help="These topics alone, by full name.")
@click.option("--assign", is_flag=True, help="Write an ID for each topic that has none; else nothing is written.")
@click.option(
    "--running-controller", is_flag=True,
    help="Write though a controller is in office; it does not learn of the IDs before another one takes over.",
)  # fmt: skip
def command(**given: Any) -> Exit:
    """List the topics of a cluster that is kept in ZooKeeper, with their topic IDs, and give IDs to those without.

    Only the topics' own nodes are written, as Kafka itself writes them (version 3). What cannot be read whole, is
    marked for deletion, or has an ID already is left as it is.

    Exit code 0: every topic has an ID. 1: some have none. 3: refused, and nothing was written: a controller is in
    office, KRaft has taken over, or ZooKeeper does not answer. 4: some IDs were not written; the output says why.
    """
    return carry_out("topic_ids", given)
