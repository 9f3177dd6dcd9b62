"""``logstore topic-ids``: lists the topics of a ZooKeeper cluster that have no topic ID, and assigns IDs on request.

:mod:`reconciler.topic_ids` decides what a node becomes, and writes it. Nothing is written without ``--assign``.
"""

from __future__ import annotations

import fnmatch
import json
import os
from contextlib import nullcontext
from typing import Any

from reconciler.cli.frame import (
    Exit,
    Format,
    InterruptedRunError,
    check_output,
    destination,
    may_be_unread,
    open_page,
    say,
)
from reconciler.errors import RefusedError
from reconciler.text import NOTHING, Column, count
from reconciler.topic_ids import ClusterSeen, TopicFound, TopicIdState, assign_topic_id, connect, new_ids, read_cluster

SCHEMA_VERSION = 1
"""Version of the JSON; raised whenever a field changes its meaning or goes."""

ASSIGNED, NOT_WRITTEN = "assigned", "not_written"
"""States of topics after ``--assign``, besides those of :class:`reconciler.topic_ids.TopicIdState`."""


def run(
    *, address: str, form: str, output: str | None, patterns: tuple[str, ...], assign: bool, running_controller: bool
) -> Exit:
    """List the topics of a cluster that is kept in ZooKeeper, with their topic IDs, and give IDs to those without."""
    check_output(Format(form), output, [])
    with connect(address.removeprefix("zk:")) as client:
        seen = read_cluster(client, address)
        rows = [_row(topic) for topic in seen.topics if _is_chosen(topic.topic, patterns)]
        if assign:
            _refuse_running(seen, address, allowed=running_controller)
            _assign(client, seen, rows)
    with may_be_unread() if assign else nullcontext():
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

    with open_page(output) as opened:
        columns = (Column("STATE"), Column("TOPIC ID"), Column("TOPIC", path=True), Column("WHY", prose=True))
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
