"""Changes of many steps over several log dirs: refused, undone, finished later, by each log dir's own file.

# KIP37-3 KIP516-12
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from layout.ours import intent as intent_file
from layout.scheme import INTENT_FILE, Scheme
from layout.topic import TopicPartition
from logstore import ChangeFailedError, ChangeRefusedError, LogStore, OfflineLogDirError
from logstore.fs import Disk
from logstore.journal import check_nothing_pending, finish_intents, journal, log_dir_key
from logstore.log_dir import FallbackRecords, LogDir
from logstore.namespaces import carry_out, convert, create_namespace, move_topic, plan_rename
from tests.logstore.changes import (
    CHECKPOINT,
    CLICKS,
    DyingDisk,
    PowerCutError,
    abandon,
    fill_store,
    lies,
    look,
    offsets,
    two_disks,
)
from tests.logstore.engine import DiskThat, formatted, opened

BEFORE = ["orders-0 in orders-0", "orders-1 in orders-1"]
AFTER = ["orders-0 in org/orders-0", "orders-1 in org/orders-1"]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """A broker with a topic, and a namespace to move it to."""
    paths = two_disks(tmp_path)
    with opened(*paths) as store:
        create_namespace(store, "org")
        fill_store(store, "orders")
    return paths


def holders(paths: list[Path]) -> list[bool]:
    return [(path / INTENT_FILE).exists() for path in paths]


def cut_in_the_middle(paths: list[Path]) -> None:
    """Cut the move short when the first log dir has done its part and the second one has not begun."""
    disk = DyingDisk()
    store = opened(*paths, disk=disk)
    disk.at = ("rename", "orders-1")
    with pytest.raises(PowerCutError):
        move_topic(store, "orders", "org")
    abandon(store)
    assert lies(paths) == [AFTER[0], BEFORE[1]]
    assert holders(paths) == [True, True]


def test_a_change_that_is_cut_short_is_pending_until_it_is_finished(paths: list[Path]) -> None:
    cut_in_the_middle(paths)
    with ExitStack() as stack:
        log_dirs = [stack.enter_context(LogDir.open(str(path))) for path in paths]
        assert [log_dir_key(log_dir) for log_dir in log_dirs] == [str(each.identity.directory_id) for each in log_dirs]
        with pytest.raises(ChangeRefusedError, match="an earlier change is not finished"):
            check_nothing_pending(log_dirs)
        finish_intents(log_dirs, FallbackRecords(None))
        check_nothing_pending(log_dirs)
    assert lies(paths) == AFTER


def test_offsets_that_could_not_be_written_before_have_the_new_name_too_after_a_crash(paths: list[Path]) -> None:
    disk = DyingDisk()
    store = opened(*paths, disk=disk)
    store.log_dirs[1].checkpoints.update(CHECKPOINT, {TopicPartition("orders", 1): 77})
    disk.at = ("rename", "orders-1")
    with pytest.raises(PowerCutError):
        move_topic(store, "orders", "org")
    abandon(store)
    opened(*paths).close()
    assert (lies(paths), offsets(paths)["org:orders-1"]) == (AFTER, 77)


class NotingDisk(Disk):
    """Notes which log dir's file is written and removed."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, str]] = []

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        super().rename(source, name, target, new_name)
        if new_name == INTENT_FILE:
            self.noted.append(("written", os.readlink(f"/proc/self/fd/{target}")))

    def unlink(self, parent: int, name: str) -> None:
        super().unlink(parent, name)
        if name == INTENT_FILE:
            self.noted.append(("removed", os.readlink(f"/proc/self/fd/{parent}")))


def test_the_file_that_decides_is_the_first_to_be_written_and_to_go(paths: list[Path]) -> None:
    disk, first, second = NotingDisk(), *map(str, paths)
    with opened(*paths, disk=disk) as store:
        move_topic(store, "orders", "org")
    assert disk.noted == [("written", first), ("written", second), ("removed", first), ("removed", second)]


