"""Turn verdicts into a reviewed plan of actions, hold it to gates, and carry it out."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.plan.apply import AppliedAction, ApplyOptions, ApplyOutcome, apply_plan
    from reconciler.plan.evidence import PlanView, RepairView, ScannedLogDir
    from reconciler.plan.file import action_fields, encode_plan, parse_plan
    from reconciler.plan.gate_inputs import EarlierRuns, UsedMetadata, led_elsewhere, shut_for_repair
    from reconciler.plan.gates import BrokerFacts, CandidateFacts, GateInputs, GatesShutError, MetadataFacts, refusals
    from reconciler.plan.history import UNDER_WAY, History, end_journals, journal_paths, read_history, write_journal
    from reconciler.plan.plan import (
        FILE_REPAIRS,
        REPAIRS,
        STAGING_ACTIONS,
        Action,
        ActionKind,
        KeptCopy,
        LeftAlone,
        Plan,
        PlannedLogDir,
    )
    from reconciler.plan.policy import (
        ALLOWABLE,
        ALLOWABLE_FOR_REPAIR,
        INTERNAL_TOPICS,
        Gate,
        PlanChoice,
        Policy,
        is_internal_topic,
    )
    from reconciler.plan.proposal import PlanOrigin, make_plan
    from reconciler.plan.repair_proposal import RepairChoice, propose_repair, uncertain_replicas
    from reconciler.plan.revalidate import StrangeLogDirError
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "apply": ("AppliedAction", "ApplyOptions", "ApplyOutcome", "apply_plan"),
            "evidence": ("PlanView", "RepairView", "ScannedLogDir"),
            "file": ("action_fields", "encode_plan", "parse_plan"),
            "gate_inputs": ("EarlierRuns", "UsedMetadata", "led_elsewhere", "shut_for_repair"),
            "gates": ("BrokerFacts", "CandidateFacts", "GateInputs", "GatesShutError", "MetadataFacts", "refusals"),
            "history": ("History", "UNDER_WAY", "end_journals", "journal_paths", "read_history", "write_journal"),
            "plan": (
                "Action",
                "ActionKind",
                "FILE_REPAIRS",
                "KeptCopy",
                "LeftAlone",
                "Plan",
                "PlannedLogDir",
                "REPAIRS",
                "STAGING_ACTIONS",
            ),
            "policy": (
                "ALLOWABLE",
                "ALLOWABLE_FOR_REPAIR",
                "Gate",
                "INTERNAL_TOPICS",
                "PlanChoice",
                "Policy",
                "is_internal_topic",
            ),
            "proposal": ("PlanOrigin", "make_plan"),
            "repair_proposal": ("RepairChoice", "propose_repair", "uncertain_replicas"),
            "revalidate": ("StrangeLogDirError",),
        },
    )

__all__ = [
    "ALLOWABLE",
    "ALLOWABLE_FOR_REPAIR",
    "FILE_REPAIRS",
    "INTERNAL_TOPICS",
    "REPAIRS",
    "STAGING_ACTIONS",
    "UNDER_WAY",
    "Action",
    "ActionKind",
    "AppliedAction",
    "ApplyOptions",
    "ApplyOutcome",
    "BrokerFacts",
    "CandidateFacts",
    "EarlierRuns",
    "Gate",
    "GateInputs",
    "GatesShutError",
    "History",
    "KeptCopy",
    "LeftAlone",
    "MetadataFacts",
    "Plan",
    "PlanChoice",
    "PlanOrigin",
    "PlanView",
    "PlannedLogDir",
    "Policy",
    "RepairChoice",
    "RepairView",
    "ScannedLogDir",
    "StrangeLogDirError",
    "UsedMetadata",
    "action_fields",
    "apply_plan",
    "encode_plan",
    "end_journals",
    "is_internal_topic",
    "journal_paths",
    "led_elsewhere",
    "make_plan",
    "parse_plan",
    "propose_repair",
    "read_history",
    "refusals",
    "shut_for_repair",
    "uncertain_replicas",
    "write_journal",
]
