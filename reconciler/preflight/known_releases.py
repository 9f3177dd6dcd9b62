"""The releases for which the rules answer, and the release that a cluster's metadata speak of.

A KRaft cluster writes the level of its feature ``metadata.version`` into its metadata. Each release brought levels of
its own, so the level names the oldest release that a broker of the cluster can have; which patch of it, nothing says.
Source: FACTS §7.4 and Kafka's table of metadata versions; the levels of 3.9.2 and 4.3.1 were seen.
"""

from __future__ import annotations

from layout.errors import InvalidQuestionError
from reconciler.preflight.releases import KafkaRelease

NEWEST_RELEASE = KafkaRelease(4, 3)
"""The newest release for which the rules were held against a real broker."""

_LAST_MINORS = {0: 11, 1: 1, 2: 8, 3: 9, 4: 3}
"""The last minor release of each major one, as far as is known here."""

_FIRST_LEVELS = {
    1: KafkaRelease(3, 0),
    2: KafkaRelease(3, 1),
    3: KafkaRelease(3, 2),
    4: KafkaRelease(3, 3),
    8: KafkaRelease(3, 4),
    9: KafkaRelease(3, 5),
    12: KafkaRelease(3, 6),
    15: KafkaRelease(3, 7),
    20: KafkaRelease(3, 8),
    21: KafkaRelease(3, 9),
    22: KafkaRelease(4, 0),
    26: KafkaRelease(4, 1),
    28: KafkaRelease(4, 2),
    30: KafkaRelease(4, 3),
}
"""The first level of ``metadata.version`` that each release brought."""

_LAST_LEVEL = 30


def knows_level(release: KafkaRelease, level: int) -> bool:
    """Whether a release reads metadata of a level of ``metadata.version``; of one that nobody knows, the newest may."""
    first = release_of_level(level)
    if first is None:
        return level <= _LAST_LEVEL or release >= NEWEST_RELEASE
    return release >= first


def check_known(release: KafkaRelease) -> None:
    """Refuse a release of which nobody here knows what it does.

    Raises:
        InvalidQuestionError: the release is newer than all that are known, or there never was one of that number.
    """
    line, newest = (release.major, release.minor), (NEWEST_RELEASE.major, NEWEST_RELEASE.minor)
    shown = f"{release.major}.{release.minor}"
    if line > newest:
        known = f"{NEWEST_RELEASE.major}.{NEWEST_RELEASE.minor}"
        raise InvalidQuestionError(
            f"what a broker of Kafka {shown} does is not known here; the newest known release is {known}, and "
            f"--kafka {known} says what that one would do"
        )
    last = _LAST_MINORS[release.major]
    if release.minor > last:
        raise InvalidQuestionError(
            f"there is no Kafka {shown}: {release.major}.{last} is the last of its line; give the broker's release"
        )


def release_of_level(level: int) -> KafkaRelease | None:
    """Return the oldest release that knows a level of ``metadata.version``; None: no release that is known has it."""
    if not 1 <= level <= _LAST_LEVEL:
        return None
    return _FIRST_LEVELS[max(first for first in _FIRST_LEVELS if first <= level)]
