"""Which metadata an audit goes by: what ``--metadata`` names, or what lies beside the log dirs.

Reading a source is left to ``reconciler.sources``. What is found without being named is taken only when it can be read
and speaks for a cluster that is there; whatever is passed over is told.
"""

from __future__ import annotations

from collections.abc import Sequence

from logstore.log_dir import read_identity
from reconciler.cli.frame.exits import say
from reconciler.cli.frame.inputs import Inputs
from reconciler.desired import Completeness, DesiredState
from reconciler.errors import MetadataError, UsageError
from reconciler.text import age, count, listed, moment

NO_METADATA = "none"
"""The value of ``--metadata`` that switches the search off."""

_BEGINNING_MS = 60_000


def choose_metadata(specs: Sequence[str], inputs: Inputs, now_ms: int) -> list[DesiredState]:
    """Load the metadata that an audit goes by, and say on standard error which it is.

    Raises:
        UsageError: a source that was named does not exist, or ``none`` was named beside others.
        MetadataError: a source that was named cannot be trusted.
    """
    from reconciler.sources import load

    if NO_METADATA in specs:
        if len(set(specs)) > 1:
            raise UsageError("--metadata none does not go with another --metadata")
        return []
    states = [state for spec in specs for state in load(spec)] if specs else _find(inputs)
    for state in states:
        say(_described(state, now_ms))
    if not states:
        say("no metadata: only what a log dir alone can tell is judged; name a source with --metadata")
    return states


def _find(inputs: Inputs) -> list[DesiredState]:
    """The newest metadata of each cluster whose log dirs were given, from what lies at or below the given folders."""
    from reconciler.sources import newest_per_cluster

    clusters = _clusters(inputs)
    found = [state for path in _candidates(inputs) for state in _readable(path)]
    fitting = [state for state in found if state.identity.cluster_id in clusters]
    strangers = [state.identity for state in found if state.identity.cluster_id not in clusters]
    if strangers:
        told = listed([f"{each.location} (cluster {each.cluster_id or 'not named'})" for each in strangers])
        say(f"metadata of no cluster whose log dirs were given is passed over: {told}")
    return newest_per_cluster(fitting)


def _candidates(inputs: Inputs) -> list[str]:
    from reconciler.sources import find

    found: dict[str, None] = {}
    for folder in inputs.folders:
        try:
            found.update(dict.fromkeys(find(folder)))
        except UsageError as error:
            say(f"{error}; no metadata was looked for there")
    return list(found)


def _readable(path: str) -> list[DesiredState]:
    from reconciler.sources import load

    try:
        return load(path)
    except (MetadataError, UsageError) as error:
        say(f"metadata was found and is passed over: {error}")
        return []


def _clusters(inputs: Inputs) -> frozenset[str]:
    named = (read_identity(log_dir).identity for log_dir in inputs.log_dirs)
    inventoried = (row["cluster_id"] for row in inputs.inventoried)
    return frozenset(
        cluster for cluster in (*(each.cluster_id for each in named if each is not None), *inventoried) if cluster
    )


def _since(timestamp_ms: int, now_ms: int) -> int:
    """How old metadata is, in ms; what a live source told while this command began is not of the future."""
    since = now_ms - timestamp_ms
    return 0 if -_BEGINNING_MS < since < 0 else since


def _described(state: DesiredState, now_ms: int) -> str:
    """One source in a line: what it is, for which cluster, how far it reaches, how old it is."""
    identity = state.identity
    parts = [
        f"metadata: {identity.source} {identity.location}",
        f"cluster {identity.cluster_id or 'not named'}",
        f"{count(state.topics.num_rows, 'topic')} and {count(state.replicas.num_rows, 'replica')}",
        "" if identity.offset is None else f"offset {identity.offset}",
        "" if identity.epoch is None else f"epoch {identity.epoch}",
        ""
        if identity.timestamp_ms is None
        else f"of {moment(identity.timestamp_ms)}, {age(_since(identity.timestamp_ms, now_ms))} old",
        "" if identity.completeness is Completeness.FULL else "which does not mention everything",
        "" if identity.scope is None else f"for broker {listed([str(node) for node in sorted(identity.scope)])} alone",
        "whose last records may still be taken back" if identity.tail_uncommitted else "",
    ]
    return ", ".join(part for part in parts if part)
