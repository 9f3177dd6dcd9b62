"""Plans carried out on real directories: they do what they promise, and can be repeated, undone and interrupted."""

from __future__ import annotations

import errno
import os
import shlex
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from layout.ours import RunJournal, run_journal
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import LogDirInUseError
from logstore.fs import Disk
from logstore.log_dir import LogDir
from logstore.repair import RepairStatus
from logstore.scan import scan_all
from logstore.store import LogStore, StoreOptions
from reconciler.cli import logstore
from reconciler.errors import RefusedError
from reconciler.plan import UNDER_WAY, Gate, Plan, PlanChoice, Policy, apply, parse_plan, read_history
from reconciler.plan.history import write_journal
from tests.logstore.engine import DiskThat, FullDisk, contents
from tests.reconciler.plan.plan_broker import (
    CLICKS,
    GONE,
    HOUR_MS,
    NOW_MS,
    OLD,
    ORDERS,
    UNUSED,
    PlanBroker,
    lines,
    statuses,
    without,
)

staging = import_module("logstore.staging.run")

EVENTS = UNUSED
EVERYTHING = PlanChoice(Policy.kip516(), strays=True)


@pytest.fixture
def messy(tmp_path: Path) -> PlanBroker:
    """Something for every action that a real broker's log dirs know."""
    broker = PlanBroker(tmp_path)
    broker.in_order(6)
    broker.wanted("orders", ORDERS, 0)
    broker.wanted("events", EVENTS, 1, 2)
    broker.replica("orders-0", OLD)
    broker.replica("events-1", None)
    broker.stray("events-2", EVENTS)
    broker.replica("clicks-77", CLICKS, disk=1)
    broker.replica("gone-0", GONE)
    broker.replica("gone-1", None, disk=1)
    broker.stray("gone-2", GONE, disk=1)
    return broker


def observed(broker: PlanBroker) -> list[dict[str, object]]:
    """What a scan sees, without the times."""
    rows = [row for seen in scan_all(broker.paths) for row in seen.rows.to_pylist()]
    left_out = ("scanned_ms", "modified_ms", "leader_epoch")
    return sorted(({k: v for k, v in row.items() if k not in left_out} for row in rows), key=str)


def trees(broker: PlanBroker) -> list[object]:
    """Both log dirs with their staging roots, byte for byte."""
    places = [path for log_dir in broker.log_dirs for path in (log_dir, Path(f"{log_dir}.deleting")) if path.exists()]
    return [contents(place) for place in places]


def test_an_audit_after_it_finds_nothing_that_the_plan_meant_to_fix(messy: PlanBroker) -> None:
    plan = messy.plan(EVERYTHING)
    assert sorted({action.kind.value for action in plan.actions}) == [
        *("restore", "stage", "stage_stray", "write_topic_id"),
    ]
    outcome = messy.apply(plan)
    assert [each.status for each in outcome.results] == ["done"] * 7, outcome.results
    # The broker itself creates the replica of the re-created orders-0; the stray has a due time now, like staged ones.
    assert sorted(messy.verdicts().values()) == ["MISSING", *["STAGED"] * 5]
    assert messy.plan(EVERYTHING).actions == ()


def test_in_log_dirs_that_are_ours_nothing_at_all_is_left_to_do(tmp_path: Path) -> None:
    for scheme in Scheme:
        folder = tmp_path / scheme
        folder.mkdir()
        broker = PlanBroker(folder, scheme.value)
        broker.wanted("orders", ORDERS, 0, 1)
        made = broker.apply(broker.plan())
        assert statuses(made) == [(each.action.name, "done") for each in made.results]
        assert broker.verdicts() == {}


def test_a_recreated_topic_is_staged_and_made_anew_where_it_is_ours(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path, "flat")
    broker.wanted("orders", ORDERS, 0)
    broker.replica("orders-0", OLD)
    plan = broker.plan()
    assert sorted(kind for kind, _ in lines(plan)) == ["create", "stage"]
    assert broker.apply(plan).is_complete
    assert broker.verdicts() == {f"deleting/{OLD}_0": "STAGED"}
    assert [each.status for each in broker.apply(plan).results] == ["already", "already"]


