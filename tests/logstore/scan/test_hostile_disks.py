"""Disks that somebody prepared to lead the engine astray: whatever lies there, nothing outside is touched.

Beside the log dirs stands a sentinel tree, which every trap leads to. After each test it is what it was: names, kinds,
modes, times and bytes. What comes out is a refusal or an error of ours with a sentence, and never another traceback.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from layout import checkpoint
from layout.errors import LayoutError
from layout.ours import StagedRecord, encode_mark, encode_staged
from layout.scheme import LEDGER_FILE, UNCLEAN_FILE
from layout.topic import TopicPartition
from logstore import LogStoreError
from logstore.fs import TEMPORARY, Disk
from logstore.log_dir import LogDir
from logstore.namespaces import create_namespace, delete_namespace, move_topic
from logstore.purge import PurgeRules, purge
from logstore.staging import list_staged, stage
from logstore.store import LogStore
from tests.logstore.engine import (
    NOW_MS,
    ORDERS,
    ORDERS_ID,
    OTHER_ID,
    DiskThat,
    SwappingDisk,
    candidate,
    fill,
    formatted,
    open_descriptors,
    opened,
    picture,
    write_offsets,
)
from tests.patience import PATIENCE_S

UNIQUE = "0123456789abcdef0123456789abcdef"
STAGED = f"{ORDERS_ID}_0"
MUCH_LATER = NOW_MS + 10**12


@pytest.fixture
def sentinel(tmp_path: Path) -> Iterator[Path]:
    """A tree outside, on the same file system, that looks like what the engine changes; it must stay as it is."""
    tree = tmp_path / "outside"
    fill(tree / "orders-0")
    fill(tree / STAGED)
    (tree / LEDGER_FILE).write_bytes(ledger())
    write_offsets(tree, {("orders", 0): 42})
    (tree / "meta.properties").write_text("version=1\ncluster.id=C\nnode.id=1\n")
    (tree / "file").write_text("precious")
    (tree / "empty").mkdir()
    for path in [*tree.rglob("*"), tree]:
        os.utime(path, ns=(0, 10**18))
    before = picture(tree, but=())
    yield tree
    assert picture(tree, but=()) == before


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    before = open_descriptors()
    yield
    assert open_descriptors() == before


FIELDS = (
    *("event", "directory", "name", "topic_id", "partition", "path", "verdict", "evidence"),
    *("staged_ms", "due_ms", "namespace", "checkpoints"),
)


def line(text: bytes) -> bytes:
    """A line with a sound checksum, whatever it says."""
    return b"%08x %b\n" % (crc32(text), text)


def ledger(**changes: Any) -> bytes:
    """A ledger as the engine writes it, in which all is sound, with some fields as an enemy would have them."""
    record = StagedRecord("orders", 0, ORDERS_ID, "orders-0", "STALE_ID", "", NOW_MS, NOW_MS)
    fields = dict(zip(FIELDS, json.loads(encode_staged(STAGED, record)[9:]), strict=True))
    fields = {"schema_version": 1, **fields, **changes}
    data = line(json.dumps(["logstore-ledger", fields.pop("schema_version")]).encode())
    data += line(json.dumps([*fields.values()]).encode())
    return data + encode_mark(len(data))


@pytest.fixture(params=["ours", "broker"])
def path(request: pytest.FixtureRequest, log_dir: Any, our_log_dir: Path) -> Path:
    """A log dir, ours or a real broker's."""
    found: Path = our_log_dir if request.param == "ours" else log_dir.path
    return found


def staging_root(path: Path) -> Path:
    root = path / "deleting" if path.name == "ours" else Path(f"{path}.deleting")
    root.mkdir(exist_ok=True)
    return root


