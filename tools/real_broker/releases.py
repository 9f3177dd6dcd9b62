"""The releases that can be started: one table with exact versions, and what differs from one to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from tools.real_broker.errors import RealBrokerError


class Mode(StrEnum):
    """The keeper of a cluster's metadata: ZooKeeper or KRaft controllers."""

    ZOOKEEPER = "zk"
    KRAFT = "kraft"


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Kafka, as Maven and the JVM need to know it."""

    name: str
    """What the user types: ``3.9``."""
    version: str
    """The exact version: ``3.9.2``."""
    modes: tuple[Mode, ...]
    """The default first."""
    binding: tuple[str, ...]
    """Coordinates of what writes its log lines; Kafka's own jars bring the interface alone."""
    logging_option: str
    """The system property that names the logging settings."""
    reassign: str
    """The class of ``kafka-reassign-partitions``."""
    tools: bool = True
    """Whether its commands lie in ``kafka-tools``, apart from the broker."""

    def mode(self, name: str | None = None) -> Mode:
        """The mode of that name, or the default.

        Raises:
            RealBrokerError: if this release does not run in it.
        """
        if name is None:
            return self.modes[0]
        for mode in self.modes:
            if mode == name:
                return mode
        ways = " or ".join(self.modes)
        raise RealBrokerError(f"Kafka {self.version} does not start in mode {name!r} here; take {ways}")


_RELOAD4J = ("org.slf4j:slf4j-reload4j:1.7.36",)
_LOG4J2 = ("org.apache.logging.log4j:log4j-slf4j-impl:2.25.4", "org.apache.logging.log4j:log4j-core:2.25.4")
_OLD_LOGGING = "log4j.configuration"
_REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"

RELEASES: Mapping[str, Release] = MappingProxyType(
    {
        release.name: release
        for release in (
            Release(
                "2.8",
                "2.8.2",
                (Mode.ZOOKEEPER,),
                _RELOAD4J,
                _OLD_LOGGING,
                "kafka.admin.ReassignPartitionsCommand",
                tools=False,
            ),
            Release("3.9", "3.9.2", (Mode.KRAFT, Mode.ZOOKEEPER), _RELOAD4J, _OLD_LOGGING, _REASSIGN),
            Release("4.3", "4.3.1", (Mode.KRAFT,), _LOG4J2, "log4j2.configurationFile", _REASSIGN),
        )
    }
)
"""The first with topic IDs, the last with ZooKeeper, and the newest whose artifacts are all published."""

EACH_WAY = [(release.name, str(mode)) for release in RELEASES.values() for mode in release.modes]
"""Release and mode, of all that can be started."""


def find_release(name: str) -> Release:
    """The release of a name: ``3.9``, ``3.9.2``, or ``4`` for the newest 4.x.

    Raises:
        RealBrokerError: if there is none, with those there are.
    """
    for release in RELEASES.values():
        if name in (release.name, release.version, release.name.split(".")[0]):
            return release
    raise RealBrokerError(f"there is no release {name!r} here; take one of {', '.join(RELEASES)}")