@pytest.mark.parametrize("disk", [0, 1])
def test_a_replica_is_created_where_the_plan_says(tmp_path: Path, disk: int) -> None:
    broker = PlanBroker(tmp_path, "flat")
    broker.wanted("orders", ORDERS, 0)
    plan = broker.plan()
    (action,) = plan.actions
    (made,) = broker.apply(replace(plan, actions=(replace(action, log_dir=broker.paths[disk]),))).results
    assert (made.status, made.detail) == ("done", f"empty, in {broker.paths[disk]}/orders-0")


def test_no_empty_replica_is_made_of_one_that_was_staged_since_the_plan_was_made(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path, "flat")
    broker.wanted("orders", ORDERS, 0)
    plan = broker.plan()
    assert broker.apply(plan).is_complete
    with LogStore.open(broker.paths, StoreOptions(clock=broker.clock, jobs=0)) as store:
        store.stage([TopicPartition("orders", 0)], "NOT_ASSIGNED", "by hand")
    (result,) = broker.apply(plan).results
    assert (result.status, result.detail) == (
        "skipped",
        f"{broker.paths[0]} has it as deleting/{ORDERS}_0 by now, with its records: make a new plan",
    )
    assert [action.kind for action in broker.plan().actions] == ["restore"]


def test_no_replica_is_made_of_a_topic_that_is_live_under_another_name_since_the_plan_was_made(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path, "flat")
    broker.wanted("orders", ORDERS, 0)
    plan = broker.plan()
    broker.replica("kicks-1", ORDERS)
    (result,) = broker.apply(plan).results
    assert (result.status, result.detail) == ("skipped", "its topic is live here as kicks by now: make a new plan")


def test_replicas_are_staged_where_the_plan_has_them_even_if_another_place_would_do(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516(), topics=("gone",)))
    assert {each.staging for each in plan.log_dirs} == {f"{path}.deleting" for path in messy.paths}
    in_place = replace(plan, log_dirs=tuple(replace(each, staging=each.path) for each in plan.log_dirs))
    outcome = messy.apply(in_place)
    assert [each.status for each in outcome.results] == ["done", "done"]
    assert [each.exists() for each in messy.log_dirs[0].parent.glob("*.deleting")] == []
    assert len(list(messy.log_dirs[0].glob("gone-0.*-stray"))) == 1


def test_applying_twice_changes_nothing(messy: PlanBroker) -> None:
    plan = messy.plan(EVERYTHING)
    messy.apply(plan)
    before = trees(messy)
    again = messy.apply(plan)
    assert ({each.status for each in again.results}, again.journals) == ({"already"}, [])
    assert trees(messy) == before


def test_the_undo_of_every_line_gives_back_the_first_observation(messy: PlanBroker) -> None:
    before = observed(messy)
    plan = messy.plan(EVERYTHING)
    taken_back = [action for action in plan.actions if action.undo is not None]
    kept = [action for action in plan.actions if action.undo is None]
    assert [action.kind for action in kept] == ["restore"], "what the metadata wants is not taken back"
    messy.apply(parse_plan(without(plan, plan.actions.index(kept[0]))))
    assert observed(messy) != before
    for action in taken_back:
        program, *words = shlex.split(action.undo or "")
        if program == "rm":
            Path(words[0]).unlink()
        else:
            result = CliRunner().invoke(logstore, words)
            assert result.exit_code == 0, result.output
    assert observed(messy) == before


def test_a_restore_of_everything_gives_back_the_first_observation(messy: PlanBroker) -> None:
    before = observed(messy)
    plan = messy.plan(PlanChoice(Policy.kip516()))
    only = [number for number, action in enumerate(plan.actions) if action.kind != "stage"]
    messy.apply(parse_plan(without(plan, *only)))
    result = CliRunner().invoke(logstore, ["restore", *messy.paths, "--all"])
    assert (result.exit_code, observed(messy)) == (0, before), result.output


