"""Paths sorted into log dirs, folders and inventories, and the metadata that is chosen for them."""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from layout.ids import TopicId
from logstore import InventoryError
from logstore.rows import InventoryForm, inventory
from logstore.scan import scan
from reconciler.cli.frame import (
    NO_METADATA,
    check_locations,
    choose_metadata,
    closed_at,
    forbidden_in,
    is_inventory,
    is_location,
    location_among,
    of_this_machine,
    refuse_part_of_log_dir,
    report_closed,
    report_unreadable,
    say_problems,
    sort_inputs,
    sort_log_dirs,
)
from reconciler.errors import MetadataError, UsageError
from reconciler.sources import load
from tools.writers import kraft_writer


def inventory_of(log_dir: str, path: Path) -> str:
    with path.open("wb") as out:
        inventory.write_inventory([scan(log_dir).rows], out, InventoryForm.PARQUET)
    return str(path)


def test_a_place_at_a_file_uri_is_a_path_of_this_machine() -> None:
    places = ["file:///a%20b/c", "/a%20b", "s3://b/x", None]
    assert list(map(of_this_machine, places)) == ["/a b/c", "/a%20b", "s3://b/x", None]


def test_a_folder_of_disks_stands_for_its_log_dirs(cluster) -> None:
    inputs = sort_inputs([str(cluster.folder / "disks")])
    assert list(inputs.log_dirs) == cluster.log_dirs
    assert (inputs.folders, len(inputs.log_dirs)) == ((str(cluster.folder / "disks"),), 2)


def test_a_log_dir_that_is_given_twice_is_looked_at_once(cluster) -> None:
    one = cluster.log_dirs[0]
    os.symlink(one, cluster.folder / "link")
    given = [one, f"{one}/", str(cluster.folder / "link"), str(cluster.folder / "disks")]
    assert len(sort_inputs(given).log_dirs) == 2


def test_a_link_stands_for_the_log_dir_or_for_the_folder_of_inventories_that_it_leads_to(cluster) -> None:
    os.symlink(cluster.log_dirs[0], cluster.folder / "link")
    assert sort_inputs([str(cluster.folder / "link")]).log_dirs == (cluster.log_dirs[0],)
    (cluster.folder / "reports").mkdir()
    inventory_of(cluster.log_dirs[0], cluster.folder / "reports" / "one.parquet")
    os.symlink("reports", cluster.folder / "linked")
    inputs = sort_inputs([str(cluster.folder / "linked")])
    assert (inputs.log_dirs, len(inputs.inventories.paths)) == ((), 1)


def test_inventories_and_trees_go_together(cluster) -> None:
    path = inventory_of(cluster.log_dirs[0], cluster.folder / "one.parquet")
    inputs = sort_inputs([path, cluster.log_dirs[1]])
    assert (inputs.inventories.paths, inputs.log_dirs) == ((path,), (cluster.log_dirs[1],))
    assert [row["node_id"] for row in inputs.inventories.log_dirs] == [1]


def test_some_paths_that_are_absent_stay_among_the_log_dirs(cluster) -> None:
    absent = str(cluster.folder / "absent")
    assert sort_inputs([cluster.log_dirs[0], absent]).log_dirs == (cluster.log_dirs[0], absent)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("absent", "absent: No such file or directory"), ("file", "is a file, and neither a log dir nor an inventory")],
)
def test_when_nothing_can_be_looked_at_there_is_no_run(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "file").write_text("hello")
    with pytest.raises(UsageError, match=sentence):
        sort_inputs([str(tmp_path / name)])


def test_a_fifo_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="neither a directory nor a plain file"):
        sort_inputs([str(tmp_path / "fifo")])


def test_of_two_inventories_of_one_log_dir_the_newer_counts(cluster) -> None:
    old, new = (inventory_of(cluster.log_dirs[0], cluster.folder / f"{name}.parquet") for name in ("old", "new"))
    inventories = sort_inputs([old, new]).inventories
    assert (inventories.paths, inventories.older) == ((new,), (old,))