@pytest.mark.parametrize("failing", ["rename", "write", "create", "mkdir", "unlink", "sync"])
@pytest.mark.parametrize("disk", [0, 1])
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_what_the_system_refuses_is_undone_in_every_log_dir(
    paths: list[Path], failing: str, disk: int, after: int
) -> None:
    before, refusing = look(paths), DiskThat(errno.EACCES, below=paths[disk])
    with opened(*paths, disk=refusing) as store:
        refusing.fails, refusing.after = {failing}, after
        try:
            move_topic(store, "orders", "org")
            assert not store.offline, "it was done, or says so"
        except ChangeFailedError as error:
            assert "cannot rename topic orders to org:orders" in str(error)
        except OfflineLogDirError:
            assert store.offline
        refusing.fails = set()
        found = store.find(TopicPartition("orders", 0)) if not store.offline else None
        assert store.offline or (found is not None) == (lies(paths) == BEFORE)
    opened(*paths).close()
    assert look(paths) == before or lies(paths) == AFTER
    assert holders(paths) == [False, False]


def test_a_full_disk_in_the_middle_leaves_nothing_changed(paths: list[Path]) -> None:
    before, full = look(paths), DiskThat(errno.ENOSPC, below=paths[1])
    with opened(*paths, disk=full) as store:
        full.fails, full.after = {"write"}, 1
        with pytest.raises(ChangeFailedError, match=r"No space left on device.*nothing was changed"):
            move_topic(store, "orders", "org")
        assert store.get(TopicPartition("orders", 1)).path == "orders-1"
        assert (look(paths), store.offline, holders(paths)) == (before, {}, [False, False])
        full.fails = set()
        move_topic(store, "orders", "org")
    assert lies(paths) == AFTER
    assert offsets(paths) == {"org:orders-0": 40, "org:orders-1": 41}


def test_where_a_disk_fails_the_others_come_to_the_end_and_the_rest_waits(paths: list[Path]) -> None:
    broken = DiskThat(errno.EIO, below=paths[1])
    with opened(*paths, disk=broken) as store:
        broken.fails, broken.after = {"rename"}, 1
        with pytest.raises(OfflineLogDirError, match="the rest is done when this one is opened again"):
            move_topic(store, "orders", "org")
        assert lies(paths) == [AFTER[0], BEFORE[1]]
        assert store.get(TopicPartition("org:orders", 0)).path == "org/orders-0"
        assert store.find(TopicPartition("orders", 0)) is None
        with pytest.raises(ChangeRefusedError, match="an earlier change is not finished"):
            create_namespace(store, "net")
        store.create(TopicPartition("orders", 7), None)
    opened(*paths).close()
    assert lies(paths) == AFTER
    assert holders(paths) == [False, False]
    with opened(*paths) as store:
        assert store.get(TopicPartition("orders", 7)), "what was made meanwhile stays as it was"


def test_where_the_first_disk_fails_the_second_one_comes_to_the_end(paths: list[Path]) -> None:
    broken = DiskThat(errno.EIO, below=paths[0])
    with opened(*paths, disk=broken) as store:
        broken.fails, broken.after = {"rename"}, 1
        with pytest.raises(OfflineLogDirError):
            move_topic(store, "orders", "org")
    assert lies(paths) == [BEFORE[0], AFTER[1]]
    opened(*paths).close()
    assert (lies(paths), holders(paths)) == (AFTER, [False, False])


@pytest.mark.parametrize(("there", "missing"), [(0, 1), (1, 0)])
def test_log_dirs_that_come_back_one_by_one_each_do_their_part(paths: list[Path], there: int, missing: int) -> None:
    cut_in_the_middle(paths)
    opened(paths[there]).close()
    assert lies(paths) == ([AFTER[0], BEFORE[1]] if there == 0 else AFTER)
    assert holders(paths)[0], "the first one's file says what is left"
    opened(paths[there]).close()
    with opened(paths[there]) as store, pytest.raises(ChangeRefusedError, match="not finished"):
        create_namespace(store, "net")
    opened(*paths).close()
    assert (lies(paths), holders(paths)) == (AFTER, [False, False])


