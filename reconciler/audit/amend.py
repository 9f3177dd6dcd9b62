"""What is added to the result of an engine: what the set of inventories shows, and what a policy allows."""

from __future__ import annotations

from dataclasses import replace

from logstore.rows import InventorySet
from reconciler.audit.fleet import FleetFinding
from reconciler.audit.result import AuditResult
from reconciler.policy import PolicyRules
from reconciler.text import count, listed
from reconciler.verdicts import Verdict


def with_inventories(result: AuditResult, inventories: InventorySet) -> AuditResult:
    """Add what the set of inventories shows by itself: files that cannot be read, and scans that do not count."""
    unreadable = (
        FleetFinding("INVENTORY_UNREADABLE", None, path, problem) for path, problem in inventories.unreadable.items()
    )
    return replace(
        result,
        fleet=(*result.fleet, *unreadable),
        notes=(*result.notes, *inventories.remarks),
    )


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
