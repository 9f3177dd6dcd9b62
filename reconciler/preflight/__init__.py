"""Predict whether a broker would start on some log dirs, and what it would do to them. Read-only.

The answer holds for the moment: a running broker or newer metadata may change it. Source: FACTS §1.5-1.9, §2, §4.2, §6.
"""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.preflight.evidence import FULL_BELOW, SeenBroker, free_room, is_anything_there, look_at_broker
    from reconciler.preflight.judgement import Preflight, preflight
    from reconciler.preflight.known_releases import NEWEST_RELEASE, check_known, release_of_level
    from reconciler.preflight.question import BrokerAsked, BrokerMode
    from reconciler.preflight.releases import KafkaRelease, start_with_directory, start_with_metadata
    from reconciler.preflight.rules import FINDING_SCHEMA, SCHEMA_VERSION, Finding, StartEffect
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "evidence": ("FULL_BELOW", "SeenBroker", "free_room", "is_anything_there", "look_at_broker"),
            "judgement": ("Preflight", "preflight"),
            "question": ("BrokerAsked", "BrokerMode"),
            "known_releases": ("NEWEST_RELEASE", "check_known", "release_of_level"),
            "releases": ("KafkaRelease", "start_with_directory", "start_with_metadata"),
            "rules": ("StartEffect", "Finding", "FINDING_SCHEMA", "SCHEMA_VERSION"),
        },
    )

__all__ = [
    "FINDING_SCHEMA",
    "FULL_BELOW",
    "NEWEST_RELEASE",
    "SCHEMA_VERSION",
    "BrokerAsked",
    "BrokerMode",
    "Finding",
    "KafkaRelease",
    "Preflight",
    "SeenBroker",
    "StartEffect",
    "check_known",
    "free_room",
    "is_anything_there",
    "look_at_broker",
    "preflight",
    "release_of_level",
    "start_with_directory",
    "start_with_metadata",
]
