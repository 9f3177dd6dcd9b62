"""What one pass over a log dir gives: an :class:`Observation`."""

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
    """What one pass saw of one log dir."""

    log_dir: str
    """Its absolute path."""
    identity: MetaProperties | None
    """None: there is no ``meta.properties`` that can be read."""
    state: MetadataState
    """``ok``; anything else means that what the rows lack must not be taken for gone."""
    problem: str | None
    """Why the state is not ``ok``, or what is odd all the same, one sentence; None where all is well."""
    rows: pa.Table
    """By :data:`logstore.rows.ROW_SCHEMA`; the log dir itself is the first."""
    lock: LockHolder | None
    """Who holds ``.lock``; None: nobody, as far as this system can tell."""