def test_lines_that_were_taken_out_are_not_carried_out(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516()))
    last = len(plan.actions) - 1
    edited = parse_plan(without(plan, 0, last))
    outcome = messy.apply(edited)
    assert len(outcome.results) == last - 1
    assert lines(messy.plan(PlanChoice(Policy.kip516()))) == [lines(plan)[0], lines(plan)[last]]


def test_what_has_changed_since_is_skipped_with_the_reason_and_the_rest_goes_on(messy: PlanBroker) -> None:
    plan = messy.plan(EVERYTHING)
    (messy.log_dirs[0] / "gone-0" / "00000000000000000000.log").write_bytes(b"more")
    metadata = messy.log_dirs[0] / "orders-0" / "partition.metadata"
    metadata.write_bytes(metadata.read_bytes().replace(str(OLD).encode(), str(GONE).encode()))
    (messy.log_dirs[1] / "clicks-77").rename(messy.log_dirs[1] / "clicks-78")
    (messy.log_dirs[0] / "events-1" / "partition.metadata").write_bytes(b"")
    outcome = messy.apply(plan)
    detail = {each.action.name: each.detail for each in outcome.results if each.status == "skipped"}
    assert sorted(detail) == ["clicks-77", "events-1", "gone-0", "orders-0"]
    assert "47 bytes" in detail["gone-0"] and "143 bytes" in detail["gone-0"] and "--changed-data" in detail["gone-0"]
    assert (
        str(GONE) in detail["orders-0"] and "no such replica" in detail["clicks-77"] and "empty" in detail["events-1"]
    )
    assert not outcome.is_complete
    assert sum(each.status == "done" for each in outcome.results) == 3


def test_data_that_changed_may_be_staged_all_the_same(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516(), topics=("gone",)))
    (messy.log_dirs[0] / "gone-0" / "00000000000000000000.log").write_bytes(b"more")
    assert messy.apply(plan, changed_data=True).is_complete


def test_another_directory_of_the_same_name_is_skipped(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516(), topics=("gone",)))
    (messy.log_dirs[0] / "gone-0").rename(messy.log_dirs[0].parent / "kept")
    messy.replica("gone-0", GONE)
    assert ("gone-0", "skipped") in statuses(messy.apply(plan))


def test_a_plan_of_another_machine_is_refused_with_every_reason(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516()))
    properties = messy.log_dirs[1] / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=7"))
    before = trees(messy)
    messy.clock.advance(48 * HOUR_MS)
    with pytest.raises(RefusedError) as caught:
        messy.apply(plan, host="b-host")
    for reason in ("--any-host", "--max-age", "node.id is 7, and 1 was expected", "nothing was changed"):
        assert reason in str(caught.value)
    assert trees(messy) == before


def test_another_host_and_an_old_plan_may_be_allowed(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516()))
    messy.clock.advance(48 * HOUR_MS)
    assert messy.apply(plan, host="b-host", any_host=True, oldest_ms=49 * HOUR_MS).is_complete


def reasons(broker: PlanBroker, plan: Plan, **how: object) -> str:
    """Why a plan is not carried out; nothing is changed."""
    before = trees(broker)
    with pytest.raises(RefusedError) as caught:
        broker.apply(plan, **how)
    assert trees(broker) == before
    return str(caught.value)


def test_a_plan_whose_metadata_has_become_too_old_is_refused(messy: PlanBroker) -> None:
    allowed = frozenset(Gate)
    plan = messy.plan(PlanChoice(Policy(20 * HOUR_MS, None, None, None, allowed)))
    messy.clock.advance(20 * HOUR_MS)
    assert "/metadata, from which it was made, is 21 h old by now, and 20 h is the most (override: --max-age 22h)" in (
        reasons(messy, plan)
    )
    assert messy.apply(plan, oldest_ms=22 * HOUR_MS).is_complete


