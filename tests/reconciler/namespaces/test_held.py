"""What holds for a namespace, by tier, and what a change makes of its own. KIP37-5, KIP37-6."""

from __future__ import annotations

import pytest

from reconciler.errors import UsageError
from reconciler.namespaces import (
    HeldAcl,
    HeldConfig,
    changed_acls,
    changed_configs,
    check_namespace_name,
    held_acls,
    held_configs,
)
from reconciler.sources.zookeeper import EVERYBODY, Acl, AclOperation

ANN, BOB = Acl("User:ann", AclOperation.ALL), Acl("User:bob", AclOperation.READ)
NO_BOB = Acl("User:bob", AclOperation.WRITE, allow=False)


def test_the_nearest_value_holds_with_the_tier_that_gives_it() -> None:
    by_scope = {
        "": {"retention.ms": "1", "segment.ms": "1"},
        "org": {"retention.ms": "2", "retention.bytes": "2"},
        "org:apache": {"retention.ms": "3"},
        "org:other": {"segment.ms": "9"},
    }
    assert held_configs("org:apache", by_scope) == [
        HeldConfig("retention.bytes", "2", "org"),
        HeldConfig("retention.ms", "3", "org:apache"),
        HeldConfig("segment.ms", "1", ""),
    ]
    assert held_configs("net", {}) == []


def test_the_innermost_tier_with_acls_decides_and_a_deny_counts_at_every_tier() -> None:
    everybody = Acl(EVERYBODY, AclOperation.ALL)
    by_scope = {"": [everybody, NO_BOB], "org": [ANN, NO_BOB], "org:apache": [BOB], "org:apache:deep": []}
    assert held_acls("org:apache:deep", by_scope) == [
        HeldAcl(BOB, "org:apache", counts=True),
        HeldAcl(ANN, "org", counts=False),
        HeldAcl(NO_BOB, "org", counts=True),
        HeldAcl(everybody, "", counts=False),
        HeldAcl(NO_BOB, "", counts=False),
    ]
    assert [each.counts for each in held_acls("net", by_scope)] == [True, True]


def test_configs_are_set_and_removed_and_the_rest_stays() -> None:
    own = {"retention.ms": "1", "segment.ms": "1"}
    assert changed_configs(own, {"retention.ms": "2", "delete.stale.topic.delay.ms": "7d"}, ["segment.ms"]) == {
        "delete.stale.topic.delay.ms": "7d",
        "retention.ms": "2",
    }
    assert own == {"retention.ms": "1", "segment.ms": "1"}


@pytest.mark.parametrize(
    ("wanted", "removed", "why"),
    [
        ({"retention.mss": "1"}, [], "there is no config 'retention.mss': retention.ms"),
        ({"x": "1"}, [], "there is no config 'x'$"),
        ({"retention.ms": "a day"}, [], "retention.ms is a number, not 'a day'"),
        ({"retention.ms": "٣"}, [], "retention.ms is a number"),
        ({"preallocate": "yes"}, [], "preallocate is true or false, not 'yes'"),
        ({"cleanup.policy": ""}, [], "cleanup.policy is to be set to nothing: remove it instead"),
        ({"file.delete.delay.ms": "4 moons"}, [], "file.delete.delay.ms: '4 moons' is no duration"),
        ({"segment.ms": "1"}, ["segment.ms"], "segment.ms is to be set and removed"),
        ({}, ["retention.ms"], "retention.ms is not set for the namespace itself"),
        ({"x": "1"}, ["y"], "there is no config 'x'; y is not set"),
    ],
)
def test_configs_that_cannot_be_are_refused_with_every_reason(
    wanted: dict[str, str], removed: list[str], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        changed_configs({"segment.ms": "5"}, wanted, removed)


def test_acls_are_added_and_removed_each_once_and_sorted() -> None:
    assert changed_acls([NO_BOB, BOB], [ANN, BOB], [NO_BOB]) == [ANN, BOB]


@pytest.mark.parametrize(
    ("added", "removed", "why"),
    [
        ([Acl("ann", AclOperation.ALL)], [], "'ann' is no principal such as User:ann"),
        ([Acl("User:", AclOperation.ALL)], [], "is no principal"),
        ([BOB], [BOB], "User:bob Allow Read is to be added and removed"),
        ([], [ANN], "the namespace itself has no User:ann Allow All"),
    ],
)
def test_acls_that_cannot_be_are_refused_with_the_reason(added: list[Acl], removed: list[Acl], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        changed_acls([BOB], added, removed)


@pytest.mark.parametrize("name", ["", "a_b", "a::b", "deleting"])
def test_what_names_no_namespace_is_refused(name: str) -> None:
    check_namespace_name("org:apache")
    with pytest.raises(UsageError, match=r"no namespace|name a namespace"):
        check_namespace_name(name)
