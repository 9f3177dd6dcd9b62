"""What an operator lays down once for all plans and purges: a policy file, and what its rules forbid and allow."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.policy.policy_file import parse_policy, parse_share
    from reconciler.policy.reach import RuleReach, StagedGroup, reach_of, staged_groups
    from reconciler.policy.rules import GateNumber, PolicyRules, Rule, RuleKind
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "policy_file": ("parse_policy", "parse_share"),
            "reach": ("RuleReach", "StagedGroup", "reach_of", "staged_groups"),
            "rules": ("GateNumber", "PolicyRules", "Rule", "RuleKind"),
        },
    )

__all__ = [
    "GateNumber", "PolicyRules", "Rule", "RuleKind", "RuleReach", "StagedGroup", "parse_policy", "parse_share",
    "reach_of", "staged_groups",
]  # fmt: skip