def test_a_plan_from_metadata_of_any_age_has_a_day_itself(messy: PlanBroker) -> None:
    plan = messy.plan(states=[messy.state(timestamp_ms=1000)])
    messy.clock.advance(23 * HOUR_MS)
    assert messy.apply(plan).is_complete


def test_a_plan_that_is_dated_in_the_future_is_refused(messy: PlanBroker) -> None:
    plan = messy.plan()
    messy.clock.advance(-61_000)
    assert "it is of 2023-11-14 22:13:20 UTC, which is 61 s in the future: set this machine's clock" in (
        reasons(messy, plan)
    )
    assert messy.apply(plan, any_clock=True).is_complete


def test_a_clock_that_is_behind_a_journal_or_the_replicas_is_refused(messy: PlanBroker) -> None:
    plan = messy.plan()
    with LogDir.open(messy.paths[1]) as log_dir:
        later_ms = NOW_MS + HOUR_MS
        assert write_journal(log_dir, RunJournal("a" * 64, "h", "u", later_ms, None, (), ())) is None
    said = reasons(messy, plan)
    assert f"the newest journal in {messy.paths[1]} is of 2023-11-14 23:13:20 UTC" in said and "--any-clock" in said
    first = replace(plan.actions[0], modified_ms=NOW_MS + 3 * HOUR_MS)
    said = reasons(messy, replace(plan, actions=(first, *plan.actions[1:])))
    assert f"{first.log_dir}/{first.name} is of 2023-11-15 01:13:20 UTC, which is 3 h in the future" in said
    assert messy.apply(plan, any_clock=True).is_complete


def test_a_running_broker_keeps_everything_as_it_is(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516()))
    before = trees(messy)
    with LogDir.open(messy.paths[1]), pytest.raises(LogDirInUseError):
        messy.apply(plan)
    assert trees(messy) == before


def test_the_journal_says_who_did_what_when_and_on_which_evidence(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516(), topics=("gone",)))
    outcome = messy.apply(plan)
    assert sorted(outcome.journals) == sorted(
        f"{path}/{run_journal.run_journal_name(NOW_MS, plan.fingerprint)}" for path in messy.paths
    )
    (path, first), (_, second) = read_history(messy.paths).journals
    assert (path, first.host, first.user, first.plan) == (messy.paths[0], "a-host", "a user", plan.fingerprint)
    assert (first.started_ms, first.finished_ms, first.metadata) == (NOW_MS, NOW_MS, plan.metadata)
    (line,) = first.lines
    directory = (messy.log_dirs[0].parent / "d1.deleting" / f"{GONE}_0").stat()
    assert (line["name"], line["status"], line["inode"]) == ("gone-0", "done", directory.st_ino)
    assert (line["bytes"], line["verdict"], "staged as" in line["detail"]) == (143, "UNKNOWN_TOPIC", True)
    assert [line["name"] for line in second.lines] == ["gone-1"]
    # A scan passes over journals, and so does a broker.
    assert not any("logstore_run" in str(row["name"]) for row in observed(messy))


class Crash(BaseException):
    """The power goes."""


