"""Decides what comes next: from what is known of a broker to the commands that lead to a healthy one. Pure.

Terminal, JSON, reports and errors render these steps; no other code makes a command that is printed.
"""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.next_steps.call import FALLBACK_FOLDER, PLAN_FILE, REFETCH, WITHOUT_ID, Call
    from reconciler.next_steps.command import (
        BLANKS,
        OTHER_LOG_DIR,
        PROGRAM,
        RELEASE,
        SOURCE,
        Command,
        Step,
        ToolCommand,
    )
    from reconciler.next_steps.findings import (
        FINDING_STEPS,
        FLEET_STEPS,
        RULE_COMMANDS,
        step_of_broker,
        step_of_finding,
        step_of_fleet,
        step_of_rule,
        step_of_strays,
        step_of_undecided,
        step_of_unshown,
    )
    from reconciler.next_steps.moves import UNWANTED
    from reconciler.next_steps.outcomes import (
        AppliedPlan,
        steps_after_apply,
        steps_after_repair,
        undo_of_file,
        undo_of_staging,
        undo_of_stray,
    )
    from reconciler.next_steps.room import worth_freeing
    from reconciler.next_steps.situation import (
        NAMED_AT_ONCE,
        CutShort,
        FoundVerdict,
        MetadataTrust,
        Obstacle,
        Situation,
        UncertainReplica,
    )
    from reconciler.next_steps.table import REPAIRED, next_steps
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "call": ("Call", "FALLBACK_FOLDER", "PLAN_FILE", "REFETCH", "WITHOUT_ID"),
            "command": ("BLANKS", "Command", "OTHER_LOG_DIR", "PROGRAM", "RELEASE", "SOURCE", "Step", "ToolCommand"),
            "findings": (
                "FINDING_STEPS",
                "FLEET_STEPS",
                "RULE_COMMANDS",
                "step_of_broker",
                "step_of_finding",
                "step_of_fleet",
                "step_of_rule",
                "step_of_strays",
                "step_of_undecided",
                "step_of_unshown",
            ),
            "outcomes": (
                "AppliedPlan",
                "steps_after_apply",
                "steps_after_repair",
                "undo_of_file",
                "undo_of_staging",
                "undo_of_stray",
            ),
            "moves": ("UNWANTED",),
            "room": ("worth_freeing",),
            "situation": (
                "CutShort",
                "FoundVerdict",
                "MetadataTrust",
                "NAMED_AT_ONCE",
                "Obstacle",
                "Situation",
                "UncertainReplica",
            ),
            "table": ("REPAIRED", "next_steps"),
        },
    )

__all__ = [
    "BLANKS",
    "FALLBACK_FOLDER",
    "FINDING_STEPS",
    "FLEET_STEPS",
    "NAMED_AT_ONCE",
    "OTHER_LOG_DIR",
    "PLAN_FILE",
    "PROGRAM",
    "REFETCH",
    "RELEASE",
    "REPAIRED",
    "RULE_COMMANDS",
    "SOURCE",
    "UNWANTED",
    "WITHOUT_ID",
    "AppliedPlan",
    "Call",
    "Command",
    "CutShort",
    "FoundVerdict",
    "MetadataTrust",
    "Obstacle",
    "Situation",
    "Step",
    "ToolCommand",
    "UncertainReplica",
    "next_steps",
    "step_of_broker",
    "step_of_finding",
    "step_of_fleet",
    "step_of_rule",
    "step_of_strays",
    "step_of_undecided",
    "step_of_unshown",
    "steps_after_apply",
    "steps_after_repair",
    "undo_of_file",
    "undo_of_staging",
    "undo_of_stray",
    "worth_freeing",
]
