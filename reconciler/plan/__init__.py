"""Verdicts turned into reviewed actions, held to gates, and carried out."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.plan.apply import AppliedAction, ApplyOptions, ApplyOutcome, apply_plan
    from reconciler.plan.plan import STAGING_ACTIONS, Action, ActionKind, Plan
    from reconciler.plan.plan_choice import PlanChoice
    from reconciler.plan.plan_json import encode_plan, parse_plan
    from reconciler.plan.plan_view import PlanView, StagingFacts
    from reconciler.plan.policy import (
        ALLOWABLE,
        INTERNAL_PREFIX,
        BrokerFacts,
        Gate,
        GateInputs,
        MetadataFacts,
        Policy,
        refusals,
    )
    from reconciler.plan.proposal import PlanOrigin, make_plan
    from reconciler.plan.repair_proposal import RepairChoice, propose_repair
    from reconciler.plan.repair_view import RepairView
    from reconciler.plan.run_history import read_history
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "apply": ("AppliedAction", "ApplyOptions", "ApplyOutcome", "apply_plan"),
            "plan": ("Action", "ActionKind", "Plan", "STAGING_ACTIONS"),
            "plan_choice": ("PlanChoice",),
            "plan_json": ("encode_plan", "parse_plan"),
            "plan_view": ("PlanView", "StagingFacts"),
            "policy": (
                "ALLOWABLE",
                "BrokerFacts",
                "Gate",
                "GateInputs",
                "INTERNAL_PREFIX",
                "MetadataFacts",
                "Policy",
                "refusals",
            ),
            "proposal": ("PlanOrigin", "make_plan"),
            "repair_proposal": ("RepairChoice", "propose_repair"),
            "repair_view": ("RepairView",),
            "run_history": ("read_history",),
        },
    )

__all__ = [
    "ALLOWABLE",
    "INTERNAL_PREFIX",
    "STAGING_ACTIONS",
    "Action",
    "ActionKind",
    "AppliedAction",
    "ApplyOptions",
    "ApplyOutcome",
    "BrokerFacts",
    "Gate",
    "GateInputs",
    "MetadataFacts",
    "Plan",
    "PlanChoice",
    "PlanOrigin",
    "PlanView",
    "Policy",
    "RepairChoice",
    "RepairView",
    "StagingFacts",
    "apply_plan",
    "encode_plan",
    "make_plan",
    "parse_plan",
    "propose_repair",
    "read_history",
    "refusals",
]