class CrashingDisk(Disk):
    """Goes down before the n-th rename."""

    def __init__(self, after: int) -> None:
        self.left = after

    def rename(self, source: int, name: str, target: int, new_name: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crash
        super().rename(source, name, target, new_name)


def test_a_run_that_was_cut_short_anywhere_is_finished_by_applying_again(tmp_path: Path) -> None:
    cuts, whole = 0, False
    for cut in range(100):
        folder = tmp_path / str(cut)
        folder.mkdir()
        broker = PlanBroker(folder)
        broker.wanted("orders", ORDERS, 0)
        broker.wanted("events", EVENTS, 1)
        broker.replica("orders-0", OLD)
        broker.replica("events-1", None)
        broker.replica("gone-0", GONE, disk=1)
        plan = broker.plan()
        try:
            broker.apply(plan, disk=CrashingDisk(cut))
            whole = True
        except Crash:
            cuts += 1
        again = broker.apply(plan)
        assert again.is_complete, (cut, again.results)
        assert sorted(broker.verdicts().values()) == ["MISSING", "STAGED", "STAGED"], cut
        journals = [journal for _, journal in read_history(broker.paths).journals]
        assert all(journal.finished_ms is not None for journal in journals), cut
        assert not [line for journal in journals for line in journal.lines if line["status"] == UNDER_WAY], cut
        if whole:
            break
    assert cuts > 5 and whole


def test_a_journal_of_a_run_that_was_cut_short_has_no_end(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516(), topics=("gone",)))
    with pytest.raises(Crash):
        messy.apply(plan, disk=CrashingDisk(2))
    journals = [journal for _, journal in read_history(messy.paths).journals]
    assert [journal.finished_ms for journal in journals] == [None, None]
    assert {line["status"] for journal in journals for line in journal.lines} == {UNDER_WAY}


def test_applying_again_ends_the_journal_of_a_run_that_was_cut_short_when_all_was_done(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516(), topics=("gone",)))
    assert messy.apply(plan).is_complete
    done = read_history(messy.paths).journals
    for path, journal in done:
        begun = replace(journal, finished_ms=None, lines=tuple({**line, "status": UNDER_WAY} for line in journal.lines))
        with LogDir.open(path) as log_dir:
            assert write_journal(log_dir, begun) is None
    messy.clock.advance(HOUR_MS)
    again = messy.apply(plan)
    assert {each.status for each in again.results} == {RepairStatus.ALREADY}
    assert again.journals == [], "the run itself changed nothing"
    ended = read_history(messy.paths).journals
    assert [(path, journal.started_ms, journal.finished_ms) for path, journal in ended] == [
        (path, NOW_MS, NOW_MS + HOUR_MS) for path in messy.paths
    ]
    assert {line["status"] for _, journal in ended for line in journal.lines} == {"already"}


def test_a_disk_that_fails_fails_its_own_actions_alone(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516()))
    outcome = messy.apply(plan, disk=DiskThat(errno.EIO, {"rename"}, below=messy.log_dirs[1]))
    by_disk = {each.action.log_dir: set() for each in outcome.results}
    for each in outcome.results:
        by_disk[each.action.log_dir].add(each.status.value)
    assert by_disk == {messy.paths[0]: {"done"}, messy.paths[1]: {"failed"}}
    assert outcome.notes == [], "of a disk that is offline nobody expects the end of a journal"


def test_a_log_dir_that_cannot_be_read_refuses_all_that_is_no_repair(messy: PlanBroker) -> None:
    plan = messy.plan(PlanChoice(Policy.kip516()))
    properties = messy.log_dirs[1] / "meta.properties"
    properties.unlink()
    properties.mkdir()
    assert f"{messy.paths[1]} is not the log dir that it was made for: " in reasons(messy, plan)


def test_a_batch_that_is_refused_fails_its_own_lines_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Disk):
        """Refuses to rename one replica."""

        def rename(self, source: int, name: str, target: int, new_name: str) -> None:
            if name == "gone-4":
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            super().rename(source, name, target, new_name)

    for module in (apply, staging):
        monkeypatch.setattr(module, "STAGING_BATCH_SIZE", 2)
    broker = PlanBroker(tmp_path)
    broker.in_order(20)
    for partition in range(9):
        broker.replica(f"gone-{partition}", GONE)
    outcome = broker.apply(broker.plan(), disk=Refusing())
    failed = [each.action.name for each in outcome.results if each.status == "failed"]
    assert (len(outcome.results), len(failed), "gone-4" in failed) == (9, 2, True)
    assert {each.detail.partition("; ")[0] for each in outcome.results if each.status == "failed"} == {
        f"{broker.paths[0]}: gone-4 and 1 more cannot be staged: Permission denied"
    }
    assert sorted(broker.verdicts().values()) == sorted(["STAGED"] * 7 + ["UNKNOWN_TOPIC"] * 2)


