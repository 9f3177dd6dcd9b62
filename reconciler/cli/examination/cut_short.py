"""Finds log dirs in which a change of many steps, of names or of the scheme, is begun and not finished."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from layout import meta_properties
from layout.errors import DamagedFileError
from layout.ours import Intent, Rewrite, parse_intent, step_bytes
from layout.scheme import INTENT_FILE, Scheme
from logstore import UnreadableFileError
from logstore.fs import read_small_file
from logstore.journal import INTENT_LIMIT
from logstore.log_dir import read_identity
from reconciler.next_steps import CutShort


def find_cut_short(log_dirs: Sequence[str]) -> CutShort | None:
    """Find what is begun and not finished; None: nothing is. Never raises."""
    found = [path for path in log_dirs if os.path.lexists(f"{path}/{INTENT_FILE}")]
    if not found:
        return None
    read = {path: _read(path) for path in found}
    intents = [intent for intent in read.values() if intent is not None]
    unread = tuple(f"{path}/{INTENT_FILE}" for path, intent in read.items() if intent is None)
    sentence = intents[0].sentence if intents else "nobody can say which one"
    return CutShort(tuple(found), sentence, _scheme_after(intents, found[0]), unread)


def _read(log_dir: str) -> Intent | None:
    """Read what is begun in a log dir; None: that cannot be read, or has come to its end since."""
    try:
        data = read_small_file(f"{log_dir}/{INTENT_FILE}", INTENT_LIMIT)
        return None if data is None else parse_intent(data)
    except (UnreadableFileError, DamagedFileError, OSError):
        return None


def _scheme_after(intents: Sequence[Intent], log_dir: str) -> str:
    """Return the scheme that the log dirs have once the change is finished."""
    identity = read_identity(log_dir).identity
    for step in (step for intent in intents if not intent.given_up for step in intent.steps):
        if isinstance(step, Rewrite) and step.path == meta_properties.FILE_NAME:
            with suppress(DamagedFileError):
                identity = meta_properties.parse(step_bytes(step.new))
    return str((identity and identity.scheme) or Scheme.FLAT)
