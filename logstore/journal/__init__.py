"""A change of many steps ends wholly done or wholly undone, whatever ends the process."""

from logstore.journal.journal import carry_out_intent, check_nothing_pending, finish_intents, key_of
from logstore.journal.tiers import complete, is_tier, look_for_tiers, name_of, path_of, tiers_of, with_parents

__all__ = [
    "carry_out_intent",
    "check_nothing_pending",
    "complete",
    "finish_intents",
    "is_tier",
    "key_of",
    "look_for_tiers",
    "name_of",
    "path_of",
    "tiers_of",
    "with_parents",
]
