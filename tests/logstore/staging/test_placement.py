from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from layout.ids import TopicId
from layout.topic import TopicPartition
from logstore import UnsafePathError
from logstore.fs import Directory, Disk
from logstore.log_dir import LogDir
from logstore.staging import (
    Placement,
    choose_placement,
    name_below_log_dir,
    open_staging_root,
    placement,
    placement_of,
    placements,
    stages_in_place,
    staging_path,
)
from logstore.staging.placement import free_name
from tests.logstore.engine import ORDERS, ORDERS_ID, formatted, picture


@pytest.fixture
def broker(log_dir: Any) -> Iterator[LogDir]:
    with LogDir.open(str(log_dir)) as opened:
        yield opened


@pytest.fixture
def ours(our_log_dir: Path) -> Iterator[LogDir]:
    with LogDir.open(str(our_log_dir)) as opened:
        yield opened


def test_a_log_dir_that_is_ours_stages_inside(ours: LogDir) -> None:
    # KIP516-6
    assert choose_placement(ours) is Placement.INSIDE
    assert staging_path(ours, Placement.INSIDE) == f"{ours.path}/deleting"
    assert placements(ours) == (Placement.INSIDE,)


def searched(log_dir: LogDir) -> list[Placement]:
    return [each for each, _ in placement.staging_roots(log_dir)]


def test_a_flat_log_dir_that_is_ours_is_searched_for_strays_where_it_has_one(ours: LogDir, our_log_dir: Path) -> None:
    open_staging_root(ours, Placement.INSIDE, make=True).close()  # type: ignore[union-attr]
    (our_log_dir / "no-stray").mkdir()
    assert searched(ours) == [Placement.INSIDE]
    (our_log_dir / f"orders-0.{'0' * 32}-stray").mkdir()
    assert searched(ours) == [Placement.INSIDE, Placement.IN_PLACE]
    assert choose_placement(ours) is Placement.INSIDE and placements(ours) == (Placement.INSIDE,)


def test_under_the_other_schemes_no_broker_can_have_left_a_stray(tmp_path: Path) -> None:
    for scheme in ("namespaced", "by-topic-id"):
        path = formatted(tmp_path / scheme, scheme=scheme)
        (path / f"orders-0.{'0' * 32}-stray").mkdir()
        with LogDir.open(str(path)) as opened:
            assert Placement.IN_PLACE not in searched(opened)


def test_a_real_brokers_log_dir_stages_beside_it(broker: LogDir, tmp_path: Path) -> None:
    before = picture(tmp_path)
    assert choose_placement(broker) is Placement.SIBLING
    assert staging_path(broker, Placement.SIBLING) == f"{broker.path}.deleting"
    assert placements(broker) == (Placement.SIBLING, Placement.IN_PLACE)
    assert picture(tmp_path) == before, "looking changes nothing"


def test_a_sibling_that_is_there_already_is_used(broker: LogDir) -> None:
    Path(f"{broker.path}.deleting").mkdir()
    assert choose_placement(broker) is Placement.SIBLING


@pytest.mark.parametrize(
    "make",
    [lambda path: path.write_text("x"), lambda path: path.symlink_to(path.parent), lambda path: path.symlink_to("x")],
)
def test_something_else_in_place_of_the_sibling_leaves_the_place_within(broker: LogDir, make: Any) -> None:
    make(Path(f"{broker.path}.deleting"))
    assert choose_placement(broker) is Placement.IN_PLACE
    assert stages_in_place(broker.path)
    assert staging_path(broker, Placement.IN_PLACE) == broker.path


def test_a_log_dir_with_a_sibling_and_one_that_cannot_be_opened_do_not_stage_in_place(log_dir: Any) -> None:
    assert not stages_in_place(str(log_dir))
    assert not stages_in_place(f"{log_dir}/no such directory")


