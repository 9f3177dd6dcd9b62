"""The metadata that a command compares with: what ``--metadata`` names, or what lies beside the log dirs.

:mod:`reconciler.sources` reads it. A source that was found without being named is used only if it can be read and
speaks for the cluster of a given log dir; every source that is passed over is reported.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import click

from logstore.log_dir import read_identity
from reconciler.cli.frame.inputs import Inputs
from reconciler.cli.frame.lifecycle import detail, say, since, warn
from reconciler.cli.frame.options import words_of_call
from reconciler.desired import BrokerKey, Completeness, DesiredState, is_own_copy
from reconciler.errors import MetadataError, UsageError
from reconciler.next_steps import SOURCE, Command
from reconciler.sources import find, load, newest_per_cluster
from reconciler.text import age, count, listed, moment
from reconciler.verdicts import CLOCK_TOLERANCE_MS

NO_METADATA = "none"
"""The value of ``--metadata`` that turns the search for metadata off."""


def choose_metadata(specs: Sequence[str], inputs: Inputs, now_ms: int) -> list[DesiredState]:
    """Load the metadata for an audit, and name each source on standard error.

    Raises:
        UsageError: a named source does not exist, or ``none`` was named beside others.
        MetadataError: a named source cannot be trusted.
    """
    if NO_METADATA in specs:
        if len(set(specs)) > 1:
            raise UsageError("--metadata none does not go with another --metadata")
        return []
    began = time.monotonic()
    states = [state for spec in specs for state in load(spec)] if specs else _find_metadata(inputs)
    detail(f"metadata is read from {', '.join(specs) or 'what lies beside the log dirs'}, {since(began)}")
    for state in states:
        warning = _own_copy_sentence(state, inputs, now_ms)
        if warning is not None:
            warn(warning)
        say(_described(state, now_ms))
    if not states:
        say("no metadata: only what a log dir alone can tell is judged; name a source with --metadata")
    return states


def say_problems(states: Iterable[DesiredState]) -> None:
    """Say on standard error what is wrong with each source, as a note for each problem."""
    for state in states:
        for problem in state.identity.problems:
            say(f"note: {state.identity.location}: {problem}")


def _own_copy_sentence(state: DesiredState, inputs: Inputs, now_ms: int) -> str | None:
    """Say that metadata is the own copy of a broker that does not run, and which command asks others; else None.

    Of the only voter no others can be asked.
    """
    identity = state.identity
    found = (read_identity(log_dir).identity for log_dir in inputs.log_dirs)
    brokers = {BrokerKey(each.cluster_id or "", each.node_id) for each in found if each and each.node_id is not None}
    for row in inputs.inventories.log_dirs:
        if row["node_id"] is not None and (row["scanned_ms"] or 0) > (identity.as_of_ms or 0):
            brokers.add(BrokerKey(row["cluster_id"] or "", row["node_id"]))
    own = BrokerKey(identity.cluster_id or "", -1 if identity.keeper is None else identity.keeper)
    if identity.keeper_decides and not identity.keeper_runs and own in brokers:
        if identity.ends_early:
            return (
                f"the metadata is node {identity.keeper}'s own, and ends early. It is the only voter of its cluster, "
                "so nobody else knows what it decided last, and OK may be wrong: name it, once it runs, as "
                f"kafka:HOST:PORT: {_asking_others(inputs)}"
            )
        return (
            f"the metadata is node {identity.keeper}'s own: it is the only voter of its cluster, so nothing was "
            "decided since it stopped"
        )
    if not is_own_copy(state, brokers):
        return None
    as_of = "of a time that is not known"
    if identity.as_of_ms is not None:
        as_of = f"of {moment(identity.as_of_ms)}, {_apart(identity.as_of_ms, now_ms, 'ago')}"
    return (
        f"the metadata is broker {identity.keeper}'s own copy, and the broker does not run: it speaks as {as_of}, and "
        "nothing since is known, so OK may be wrong. Name a running broker as kafka:HOST:PORT, or the "
        f"__cluster_metadata-0 of a running controller: {_asking_others(inputs)}"
    )


def _asking_others(inputs: Inputs) -> str:
    """Write the command as it was called, with a blank for metadata that goes on."""
    context = click.get_current_context(silent=True)
    verb, given = "audit", (*inputs.folders, *inputs.inventories.files)
    if context is not None and context.info_name is not None:
        verb, *group = context.command_path.split()[1:] or [context.info_name]
        given = (*group, *words_of_call(context, {"--metadata"}))
    return Command(verb, (*given, "--metadata", SOURCE)).text


def _find_metadata(inputs: Inputs) -> list[DesiredState]:
    """Find the newest metadata of each cluster whose log dirs were given, at or below the given folders."""
    clusters = _clusters(inputs)
    found = [state for path in _candidates(inputs) for state in _readable(path)]
    fitting = [state for state in found if state.identity.cluster_id in clusters]
    strangers = [state.identity for state in found if state.identity.cluster_id not in clusters]
    if strangers:
        sources = listed([f"{each.location} (cluster {each.cluster_id or 'not named'})" for each in strangers])
        warn(f"metadata of no cluster whose log dirs were given is passed over: {sources}")
    return newest_per_cluster(fitting)


def _candidates(inputs: Inputs) -> list[str]:
    found: dict[str, None] = {}
    for folder in inputs.folders:
        try:
            found.update(dict.fromkeys(find(folder)))
        except UsageError as error:
            warn(f"{error}; no metadata was looked for there")
    return list(found)


def _readable(path: str) -> list[DesiredState]:
    try:
        return load(path)
    except (MetadataError, UsageError) as error:
        warn(f"metadata was found and is passed over: {error}")
        return []


def _clusters(inputs: Inputs) -> frozenset[str]:
    named = (read_identity(log_dir).identity for log_dir in inputs.log_dirs)
    inventoried = (row["cluster_id"] for row in inputs.inventories.log_dirs)
    return frozenset(
        cluster for cluster in (*(each.cluster_id for each in named if each is not None), *inventoried) if cluster
    )


def _apart(timestamp_ms: int, now_ms: int, past: str) -> str:
    """Say how old metadata is; a live source that answered while this command began is not in the future."""
    since = now_ms - timestamp_ms
    return f"{age(-since)} in the future" if since <= -CLOCK_TOLERANCE_MS else f"{age(max(since, 0))} {past}"


def _described(state: DesiredState, now_ms: int) -> str:
    """Describe one source in a line: its kind, its cluster, its size, its offset and its age."""
    identity = state.identity
    parts = [
        f"metadata: {identity.source} {identity.location}",
        f"cluster {identity.cluster_id or 'not named'}",
        f"{count(state.topics.num_rows, 'topic')} and {count(state.replicas.num_rows, 'replica')}",
        "" if identity.offset is None else f"offset {identity.offset}",
        "" if identity.epoch is None else f"epoch {identity.epoch}",
        "of a time that it does not say"
        if identity.as_of_ms is None
        else f"of {moment(identity.as_of_ms)}, {_apart(identity.as_of_ms, now_ms, 'old')}",
        "" if identity.completeness is Completeness.FULL else "which does not mention everything",
        "" if identity.scope is None else f"for broker {listed([str(node) for node in sorted(identity.scope)])} alone",
        "whose last records may still be taken back" if identity.tail_uncommitted else "",
    ]
    return ", ".join(part for part in parts if part)