def test_a_full_disk_without_room_for_a_journal_is_cleaned_all_the_same(messy: PlanBroker, tmp_path: Path) -> None:
    (tmp_path / "spare").mkdir()

    disk = FullDisk(below=messy.log_dirs[0])
    plan = messy.plan(PlanChoice(Policy.kip516(), topics=("gone",)))
    outcome = messy.apply(plan, disk=disk, fallback_records=str(tmp_path / "spare"))
    assert outcome.is_complete, outcome.results
    assert [path.startswith(messy.paths[1]) for path in outcome.journals] == [True]
    assert outcome.notes[0].startswith(f"{messy.paths[0]}: the journal of this run cannot be written: No space left")
    assert outcome.notes[0].endswith("nothing on the disk tells of it, so keep this report")
    assert "nothing was changed" not in outcome.notes[0]


def test_a_staging_root_without_room_is_helped_by_the_folder_on_another_disk(messy: PlanBroker, tmp_path: Path) -> None:
    (tmp_path / "spare").mkdir()
    plan = messy.plan(PlanChoice(Policy.kip516(), topics=("orders",)))
    disk = FullDisk(below=Path(f"{messy.log_dirs[0]}.deleting"))
    assert statuses(messy.apply(plan, disk=disk)) == [("orders-0", "failed")]
    assert messy.apply(plan, disk=disk, fallback_records=str(tmp_path / "spare")).is_complete


def test_a_log_dir_in_which_nothing_is_done_gets_no_journal(messy: PlanBroker) -> None:
    outcome = messy.apply(messy.plan(PlanChoice(Policy.kip516(), topics=("orders",))))
    assert [os.path.dirname(path) for path in outcome.journals] == messy.paths[:1]
    assert [path for path, _ in read_history(messy.paths).journals] == messy.paths[:1]


def test_a_journal_whose_end_cannot_be_written_is_not_named_as_the_journal(
    messy: PlanBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_begin_only(log_dir: LogDir, journal: RunJournal) -> str | None:
        return write_journal(log_dir, journal) if journal.finished_ms is None else "no room"

    monkeypatch.setattr(apply, "write_journal", write_begin_only)
    outcome = messy.apply(messy.plan())
    assert (outcome.is_complete, outcome.journals) == (True, [])
    assert all("says only that the run began" in note for note in outcome.notes)
    assert [journal.finished_ms for _, journal in read_history(messy.paths).journals] == [None, None]


def test_a_sighting_is_noted_once_by_each_plan_and_the_next_one_stages(messy: PlanBroker) -> None:
    choice = PlanChoice(Policy.kip516(), sightings=2, topics=("gone",), strays=True)

    def planned() -> Plan:
        return messy.plan(choice, memory=read_history(messy.paths).memory())

    first = planned()
    assert {action.kind for action in first.actions} == {"note_sighting"}
    before = observed(messy)
    assert {each.status for each in messy.apply(first).results} == {"done"}
    assert {each.status for each in messy.apply(first).results} == {"already"}
    assert observed(messy) == before
    assert {action.kind for action in planned().actions} == {"note_sighting"}
    messy.clock.advance(HOUR_MS)
    second = planned()
    assert sorted(kind for kind, _ in lines(second)) == ["stage", "stage", "stage_stray"]
    assert messy.apply(second).is_complete


def test_several_brokers_are_worked_on_one_after_the_other(tmp_path: Path) -> None:
    broker = PlanBroker(tmp_path)
    properties = broker.log_dirs[1] / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=2"))
    broker.wanted("orders", ORDERS, 0)
    for disk in range(2):
        broker.replica("gone-0", GONE, disk=disk)
    outcome = broker.apply(broker.plan())
    assert statuses(outcome) == [("gone-0", "done"), ("gone-0", "done")]
