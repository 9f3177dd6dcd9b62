"""``logstore doctor`` from end to end: one screen, the order of the steps, and commands that work when pasted."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from layout import meta_properties, partition_metadata
from layout.directory_name import delete_name, future_name, stray_name
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from logstore.log_dir import LogDir
from reconciler.cli.commands.doctor import SCHEMA_VERSION
from reconciler.cli.examination import with_not_given
from reconciler.desired import BrokerKey, DesiredBuilder, MetadataIdentity
from reconciler.sources import parquet
from tests.reconciler.cli.conftest import CLUSTER, OLD_ORDERS, ORDERS, long_written, make_log_dir

Run = Callable[..., Result]
UNIQUE = "0123456789abcdef0123456789abcdef"
MANY = TopicId(bytes(range(51, 67)))


def metadata_of(folder: Path, as_of_ms: int, **identity: Any) -> str:
    """Metadata of this time, in which ``orders`` has two partitions on brokers 1 and 2."""
    builder = DesiredBuilder()
    for partition in range(2):
        builder.partition("orders", str(ORDERS), partition, [1, 2], isr=[1, 2], leader=1)
    folder.mkdir()
    identified = MetadataIdentity("kraft", "x", CLUSTER, timestamp_ms=as_of_ms, **identity)
    parquet.save_state(builder.build(identified), str(folder))
    return str(folder)


@pytest.fixture
def fresh(cluster) -> str:
    """Metadata of this moment."""
    return metadata_of(cluster.folder / "fresh", time.time_ns() // 1_000_000)


def document(result: Result) -> Any:
    found = json.loads(result.stdout)
    assert found["schema_version"] == SCHEMA_VERSION
    (broker,) = found["brokers"]
    return broker


def commands(broker: Any) -> list[str]:
    return [step["command"] or step["why"] for step in broker["next"]]


def test_a_healthy_broker_asks_for_nothing(cluster, fresh: str, run: Run) -> None:
    result = run("doctor", cluster.log_dir(1), "--metadata", fresh)
    assert (result.exit_code, "Nothing has to be done." in result.stdout) == (0, True)


def test_what_asks_nobody_to_act_is_clean_and_what_has_no_step_is_for_somebody_to_look_at(
    cluster, fresh: str, run: Run
) -> None:
    moving = cluster.log_dir(1) / f"orders-0.{UNIQUE}-future"
    shutil.copytree(cluster.log_dir(1) / "orders-0", moving)
    result = run("doctor", cluster.log_dir(1), "--metadata", fresh)
    assert "1 replica would be replaced by a future one" in " ".join(result.stdout.split())
    assert "nobody has to act on: 1 FUTURE" in result.stdout
    assert (result.exit_code, "Nothing has to be done." in result.stdout) == (0, True)
    (cluster.log_dir(1) / "notes.txt").touch()
    result = run("doctor", cluster.log_dir(1), "--metadata", fresh)
    assert (result.exit_code, "Nothing has to be done." in result.stdout) == (1, False)
    assert "what is said above is for somebody to look at" in result.stdout


def test_a_stale_replica_is_said_on_one_screen_with_the_way_to_a_healthy_broker(
    cluster, fresh: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cluster.folder / "disks")  # short paths, as on a real machine
    result = run("doctor", "broker-2", "--metadata", "../fresh")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert max(len(line) for line in lines if str(cluster.folder) not in line) <= 80
    assert len(lines) <= 40
    assert lines[0] == f"broker 2 of cluster {CLUSTER}, 1 log dir, stopped"
    text = " ".join(" ".join(lines).split())
    assert "critical: 1 STALE_ID" in text
    words = ("logstore plan broker-2", "logstore apply", "logstore preflight", "start the broker", "logstore purge")
    order = [text.index(each) for each in words]
    assert order == sorted(order)


def test_json_has_the_steps_with_every_log_dir_and_the_metadata(cluster, fresh: str, run: Run) -> None:
    first = make_log_dir(cluster.folder / "twice" / "1", 1, {"orders-0": ORDERS, "orders-1": ORDERS})
    second = make_log_dir(cluster.folder / "twice" / "2", 1, {"orders-0": OLD_ORDERS})
    identity = MetaProperties(1, CLUSTER, 1, DirectoryId.from_halves(78, 1))
    (second / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))
    broker = document(run("doctor", first, second, "--metadata", fresh, "--format", "json"))
    assert broker["totals"] == {"DUPLICATE": 2}
    assert commands(broker)[:3] == [
        f"logstore repair {first} {second} --metadata {fresh} -o repair.json",
        "logstore repair --apply repair.json",
        f"logstore preflight {first} {second} --metadata {fresh}",
    ]


def test_a_stopped_brokers_own_metadata_is_not_believed(cluster, run: Run) -> None:
    """It ends where the broker stopped, so what happened since looks as if it had not."""
    log_dir = cluster.log_dir(2)
    builder = DesiredBuilder()
    builder.partition("orders", str(ORDERS), 0, [1, 2], isr=[1, 2], leader=1)
    builder.broker(2, 7, False, [])
    own = log_dir / "own"
    own.mkdir()
    identity = MetadataIdentity("kraft", "x", CLUSTER, timestamp_ms=1000, keeper=2)
    parquet.save_state(builder.build(identity), str(own))
    broker = document(run("doctor", log_dir, "--metadata", own, "--format", "json"))
    assert broker["metadata"]["trust"] == "own_copy"
    assert broker["next"][0]["command"] == f"logstore doctor {log_dir} --metadata SOURCE"
    assert "nothing since is known" in broker["next"][0]["why"]


def test_metadata_that_is_older_than_what_it_condemns_is_in_doubt_and_newer_is_asked_for_first(
    cluster, fresh: str, run: Run
) -> None:
    result = run("doctor", cluster.log_dir(2), "--metadata", fresh)
    assert "in doubt" not in result.stdout
    os.utime(cluster.log_dir(2) / "orders-1" / "00000000000000000000.log")  # as if it was made anew since
    result = run("doctor", cluster.log_dir(2), "--metadata", fresh)
    said = " ".join(result.stdout.split())
    assert f"metadata: {fresh} is older than what it condemns here" in said
    assert "in doubt, because it was written to after the metadata was" in said
    said = said.replace(" \\ ", " ")  # where a command goes on in the next line
    assert said.index("--metadata SOURCE") < said.index("logstore plan")


def test_metadata_of_the_future_is_not_believed_and_the_wrong_clock_is_told(cluster, run: Run) -> None:
    ahead = metadata_of(cluster.folder / "ahead", time.time_ns() // 1_000_000 + 5 * 86_400_000)
    result = run("doctor", cluster.log_dir(2), "--metadata", ahead)
    said = " ".join(result.stdout.split())
    assert "in the future, so its clock or this machine's is wrong: name a running broker as kafka:HOST:PORT" in said
    assert re.search(r"is of \S+ \S+ UTC, which is \d+ \w+ in the future", said)
    assert re.search(r", \d+ \w+ in the future\n", result.stderr)


@pytest.mark.parametrize("verb", ["doctor", "repair", "purge"])
def test_what_is_odd_about_the_metadata_is_told(cluster, run: Run, verb: str) -> None:
    odd = metadata_of(cluster.folder / "odd", time.time_ns() // 1_000_000, problems=("99 was skipped",))
    result = run(verb, cluster.log_dir(1), "--metadata", odd)
    assert "logstore: note: " in result.stderr and ": 99 was skipped\n" in result.stderr
    quiet = run(verb, cluster.log_dir(1), "--metadata", odd, "--quiet")
    assert quiet.exit_code == result.exit_code and "note: " not in quiet.stderr


def test_without_metadata_nothing_is_planned(cluster, run: Run) -> None:
    broker = document(run("doctor", cluster.log_dir(2), "--metadata", "none", "--format", "json"))
    assert broker["metadata"]["trust"] == "none"
    assert commands(broker) == [f"logstore doctor {cluster.log_dir(2)} --metadata SOURCE"]


def test_a_disk_that_is_not_there_comes_before_everything_else(cluster, fresh: str, run: Run) -> None:
    gone = cluster.folder / "disks" / "gone"
    broker = document(run("doctor", cluster.log_dir(2), gone, "--metadata", fresh, "--format", "json"))
    assert broker["broker"] == 2
    assert commands(broker) == ["findmnt --real"]


def test_a_broker_that_runs_is_stopped_first(cluster, fresh: str, run: Run) -> None:
    with LogDir.open(str(cluster.log_dir(2))):
        broker = document(run("doctor", cluster.log_dir(2), "--metadata", fresh, "--format", "json"))
    assert broker["in_use"] == [str(cluster.log_dir(2))]
    assert commands(broker)[0].startswith("stop the broker")


def test_a_stray_is_planned_with_its_option_and_what_was_renamed_gets_its_name_back(
    cluster, fresh: str, run: Run
) -> None:
    log_dir = cluster.log_dir(1)
    (log_dir / "orders-1").rename(log_dir / stray_name("gone", 0, UNIQUE))
    path = log_dir / stray_name("gone", 0, UNIQUE) / partition_metadata.FILE_NAME
    path.write_bytes(partition_metadata.encode(OLD_ORDERS))
    (log_dir / "orders-0").rename(log_dir / "kicks-0")
    long_written(log_dir)
    found = commands(document(run("doctor", log_dir, "--metadata", fresh, "--format", "json")))
    assert found[0] == f"mv -nT {log_dir}/kicks-0 {log_dir}/orders-0"
    assert found[1] == f"logstore plan {log_dir} --metadata {fresh} --strays -o plan.json"


def test_the_strays_that_no_plan_takes_are_counted_apart_and_each_has_a_way_out_that_works(
    cluster, fresh: str, run: Run
) -> None:
    strays = {stray_name("gone", number, UNIQUE): OLD_ORDERS for number in range(3)}
    left = {stray_name("x" * 249, 0, UNIQUE): OLD_ORDERS, stray_name("orders", 0, UNIQUE): ORDERS}
    left |= {stray_name("y" * 249, 0, UNIQUE): None}
    disk = make_log_dir(cluster.folder / "strays", 1, {"orders-0": ORDERS, "orders-1": ORDERS} | strays | left)
    asked = ("doctor", disk, "--metadata", fresh, "--format", "json")
    with LogDir.open(str(disk)):
        running = document(run(*asked))
    assert running["next"][0]["why"].startswith(f"stop the broker that runs on {disk}, which has time, because strays")
    broker = document(run(*asked))
    moves = [each for each in commands(broker) if each.startswith("mv ")]
    assert (broker["totals"], len(moves)) == ({"STRAY": 6}, 3)
    (planned,) = [step for step in broker["next"] if (step["command"] or "").startswith("logstore plan ")]
    assert planned["why"].startswith("plan to give 3 strays a due time, and read the plan")
    made = json.loads(run("plan", disk, "--metadata", fresh, "--strays", "--format", "json").stdout)
    assert {action["name"] for action in made["actions"]} == set(strays)
    subprocess.run(["bash", "-ec", "\n".join(moves)], check=True)
    assert {path.name for path in disk.iterdir() if path.name.endswith("-stray")} == set(strays)
    assert document(run(*asked))["totals"] == {"STRAY": 3}


@pytest.mark.parametrize(
    ("name", "topic_id"),
    [
        ("backup %d", None),
        (f"gone-%d.{UNIQUE}-future", OLD_ORDERS),
        (f"gone-%d.{UNIQUE}-stray", None),
        ("many_-%d", MANY),
    ],
    ids=["foreign", "future", "stray without ID", "renamed"],
)
def test_seven_directories_that_are_moved_by_hand_are_named_five_at_a_time_and_all_commands_work(
    cluster, run: Run, name: str, topic_id: TopicId | None
) -> None:
    disk = make_log_dir(cluster.folder / "seven", 1, {name % number: topic_id for number in range(7)})
    builder = DesiredBuilder()
    builder.topic("orders", str(ORDERS))
    for partition in range(7 if topic_id == MANY else 0):
        builder.partition("many", str(MANY), partition, [1, 2], isr=[1, 2], leader=2)
    (cluster.folder / "seven-metadata").mkdir()
    identity = MetadataIdentity("kraft", "x", CLUSTER, timestamp_ms=time.time_ns() // 1_000_000)
    parquet.save_state(builder.build(identity), str(cluster.folder / "seven-metadata"))
    asked = ("doctor", disk, "--metadata", cluster.folder / "seven-metadata", "--format", "json")
    for named in (5, 2):
        moves = [each for each in commands(document(run(*asked))) if each.startswith("mv ")]
        assert len(moves) == named
        subprocess.run(["bash", "-ec", "\n".join(moves)], check=True)
    assert not {"FOREIGN", "FUTURE_ABANDONED", "STRAY", "RENAMED"} & document(run(*asked))["totals"].keys()
    assert {path.name for path in disk.iterdir() if path.is_dir()} == (
        {f"many-{number}" for number in range(7)} if topic_id == MANY else set()
    )


@pytest.mark.parametrize(("held", "is_it"), [(ORDERS, True), (OLD_ORDERS, False), (None, False)])
def test_a_replica_that_was_renamed_to_a_foreign_name_gets_its_own_again_if_its_topic_id_is_wanted(
    cluster, fresh: str, run: Run, held: TopicId | None, is_it: bool
) -> None:
    log_dir = cluster.log_dir(1)
    was = next(path for path in sorted(log_dir.iterdir()) if path.name.startswith("orders-"))
    renamed, other = was.with_name(f"{was.name}.bak"), was.with_name(f"{was.name}0.bak")
    was.rename(renamed)
    other.mkdir()
    (renamed / "partition.metadata").unlink()
    if held is not None:
        (renamed / "partition.metadata").write_text(f"version: 0\ntopic_id: {held}")
    words = ("doctor", log_dir, "--metadata", fresh, "--format", "json")
    moves = [each for each in commands(document(run(*words))) if each.startswith("mv ")]
    old = commands(document(run("doctor", log_dir, "--metadata", cluster.metadata, "--format", "json")))
    assert [each for each in old if each.startswith("mv ")] == moves, "the metadata's age is nothing to this"
    assert (f"mv -nT {renamed} {was}" in moves) == is_it
    assert (f"mv -nT {renamed} {log_dir}.{renamed.name}" in moves) != is_it
    assert f"mv -nT {other} {log_dir}.{other.name}" in moves
    subprocess.run(["bash", "-ec", "\n".join(moves)], check=True)
    assert was.is_dir() == is_it
    assert "FOREIGN" not in document(run(*words))["totals"]


@pytest.mark.parametrize("name", ["deleting", "back up\nof 'me'", "n" * 255])
def test_what_is_moved_out_goes_to_a_free_name_and_into_no_directory(cluster, fresh: str, run: Run, name: str) -> None:
    """Into a staging directory, for example, from which it would have to be moved out once more."""
    log_dir = cluster.log_dir(1)
    (log_dir / name).mkdir()
    (log_dir / name / "kept").touch()
    room = 255 - len(f"{log_dir.name}.")
    taken = log_dir.with_name(f"{log_dir.name}.{name[-room:]}")
    taken.mkdir()
    words = ("doctor", log_dir, "--metadata", fresh, "--format", "json")
    moves = [each for each in commands(document(run(*words))) if each.startswith("mv ")]
    subprocess.run(["bash", "-ec", "\n".join(moves)], check=True)
    assert os.listdir(taken) == []
    (moved,) = {path.parent for path in log_dir.parent.glob("*/kept")} - {log_dir / name}
    assert moved.name.endswith(".2")
    assert not (log_dir / name).exists()
    assert "FOREIGN" not in document(run(*words))["totals"]


def test_the_folder_of_fallback_records_and_the_release_stay_in_the_commands(
    cluster, fresh: str, run: Run, tmp_path: Path
) -> None:
    spare = tmp_path / "spare"
    spare.mkdir()
    result = run(
        *("doctor", cluster.log_dir(2), "--metadata", fresh, "--spare-records", spare, "--kafka", "3.7.1"),
        *("--format", "json"),
    )
    found = commands(document(result))
    passed_on = f" --kafka 3.7.1 --spare-records {spare}"
    assert found[1] == f"logstore apply plan.json{passed_on}"
    assert found[2].endswith(passed_on)
    assert found[-1].endswith(passed_on)


def test_a_plain_file_that_a_broker_ignores_is_not_critical_and_a_directory_is(cluster, fresh: str, run: Run) -> None:
    (cluster.log_dir(1) / "restore-notes.txt").write_text("mine")
    asked = ("doctor", cluster.log_dir(1), "--metadata", fresh)
    assert "calm: 1 FOREIGN." in run(*asked).stdout
    (cluster.log_dir(1) / "zz").mkdir()
    assert "critical: 2 FOREIGN." in run(*asked).stdout
    (broker,) = json.loads(run(*asked, "--json").stdout)["brokers"]
    assert broker["evidence"]["FOREIGN"].startswith(f"{cluster.log_dir(1)}/zz: "), "it is the one that is critical"


def test_lost_and_found_is_told_by_where_it_lies(
    cluster, fresh: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dir = cluster.log_dir(1)
    (log_dir / "lost+found").mkdir()
    words = ("doctor", log_dir, "--metadata", fresh, "--format", "json")
    assert commands(document(run(*words)))[0] == f"mv -nT {log_dir}/lost+found {log_dir}.lost+found"
    monkeypatch.setattr(os.path, "ismount", lambda path: path == str(log_dir))
    at_root = document(run(*words))["next"][0]
    assert at_root["command"] == f"ls -la {log_dir}"
    assert "the log dir is the root of a file system: make a directory in it" in at_root["why"]


def test_a_log_dir_that_holds_what_is_missing_and_was_not_given_is_named(cluster, fresh: str, run: Run) -> None:
    """Metadata that names no log dirs, as that of a live broker, cannot say that one is not among those given."""
    one = cluster.log_dir(1)
    other = make_log_dir(one.with_name("broker-1b"), 1, {})
    properties = other / "meta.properties"
    properties.write_text(properties.read_text().replace(*(str(DirectoryId.from_halves(77, n)) for n in (1, 9))))
    shutil.move(one / "orders-1", other)
    broker = document(run("doctor", one, "--metadata", fresh, "--format", "json"))
    assert [each["kind"] for each in broker["fleet"]][-1] == "LOG_DIR_NOT_SEEN"
    (step,) = broker["next"]
    assert step["command"] == f"logstore doctor {one} {other} --metadata {fresh}"
    assert "lies in" in step["why"] and "bring their directories back" not in step["why"]
    assert run("doctor", one, other, "--metadata", fresh).exit_code == 0
    (other / "orders-1").rename(other / "gone-1")
    assert "LOG_DIR_NOT_SEEN" not in run("doctor", one, "--metadata", fresh).stdout
    # What the metadata says of the broker's log dirs is what counts.
    told = [("LOG_DIR_NOT_SEEN", "an ID", "registered")]
    assert with_not_given(told, BrokerKey(CLUSTER, 1), [str(one)], []) == told


def test_an_inventory_is_refused(cluster, run: Run, tmp_path: Path) -> None:
    inventory = tmp_path / "a.parquet"
    assert run("scan", cluster.log_dir(1), "--format", "parquet", "-o", inventory).exit_code == 0
    result = run("doctor", inventory)
    assert (result.exit_code, "is an inventory" in result.stderr) == (2, True)


def test_what_is_staged_waits_for_its_time(cluster, fresh: str, run: Run) -> None:
    plan = cluster.folder / "plan.json"
    planned = run(*("plan", cluster.log_dir(2), "--metadata", fresh, "--max-share", "100%", "-o", plan))
    assert planned.exit_code == 1, planned.output
    assert run("apply", plan).exit_code == 0
    broker = document(run("doctor", cluster.log_dir(2), "--metadata", fresh, "--format", "json"))
    assert broker["staged"] == 1
    assert broker["next"][-1]["later"]


def test_metadata_that_went_back_behind_an_applied_plan_is_not_believed(cluster, fresh: str, run: Run) -> None:
    plan = cluster.folder / "plan.json"
    run(*("plan", cluster.log_dir(2), "--metadata", fresh, "--max-share", "100%", "-o", plan))
    earlier = metadata_of(cluster.folder / "earlier", time.time_ns() // 1_000_000 - 3_600_000)
    assert "went back" not in run("doctor", cluster.log_dir(2), "--metadata", earlier).stdout
    assert run("apply", plan).exit_code == 0
    said = " ".join(run("doctor", cluster.log_dir(2), "--metadata", earlier).stdout.split())
    assert f"metadata: {earlier} went back in time: it speaks as of " in said
    assert "--metadata SOURCE" in said.replace(" \\ ", " ")


def test_old_metadata_is_a_step_to_do_and_an_only_voter_is_told_to_start_first(cluster, run: Run) -> None:
    day_ago = time.time_ns() // 1_000_000 - 25 * 3_600_000
    old = metadata_of(cluster.folder / "old", day_ago)
    result = run("doctor", cluster.log_dir(1), "--metadata", old)
    assert result.exit_code == 1, result.output  # a step that has to be done, though nothing else is wrong
    assert "name a running broker as kafka:HOST:PORT, or" in " ".join(result.stdout.split())
    alone = metadata_of(cluster.folder / "alone", day_ago, keeper=2, keeper_decides=True)
    said = " ".join(run("doctor", cluster.log_dir(2), "--metadata", alone).stdout.split())
    assert "25 h old, though nothing was decided since this broker stopped: this broker is the only voter, so" in said
    assert "so start it once nothing below is left to do, and name it as kafka:HOST:PORT; until then, what" in said
    assert "name a running broker" not in said and "2. plan to stage 1 that nobody wants" in said


def test_the_old_metadata_of_a_stopped_only_voter_is_all_there_is_where_nothing_has_to_be_done(
    cluster, run: Run
) -> None:
    day_ago = time.time_ns() // 1_000_000 - 25 * 3_600_000
    alone = metadata_of(cluster.folder / "alone", day_ago, keeper=1, keeper_decides=True)
    result = run("doctor", cluster.log_dir(1), "--metadata", alone)
    assert (result.exit_code, "Nothing has to be done." in result.stdout) == (0, True), result.output
    assert "the only voter" not in result.stdout
    cut = {"keeper": 1, "keeper_decides": True, "ends_early": ("it is cut",)}
    lost = metadata_of(cluster.folder / "lost", day_ago, **cut)
    said = " ".join(run("doctor", cluster.log_dir(1), "--metadata", lost).stdout.split())
    assert "25 h old: this broker is the only voter, so start it" in said
    assert "nothing was decided" not in said


@pytest.mark.parametrize("named", [delete_name, future_name])
@pytest.mark.parametrize(("isr", "is_last"), [([2], True), ([1, 2], False)])
def test_the_last_copy_that_a_start_would_delete_or_empty_gets_its_name_again_before_any_start(
    cluster, run: Run, tmp_path: Path, named: Callable[..., str], isr: list[int], is_last: bool
) -> None:
    builder = DesiredBuilder()
    builder.partition("orders", str(ORDERS), 0, [1, 2], isr=isr, leader=2)
    builder.partition("orders", str(ORDERS), 1, [1], isr=[1], leader=1)
    (tmp_path / "of-now").mkdir()
    now_ms = time.time_ns() // 1_000_000
    identity = MetadataIdentity("kraft", "x", CLUSTER, timestamp_ms=now_ms)
    parquet.save_state(builder.build(identity), str(tmp_path / "of-now"))
    disk = make_log_dir(tmp_path / "disk", 2, {"orders-0": ORDERS})
    marked = named("orders", 0, UNIQUE)
    (Path(disk) / "orders-0").rename(Path(disk) / marked)
    broker = document(run("doctor", disk, "--metadata", tmp_path / "of-now", "--json"))
    first, *others = broker["next"]
    assert (first["command"] == f"mv -nT {disk}/{marked} {disk}/orders-0") == is_last
    assert first["why"].startswith("do not start the broker: ") == is_last
    if is_last:
        assert not any(f"{disk}.{marked}" in str(step["command"]) or "backup" in step["why"] for step in others)
        subprocess.run(first["command"], shell=True, check=True)
        after = document(run("doctor", disk, "--metadata", tmp_path / "of-now", "--json"))
        assert not any("do not start" in step["why"] for step in after["next"])


def test_the_last_copy_of_a_move_of_2_8_which_has_no_topic_id_yet_is_known_by_its_name(
    cluster, run: Run, tmp_path: Path
) -> None:
    builder = DesiredBuilder()
    for partition in (0, 1):
        builder.partition("orders", str(ORDERS), partition, [2], isr=[2], leader=2)
    (tmp_path / "of-now").mkdir()
    identity = MetadataIdentity("zookeeper", "x", CLUSTER, timestamp_ms=time.time_ns() // 1_000_000)
    parquet.save_state(builder.build(identity), str(tmp_path / "of-now"))
    disk = Path(make_log_dir(tmp_path / "disk", 2, {"orders-0": ORDERS, "orders-1": ORDERS}))
    copies = {number: future_name("orders", number, UNIQUE) for number in (0, 1)}
    for number, name in copies.items():
        (disk / f"orders-{number}").rename(disk / name)
        (disk / name / partition_metadata.FILE_NAME).unlink()
    first, second, *others = document(run("doctor", disk, "--metadata", tmp_path / "of-now", "--json"))["next"]
    assert {step["command"] for step in (first, second)} == {
        f"mv -nT {disk}/{name} {disk}/orders-{number}" for number, name in copies.items()
    }
    assert not any(str(step["command"]).startswith("mv ") for step in others)
