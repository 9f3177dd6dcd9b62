"""The two ways in which a cluster keeps its metadata; what a broker does hangs on it as much as on its release."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """Where a broker gets its metadata."""

    ZOOKEEPER = "ZooKeeper"
    """2.7 to 3.9."""
    KRAFT = "KRaft"
    """Since 2.8, where it is a preview."""
