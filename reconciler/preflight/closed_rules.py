"""Rules about what this user may not read, and the broker's own user perhaps may: no effect on the broker is known.

What other rules make of such a refusal is true only where the broker is refused as well, so it is left out, and one
finding for each place says instead that nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from layout.meta_properties import FILE_NAME as META_PROPERTIES
from layout.partition_metadata import FILE_NAME as PARTITION_METADATA
from reconciler.preflight.evidence import SeenBroker
from reconciler.preflight.rules import Finding, FindingPlace, StartEffect

_OF_REFUSAL = frozenset(
    {
        *("unusable_log_dir", "damaged_identity", "damaged_checkpoint", "identity"),
        *("unreadable_directory", "partition_metadata", "unreadable_file", "leader_epochs", "metadata_log_damaged"),
    }
)
"""Rules that find something where the system refuses to read."""


def closed_findings(broker: SeenBroker) -> Iterator[Finding]:
    """Yield a finding for each place that is closed to this user alone, as far as is known."""
    sentence = (
        "this user may not read it, so what its broker does with it is not known from here: ask as the broker's own "
        "user, or as root"
    )
    for log_dir in broker.distinct.values():
        for name in sorted(log_dir.closed):
            place = FindingPlace(log_dir.path, name)
            yield Finding(StartEffect.UNKNOWN, "closed_to_this_user", sentence, place)


def is_of_refusal(finding: Finding, broker: SeenBroker) -> bool:
    """Whether a finding of another rule comes from nothing but a refusal to this user.

    That no log dir has a readable ``meta.properties`` does so where one of them is closed.
    """
    place = finding.place
    if finding.rule not in _OF_REFUSAL:
        return False
    closed = {each.path: each.closed for each in broker.distinct.values()}
    if place.log_dir is None:
        return any(names & {".", META_PROPERTIES} for names in closed.values())
    names = {".", place.name, f"{place.name}/{PARTITION_METADATA}"}
    return bool(names & closed.get(place.log_dir, frozenset()))
