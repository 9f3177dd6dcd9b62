"""What is added to the result of an engine: what the set of inventories shows, and what a policy allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from logstore.rows import InventorySet, LogDirOnHost, OtherPlace
from reconciler.audit.fleet import FleetFinding, limited
from reconciler.audit.result import AuditResult
from reconciler.policy import PolicyRules
from reconciler.text import age, count, listed
from reconciler.verdicts import Verdict


def with_inventories(result: AuditResult, inventories: InventorySet) -> AuditResult:
    """Add what the set of inventories shows by itself: files that cannot be read, and scans that do not count."""
    unreadable = (
        FleetFinding("INVENTORY_UNREADABLE", None, path, problem) for path, problem in inventories.unreadable.items()
    )
    return replace(
        result,
        fleet=(*limited(_copied_or_moved(inventories.other_places)), *result.fleet, *unreadable),
        notes=(*result.notes, *inventories.remarks),
    )


def _copied_or_moved(places: Iterable[OtherPlace]) -> Iterable[FleetFinding]:
    """Make findings of log dirs that were found at two places, where nothing tells whether one is a copy."""
    by_id: dict[tuple[str, str | None], list[OtherPlace]] = {}
    for each in places:
        if not each.is_certain:
            by_id.setdefault((each.cluster_id, each.directory_id), []).append(each)
    for (cluster, directory_id), found in by_id.items():
        older, newer, apart_ms = _at(found[0].older), _at(found[0].newer), found[0].apart_ms
        span = "at times that are not known" if apart_ms is None else f"{age(apart_ms)} apart"
        more = f", and at {count(len(found) - 1, 'other place')}" if len(found) > 1 else ""
        is_host = found[0].older.host != found[0].newer.host
        other = "its host has another name now, or two" if is_host else "its disk was mounted elsewhere"
        detail = (
            f"{newer} and {older} carry it, scanned {span}{more}: one is a copy, or {other}. Only the newest scan, of "
            f"{newer}, was judged; leave out the inventories of the place that is gone"
        )
        yield FleetFinding("DUPLICATE_DIRECTORY_ID", cluster or None, directory_id or "", detail)


def _at(place: LogDirOnHost) -> str:
    return f"{place.host}:{place.log_dir}"


def with_policy(result: AuditResult, rules: PolicyRules) -> AuditResult:
    """Take the foreign names that a policy allows out of what asks for action; a note says which they are."""
    total = result.totals.get(Verdict.FOREIGN, 0)
    if not total or not rules.path:
        return result
    names = result.of_verdict(Verdict.FOREIGN, ["name"]).column("name").to_pylist()
    allowed = [name for name in names if rules.allows(name)]
    if not allowed:
        return result
    which = listed(sorted(set(allowed)))
    note = f"the policy {rules.path} allows {len(allowed):,} of {count(total, 'FOREIGN finding')}: {which}"
    return replace(result, rules=rules, allowed={Verdict.FOREIGN.value: len(allowed)}, notes=(*result.notes, note))
