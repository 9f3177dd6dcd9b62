"""``logstore topic-ids``: lists the topics of a ZooKeeper cluster that have no topic ID, and assigns IDs on request.

:mod:`reconciler.topic_ids` decides what a node becomes, and writes it. Nothing is written without ``--assign``.
"""

from __future__ import annotations

import fnmatch
import json
import os
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.frame import Exit, Format, InterruptedRunError, check_output, destination, output_options, say
from reconciler.errors import RefusedError
from reconciler.text import NOTHING, count

if TYPE_CHECKING:
    from reconciler.topic_ids import ClusterSeen, TopicFound

SCHEMA_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""

ASSIGNED, NOT_WRITTEN = "assigned", "not_written"
"""States of topics after ``--assign``, besides those of :class:`reconciler.topic_ids.TopicIdState`."""

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


@click.command("topic-ids", epilog=_EPILOG, short_help="Topics without an ID in ZooKeeper, and IDs for them.")
@click.argument("address", metavar="HOST:PORT[,...][/CHROOT]")
@output_options(Format.TABLE, Format.JSON)
@click.option("--topic", "patterns", multiple=True, metavar="PATTERN", help="These topics alone, by full name.")
@click.option("--assign", is_flag=True, help="Write an ID for each topic that has none; else nothing is written.")
@click.option(
    "--running-controller", is_flag=True,
    help="Write though a controller is in office; it does not learn of the IDs before another one takes over.",
)  # fmt: skip
def command(
    *, address: str, form: str, output: str | None, patterns: tuple[str, ...], assign: bool, running_controller: bool
) -> Exit:
    """List the topics of a cluster that is kept in ZooKeeper, with their topic IDs, and give IDs to those without.

    Only the topics' own nodes are written, as Kafka itself writes them (version 3). What cannot be read whole, is
    marked for deletion, or has an ID already is left as it is.

    Exit code 0: every topic has an ID. 1: some have none. 3: refused, and nothing was written: a controller is in
    office, KRaft has taken over, or ZooKeeper does not answer. 4: some IDs were not written; the output says why.
    """
    from reconciler.topic_ids import connect, read_cluster

    check_output(Format(form), output, [])
    with connect(address.removeprefix("zk:")) as client:
        seen = read_cluster(client, address)
        rows = [_row(topic) for topic in seen.topics if _is_chosen(topic.topic, patterns)]
        if assign:
            _refuse_running(seen, address, allowed=running_controller)
            _assign(client, seen, rows)
    _write(seen, rows, Format(form), output)
    return _say_outcome(seen, rows, assign=assign)


def _is_chosen(topic: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(topic, pattern) for pattern in patterns)


def _row(topic: TopicFound) -> dict[str, Any]:
    return {"topic": topic.topic, "state": topic.state.value, "topic_id": topic.topic_id, "detail": topic.reason}


def _refuse_running(seen: ClusterSeen, address: str, *, allowed: bool) -> None:
    if seen.controller is None or allowed:
        return
    raise RefusedError(
        f"{address}: a controller is in office ({seen.controller:.120}), which keeps topics in memory and may write "
        "over what is written behind its back: stop the brokers first (override: --running-controller)"
    )


def _assign(client: Any, seen: ClusterSeen, rows: list[dict[str, Any]]) -> None:
    """Write one node after the other, and note the result in the rows."""
    from reconciler.topic_ids import TopicIdState, assign_topic_id, new_ids

    by_name = {topic.topic: topic for topic in seen.topics}
    ids = new_ids(os.urandom, {topic.topic_id for topic in seen.topics if topic.topic_id is not None})
    try:
        for row in rows:
            if row["state"] == TopicIdState.WITHOUT_ID:
                topic_id = next(ids)
                problem = assign_topic_id(client, seen, by_name[row["topic"]], topic_id)
                written = {"state": ASSIGNED, "topic_id": str(topic_id)}
                row.update(written if problem is None else {"state": NOT_WRITTEN, "detail": problem})
    except KeyboardInterrupt as error:
        done = [row["topic"] for row in rows if row["state"] == ASSIGNED]
        raise InterruptedRunError(
            f"interrupted after {count(len(done), 'topic')}; their IDs stand. Next: the same command does the rest"
        ) from error


def _write(seen: ClusterSeen, rows: list[dict[str, Any]], form: Format, output: str | None) -> None:
    if form is Format.JSON:
        document = {"schema_version": SCHEMA_VERSION, "cluster_id": seen.cluster_id, "topics": rows}
        with destination(output) as out:
            out.write(f"{json.dumps(document, indent=2)}\n".encode())
        return
    from reconciler.cli.frame import Column, open_page

    with open_page(output) as opened:
        columns = (Column("STATE"), Column("TOPIC ID"), Column("TOPIC"), Column("WHY"))
        cells = (
            (row["state"].replace("_", " "), row["topic_id"] or NOTHING, row["topic"], row["detail"]) for row in rows
        )
        opened.table(columns, cells, {"without id": "yellow", "assigned": "green", "not written": "bold red"})


def _say_outcome(seen: ClusterSeen, rows: list[dict[str, Any]], *, assign: bool) -> Exit:
    """Say what was found, and return the exit code."""
    states = [row["state"] for row in rows]
    counts = [f"{count(states.count(state))} {state.replace('_', ' ')}" for state in dict.fromkeys(states)]
    say(f"cluster {seen.cluster_id or 'not named'}: {count(len(rows), 'topic')}: {', '.join(counts) or 'none'}")
    if NOT_WRITTEN in states:
        return Exit.PARTLY_FAILED
    without = "without_id" in states
    if without and not assign:
        say("nothing was written. Next: --assign gives an ID to each topic without one")
    if ASSIGNED in states:
        say("brokers write the IDs beside their replicas when a controller tells them; until then an audit finds NO_ID")
    return Exit.FINDINGS if without or "left_alone" in states else Exit.CLEAN
