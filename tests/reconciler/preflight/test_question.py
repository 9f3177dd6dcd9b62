"""The broker in question: its requirements on the log dirs, and the modes of its release."""

from __future__ import annotations

import pytest

from layout.directory_name import DirectoryKind
from layout.errors import InvalidQuestionError
from layout.log_dir_set import Requirement
from reconciler.desired import Mode
from tests.reconciler.preflight.disks import asked


@pytest.mark.parametrize(
    ("mode", "requirement"),
    [
        # FACTS §1.5, §2.2: a ZooKeeper broker that does not migrate refuses version 1.
        *(("kraft", Requirement.KRAFT), ("zookeeper", Requirement.VERSION_0), ("migration", Requirement.NONE)),
    ],
)
def test_each_mode_asks_its_own_of_meta_properties(mode: str, requirement: Requirement) -> None:
    assert asked("3.9", mode).requirement == requirement


def test_a_migrating_broker_starts_in_zookeeper_mode_and_has_a_metadata_log() -> None:
    migrating = asked("3.9", "migration")
    assert (migrating.mode, migrating.is_kraft, migrating.reads_metadata_log) == (Mode.ZOOKEEPER, False, True)
    assert not asked("3.9", "zookeeper").reads_metadata_log
    assert asked("3.9", "kraft").reads_metadata_log


@pytest.mark.parametrize(
    ("release", "mode"), [("2.7", "kraft"), ("4.0", "zookeeper"), ("4.0", "migration"), ("3.3", "migration")]
)
def test_a_release_without_the_mode_is_refused(release: str, mode: str) -> None:
    with pytest.raises(InvalidQuestionError, match="mode"):
        asked(release, mode)


def test_it_says_which_broker_it_is() -> None:
    assert str(asked("3.9", "kraft")) == "a broker of release 3.9.0 in KRaft mode"
    assert str(asked("3.6.2", "migration")) == "a broker of release 3.6.2 in ZooKeeper mode, migrating to KRaft"


def test_names_and_unwanted_replicas_are_answered_for_by_release_and_mode() -> None:
    assert asked("3.9").by_name("lost+found").starts is False
    assert "-delete" in asked("3.5").when_unwanted(DirectoryKind.LIVE).sentence
    assert "FULL" in asked("3.9", "migration").when_unwanted(DirectoryKind.LIVE).sentence