def test_a_log_dir_on_another_device_than_its_parent_has_no_sibling(
    broker: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker.root, "key", (broker.root.device + 1, broker.root.key[1]))
    assert choose_placement(broker) is Placement.IN_PLACE


def test_a_parent_that_is_not_ours_to_write_in_leaves_the_place_within(
    broker: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement.os, "access", lambda path, mode: False)
    assert choose_placement(broker) is Placement.IN_PLACE


def test_a_parent_that_may_not_be_listed_is_no_error(broker: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(path: str) -> Directory:
        raise PermissionError(13, os.strerror(13), path)

    monkeypatch.setattr(placement.Directory, "open", refuses)
    assert choose_placement(broker) is Placement.IN_PLACE
    assert open_staging_root(broker, Placement.SIBLING) is None
    with pytest.raises(PermissionError):
        open_staging_root(broker, Placement.SIBLING, make=True)


@pytest.fixture
def mounted(log_dir: Any, tmp_path: Path) -> Iterator[Any]:
    """``mounted(*arguments)``: mount something over the log dir; it is unmounted afterwards."""
    log_dir.replica("orders-0")
    point = tmp_path / "mounted"
    point.mkdir()
    done: list[bool] = []

    def mount(*arguments: str) -> Path:
        subprocess.run(["mount", *arguments, str(point)], check=True)
        done.append(True)
        return point

    yield mount
    for _ in done:
        subprocess.run(["umount", str(point)], check=True)


@pytest.mark.root
def test_a_log_dir_that_is_a_mount_point_stages_in_place(mounted: Any, log_dir: Any) -> None:
    point = mounted("-t", "tmpfs", "tmpfs")
    (point / "meta.properties").write_bytes((log_dir.path / "meta.properties").read_bytes())
    with LogDir.open(str(point)) as opened:
        assert choose_placement(opened) is Placement.IN_PLACE


@pytest.mark.root
def test_a_bind_mount_has_its_parents_device_and_yet_nothing_can_be_renamed_out_of_it(
    mounted: Any, log_dir: Any
) -> None:
    point = mounted("--bind", str(log_dir.path))
    with LogDir.open(str(point)) as opened:
        assert os.stat(point).st_dev == os.stat(point.parent).st_dev
        assert choose_placement(opened) is Placement.IN_PLACE
        Path(f"{point}.deleting").mkdir()
        assert choose_placement(opened) is Placement.IN_PLACE
        os.rmdir(f"{point}.deleting")


@pytest.mark.parametrize("placement", [Placement.INSIDE, Placement.SIBLING])
def test_the_staging_root_is_made_at_need_only(tmp_path: Path, placement: Placement, log_dir: Any) -> None:
    path = formatted(tmp_path / "ours") if placement is Placement.INSIDE else log_dir.path
    with LogDir.open(str(path)) as opened:
        root = Path(staging_path(opened, placement))
        if root.exists():
            root.rmdir()
        assert open_staging_root(opened, placement) is None
        made = open_staging_root(opened, placement, make=True)
        assert made is not None
        with made:
            assert os.path.samestat(os.fstat(made.descriptor), root.stat())
        again = open_staging_root(opened, placement, make=True)
        assert again is not None
        again.close()


def test_the_staging_root_in_place_is_the_log_dir_itself(broker: LogDir) -> None:
    with open_staging_root(broker, Placement.IN_PLACE) as root:  # type: ignore[union-attr]
        assert root.key == broker.root.key


@pytest.mark.parametrize("make", [False, True])
def test_a_link_in_place_of_the_staging_root_is_never_followed(ours: LogDir, tmp_path: Path, make: bool) -> None:
    root = Path(ours.path) / "deleting"
    root.rmdir()
    (tmp_path / "elsewhere").mkdir()
    root.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePathError, match="is a symbolic link"):
        open_staging_root(ours, Placement.INSIDE, make=make)