def test_a_part_that_was_done_while_the_first_one_was_away_is_not_done_twice(paths: list[Path]) -> None:
    cut_in_the_middle(paths)
    with opened(paths[1]) as store:
        fill_store(store, "clicks")
        store.create(TopicPartition("orders", 1), None)
    opened(*paths).close()
    assert (paths[1] / "orders-1").is_dir(), "a topic that was made under the old name since then keeps it"
    assert holders(paths) == [False, False]


@pytest.mark.parametrize(
    ("opens", "moved"),
    [
        pytest.param([[1, 2]], False, id="no step was done"),
        pytest.param([[1], [1, 2]], True, id="the second one did its part, so the third one waits for its own"),
    ],
)
def test_a_log_dir_whose_file_was_not_written_goes_the_way_of_the_others(
    tmp_path: Path, opens: list[list[int]], moved: bool
) -> None:
    paths = [formatted(tmp_path / f"disk-{number}", number, scheme="namespaced") for number in (1, 2, 3)]
    with opened(*paths) as store:
        create_namespace(store, "org")
        fill_store(store, "orders")
    disk = DyingDisk()
    store = opened(*paths, disk=disk)
    disk.at = ("rename", "orders-0")
    with pytest.raises(PowerCutError):
        move_topic(store, "orders", "org")
    abandon(store)
    (paths[2] / INTENT_FILE).unlink()
    for there in opens:
        opened(*(paths[number] for number in there)).close()
        assert holders(paths)[0], "the first log dir is away"
    opened(*paths).close()
    folder = "org/" if moved else ""
    assert lies(paths) == [f"orders-{number} in {folder}orders-{number}" for number in range(3)]
    assert holders(paths) == [False, False, False]


def test_a_file_whose_first_log_dir_has_none_any_more_is_over(paths: list[Path]) -> None:
    cut_in_the_middle(paths)
    (paths[0] / INTENT_FILE).unlink()
    opened(*paths).close()
    assert (lies(paths), holders(paths)) == ([AFTER[0], BEFORE[1]], [False, False])


def test_what_cannot_be_finished_after_a_crash_is_undone(paths: list[Path]) -> None:
    cut_in_the_middle(paths)
    full = DiskThat(errno.EACCES, {"rename"}, below=paths[1])
    full.after = 2
    with opened(*paths, disk=full) as store:
        full.fails = set()
        assert not store.offline
    assert lies(paths) in (BEFORE, AFTER)
    assert holders(paths) == [False, False]


class RefusesAndDies(Disk):
    """Refuses to rename the second replica, and loses the power when the file that decides is gone."""

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        if name == "orders-1":
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        super().rename(source, name, target, new_name)

    def unlink(self, parent: int, name: str) -> None:
        super().unlink(parent, name)
        if name == INTENT_FILE:
            raise PowerCutError


def test_a_change_that_was_undone_stays_undone_where_the_first_log_dir_is_missing_after_a_crash(
    paths: list[Path],
) -> None:
    store = opened(*paths, disk=RefusesAndDies())
    with pytest.raises(PowerCutError):
        move_topic(store, "orders", "org")
    abandon(store)
    assert (lies(paths), holders(paths)) == (BEFORE, [False, True])
    opened(paths[1]).close()
    assert lies(paths) == BEFORE
    opened(*paths).close()
    assert (lies(paths), holders(paths)) == (BEFORE, [False, False])