def use_everything(path: Path, disk: Disk | None = None) -> list[str]:
    """Recover, list, stage, restore, create, write offsets and purge all that can be; what was refused, in words."""
    refused: list[str] = []

    def attempt(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except (LogStoreError, LayoutError) as error:
            text = str(error)
            assert text, "every error is a sentence"
            assert len(text) < 2000, "and not a flood"
            refused.append(text)
            return None

    (path / UNCLEAN_FILE).touch()
    store = attempt(lambda: opened(path, disk=disk))
    if store is None:
        return refused
    with store:
        replicas = list(store.replicas())
        for staged in attempt(store.staged) or []:
            if staged.problem is not None:
                refused.append(staged.problem)
            attempt(lambda staged=staged: store.restore(staged))
            attempt(lambda staged=staged: store.restore(staged, ORDERS))
        for replica in [*replicas, *store.replicas()]:
            attempt(lambda replica=replica: store.assign_topic_id(replica.partition, OTHER_ID))
            outcome = attempt(lambda replica=replica: store.stage([replica.partition], "x", ""))
            refused += [each.reason for each in outcome.refused] if outcome else []
        attempt(lambda: store.create(ORDERS, ORDERS_ID))
        attempt(lambda: store.write_offsets(checkpoint.RECOVERY_POINT_CHECKPOINT, {ORDERS: 1}))
        attempt(lambda: store.stage([ORDERS], "x", ""))
        report = attempt(lambda: purge_all(store))
        if report is not None:
            refused += [*report.failures, *([report.error] if report.error else [])]
    return refused


def purge_all(store: LogStore) -> Any:
    report = purge(store.log_dirs, PurgeRules(MUCH_LATER), look_at_processes=False)
    return report.log_dirs[0] if report.log_dirs else None


# Links


def test_a_partition_dir_that_is_a_link_is_left(path: Path, sentinel: Path) -> None:
    (path / "orders-0").symlink_to(sentinel / "orders-0")
    assert use_everything(path)
    assert (path / "orders-0").is_symlink()


def test_a_partition_dir_that_became_a_link_since_the_scan_is_left(path: Path, sentinel: Path) -> None:
    fill(path / "orders-0")
    with opened(path) as store:
        shutil.rmtree(path / "orders-0")
        (path / "orders-0").symlink_to(sentinel / "orders-0")
        outcome = store.stage([ORDERS], "x", "")
    assert "is a symbolic link, which is never followed" in outcome.refused[0].reason


def test_a_staged_directory_that_is_a_link_is_not_listed_restored_or_purged(path: Path, sentinel: Path) -> None:
    (staging_root(path) / STAGED).symlink_to(sentinel / STAGED)
    use_everything(path)
    with LogDir.open(str(path)) as log_dir:
        assert all(staged.name != STAGED for staged in list_staged(log_dir))


def test_a_stray_that_is_a_link_is_not_adopted(path: Path, sentinel: Path) -> None:
    (path / f"orders-0.{UNIQUE}-stray").symlink_to(sentinel / "orders-0")
    use_everything(path)


def test_a_draft_that_is_a_link_is_not_removed_along_it(path: Path, sentinel: Path) -> None:
    (path / f"orders-0.{UNIQUE}-delete").symlink_to(sentinel / "orders-0")
    use_everything(path)


@pytest.mark.parametrize("target", [".", "empty", STAGED])
def test_a_staging_root_that_is_a_link_is_never_used(path: Path, sentinel: Path, target: str) -> None:
    fill(path / "orders-0")
    root = staging_root(path)
    root.rmdir()
    root.symlink_to(sentinel / target)
    refused = use_everything(path)
    assert bool(refused) or path.name == "data", "a broker's log dir stages in place then"


@pytest.mark.parametrize("scheme", ["namespaced", "by-topic-id"])
def test_a_tier_or_prefix_that_is_a_link_is_never_used(tmp_path: Path, sentinel: Path, scheme: str) -> None:
    path = formatted(tmp_path / "x", scheme=scheme)
    tier = "org" if scheme == "namespaced" else ORDERS_ID.hex[:2]
    (path / tier).symlink_to(sentinel)
    assert use_everything(path) or scheme == "namespaced"
    with opened(path) as store, pytest.raises(LogStoreError):
        store.create(TopicPartition("org:orders" if scheme == "namespaced" else "orders", 0), ORDERS_ID)


def test_a_tier_that_became_a_link_since_the_scan_is_never_used(tmp_path: Path, sentinel: Path) -> None:
    path = formatted(tmp_path / "x", scheme="namespaced")
    with opened(path) as store:
        create_namespace(store, "org")
        at = TopicPartition("org:orders", 0)
        store.create(at, ORDERS_ID)
        (path / "org").rename(tmp_path / "moved-away")
        (path / "org").symlink_to(sentinel)
        assert "symbolic link" in store.stage([at], "x", "").refused[0].reason
        for attempt in (
            lambda: store.create(TopicPartition("org:payments", 0), ORDERS_ID),
            lambda: store.assign_topic_id(at, OTHER_ID),
            lambda: delete_namespace(store, "org", recursive=True),
            lambda: move_topic(store, "org:orders", ""),
        ):
            with pytest.raises((LogStoreError, LayoutError)):
                attempt()


@pytest.mark.parametrize("name", [".lock", "meta.properties", *checkpoint.OFFSET_CHECKPOINTS])
def test_a_file_of_the_log_dir_that_is_a_link_is_not_written_through(path: Path, sentinel: Path, name: str) -> None:
    fill(path / "orders-0")
    (path / name).unlink(missing_ok=True)
    target = sentinel / ("meta.properties" if name == "meta.properties" else "file")
    (path / name).symlink_to(target)
    use_everything(path)


@pytest.mark.parametrize("suffix", ["", TEMPORARY])
@pytest.mark.parametrize("name", ["partition.metadata", "move.json"])
def test_a_file_of_a_replica_that_is_a_link_is_not_written_through(
    path: Path, sentinel: Path, name: str, suffix: str
) -> None:
    replica = fill(path / "orders-0", None)
    (replica / f"{name}{suffix}").symlink_to(sentinel / "file")
    staged = fill(staging_root(path) / STAGED, None)
    (staged / f"{name}{suffix}").symlink_to(sentinel / "file")
    (staging_root(path) / LEDGER_FILE).write_bytes(ledger())
    use_everything(path)


@pytest.mark.parametrize(
    "name",
    [UNCLEAN_FILE, ".logstore_intent", f"meta.properties{TEMPORARY}", LEDGER_FILE, f"{LEDGER_FILE}{TEMPORARY}"],
)
def test_a_working_file_that_is_a_link_is_not_written_through(path: Path, sentinel: Path, name: str) -> None:
    fill(path / "orders-0")
    target = sentinel / (LEDGER_FILE if name == LEDGER_FILE else "file")
    (path / name).symlink_to(target)
    (staging_root(path) / name).symlink_to(target)
    if name == UNCLEAN_FILE:
        (path / name).unlink()
        (path / name).symlink_to(sentinel / "nothing")
        with suppress(LogStoreError), opened(path) as store:
            store.create(TopicPartition("new", 0), ORDERS_ID)
        return
    use_everything(path)


def test_links_inside_a_replica_travel_as_links_and_are_purged_as_links(path: Path, sentinel: Path) -> None:
    replica = fill(path / "orders-0")
    (replica / "to-a-directory").symlink_to(sentinel)
    (replica / "to-a-file").symlink_to(sentinel / "file")
    (replica / "up").symlink_to("..")
    with opened(path) as store:
        assert len(store.stage([ORDERS], "x", "").staged) == 1
        report = purge_all(store)
        assert (report.failures, report.error) == ([], None)
        assert [staged.name for staged in store.staged()] == []


def test_hard_links_are_no_way_out(path: Path, sentinel: Path) -> None:
    replica = fill(path / "orders-0", None)
    for name in ("partition.metadata", "00000000000000000000.log", "leader-epoch-checkpoint"):
        (replica / name).unlink(missing_ok=True)
        os.link(sentinel / "file", replica / name)
    (path / checkpoint.RECOVERY_POINT_CHECKPOINT).unlink(missing_ok=True)
    os.link(sentinel / checkpoint.RECOVERY_POINT_CHECKPOINT, path / checkpoint.RECOVERY_POINT_CHECKPOINT)
    fill(staging_root(path) / STAGED)
    for folder in (path, staging_root(path)):
        os.link(sentinel / LEDGER_FILE, folder / LEDGER_FILE)
    use_everything(path)


# Records that lie


LIES: dict[str, dict[str, Any]] = {
    "leads up": {"path": "../outside/orders-0"},
    "leads to the root": {"path": "/etc/orders-0"},
    "leads to nowhere": {"path": ""},
    "leads to the log dir": {"path": "."},
    "leads into a file": {"path": "meta.properties"},
    "holds a NUL": {"path": "orders-0\0"},
    "another replica's path": {"path": "payments-3"},
    "another topic": {"name": "payments"},
    "a topic that leads up": {"name": "..", "path": "..-0"},
    "a topic with a slash": {"name": "../outside/orders", "path": "../outside/orders-0"},
    "a topic of a tier": {"name": "org:orders", "namespace": "org"},
    "the metadata log": {"name": "__cluster_metadata", "path": "__cluster_metadata-0"},
    "another ID": {"topic_id": str(OTHER_ID)},
    "the zero ID": {"topic_id": "A" * 22},
    "another partition": {"partition": 1, "path": "orders-1"},
    "a huge partition": {"partition": 10**30},
    "a huge time": {"due_ms": 10**400},
    "a time that is no number": {"due_ms": 1e308},
    "a time that is true": {"due_ms": True},
    "a time before its own": {"due_ms": 1},
    "a checkpoint that is a path": {"checkpoints": {"../outside/file": 1}},
    "a huge offset": {"checkpoints": {checkpoint.RECOVERY_POINT_CHECKPOINT: 10**40}},
    "a version to come": {"schema_version": 2},
    "no name": {"name": None},
    "a name of 100,000 characters": {"name": "x" * 100_000, "path": "x"},
    "a name that is not UTF-8": {"name": "\udcff", "path": "\udcff-0"},
    "a name with line ends": {"name": "a\nb", "path": "a\nb-0"},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_record_that_lies_brings_nothing_to_the_wrong_place_and_purges_nothing_else(
    path: Path, sentinel: Path, lie: str
) -> None:
    assert sentinel
    victim = fill(path / "payments-3")
    before = picture(victim)
    staged = fill(staging_root(path) / STAGED)
    (staged.parent / LEDGER_FILE).write_bytes(ledger(**LIES[lie]))
    with opened(path) as store:
        for found in store.staged():
            with suppress(LogStoreError):
                store.restore(found)
        purge_all(store)
    # All of these are names of one component, which lead to no other replica and to nothing outside.
    allowed = {"orders-0", "org", "\udcff-0", "a\nb-0", "payments-0", "..-0", "__cluster_metadata-0"}
    assert {found.name for found in path.iterdir() if found.is_dir()} <= {"payments-3", "deleting", *allowed}
    assert picture(victim) == before
    use_everything(path)


@pytest.mark.parametrize("lie", LIES)
def test_a_line_that_lies_about_a_live_replica_gives_nobody_elses_offsets(path: Path, sentinel: Path, lie: str) -> None:
    assert sentinel
    fill(path / "orders-0")
    write_offsets(path, {("payments", 3): 7})
    offsets = {checkpoint.RECOVERY_POINT_CHECKPOINT: 99}
    (staging_root(path) / LEDGER_FILE).write_bytes(ledger(**{"checkpoints": offsets, **LIES[lie]}))
    (path / UNCLEAN_FILE).touch()
    with opened(path) as store:
        entries = store.log_dirs[0].checkpoints.entries(checkpoint.RECOVERY_POINT_CHECKPOINT)
        assert entries[("payments", 3)] == 7
        assert set(entries) <= {("payments", 3), ("orders", 0)}


def test_a_ledger_of_more_than_a_gigabyte_is_not_read(path: Path, sentinel: Path) -> None:
    assert sentinel
    fill(path / "orders-0")
    fill(staging_root(path) / STAGED)
    for folder in (path, staging_root(path)):
        with (folder / LEDGER_FILE).open("wb") as file:
            file.truncate((1 << 30) + 1)
    assert any("larger" in text for text in use_everything(path))


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"\xff" * 1000,
        b"\0" * 1000,
        b'{"schema_version": 1' + b"0" * 10_000 + b"}",
        b'{"schema_version": NaN}',
        b'{"schema_version": 1, "schema_version": 1, "records": {"": {}}}',
        b"\xef\xbb\xbf{}",
        b'"\\ud800"',
    ],
)
def test_bytes_made_to_upset_a_reader_are_reported_as_damage(path: Path, sentinel: Path, data: bytes) -> None:
    assert sentinel
    for place in (fill(path / "orders-0"), fill(staging_root(path) / STAGED)):
        (place / "move.json").write_bytes(data)
    for folder in (path, staging_root(path)):
        said = data + b"\n" + line(data) + ledger()
        (folder / LEDGER_FILE).write_bytes(said + encode_mark(len(said)))
    fill(path / "payments-0", data)
    for name in checkpoint.OFFSET_CHECKPOINTS:
        (path / name).write_bytes(data)
    use_everything(path)
    (path / ".logstore_intent").write_bytes(data)
    use_everything(path)


