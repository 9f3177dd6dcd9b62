"""Asks metadata once more before a purge: which staged replicas are wanted here again by now. Pure.

A replica is staged because of what was wanted then. Until it is purged its topic may have been brought back, or
reassigned to this broker once more. What a purge deletes is gone, so metadata that cannot be trusted answers nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from logstore.rows import Kind
from reconciler.desired import BrokerKey, DesiredState, speaking
from reconciler.text import age, moment
from reconciler.verdicts.doubt import CLOCK_TOLERANCE_MS
from reconciler.verdicts.join import Row, broker_of, compare
from reconciler.verdicts.table import Verdict

OLDEST_MS = 86_400_000
"""The greatest age of metadata that is asked; what was wanted again since then would be purged."""

_UNWANTED = frozenset({Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC})
_STAGED = frozenset({Verdict.STAGED, Verdict.STAGED_DUE})


def wanted_again(states: Mapping[str, DesiredState], rows: Sequence[Row], now_ms: int) -> dict[tuple[str, str], str]:
    """Find the staged replicas that the metadata wants here, and of which no live replica takes the place.

    ``states``: desired state by cluster ID; ``rows``: of a scan of all log dirs.

    Returns:
        Log dir and location → why it stays, one sentence.
    """
    live: set[tuple[BrokerKey, str, int]] = set()
    staged: list[tuple[Row, Row]] = []
    for each in compare(states, rows, now_ms):
        row = each.observed
        if row is None:
            continue
        if row["kind"] == Kind.LIVE and each.verdict not in _UNWANTED:
            live.add((broker_of(row), row["topic"], row["partition"]))
        elif each.verdict in _STAGED and each.wanted is not None:
            staged.append((row, each.wanted))
    return {
        (row["log_dir"], row["name"]): (
            f"the metadata wants {wanted['topic']}-{wanted['partition']} with topic ID "
            f"{wanted['topic_id'] or 'unknown'} here again"
        )
        for row, wanted in staged
        if (broker_of(row), wanted["topic"], wanted["partition"]) not in live
    }


def reasons_for_distrust(
    states: Mapping[str, DesiredState], brokers: Collection[BrokerKey], now_ms: int
) -> Iterator[str]:
    """Yield why the metadata cannot say what is no longer wanted on these brokers, one sentence each.

    ``states``: desired state by cluster ID; ``brokers``: whose log dirs are to be purged.
    """
    spoken_of = {BrokerKey(each.cluster, each.node): each.complete for each in speaking(dict(states), set(brokers))}
    for broker in sorted(brokers, key=str):
        state, name = states.get(broker.cluster), f"broker {broker.node} of cluster {broker.cluster or 'without an ID'}"
        if state is None:
            yield f"no metadata of its cluster was given for {name}"
        elif not state.topics.num_rows:
            yield f"{state.identity.location} knows no topic: a cluster that lost its metadata looks the same"
        elif not spoken_of.get(broker, False):
            yield f"{state.identity.location} does not tell all that {name} should have"
    for state in states.values():
        as_of_ms, place = state.identity.as_of_ms, state.identity.location
        if as_of_ms is None:
            yield f"{place} does not say as of when it speaks"
        elif as_of_ms > now_ms + CLOCK_TOLERANCE_MS:
            yield f"{place} speaks as of {moment(as_of_ms)}, which has not come yet: a clock is wrong"
        elif now_ms - as_of_ms > OLDEST_MS:
            yield f"{place} is {age(now_ms - as_of_ms)} old, and {age(OLDEST_MS)} is the most"
        yield from (f"{place} is not whole: {problem}" for problem in state.identity.ends_early)