def test_a_file_in_place_of_the_staging_root_is_reported(ours: LogDir) -> None:
    root = Path(ours.path) / "deleting"
    root.rmdir()
    root.write_text("x")
    with pytest.raises(UnsafePathError, match="is no directory"):
        open_staging_root(ours, Placement.INSIDE)


def test_a_sibling_on_another_file_system_is_refused(broker: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(f"{broker.path}.deleting").mkdir()
    monkeypatch.setattr(broker.root, "key", (broker.root.device + 1, broker.root.key[1]))
    with pytest.raises(UnsafePathError, match="lies on another file system"):
        open_staging_root(broker, Placement.SIBLING)


def test_a_name_that_is_taken_gets_a_number_whatever_has_it(tmp_path: Path) -> None:
    name = f"{ORDERS_ID}_0"
    with Directory.open(str(tmp_path)) as root:
        assert free_name(root.holds, Placement.INSIDE, ORDERS, ORDERS_ID, Disk()) == name
        (tmp_path / name).mkdir()
        assert free_name(root.holds, Placement.INSIDE, ORDERS, ORDERS_ID, Disk()) == f"{name}.2"
        (tmp_path / f"{name}.2").symlink_to("nowhere")
        assert free_name(root.holds, Placement.SIBLING, ORDERS, ORDERS_ID, Disk()) == f"{name}.3"
        (tmp_path / f"{name}.4").write_text("x")
        assert free_name(root.holds, Placement.INSIDE, ORDERS, ORDERS_ID, Disk()) == f"{name}.3"


def test_a_name_that_was_promised_to_another_is_taken() -> None:
    promised = set[str]()
    for suffix in ("", ".2", ".3"):
        name = free_name(promised.__contains__, Placement.INSIDE, ORDERS, TopicId.ZERO, Disk())
        assert name == f"AAAAAAAAAAAAAAAAAAAAAA_0{suffix}"
        promised.add(name)


@pytest.mark.parametrize("topic", ["orders", "o" * 249])
def test_in_place_a_name_is_kafkas_own_stray_form_cut_to_fit(tmp_path: Path, topic: str) -> None:
    with Directory.open(str(tmp_path)) as root:
        names = {
            free_name(root.holds, Placement.IN_PLACE, TopicPartition(topic, 7), ORDERS_ID, Disk()) for _ in range(20)
        }
    assert len(names) == 20
    assert all(len(name) <= 255 and name.endswith("-stray") and "-7." in name for name in names)


def test_a_scan_calls_what_is_staged_by_the_same_names(broker: LogDir, ours: LogDir) -> None:
    assert name_below_log_dir(ours, Placement.INSIDE, "x") == "deleting/x"
    assert name_below_log_dir(broker, Placement.SIBLING, "x") == "../data.deleting/x"
    assert name_below_log_dir(broker, Placement.IN_PLACE, "x") == "x"


def test_a_log_dir_without_a_name_of_its_own_stages_in_place(broker: LogDir) -> None:
    broker.path = "/"
    assert choose_placement(broker) is Placement.IN_PLACE


def test_no_descriptor_is_left_behind(broker: LogDir, ours: LogDir) -> None:
    before = len(os.listdir("/proc/self/fd"))
    choose_placement(broker)
    for _ in range(3):
        found = open_staging_root(ours, Placement.INSIDE, make=True)
        assert found is not None
        found.close()
    assert isinstance(ours.disk, Disk)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("staging", "placement"),
    [
        ("/d/kafka/deleting", Placement.INSIDE),
        ("/d/kafka.deleting", Placement.SIBLING),
        ("/d/kafka", Placement.IN_PLACE),
        ("/elsewhere", None),
    ],
)
def test_a_place_is_known_again_by_its_path(staging: str, placement: Placement | None) -> None:
    assert placement_of("/d/kafka", staging) is placement


def test_the_root_of_the_file_system_has_no_sibling() -> None:
    assert placement_of("/", "/x") is None
