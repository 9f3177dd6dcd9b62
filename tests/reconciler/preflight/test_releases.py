"""What a real broker would do at start, by release and mode: one test for each statement of FACTS that it rests on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.directory_name import DirectoryKind
from layout.errors import BrokerEffect, InvalidQuestionError
from reconciler.desired import Mode
from reconciler.preflight import KafkaRelease, start_with_directory, start_with_metadata
from reconciler.preflight.releases import StartAction, start_unwanted

HEX = "0123456789abcdef0123456789abcdef"
STATES = ["ok", "missing", "empty", "malformed", "zero_id", "contradicts", "unreadable"]
ZK, KRAFT = Mode.ZOOKEEPER, Mode.KRAFT
ALL_ZK = ["2.7", "2.8", "3.0", "3.4", "3.6.0", "3.6.1", "3.7", "3.9"]
ALL_KRAFT = ["2.8", "3.0", "3.5", "3.6.0", "3.6.1", "3.7.0", "3.7.1", "3.9", "4.0"]
EVERY_BROKER = [(release, ZK) for release in ALL_ZK] + [(release, KRAFT) for release in ALL_KRAFT]


def by_name(text: str, release: str, mode: Mode) -> StartAction:
    return start_with_directory(text, KafkaRelease.parse(release), mode).action


def by_state(kind: DirectoryKind, state: str, release: str, mode: Mode) -> StartAction:
    return start_with_metadata(kind, state, KafkaRelease.parse(release), mode).action


@given(*[st.integers(0, 9999)] * 3)
def test_releases_read_back_and_compare_as_numbers(major: int, minor: int, patch: int) -> None:
    release = KafkaRelease(major, minor, patch)
    assert KafkaRelease.parse(str(release)) == release
    assert KafkaRelease(major, minor) <= release < KafkaRelease(major + 1, 0)


def test_a_release_without_a_patch_is_its_first() -> None:
    assert KafkaRelease.parse("3.9") == KafkaRelease(3, 9, 0)
    assert KafkaRelease.parse("3.10") > KafkaRelease.parse("3.9.1")


@pytest.mark.parametrize(
    "text", ["", "3", "3.", "3.9.", "3.9.0.1", "v3.9", " 3.9", "3.9\n", "3.٩", "-3.9", "trunk", "3.99999"]
)
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuestionError, match="no Kafka release"):
        KafkaRelease.parse(text)


@pytest.mark.parametrize(("release", "mode"), [("2.7", KRAFT), ("4.0", ZK), ("4.1", ZK)])
def test_a_mode_that_a_release_does_not_have_is_refused(release: str, mode: Mode) -> None:
    # FACTS §6.1: KRaft begins as a preview in 2.8, ZooKeeper ends with 3.9.
    with pytest.raises(InvalidQuestionError, match="mode"):
        by_name("orders-0", release, mode)
    with pytest.raises(InvalidQuestionError, match="mode"):
        by_state(DirectoryKind.LIVE, "ok", release, mode)


@pytest.mark.parametrize(("release", "mode"), EVERY_BROKER)
def test_partition_dirs_are_loaded_and_delete_dirs_go(release: str, mode: Mode) -> None:
    # FACTS §1.6
    assert by_name("orders-0", release, mode) is StartAction.LOADED
    assert by_name(f"orders-0.{HEX}-future", release, mode) is StartAction.LOADED_AS_FUTURE
    assert by_name(f"orders-0.{HEX}-delete", release, mode) is StartAction.DELETED_AFTER_DELAY
    assert by_name(f"orders-0.{HEX}-stray-delete", release, mode) is StartAction.DELETED_AFTER_DELAY


@pytest.mark.parametrize(("release", "mode"), EVERY_BROKER)
@pytest.mark.parametrize(
    "text", ["lost+found", "deleting", ".snapshot", "org", "51", "orders-0.bak", "UXyU9i5ARn6W00ON2taeWA_0", "data", ""]
)
def test_one_directory_with_another_name_stops_every_broker(text: str, release: str, mode: Mode) -> None:
    # FACTS §1.6: lost+found, our staging directory, namespaces, ID prefixes and hidden directories are nothing special.
    answer = start_with_directory(text, KafkaRelease.parse(release), mode)
    assert answer.action is StartAction.STARTUP_ABORTS
    assert not answer.starts


def test_an_answer_about_a_strangers_directory_says_what_to_do() -> None:
    release = KafkaRelease(3, 9)
    assert "below the mount point" in start_with_directory("lost+found", release, KRAFT).sentence
    assert "beside" in start_with_directory("deleting", release, KRAFT).sentence
    assert "move it out" in start_with_directory("data", release, KRAFT).sentence


@pytest.mark.parametrize("text", [".Trash-1000", "snapshot-2024", "a-1"])
def test_a_strangers_directory_that_is_named_like_a_partition_is_loaded_as_one(text: str) -> None:
    # FACTS §1.3; the last one could be a namespace of a namespaced log dir.
    assert by_name(text, "3.9", KRAFT) is StartAction.LOADED


@pytest.mark.parametrize(
    ("release", "mode", "starts"),
    [
        *(("2.7", ZK, False), ("3.6.0", ZK, False), ("3.6.0", KRAFT, False)),
        *(("3.6.1", ZK, True), ("3.6.1", KRAFT, True), ("3.7.0", KRAFT, True), ("4.0", KRAFT, True)),
    ],
)
def test_a_stray_dir_stops_releases_before_3_6_1(release: str, mode: Mode, starts: bool) -> None:
    # FACTS §1.3: the suffix is known since 3.6.1; without it the text after the last '-' is "stray", no number.
    answer = start_with_directory(f"orders-0.{HEX}-stray", KafkaRelease.parse(release), mode)
    assert answer.starts is starts
    assert answer.action is (StartAction.KEPT_AS_STRAY if starts else StartAction.STARTUP_ABORTS)
    assert by_state(DirectoryKind.STRAY, "ok", release, mode) is answer.action


@pytest.mark.parametrize(
    ("release", "mode", "action"),
    [
        *(("3.4", ZK, StartAction.STARTUP_ABORTS), ("3.4", KRAFT, StartAction.STARTUP_ABORTS)),
        *(("3.5", ZK, StartAction.IGNORED), ("4.0", KRAFT, StartAction.IGNORED)),
    ],
)
def test_the_cache_of_tiered_storage_stops_releases_before_3_5(release: str, mode: Mode, action: StartAction) -> None:
    # FACTS §1.6
    assert by_name("remote-log-index-cache", release, mode) is action


@pytest.mark.parametrize(("suffix", "before"), [("", "LOADED"), (f".{HEX}-delete", "DELETED_AFTER_DELAY")])
def test_the_metadata_log_is_passed_over_since_2_8(suffix: str, before: str) -> None:
    # FACTS §1.6: by the topic that is read from the name, so in any form.
    name = f"__cluster_metadata-0{suffix}"
    assert by_name(name, "2.8", KRAFT) is StartAction.IGNORED
    assert by_name(name, "3.9", ZK) is StartAction.IGNORED
    assert by_name(name, "2.7", ZK) is StartAction[before]


@pytest.mark.parametrize(
    ("release", "mode", "words"),
    [
        ("2.7", ZK, "stays on disk for ever"),
        ("3.6.0", ZK, "stays on disk for ever"),
        ("3.9", ZK, "migration to KRaft makes it a stray"),
        ("2.8", KRAFT, "stays on disk for ever"),
        ("3.0", KRAFT, "deleted after 60 s"),
        ("3.6.2", KRAFT, "deleted after 60 s"),
        ("3.7.0", KRAFT, "renamed to a stray"),
        ("4.0", KRAFT, "renamed to a stray"),
    ],
)
def test_the_sentence_says_what_becomes_of_an_unwanted_replica(release: str, mode: Mode, words: str) -> None:
    # FACTS §6.1, row by row.
    for name in ("orders-0", f"orders-0.{HEX}-future"):
        assert words in start_with_directory(name, KafkaRelease.parse(release), mode).sentence


@pytest.mark.parametrize("kind", [DirectoryKind.LIVE, DirectoryKind.FUTURE])
@pytest.mark.parametrize(
    ("release", "mode", "action"),
    [
        *(("2.7", ZK, None), ("2.8", ZK, None), ("3.9", ZK, None), ("2.8", KRAFT, None)),
        *(("3.0", KRAFT, None), ("3.6.2", KRAFT, None)),
        ("3.7.0", KRAFT, StartAction.STARTUP_ABORTS),
        *(("3.7.1", KRAFT, StartAction.MOVED_TO_STRAY), ("4.0", KRAFT, StartAction.MOVED_TO_STRAY)),
    ],
)
def test_a_missing_partition_metadata(
    kind: DirectoryKind, release: str, mode: Mode, action: StartAction | None
) -> None:
    # FACTS §6.1; None: loaded as if the file were there.
    loaded = by_state(kind, "ok", release, mode)
    assert loaded in (StartAction.LOADED, StartAction.LOADED_AS_FUTURE)
    assert by_state(kind, "missing", release, mode) is (action or loaded)


def test_a_missing_partition_metadata_keeps_kraft_3_0_to_3_6_from_handling_strays() -> None:
    # FACTS §6.1: an exception, a fault that is not fatal, no strays handled.
    answer = start_with_metadata(DirectoryKind.LIVE, "missing", KafkaRelease(3, 6, 2), KRAFT)
    assert answer.starts
    assert "none is handled" in answer.sentence


@pytest.mark.parametrize("release", ["3.7.0", "3.7.1", "4.0"])
def test_what_is_deleted_or_stray_already_is_not_asked_for_its_id(release: str) -> None:
    # FACTS §1.6: the suffixes are looked at before the stray test.
    assert by_state(DirectoryKind.DELETE, "missing", release, KRAFT) is StartAction.DELETED_AFTER_DELAY
    assert by_state(DirectoryKind.STRAY, "missing", release, KRAFT) is StartAction.KEPT_AS_STRAY


@pytest.mark.parametrize("kind", [DirectoryKind.LIVE, DirectoryKind.FUTURE, DirectoryKind.DELETE, DirectoryKind.STRAY])
@pytest.mark.parametrize(
    ("state", "action"),
    [
        ("empty", StartAction.STARTUP_ABORTS),
        ("malformed", StartAction.STARTUP_ABORTS),
        ("zero_id", StartAction.LOG_DIR_OFFLINE),
        ("unreadable", StartAction.LOG_DIR_OFFLINE),
    ],
)
def test_a_damaged_partition_metadata(kind: DirectoryKind, state: str, action: StartAction) -> None:
    # FACTS §2.1, the table; whatever the name says, the directory is loaded first (§1.6).
    for mode in Mode:
        answer = start_with_metadata(kind, state, KafkaRelease(3, 9), mode)
        assert answer.action is action
        assert answer.starts is (action is StartAction.LOG_DIR_OFFLINE)


@pytest.mark.parametrize("state", ["zero_id", "unreadable"])
def test_an_io_error_in_partition_metadata_ends_the_startup_before_3_2_1(state: str) -> None:
    # KAFKA-13773
    for release, action in (("2.8", "STARTUP_ABORTS"), ("3.2", "STARTUP_ABORTS"), ("3.2.1", "LOG_DIR_OFFLINE")):
        assert by_state(DirectoryKind.LIVE, state, release, ZK) is StartAction[action]


@pytest.mark.parametrize("state", STATES)
def test_releases_before_2_8_know_no_partition_metadata(state: str) -> None:
    # FACTS §2.1: since 2.8; before, it is any stranger's file (§1.9).
    assert by_state(DirectoryKind.LIVE, state, "2.7", ZK) is StartAction.LOADED


def test_a_broker_reads_no_name_from_the_file_and_so_sees_no_contradiction() -> None:
    assert by_state(DirectoryKind.LIVE, "contradicts", "3.9", KRAFT) is StartAction.LOADED


@pytest.mark.parametrize(
    ("effect", "action"),
    [
        (BrokerEffect.LOG_DIR_OFFLINE, StartAction.LOG_DIR_OFFLINE),
        (BrokerEffect.STARTUP_ABORTS, StartAction.STARTUP_ABORTS),
        (BrokerEffect.NONE, StartAction.LOADED),
    ],
)
def test_a_known_effect_of_the_bytes_goes_before_the_state(effect: BrokerEffect, action: StartAction) -> None:
    answer = start_with_metadata(DirectoryKind.LIVE, "ok", KafkaRelease(3, 9), KRAFT, effect=effect)
    assert answer.action is action


@pytest.mark.parametrize(
    ("release", "version", "action"),
    [
        *(("3.6.2", 0, "LOADED"), ("3.6.2", 1, "LOG_DIR_OFFLINE"), ("2.8", 1, "STARTUP_ABORTS")),
        *(("3.7", 1, "LOADED"), ("3.7", 2**31 - 1, "LOADED"), ("3.7", -1, "LOG_DIR_OFFLINE")),
    ],
)
def test_other_versions_than_0_are_accepted_since_3_7(release: str, version: int, action: str) -> None:
    # FACTS §2.1
    answer = start_with_metadata(DirectoryKind.LIVE, "ok", KafkaRelease.parse(release), KRAFT, version=version)
    assert answer.action is StartAction[action]


@pytest.mark.parametrize("state", STATES)
def test_what_is_no_replica_is_answered_for_by_its_kind(state: str) -> None:
    assert by_state(DirectoryKind.INTERNAL, state, "3.9", KRAFT) is StartAction.IGNORED
    assert by_state(DirectoryKind.STAGED, state, "3.9", KRAFT) is StartAction.IGNORED
    assert by_state(DirectoryKind.FOREIGN, state, "3.9", KRAFT) is StartAction.STARTUP_ABORTS


@pytest.mark.parametrize("state", ["", "absent", "OK"])
def test_a_state_that_no_partition_metadata_has_is_refused(state: str) -> None:
    with pytest.raises(InvalidQuestionError, match="no state"):
        by_state(DirectoryKind.LIVE, state, "3.9", KRAFT)


@pytest.mark.parametrize("kind", list(DirectoryKind))
@pytest.mark.parametrize("state", STATES)
def test_every_answer_is_a_sentence(kind: DirectoryKind, state: str) -> None:
    for text, mode in EVERY_BROKER:
        answer = start_with_metadata(kind, state, KafkaRelease.parse(text), mode)
        assert len(answer.sentence) > 20
        assert not answer.sentence.endswith(".")


@pytest.mark.parametrize(
    ("release", "mode", "migrating", "action"),
    [
        # FACTS §6.1, line by line
        *(("2.7", ZK, False, "LOADED"), ("3.9", ZK, False, "LOADED"), ("2.8", KRAFT, False, "LOADED")),
        *(("3.0", KRAFT, False, "DELETED_AFTER_DELAY"), ("3.6.2", KRAFT, False, "DELETED_AFTER_DELAY")),
        *(("3.7", KRAFT, False, "MOVED_TO_STRAY"), ("4.0", KRAFT, False, "MOVED_TO_STRAY")),
        *(("3.6.0", ZK, True, "LOADED"), ("3.6.1", ZK, True, "MOVED_TO_STRAY"), ("3.9", ZK, True, "MOVED_TO_STRAY")),
    ],
)
def test_what_becomes_of_an_unwanted_replica_hangs_on_release_and_mode(
    release: str, mode: Mode, migrating: bool, action: str
) -> None:
    answer = start_unwanted(DirectoryKind.LIVE, KafkaRelease.parse(release), mode, migrating=migrating)
    assert answer.action is StartAction[action]


def test_3_7_0_moves_the_current_replica_when_the_future_one_is_unwanted() -> None:
    # FACTS §6.5, own observation (i)
    sentences = [
        start_unwanted(DirectoryKind.FUTURE, KafkaRelease.parse(release), KRAFT).sentence for release in ("3.7", "3.8")
    ]
    assert ["current replica" in sentence for sentence in sentences] == [True, False]


@pytest.mark.parametrize("kind", [DirectoryKind.DELETE, DirectoryKind.STRAY, DirectoryKind.INTERNAL])
def test_a_directory_that_is_not_live_is_not_asked_whether_it_is_wanted(kind: DirectoryKind) -> None:
    for text, mode in EVERY_BROKER:
        release = KafkaRelease.parse(text)
        assert start_unwanted(kind, release, mode) == start_with_metadata(kind, "ok", release, mode)


@pytest.mark.parametrize(("release", "mode"), [("3.9", KRAFT), ("3.3", ZK), ("4.0", ZK)])
def test_only_zookeeper_brokers_of_3_4_to_3_9_migrate(release: str, mode: Mode) -> None:
    with pytest.raises(InvalidQuestionError, match="mode"):
        start_unwanted(DirectoryKind.LIVE, KafkaRelease.parse(release), mode, migrating=True)