# What is no file and no directory


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(path.parent)  # the path of a socket has room for 107 bytes
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


@pytest.mark.parametrize("make", [os.mkfifo, make_socket, os.mkdir])
@pytest.mark.parametrize(
    "name",
    [
        LEDGER_FILE,
        "orders-0/partition.metadata",
        "orders-0/move.json",
        f"{LEDGER_FILE}{TEMPORARY}",
        ".lock",
        "meta.properties",
        checkpoint.RECOVERY_POINT_CHECKPOINT,
        f"{checkpoint.RECOVERY_POINT_CHECKPOINT}{TEMPORARY}",
        ".logstore_intent",
        UNCLEAN_FILE,
        "orders-1",
    ],
)
def test_a_fifo_a_socket_or_a_directory_in_a_files_place_neither_blocks_nor_breaks(
    path: Path, sentinel: Path, make: Callable[[Path], None], name: str
) -> None:
    assert sentinel
    fill(path / "orders-0", None)
    staged = fill(staging_root(path) / STAGED, None)
    beside = staged.parent if name.startswith(LEDGER_FILE) else staged
    for place in (path / name, beside / Path(name).name):
        place.unlink(missing_ok=True)
        make(place)
    done = threading.Thread(target=use_everything, args=(path,), daemon=True)
    if name == UNCLEAN_FILE:
        (path / name).rmdir() if (path / name).is_dir() else (path / name).unlink()
    done.start()
    done.join(PATIENCE_S)
    assert not done.is_alive(), "it waits for somebody to write"
    use_everything(path)


