"""The broker in question: its release, and where it gets its metadata.

Migration is ZooKeeper mode with ``zookeeper.metadata.migration.enable``: until the controller's first FULL request such
a broker starts like any other in ZooKeeper mode, but its ``meta.properties`` may be of either version. Source: FACTS
§1.5, §6.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from layout.directory_name import DirectoryKind
from layout.errors import InvalidQuestionError
from layout.log_dir_set import Requirement
from logstore import check_fields
from reconciler.desired import Mode
from reconciler.preflight.releases import STRAY_SINCE, KafkaRelease, StartAnswer, start_unwanted, start_with_directory

DIRECTORY_IDS_SINCE = KafkaRelease(3, 7)
"""First release that reads ``directory.id`` (FACTS §2.2)."""


class BrokerMode(StrEnum):
    """A mode, as ``--mode`` takes it."""

    KRAFT = "kraft"
    ZOOKEEPER = "zookeeper"
    MIGRATION = "migration"


@dataclass(frozen=True, slots=True)
class BrokerAsked:
    """A broker of one release in one mode."""

    release: KafkaRelease
    mode: Mode
    migrating: bool = False

    def __post_init__(self) -> None:
        check_fields(self, InvalidQuestionError)

    @classmethod
    def of(cls, release: KafkaRelease, mode: BrokerMode) -> Self:
        """Make the question from a release and a mode.

        Raises:
            InvalidQuestionError: the release does not have the mode.
        """
        of_start = Mode.KRAFT if mode is BrokerMode.KRAFT else Mode.ZOOKEEPER
        asked = cls(release, of_start, mode is BrokerMode.MIGRATION)
        asked.by_name("a-0")
        if asked.migrating:
            asked.when_unwanted(DirectoryKind.LIVE)
        return asked

    @property
    def is_kraft(self) -> bool:
        """Whether the broker gets its metadata from KRaft alone."""
        return self.mode is Mode.KRAFT

    @property
    def reads_metadata_log(self) -> bool:
        """Whether the broker has a metadata log: in KRaft mode, and during a migration."""
        return self.is_kraft or self.migrating

    @property
    def knows_strays(self) -> bool:
        """Whether the broker starts beside a directory that ends in ``-stray`` (FACTS §1.3)."""
        return self.release >= STRAY_SINCE

    @property
    def requirement(self) -> Requirement:
        """The broker's requirement on ``meta.properties`` of all its log dirs (FACTS §1.5, §2.2)."""
        if self.is_kraft:
            return Requirement.KRAFT
        return Requirement.NONE if self.migrating else Requirement.VERSION_0

    def by_name(self, name: str) -> StartAnswer:
        """Return what the broker does with a directory of this name."""
        return start_with_directory(name, self.release, self.mode)

    def when_unwanted(self, kind: DirectoryKind) -> StartAnswer:
        """Return what the broker does with a replica that the cluster does not want here."""
        return start_unwanted(kind, self.release, self.mode, migrating=self.migrating)

    def __str__(self) -> str:
        mode = "ZooKeeper mode, migrating to KRaft" if self.migrating else f"{self.mode} mode"
        return f"a broker of release {self.release} in {mode}"
