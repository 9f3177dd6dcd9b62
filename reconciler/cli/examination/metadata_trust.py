"""How far the metadata can be believed by which a broker's disks are judged."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.desired import BrokerKey, Completeness, DesiredState, is_own_copy
from reconciler.next_steps import MetadataTrust
from reconciler.plan import read_history
from reconciler.text import age, moment
from reconciler.verdicts import BENIGN, CLOCK_TOLERANCE_MS, Judged

_DAY_MS = 86_400_000


def is_only_voter(state: DesiredState | None, broker: BrokerKey) -> bool:
    """Whether metadata is the own one of a stopped broker that alone decides, so that no other can be asked."""
    if state is None:
        return False
    identity = state.identity
    is_own = identity.keeper == broker.node and identity.cluster_id == broker.cluster
    return is_own and identity.keeper_decides and not identity.keeper_runs


def _why_too_old(state: DesiredState, broker: BrokerKey, since_ms: int, judged: Sequence[Judged]) -> str | None:
    """Say why metadata of another day is too old; None: nothing was decided since, and nothing leads to a plan."""
    old = f"{state.identity.location} is {age(since_ms)} old"
    if not is_only_voter(state, broker) or state.identity.ends_early:
        return old
    is_asked = any(each.verdict not in BENIGN for each in judged)
    return f"{old}, though nothing was decided since this broker stopped" if is_asked else None


def judge_metadata(
    state: DesiredState | None, broker: BrokerKey, now_ms: int, judged: Sequence[Judged], log_dirs: Sequence[str]
) -> tuple[MetadataTrust, str]:
    """Judge the metadata, and say in a clause what is wrong with it."""
    if state is None or not state.topics.num_rows:
        return MetadataTrust.NONE, "no metadata of this cluster was given or found, or it knows no topic"
    identity = state.identity
    since = None if identity.as_of_ms is None else now_ms - identity.as_of_ms
    if is_own_copy(state, [broker]):
        when = "it stopped" if identity.as_of_ms is None else moment(identity.as_of_ms)
        why = f"{identity.location} is this broker's own copy, which ends at {when}: nothing since is known"
        return MetadataTrust.OWN_COPY, why
    if since is None:
        return MetadataTrust.OLD, f"{identity.location} does not say as of when it speaks"
    if since < -CLOCK_TOLERANCE_MS:
        future = f"{identity.location} is of {moment(identity.as_of_ms)}, which is {age(-since)} in the future"
        return MetadataTrust.OLD, f"{future}, so its clock or this machine's is wrong"
    if since > _DAY_MS and (old := _why_too_old(state, broker, since, judged)):
        return MetadataTrust.OLD, old
    if clause := read_history(log_dirs).went_back(identity, broker.cluster):
        return MetadataTrust.OLD, f"{identity.location} went back in time: {clause}"
    if identity.completeness is not Completeness.FULL or identity.ends_early:
        why = identity.ends_early[0] if identity.ends_early else "it does not mention every topic"
        return MetadataTrust.INCOMPLETE, f"{identity.location}: {why}"
    if any(each.doubt for each in judged if each.observed is not None):
        return MetadataTrust.OLD, f"{identity.location} is older than what it condemns here"
    return MetadataTrust.GOOD, ""