def test_one_inventory_that_is_given_twice_counts_once(cluster) -> None:
    path = inventory_of(cluster.log_dirs[0], cluster.folder / "one.parquet")
    assert sort_inputs([path, path]).inventories.paths == (path,)


def test_an_inventory_that_is_given_twice_by_other_names_counts_once_and_is_no_log_dir(cluster) -> None:
    folder = cluster.folder / "inventories"
    folder.mkdir()
    path = inventory_of(cluster.log_dirs[0], folder / "one.parquet")
    os.symlink("one.parquet", folder / "the-newest.parquet")
    os.link(path, folder / "a-link.parquet")
    for given in ([path, f"{folder}/./one.parquet"], [str(folder)], [str(folder), f"{folder}/"], [path, str(folder)]):
        inputs = sort_inputs(given)
        assert (inputs.log_dirs, len(inputs.inventories.files)) == ((), 1), given


def test_an_absent_file_with_the_name_of_an_inventory_is_one_that_cannot_be_read(cluster) -> None:
    path = inventory_of(cluster.log_dirs[0], cluster.folder / "one.parquet")
    absent, dangling = (str(cluster.folder / name) for name in ("absent.parquet", "dangling.arrow"))
    os.symlink("nowhere", dangling)
    inputs = sort_inputs([path, absent, dangling])
    assert (inputs.log_dirs, list(inputs.inventories.unreadable)) == ((), [absent, dangling])
    assert all("is no inventory: it is not there" in each for each in inputs.inventories.unreadable.values())
    with pytest.raises(UsageError, match=r"absent\.parquet: No such file or directory"):
        sort_inputs([absent])


def test_a_damaged_inventory_ends_the_run_only_where_nothing_else_was_given(
    cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(inventory_of(cluster.log_dirs[0], cluster.folder / "one.parquet"))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InventoryError, match="scan again"):
        sort_inputs([str(path)])
    inputs = sort_inputs([str(path), cluster.log_dirs[1]])
    assert (inputs.log_dirs, list(inputs.inventories.unreadable)) == ((cluster.log_dirs[1],), [str(path)])
    assert "scan again. Nothing is known of what it holds\n" in capsys.readouterr().err


def test_a_tree_is_newer_than_an_inventory_of_it(cluster) -> None:
    path = inventory_of(cluster.log_dirs[0], cluster.folder / "one.parquet")
    inputs = sort_inputs([path, str(cluster.folder / "disks")])
    assert (inputs.inventories.paths, inputs.inventories.older) == ((), (path,))


def test_a_folder_of_inventories_stands_for_them(cluster) -> None:
    folder = cluster.folder / "inventories"
    folder.mkdir()
    paths = [inventory_of(log_dir, folder / f"{number}.parquet") for number, log_dir in enumerate(cluster.log_dirs)]
    (folder / "notes.txt").write_text("of last night")
    inputs = sort_inputs([str(folder)])
    assert (inputs.inventories.paths, inputs.log_dirs) == (tuple(paths), ())


@pytest.mark.parametrize("day", ["2026-11-27", "day=2026-11-27", "cluster=main-1/day=2026-11-27/broker=1"])
def test_a_folder_of_inventories_that_is_named_by_its_day_is_no_replica(
    cluster, capsys: pytest.CaptureFixture[str], day: str
) -> None:
    folder = cluster.folder / "inventories"
    (folder / day).mkdir(parents=True)
    path = inventory_of(cluster.log_dirs[0], folder / day / "one.parquet")
    (folder / "day=2026-11-28").mkdir()  # to which nothing was written yet
    inputs = sort_inputs([str(folder)])
    assert (inputs.inventories.paths, inputs.log_dirs, capsys.readouterr().err) == ((path,), (), "")
    (folder / "orders-0").mkdir()
    assert sort_inputs([str(folder)]).log_dirs == (str(folder),)


