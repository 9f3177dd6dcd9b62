"""The result of one pass over a log dir: an :class:`Observation`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layout.meta_properties import MetaProperties
from logstore.log_dir import LockHolder
from logstore.rows import MetadataState

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Observation:
    """The content of one log dir, as one pass saw it."""

    log_dir: str
    """Its absolute path."""
    identity: MetaProperties | None
    """None: there is no readable ``meta.properties``."""
    state: MetadataState
    """Unless it is ``ok``, a replica without a row must not be taken for gone."""
    problem: str | None
    """Why the state is not ``ok``, or an oddity, in one sentence; None where all is well."""
    rows: pa.Table
    """By :data:`logstore.rows.ROW_SCHEMA`; the log dir itself is the first."""
    lock: LockHolder | None
    """The holder of ``.lock``; None: it is free, or the system does not know."""