def test_what_can_neither_be_finished_nor_undone_takes_its_log_dirs_offline(paths: list[Path]) -> None:
    cut_in_the_middle(paths)
    with opened(*paths, disk=DiskThat(errno.EACCES, {"rename", "create"})) as store:
        assert sorted(store.offline) == sorted(map(str, paths))
        assert "could not be undone" in store.offline[str(paths[0])]
    assert holders(paths) == [True, True]
    opened(*paths).close()
    assert lies(paths) == AFTER


def directories(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*") if each.is_dir()}


EVERY_STEP = {"create", "write", "sync", "sync_file_system", "mkdir", "rename", "link", "unlink", "rmdir"}
CHANGES: dict[str, Callable[[LogStore], object]] = {
    "move": lambda store: move_topic(store, "orders", "org"),
    "create": lambda store: create_namespace(store, "net"),
    "convert": lambda store: convert(store, Scheme.BY_TOPIC_ID),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("dies", [0, 1])
def test_wherever_a_disk_dies_what_the_other_one_came_to_is_what_both_come_to(
    tmp_path: Path, change: str, dies: int
) -> None:
    """The store goes on with the other disk, so nothing may be carried out there when the dead one is back."""
    for after in range(100):
        paths = two_disks(tmp_path / str(after))
        with opened(*paths) as store:
            create_namespace(store, "org")
            fill_store(store, "orders")
        dead = DiskThat(errno.EIO, below=paths[dies])
        with opened(*paths, disk=dead) as store:
            dead.fails, dead.after = EVERY_STEP, after
            with suppress(OfflineLogDirError):
                CHANGES[change](store)
            if not store.offline:
                assert after > 3, "the disk died at some steps"
                break
            assert list(store.offline) == [str(paths[dies])]
            late = store.create(TopicPartition("late", 0), CLICKS)
            came_to = directories(paths[1 - dies])
        with opened(*paths) as store:
            assert (store.offline, holders(paths)) == ({}, [False, False])
            assert directories(paths[1 - dies]) == came_to
            assert store.get(late.partition).path == late.path
            assert len({log_dir.scheme for log_dir in store.log_dirs}) == 1
            assert (
                len({replica.partition.topic for replica in store.replicas() if replica.partition.topic != "late"}) == 1
            )
    else:
        pytest.fail("the change has fewer steps")


class DiesWhenAnnounced(DiskThat):
    """Takes the file's name, and nothing after that."""

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        super().rename(source, name, target, new_name)
        if new_name == INTENT_FILE and os.readlink(f"/proc/self/fd/{target}") == str(self.below):
            self.fails = EVERY_STEP


def given_up(paths: list[Path], dies: int) -> None:
    """Have a disk die just when its file, which calls for the change, has its name; the move is not done."""
    with opened(*paths, disk=DiesWhenAnnounced(below=paths[dies])) as store, pytest.raises(OfflineLogDirError):
        move_topic(store, "orders", "org")
    assert (lies(paths), holders(paths)) == (BEFORE, [True, True])


@pytest.mark.parametrize("dies", [0, 1])
def test_a_change_that_was_given_up_is_forgotten_when_the_log_dir_that_died_is_back(
    paths: list[Path], dies: int
) -> None:
    given_up(paths, dies)
    for _ in range(2):
        with opened(paths[1 - dies]) as store, pytest.raises(ChangeRefusedError, match="not finished"):
            create_namespace(store, "net")
        assert holders(paths) == [True, True]
    opened(*paths).close()
    assert (lies(paths), holders(paths)) == (BEFORE, [False, False])


def test_which_log_dir_will_forget_a_change_that_was_given_up_is_said(
    paths: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    given_up(paths, 1)
    with opened(*paths) as store:
        key = log_dir_key(store.log_dirs[1])
    assert "rename topic orders to org:orders: this was given up, everywhere" in caplog.messages
    given_up(paths, 1)
    opened(paths[0]).close()
    assert caplog.messages[-1].endswith(f"this was given up, and {key} will forget it when it is there")


@pytest.mark.parametrize("dies", [0, 1])
def test_a_given_up_change_of_which_a_log_dir_did_its_part_alone_takes_both_offline(
    paths: list[Path], dies: int
) -> None:
    given_up(paths, dies)
    opened(paths[dies]).close()
    assert lies(paths) == [AFTER[at] if at == dies else BEFORE[at] for at in (0, 1)]
    with opened(*paths) as store:
        assert sorted(store.offline) == sorted(map(str, paths))
        assert "this was given up, and" in store.offline[str(paths[1 - dies])]
        assert f"then remove its {INTENT_FILE}" in store.offline[str(paths[1 - dies])]
    for path in paths:
        (path / INTENT_FILE).unlink()
    with opened(*paths) as store:
        assert not store.offline
        assert store.get(TopicPartition("orders", 1 - dies)).path == f"orders-{1 - dies}"


def test_a_change_that_is_given_up_on_a_full_disk_while_another_dies_does_not_take_place(paths: list[Path]) -> None:
    class Full(DiesWhenAnnounced):
        """The first disk has no room for another file from then on."""

        def create(self, parent: int, name: str) -> int:
            if self.fails and os.readlink(f"/proc/self/fd/{parent}") == str(paths[0]):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().create(parent, name)

    with opened(*paths, disk=Full(below=paths[1])) as store, pytest.raises(OfflineLogDirError):
        move_topic(store, "orders", "org")
    assert holders(paths) == [False, True]
    opened(*paths).close()
    assert (lies(paths), holders(paths)) == (BEFORE, [False, False])


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", b"x" * 100])
def test_a_damaged_file_takes_its_log_dir_offline_and_says_what_to_do(paths: list[Path], damage: bytes) -> None:
    (paths[1] / INTENT_FILE).write_bytes(damage)
    with opened(*paths) as store:
        assert "is no use" in store.offline[str(paths[1])]
        assert "remove that file" in store.offline[str(paths[1])]
        assert store.get(TopicPartition("orders", 0))
    assert (paths[1] / INTENT_FILE).read_bytes() == damage


def test_a_file_that_was_copied_from_another_log_dir_is_no_use(paths: list[Path], tmp_path: Path) -> None:
    cut_in_the_middle(paths)
    third = formatted(tmp_path / "disk-3", 3, scheme="namespaced")
    (third / INTENT_FILE).write_bytes((paths[0] / INTENT_FILE).read_bytes())
    with opened(*paths, third) as store:
        assert "it is about other log dirs" in store.offline[str(third)]
    assert lies(paths) == AFTER


def test_a_change_that_does_not_fit_the_store_any_more_is_undone(paths: list[Path]) -> None:
    with opened(*paths) as store:
        planned = plan_rename(store, "orders", "org:orders")
        before = look(paths)
        (paths[1] / "orders-1").rename(paths[1] / "orders-5")
        with pytest.raises(ChangeFailedError, match="No such file"):
            carry_out(store, planned)
        (paths[1] / "orders-5").rename(paths[1] / "orders-1")
        assert (look(paths), holders(paths)) == (before, [False, False])


def test_whatever_interrupts_a_change_takes_its_log_dirs_offline(paths: list[Path]) -> None:
    disk = DyingDisk()
    store = opened(*paths, disk=disk)
    disk.arm(20)
    with pytest.raises(PowerCutError):
        move_topic(store, "orders", "org")
    assert sorted(store.offline) == sorted(map(str, paths))
    disk.left = None
    store.close()
    opened(*paths).close()
    assert lies(paths) == AFTER


def test_a_plan_without_steps_does_nothing_and_without_files_there_is_nothing_to_finish(paths: list[Path]) -> None:
    with opened(*paths) as store:
        nothing = intent_file.Intent("0" * 32, "x", "do nothing", ("a",), ())
        assert journal.carry_out_intent(store.log_dirs, nothing, store.fallback) == []
        assert finish_intents(store.log_dirs, store.fallback) == []