def test_a_replica_is_no_log_dir_and_leads_to_the_one_that_holds_it(cluster) -> None:
    log_dir = cluster.log_dirs[0]
    with pytest.raises(UsageError, match=f"orders-0 is a replica of log dir {log_dir}: give the log dir"):
        sort_inputs([f"{log_dir}/orders-0"])
    os.mkdir(f"{log_dir}/odd")
    with pytest.raises(UsageError, match=f"odd lies in log dir {log_dir}"):
        sort_inputs([f"{log_dir}/odd", cluster.log_dirs[1]])
    refuse_part_of_log_dir(log_dir)
    with pytest.raises(UsageError, match="is a replica of"):
        refuse_part_of_log_dir(f"{log_dir}/orders-0")


def test_a_disk_that_cannot_be_listed_is_reported_and_stays_among_the_log_dirs(
    cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = cluster.folder / "disks" / "closed"
    closed.mkdir()
    (cluster.folder / "disks" / "lost+found").mkdir()
    listed = os.scandir

    def refuse(path: str) -> object:
        if os.path.basename(path) in ("closed", "lost+found"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", refuse)
    inputs = sort_inputs([str(cluster.folder / "disks")])
    assert set(inputs.log_dirs) == {*cluster.log_dirs, str(closed)}
    assert f"{closed} cannot be read: Permission denied; nothing is known of what lies there" in capsys.readouterr().err
    report_unreadable([*cluster.log_dirs, str(cluster.folder / "absent")])
    assert capsys.readouterr().err == ""
    told = {path: forbidden_in(path) for path in (str(closed), *cluster.log_dirs, str(cluster.folder / "absent"))}
    assert [place for place in told.values() if place] == [str(closed)]


def test_a_closed_folder_beside_inventories_costs_only_itself(
    cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = cluster.folder / "inventories"
    (folder / "closed").mkdir(parents=True)
    path = inventory_of(cluster.log_dirs[0], folder / "one.parquet")
    listed = os.scandir

    def refuse(path: str) -> object:
        if os.path.basename(path) == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", refuse)
    inputs = sort_inputs([str(folder)])
    assert (inputs.inventories.paths, inputs.log_dirs) == ((path,), (f"{folder}/closed",))
    assert f"{folder}/closed cannot be read: Permission denied" in capsys.readouterr().err
    shutil.copytree(cluster.log_dirs[1], folder / "disk")
    assert set(sort_inputs([str(folder)]).log_dirs) == {f"{folder}/closed", f"{folder}/disk"}


def test_what_is_closed_beyond_what_was_looked_at_first_is_reported_once_for_all(
    cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = cluster.log_dirs[:2]
    closed = {(one, "meta.properties"), (one, "orders-7"), (two, "orders-8/partition.metadata"), (two, "orders-9")}
    monkeypatch.setattr(import_module("logstore.scan"), "is_closed", lambda log_dir, name: (log_dir, name) in closed)
    report_closed([(two, "orders-0"), (one, "orders-7"), (two, "orders-8"), (two, "orders-9")])
    said = f"{two}/orders-8/partition.metadata cannot be read: Permission denied, and 1 other like it; nothing is known"
    assert said in capsys.readouterr().err, "of the first log dir, its identity was reported before"
    assert closed_at(two, "orders-8") == f"{two}/orders-8/partition.metadata"
    report_closed([(two, "orders-0"), (one, "orders-7")])
    assert capsys.readouterr().err == ""


def test_an_empty_path_is_reported_as_one() -> None:
    with pytest.raises(UsageError, match="a path is empty"):
        sort_inputs([""])


NOW_MS = 1_000_000
TOPIC = TopicId(bytes(range(16)))


def kraft_log(log_dir, cluster_id: str, epoch: int = 1) -> None:
    kraft_writer.write_metadata_dir(
        log_dir,
        log=[[kraft_writer.topic_record("orders", TOPIC), kraft_writer.partition_record(TOPIC, 0, [1, 2])]],
        cluster_id=cluster_id,
        epoch=epoch,
    )


def test_what_is_named_is_taken_and_reported(cluster, capsys: pytest.CaptureFixture[str]) -> None:
    as_of_ms = load(cluster.metadata)[0].identity.as_of_ms
    (state,) = choose_metadata([cluster.metadata], sort_inputs(cluster.log_dirs), as_of_ms + 16 * 60_000)
    assert state.topics["topic"].to_pylist() == ["orders"]
    shown = capsys.readouterr().err
    assert "cluster cluster-of-the-tests, 1 topic and 4 replicas, offset 42" in shown
    assert "16 min old" in shown


@pytest.mark.parametrize(
    ("future_ms", "shown"), [(0, " 0 s old"), (400, " 0 s old"), (300_000, " 5 min in the future")]
)
def test_what_a_live_source_reported_while_the_command_began_is_not_of_the_future(
    cluster, capsys: pytest.CaptureFixture[str], future_ms: int, shown: str
) -> None:
    (state,) = choose_metadata([cluster.metadata], sort_inputs(cluster.log_dirs), NOW_MS)
    capsys.readouterr()
    choose_metadata([cluster.metadata], sort_inputs(cluster.log_dirs), state.identity.timestamp_ms - future_ms)
    assert shown in capsys.readouterr().err


def test_a_source_that_does_not_know_its_time_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = kraft_writer.write_metadata_dir(tmp_path, log=[[kraft_writer.topic_record("t", TopicId.METADATA)]])
    choose_metadata([folder], sort_inputs([str(tmp_path)]), NOW_MS)
    assert "epoch 1, of a time that it does not say" in capsys.readouterr().err


def test_each_problem_of_a_source_is_a_note(cluster, capsys: pytest.CaptureFixture[str]) -> None:
    (state,) = load(cluster.metadata)
    say_problems([state, replace(state, identity=replace(state.identity, problems=("it is torn", "it is old")))])
    notes = [f"logstore: note: {cluster.metadata}: {problem}" for problem in ("it is torn", "it is old")]
    assert capsys.readouterr().err.splitlines() == notes


def test_a_source_that_is_named_and_bad_ends_the_run(cluster) -> None:
    (cluster.folder / "metadata" / "replicas.parquet").write_bytes(b"PAR1")
    with pytest.raises(MetadataError):
        choose_metadata([cluster.metadata], sort_inputs(cluster.log_dirs), NOW_MS)


def test_none_switches_the_search_off_and_goes_alone(cluster) -> None:
    kraft_log(cluster.log_dir(1), "cluster-of-the-tests")
    inputs = sort_inputs(cluster.log_dirs)
    assert choose_metadata([NO_METADATA], inputs, NOW_MS) == []
    with pytest.raises(UsageError, match="does not go with another"):
        choose_metadata([NO_METADATA, cluster.metadata], inputs, NOW_MS)


def test_metadata_beside_the_log_dirs_is_found_and_the_newest_wins(cluster) -> None:
    kraft_log(cluster.log_dir(1), "cluster-of-the-tests", epoch=3)
    kraft_log(cluster.log_dir(2), "cluster-of-the-tests", epoch=7)
    (state,) = choose_metadata([], sort_inputs([str(cluster.folder / "disks")]), NOW_MS)
    assert state.identity.epoch == 7
    assert any("passed over" in problem for problem in state.identity.problems)


def test_metadata_of_a_cluster_that_was_not_given_is_passed_over(cluster, capsys: pytest.CaptureFixture[str]) -> None:
    stranger = cluster.folder / "disks" / "stranger"
    shutil.copytree(cluster.log_dir(1), stranger)
    (stranger / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=9\n")
    kraft_log(stranger, "another")
    (cluster.log_dir(1) / "note").write_text("")
    inputs = sort_inputs([str(cluster.folder / "disks")])
    (state,) = choose_metadata([], inputs, NOW_MS)
    assert state.identity.cluster_id == "another"
    shutil.rmtree(stranger / "orders-0")
    (stranger / "meta.properties").write_text("version=1\ncluster.id=a-third\nnode.id=9\n")
    assert choose_metadata([], sort_inputs(cluster.log_dirs), NOW_MS) == []
    assert "only what a log dir alone can tell is judged" in capsys.readouterr().err


def test_metadata_that_is_found_and_cannot_be_read_is_reported_and_passed_over(
    cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    kraft_log(cluster.log_dir(1), "cluster-of-the-tests")
    for file in (cluster.log_dir(1) / "__cluster_metadata-0").iterdir():
        file.write_bytes(b"\xff" * 100)
    assert choose_metadata([], sort_inputs(cluster.log_dirs), NOW_MS) == []
    assert "was found and is passed over" in capsys.readouterr().err


def test_an_inventory_is_known_by_its_name_or_its_content_and_a_log_dir_is_none(cluster) -> None:
    inventory_of(cluster.log_dirs[0], cluster.folder / "one.parquet")
    (cluster.folder / "one.parquet").rename(cluster.folder / "unnamed")
    (cluster.folder / "empty.parquet").touch()
    paths = (cluster.folder / "unnamed", cluster.folder / "empty.parquet", cluster.log_dirs[0], "/nowhere.parquet")
    assert [is_inventory(str(path)) for path in paths] == [True, True, False, False]


def test_a_location_means_one_directory_and_a_path_does_where_it_would_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dirs = [str(tmp_path / disk / "kafka") for disk in "abc"]
    for log_dir, name in zip(log_dirs, ("x_0", "x_0", "y_0"), strict=True):
        Path(log_dir).mkdir(parents=True)
        Path(f"{log_dir}.deleting", name).mkdir(parents=True)
    twice, once = "../kafka.deleting/x_0", "../kafka.deleting/y_0"
    path = f"{log_dirs[0]}.deleting/x_0"
    with pytest.raises(UsageError, match=f"is in 2 log dirs.* {path} or "):
        check_locations([once, twice], log_dirs)
    check_locations([once, path, "../kafka.deleting/z_0"], log_dirs)
    check_locations([twice], log_dirs[1:])
    assert (location_among(log_dirs[2], once, log_dirs), location_among(log_dirs[0], twice, log_dirs)) == (once, path)
    monkeypatch.chdir(tmp_path)
    assert location_among(log_dirs[0], twice, ["a/kafka", "c/kafka"]) == twice, "it is the same log dir"
    for given in (twice, path, f"{log_dirs[0]}.deleting//x_0", "a/kafka.deleting/x_0"):
        assert is_location(log_dirs[0], twice, [given])
    assert not is_location(log_dirs[0], twice, [f"{log_dirs[1]}.deleting/x_0", once])


def test_a_location_is_of_the_log_dir_beside_which_it_lies_and_not_of_others_in_that_folder(tmp_path: Path) -> None:
    log_dirs = [str(tmp_path / "disk-1"), str(tmp_path / "disk-2"), str(tmp_path / "elsewhere" / "disk-2")]
    for log_dir in log_dirs:
        Path(log_dir).mkdir(parents=True)
    (tmp_path / "disk-2.deleting" / "x_0").mkdir(parents=True)
    check_locations(["../disk-2.deleting/x_0"], log_dirs)
    assert location_among(log_dirs[1], "../disk-2.deleting/x_0", log_dirs) == "../disk-2.deleting/x_0"
    (tmp_path / "elsewhere" / "disk-2.deleting" / "x_0").mkdir(parents=True)
    with pytest.raises(UsageError, match="is in 2 log dirs"):
        check_locations(["../disk-2.deleting/x_0"], log_dirs)


@pytest.mark.parametrize("verb", ["plan", "doctor", "watch", "repair"])
def test_an_inventory_that_is_not_there_is_told_of_in_one_sentence_where_log_dirs_are_expected(
    run, cluster, verb: str
) -> None:
    ran = run(verb, "gone.parquet", cluster.log_dirs[0])
    assert (ran.exit_code, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)
    assert ran.stderr.startswith("logstore: gone.parquet is not there, and has the name of an inventory")


def test_where_log_dirs_are_expected_an_inventory_is_refused_unread(cluster, tmp_path: Path) -> None:
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match=r"torn.parquet is an inventory: give others$"):
        sort_log_dirs([cluster.log_dirs[0], str(tmp_path / "torn.parquet")], ": give others")
    assert sort_log_dirs(cluster.log_dirs[:1], "").log_dirs == tuple(cluster.log_dirs[:1])
