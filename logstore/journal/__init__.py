"""Carries out changes of many steps so that each ends wholly done or wholly undone, whatever ends the process."""

from logstore.journal.journal import (
    INTENT_LIMIT,
    carry_out_intent,
    check_nothing_pending,
    finish_intents,
    log_dir_key,
    what_is_pending,
)
from logstore.journal.namespace_dirs import (
    check_no_tier,
    find_namespace_dirs,
    is_namespace_dir,
    list_namespace_dirs,
    make_missing_namespace_dirs,
    namespace_at,
    namespace_dir,
    with_parents,
)

__all__ = [
    "INTENT_LIMIT",
    "carry_out_intent",
    "check_no_tier",
    "check_nothing_pending",
    "find_namespace_dirs",
    "finish_intents",
    "is_namespace_dir",
    "list_namespace_dirs",
    "log_dir_key",
    "make_missing_namespace_dirs",
    "namespace_at",
    "namespace_dir",
    "what_is_pending",
    "with_parents",
]