# Names


@pytest.mark.parametrize(
    "name",
    [b"a\nb-0", b"\xff\xfe-0", b"\xff-0." + UNIQUE.encode() + b"-stray", b"%s%n-0", b"a\x1b[31m-0", b"-0", b" -0"],
)
def test_odd_names_are_taken_as_they_are_or_left(path: Path, sentinel: Path, name: bytes) -> None:
    assert sentinel
    os.mkdir(os.fsencode(path) + b"/" + name)
    os.mkdir(os.fsencode(staging_root(path)) + b"/" + name)
    use_everything(path)


# Mounts


@pytest.fixture
def bound(sentinel: Path) -> Iterator[Callable[[Path], None]]:
    """``bound(place)``: mount the sentinel there; it has the same device as what surrounds it."""
    places: list[Path] = []

    def bind(place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", str(sentinel), str(place)], check=True)
        places.append(place)

    yield bind
    # What lies above a mount point may have been staged with it, so the kernel is asked where it is by now.
    lines = Path("/proc/self/mounts").read_text().splitlines()
    for place in reversed([line.split()[1] for line in lines if str(sentinel.parent) in line]):
        subprocess.run(["umount", place], check=True)
    assert places


@pytest.mark.root
@pytest.mark.parametrize(
    "where",
    [
        "orders-0",
        "orders-0/inner",
        f"orders-0.{UNIQUE}-delete/inner",
        f"orders-0.{UNIQUE}-stray",
        "staged",
        "staged/in",
    ],
)
def test_what_is_mounted_anywhere_in_it_is_never_entered(path: Path, bound: Callable[[Path], None], where: str) -> None:
    top, _, rest = where.partition("/")
    place = (staging_root(path) / STAGED if top == "staged" else path / top) / rest
    if rest:
        fill(place.parent)
    if top == "staged" and rest:
        (staging_root(path) / LEDGER_FILE).write_bytes(ledger())
    bound(place)
    use_everything(path)


@pytest.mark.root
def test_a_staging_root_that_is_a_mount_is_never_used(path: Path, bound: Callable[[Path], None]) -> None:
    fill(path / "orders-0")
    bound(staging_root(path))
    use_everything(path)


# Swapped between the look and the change


def swap_for_link(place: Path, target: Path) -> Callable[[], None]:
    def swap() -> None:
        place.rename(place.with_name("moved-away"))
        place.symlink_to(target)

    return swap


def test_a_replica_swapped_for_a_link_just_before_it_is_staged_is_noticed(path: Path, sentinel: Path) -> None:
    fill(path / "orders-0")
    disk = SwappingDisk("orders-0", swap_for_link(path / "orders-0", sentinel / "orders-0"), "rename")
    with LogDir.open(str(path), disk=disk) as log_dir, pytest.raises(LogStoreError, match="not the directory"):
        stage(log_dir, [candidate()], NOW_MS)
    assert disk.swapped
    assert (path / "orders-0").is_symlink()


def test_a_staged_directory_swapped_for_a_link_just_before_its_restore_leads_nowhere(
    path: Path, sentinel: Path
) -> None:
    fill(path / "orders-0")
    with opened(path) as store:
        name = store.stage([ORDERS], "x", "").staged[0].name
    disk = SwappingDisk(name, swap_for_link(staging_root(path) / name, sentinel / "orders-0"), "rename")
    with opened(path, disk=disk) as store, suppress(LogStoreError):
        store.restore(store.staged()[0])
    assert disk.swapped
    use_everything(path)


@pytest.mark.parametrize("name", ["00000000000000000000.log", "partition.metadata", STAGED])
def test_what_is_swapped_while_it_is_purged_leads_nowhere(path: Path, sentinel: Path, name: str) -> None:
    fill(path / "orders-0")
    with opened(path) as store:
        store.stage([ORDERS], "x", "")
    staged = staging_root(path) / STAGED
    disk = SwappingDisk(name, swap_for_link(staged, sentinel / STAGED), "unlink", "rmdir")
    with opened(path, disk=disk) as store:
        purge_all(store)
    assert disk.swapped
    use_everything(path)


def test_a_directory_below_swapped_while_it_is_removed_leads_nowhere(path: Path, sentinel: Path) -> None:
    draft = fill(path / f"orders-0.{UNIQUE}-delete" / "inner")
    disk = SwappingDisk("00000000000000000000.log", swap_for_link(draft, sentinel / "orders-0"), "unlink")
    use_everything(path, disk)
    assert disk.swapped == (path.name == "ours")


def test_a_staging_root_swapped_while_replicas_go_into_it_is_the_one_that_was_opened(
    path: Path, sentinel: Path
) -> None:
    fill(path / "orders-0")
    root = staging_root(path)
    disk = SwappingDisk("orders-0", swap_for_link(root, sentinel / "empty"), "rename")
    with LogDir.open(str(path), disk=disk) as log_dir:
        stage(log_dir, [candidate()], NOW_MS)
    assert sorted(os.listdir(root.with_name("moved-away"))) == [LEDGER_FILE, STAGED]


def test_a_log_dir_swapped_for_a_link_while_it_is_open_is_still_the_one_that_was_opened(
    path: Path, sentinel: Path
) -> None:
    fill(path / "orders-0")
    with LogDir.open(str(path)) as log_dir:
        swap_for_link(path, sentinel)()
        outcome = stage(log_dir, [candidate()], NOW_MS)
    assert len(outcome.staged) == 1
    assert not (path.with_name("moved-away") / "orders-0").exists()


def test_a_disk_that_fails_at_every_step_in_turn_on_a_hostile_log_dir_raises_our_errors_only(
    our_log_dir: Path, sentinel: Path
) -> None:
    fill(our_log_dir / "orders-0")
    (our_log_dir / "orders-0" / "link").symlink_to(sentinel)
    (our_log_dir / "payments-0").symlink_to(sentinel / "orders-0")
    (our_log_dir / f"x-0.{UNIQUE}-delete").mkdir()
    for number in (errno.EIO, errno.ENOSPC, errno.EACCES):
        for method in ("create", "write", "sync", "mkdir", "rename", "unlink", "rmdir"):
            use_everything(our_log_dir, DiskThat(number, {method}))
