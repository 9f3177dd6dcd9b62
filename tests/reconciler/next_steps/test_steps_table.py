"""The decision table: every step that it can make is one that the command line takes, and none is lost or repeated."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable
from dataclasses import replace

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.next_steps import (
    BLANKS,
    NAMED_AT_ONCE,
    REFETCH,
    REPAIRED,
    Call,
    Command,
    FoundVerdict,
    MetadataTrust,
    Obstacle,
    Situation,
    Step,
    ToolCommand,
    UncertainReplica,
    next_steps,
    step_of_undecided,
    worth_freeing,
)
from reconciler.preflight.rules import RULES
from reconciler.verdicts import FLEET_ADVICE, Verdict

Parse = Callable[[Command], click.Context]
D1, D2, SRC = "/disks/1/kafka", "/disks/2/kafka", "/meta data/__cluster_metadata-0"
CALL = Call((D1, D2), (SRC,), "/spare")

paths = st.sampled_from([D1, D2, "/a b/'c'", "-odd", "./x", "/\x1b[2J"])
names = st.sampled_from(["orders-0", "a dir", "lost+found", "-x", "../1.deleting/x_0"])
calls = st.builds(
    Call,
    st.lists(paths, min_size=1, max_size=3, unique=True).map(tuple),
    st.lists(st.sampled_from([SRC, "kafka:h:9092?config=/c", "zk:h:2181/k"]), max_size=2).map(tuple),
    st.none() | st.just("/spare"),
    st.none() | st.just("3.7.1"),
    st.none() | st.sampled_from(["kraft", "zookeeper"]),
    st.none() | paths,
)
found = st.builds(
    FoundVerdict,
    st.integers(1, 9),
    st.none() | paths,
    st.none() | names,
    st.none() | st.just("orders"),
    st.none() | st.integers(0, 3),
    st.none() | st.just("clicks"),
    st.integers(0, 1),
    st.integers(0, 2),
)
obstacles = st.builds(
    Obstacle, st.sampled_from(list(RULES)), st.just("what is wrong"), st.none() | paths, st.none() | names
)
uncertain = st.builds(
    UncertainReplica,
    paths,
    names,
    st.none() | st.sampled_from(["orders", "-odd"]),
    st.just("no topic ID is certain"),
    *[st.booleans()] * 5,
)
situations = st.builds(
    Situation,
    calls,
    st.dictionaries(st.sampled_from(list(Verdict)), found, max_size=5),
    st.dictionaries(st.sampled_from(list(FLEET_ADVICE)), st.just("broker 2"), max_size=2),
    st.sampled_from(list(MetadataTrust)),
    st.sampled_from(["", "it is old"]),
    st.lists(obstacles, max_size=3).map(tuple),
    st.lists(paths, max_size=2).map(tuple),
    st.lists(paths, max_size=2).map(tuple),
    st.integers(0, 2),
    st.integers(0, 2),
    st.none() | st.just("2030-01-01 00:00:00 UTC"),
    st.integers(0, 2),
    st.sampled_from([(), (("/disks/1/kafka/a b-0", "/disks/2/kafka/a b-0"),)]),
    st.booleans(),
    st.lists(paths, max_size=2).map(tuple),
    st.none() | st.integers(0, 2),
    st.lists(uncertain, max_size=3).map(tuple),
    st.lists(names, max_size=2).map(tuple),
    st.lists(paths, max_size=2).map(tuple),
    st.booleans(),
    st.lists(obstacles, max_size=2).map(tuple),
)


@given(situations)
def test_the_command_line_takes_every_step_that_can_be_made(parse: Parse, situation: Situation) -> None:
    for step in next_steps(situation):
        if isinstance(step.command, Command):
            parse(step.command)


@given(situations)
def test_no_step_comes_twice_and_each_says_why(situation: Situation) -> None:
    steps = next_steps(situation)
    commands = [step.text for step in steps if step.text is not None and not step.later]
    assert len(set(commands)) == len(commands)
    assert all(step.why and not step.why.endswith(".") for step in steps)


@given(situations)
def test_no_step_drops_a_log_dir_the_metadata_what_the_broker_is_or_the_folder_of_fallback_records(
    parse: Parse, situation: Situation
) -> None:
    call = situation.call
    for step in next_steps(situation):
        if not isinstance(step.command, Command):
            continue
        values = parse(step.command).params
        if values.get("paths") and values.get("scheme") is None:
            given = {path.removeprefix("./") for path in values["paths"]}
            assert given - set(BLANKS) == {path.removeprefix("./") for path in call.log_dirs}
        if step.command.verb == "purge":
            assert values["specs"] == tuple(source for source in call.metadata if not source.startswith("/"))
        elif values.get("paths") and "specs" in values and call.metadata:
            assert values["specs"] in (call.metadata, ("SOURCE",))
        if step.command.verb not in ("scan", "convert"):
            assert call.fallback in (None, values["fallback_folder"])
            assert values.get("kafka", values.get("release")) in (call.release, "RELEASE")
            assert values["mode"] == call.mode
            assert call.metadata_log_dir is None or values["metadata_log_dir"] is not None


def test_a_command_is_quoted_so_that_a_shell_gives_its_words_back() -> None:
    command = CALL.plan(strays=True)
    assert tuple(shlex.split(command.text)) == command.argv
    assert command.text.startswith("logstore plan /disks/1/kafka /disks/2/kafka --metadata '/meta data/")
    assert ToolCommand("ls", ("-la", "/a b")).text == "ls -la '/a b'"


def test_what_is_not_known_is_a_blank_and_is_named() -> None:
    assert Call().audit(source="SOURCE").blanks == ("LOG_DIR", "SOURCE")
    assert CALL.kafka_tool("kafka-topics.sh", "--list").blanks == ("HOST:PORT",)
    live = Call((D1,), ("kafka:broker-1:9092?config=/etc/client.conf",))
    assert live.kafka_tool("kafka-topics.sh", "--list").text == (
        "kafka-topics.sh --bootstrap-server broker-1:9092 --command-config /etc/client.conf --list"
    )
    assert not live.plan().blanks


def test_where_nothing_tells_the_better_copy_the_operator_names_it() -> None:
    copies = (f"{D1}/orders-0", f"{D2}/orders-0")
    known = Situation(CALL, {Verdict.DUPLICATE: FoundVerdict(2)}, undecided=(copies,))
    kept, applied, *_ = next_steps(known)
    assert kept == step_of_undecided([copies], CALL.repair(kept=[copies[0]]))
    assert f"{copies[0]} or {copies[1]}" in kept.why
    assert f"--keep {D1}/orders-0" in str(kept.text)
    assert applied.command == CALL.apply_repair()


def test_nothing_found_asks_for_nothing() -> None:
    assert next_steps(Situation(CALL)) == ()
    assert next_steps(Situation(CALL, {Verdict.OK: FoundVerdict(9), Verdict.IN_FLIGHT: FoundVerdict(2)})) == ()


def commands(situation: Situation) -> list[str]:
    return [step.text or step.why for step in next_steps(situation)]


def words(situation: Situation) -> list[str]:
    """Program or verb of each step; of one without a command, the first words of its sentence."""
    found = []
    for step in next_steps(situation):
        match step.command:
            case ToolCommand(program):
                found.append(program)
            case Command(verb):
                found.append(verb)
            case None:
                found.append(" ".join(step.why.split()[:3]).rstrip(";"))
    return found


def test_a_stale_replica_is_planned_applied_and_only_then_the_broker_starts() -> None:
    situation = Situation(CALL, {Verdict.STALE_ID: FoundVerdict(3, D1, "orders-0", "orders", 0)})
    assert commands(situation) == [
        f"logstore plan {D1} {D2} --metadata '{SRC}' --spare-records /spare -o plan.json",
        "logstore apply plan.json --spare-records /spare",
        f"logstore preflight {D1} {D2} --metadata '{SRC}' --spare-records /spare",
        "start the broker; it makes what is missing anew, and fetches it from the leaders",
        f"logstore purge {D1} {D2} --spare-records /spare",
    ]
    assert [step.later for step in next_steps(situation)] == [False] * 4 + [True]


def test_a_repair_comes_before_a_plan_and_a_running_broker_is_stopped_before_both() -> None:
    found = {Verdict.DUPLICATE: FoundVerdict(2), Verdict.STRAY: FoundVerdict(1)}
    situation = Situation(CALL, found, in_use=(D1,))
    assert words(situation) == [
        *("stop the broker", "repair", "repair", "plan", "apply", "preflight", "start the broker", "purge")
    ]
    assert "--strays" in commands(situation)[3]


def test_a_repair_of_topic_ids_waits_until_the_stale_ones_beside_them_are_staged() -> None:
    found = {Verdict.DAMAGED: FoundVerdict(1), Verdict.STALE_ID: FoundVerdict(1)}
    assert words(Situation(CALL, found))[:4] == ["plan", "apply", "repair", "repair"]


@pytest.mark.parametrize("trust", [trust for trust in MetadataTrust if trust is not MetadataTrust.GOOD])
def test_metadata_worth_trusting_comes_first(trust: MetadataTrust) -> None:
    situation = Situation(CALL, {Verdict.STALE_ID: FoundVerdict()}, trust=trust, trust_why="it ends when it stopped")
    first, *rest = next_steps(situation)
    assert first.text == f"logstore doctor {D1} {D2} --metadata SOURCE --spare-records /spare"
    assert first.why.startswith("it ends when it stopped: ")
    assert bool(rest) == (trust is not MetadataTrust.NONE)


@pytest.mark.parametrize("trust", [each for each in MetadataTrust if each is not MetadataTrust.GOOD])
def test_no_controller_is_named_to_who_runs_zookeeper(trust: MetadataTrust) -> None:
    kraft, zookeeper = (next_steps(Situation(CALL, trust=trust, on_zookeeper=each))[0].why for each in (False, True))
    assert "a running controller" in kraft and "zk:" not in kraft
    assert "ZooKeeper as zk:HOST:PORT" in zookeeper and "controller" not in zookeeper


def test_nothing_is_said_beyond_a_disk_that_is_not_there_or_is_a_copy() -> None:
    stale = {Verdict.STALE_ID: FoundVerdict(3)}
    assert words(Situation(CALL, stale | {Verdict.ABSENT: FoundVerdict(1, D2, ".")})) == ["findmnt"]
    assert words(Situation(CALL, stale, {"DUPLICATE_DIRECTORY_ID": "x"})) == ["grep"]
    assert words(Situation(CALL, stale, {"LOG_DIR_NOT_SEEN": "x"}))[:2] == ["doctor", "plan"]


def test_what_is_live_twice_and_no_repair_takes_apart_ends_the_list_before_any_start() -> None:
    twice = Situation(
        CALL, {Verdict.DUPLICATE: FoundVerdict(84)}, repairable=0, live_twice="one is a copy", copied=True
    )
    assert words(twice) == ["grep"] and next_steps(twice)[0].why == "no broker starts so: one is a copy"
    assert words(replace(twice, copied=False)) == ["repair"]


def test_an_empty_log_dir_that_is_truly_a_new_disk_is_named_to_the_broker_and_looked_at_again() -> None:
    empty = {Verdict.ABSENT: FoundVerdict(1, D2, ".")}
    look, named, again = next_steps(Situation(CALL, empty, blank=(D2,), cluster_id="c"))
    assert look.text == "findmnt --real" and look.why.startswith(D2)
    assert named.text == "kafka-storage.sh format --ignore-formatted --cluster-id c --config SERVER_PROPERTIES"
    assert named.why.startswith("only if a new disk is mounted there")
    assert again.command == CALL.doctor()
    zookeeper = Situation(CALL, empty, on_zookeeper=True, blank=(D2,), unnamed_disks=(D1,))
    assert commands(zookeeper)[1:] == [f"cp -n {D1}/meta.properties {D2}/meta.properties", CALL.doctor().text]
    assert words(replace(zookeeper, unnamed_disks=())) == ["findmnt"], "each disk has a directory.id of its own"
    assert words(Situation(CALL, empty, cluster_id="c")) == ["findmnt"], "something lies there"


def test_a_disk_that_this_user_may_not_read_asks_for_another_user_and_for_no_mount() -> None:
    found = {Verdict.ABSENT: FoundVerdict(1, D1, "."), Verdict.STALE_ID: FoundVerdict(1, D2, "orders-0")}
    (step,) = next_steps(Situation(CALL, found, unreadable=(D1,)))
    assert step.command == CALL.doctor()
    assert step.why.startswith(f"this user may not read {D1}") and "broker's own user" in step.why


def test_of_many_places_that_this_user_may_not_read_only_some_are_named() -> None:
    (step,) = next_steps(Situation(CALL, unreadable=tuple(f"{D1}/orders-{number}" for number in range(8))))
    assert f"{D1}/orders-4 and 3 places more, so nothing is known" in step.why
    assert f"{D1}/orders-5" not in step.why


def test_a_disk_in_the_place_of_a_registered_one_is_looked_at_and_not_asked_for_again() -> None:
    fleet = {"LOG_DIR_NOT_REGISTERED": "/disk/2", "LOG_DIR_NOT_SEEN": "x"}
    first, *rest = next_steps(Situation(CALL, {Verdict.STALE_ID: FoundVerdict(1)}, fleet))
    assert first.text == "findmnt --target /disk/2"
    assert "never registered /disk/2, and x" in first.why
    assert [step.command.verb for step in rest if isinstance(step.command, Command)][:2] == ["plan", "apply"]


def test_what_was_on_a_disk_that_is_now_a_new_one_is_made_anew_by_a_start_unless_it_was_the_only_copy() -> None:
    fleet = {"LOG_DIR_NOT_REGISTERED": "/disk/2", "LOG_DIR_NOT_SEEN": "x"}
    look, start = next_steps(Situation(CALL, {Verdict.ABSENT: FoundVerdict(5)}, fleet))
    assert look.text == "findmnt --target /disk/2" and "with 5 replicas that no disk here has" in look.why
    assert start.command is None and start.why.startswith("start the broker; it makes what is missing anew")
    assert "tells the controllers" in start.why
    look, lost = next_steps(Situation(CALL, {Verdict.ABSENT: FoundVerdict(5, sole=2)}, fleet))
    assert lost.command == CALL.audit(verdict="ABSENT")
    assert "2 replicas of 5 on the disk that is not here had the only copy in sync" in lost.why
    elsewhere = Situation(CALL, {Verdict.ABSENT: FoundVerdict(5)}, {"LOG_DIR_NOT_SEEN": "x"})
    assert words(elsewhere) == ["doctor"], "its log dir was not given"


def test_beside_metadata_of_old_nothing_is_announced_where_nothing_follows() -> None:
    old = Situation(CALL, trust=MetadataTrust.OLD, trust_why="it is 3 d old")
    (alone,) = next_steps(old)
    first, *rest = next_steps(replace(old, found={Verdict.STALE_ID: FoundVerdict(1)}))
    assert alone.why.endswith("; without one, no more can be said")
    assert rest and first.why.endswith("; without one, what follows is all that can be said")
    assert alone.command == first.command == CALL.doctor(source="SOURCE")


def test_of_two_places_for_the_metadata_log_the_broker_is_asked_about_the_one_that_is_named() -> None:
    left = Obstacle("metadata_log_elsewhere", "it lies here", D2, "__cluster_metadata-0")
    steps = next_steps(Situation(CALL, obstacles=(left,)))
    assert [step.command for step in steps] == [CALL.preflight(metadata_log_dir=D2), None]
    assert steps[-1].why == "start the broker, once the answer is that it starts"


def test_a_metadata_log_left_on_another_disk_is_moved_out_and_the_disk_stays() -> None:
    left = Obstacle("metadata_log_elsewhere", "it lies here", D2, "__cluster_metadata-0")
    twice = {"DUPLICATE_NODE_ID": "broker 2"}
    assert commands(Situation(CALL, {}, twice, obstacles=(left,))) == [
        f"mv -nT {D2}/__cluster_metadata-0 {D2}.__cluster_metadata-0",
        CALL.doctor().text,
    ]
    stop, *_ = next_steps(Situation(CALL, {}, twice, obstacles=(left,), in_use=(D1,)))
    assert stop.why.startswith("stop the broker")
    itself = f"{D2}/__cluster_metadata-0"
    compared = replace(CALL, metadata=(f"kraft:{itself}/0-0.checkpoint", itself, SRC))
    _, again = next_steps(Situation(compared, {}, twice, obstacles=(left,)))
    moved = f"kraft:{D2}.__cluster_metadata-0"
    assert again.command == replace(CALL, metadata=(f"{moved}/0-0.checkpoint", moved, SRC)).doctor()


@pytest.mark.parametrize(
    ("fleet", "places"), [({"DUPLICATE_DIRECTORY_ID": "broker 2"}, (D2,)), ({}, (D1, D2))], ids=["a copy", "both"]
)
def test_a_metadata_log_that_may_be_the_one_in_use_or_another_nodes_is_left_alone(
    fleet: dict[str, str], places: tuple[str, ...]
) -> None:
    left = tuple(Obstacle("metadata_log_elsewhere", "it lies here", path, "__cluster_metadata-0") for path in places)
    (whose,) = commands(Situation(CALL, {}, {"DUPLICATE_NODE_ID": "broker 2", **fleet}, obstacles=left))
    assert whose.startswith("grep -H = ")


def test_a_full_disk_is_given_a_folder_for_records_that_the_commands_after_it_name() -> None:
    situation = Situation(Call((D1,), (SRC,)), {Verdict.STALE_ID: FoundVerdict()}, full=(D1,))
    made, planned, applied, looked = commands(situation)
    assert made == "mkdir -p /var/lib/logstore/spare-records"
    assert planned.startswith("logstore plan ")
    assert applied == "logstore apply plan.json --spare-records /var/lib/logstore/spare-records"
    assert looked == f"logstore doctor {D1} --metadata '{SRC}' --spare-records /var/lib/logstore/spare-records"
    assert next_steps(situation)[-1].why.startswith("what is staged frees no room")
    without = replace(situation, trust=MetadataTrust.OLD)
    assert [command for command in commands(without) if "--spare-records" in command] == [planned, applied, looked]


def test_room_is_made_on_a_full_disk_before_anything_is_written_and_before_the_start() -> None:
    waiting = Situation(CALL, {Verdict.STAGED: FoundVerdict(7)}, full=(D1,), staged=7, freed=("../1.deleting/x_0", "y"))
    purge = f"logstore purge {D1} {D2} --location ../1.deleting/x_0 --location y --before-due --spare-records /spare"
    assert commands(waiting)[0] == purge
    assert "for ever the 2 largest" in next_steps(waiting)[0].why
    assert words(waiting) == ["purge", "preflight", "start the broker", "purge"]
    due = replace(waiting, due=1)
    assert commands(due)[0] == f"logstore purge {D1} {D2} --spare-records /spare"
    entries = replace(waiting, found={Verdict.CHECKPOINT_ENTRY: FoundVerdict()})
    assert words(entries) == words(waiting), "a start writes checkpoints anew"
    damaged = replace(waiting, found={Verdict.DAMAGED: FoundVerdict()})
    assert words(damaged) == ["purge", "doctor"]
    assert words(replace(waiting, in_use=(D1,)))[:2] == ["stop the broker", "purge"]
    unwanted = Situation(CALL, damaged.found | {Verdict.NOT_ASSIGNED: FoundVerdict()}, full=(D1,))
    assert words(unwanted) == ["mkdir", "plan", "apply", "doctor"], (
        "a repair finds no room either, until that is deleted"
    )
    own_copy = replace(waiting, trust=MetadataTrust.OWN_COPY)
    assert not any("--before-due" in command for command in commands(own_copy))


def test_only_what_gives_room_worth_having_is_deleted_before_its_time_and_it_is_said_how_much() -> None:
    mega = 1 << 20
    assert worth_freeing({"a": 3 * mega, "b": 9 * mega, "c": 100}, mega) == ("b", "a")
    assert worth_freeing({"b": 9 * mega, "c": 100}, mega, ["c"]) == ("b", "c"), "it has to go in any case"
    assert worth_freeing({"a": 300_000, "b": 400_000}, mega) == worth_freeing({}, mega) == ()
    assert worth_freeing({"a": 600_000, "b": 600_000}, mega) == ("a", "b")
    many = {str(number): mega for number in range(NAMED_AT_ONCE + 1)}
    assert len(worth_freeing(many, mega)) == NAMED_AT_ONCE
    waiting = Situation(CALL, full=(D1,), staged=7, freed=("y",), freed_bytes=5_200_000)
    assert "which gives 5.2 MB back" in next_steps(waiting)[0].why


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({}, "nothing is staged there"),
        ({"staged": 7}, "what is staged there gives too little back"),
        ({"due": 1, "trust": MetadataTrust.OLD}, "what is staged there may still be wanted"),
    ],
)
def test_a_full_disk_that_nothing_here_clears_leads_to_what_a_person_can_do(known: dict[str, object], why: str) -> None:
    live = Call((D1, D2), ("kafka:broker-1:9092",))
    situation = replace(Situation(live, full=(D1,)), **known)  # type: ignore[arg-type]
    texts = commands(situation)
    assert f"du -xh --max-depth=1 -- {D1}" in texts
    assert "kafka-log-dirs.sh --bootstrap-server broker-1:9092 --describe" in texts
    steps = {step.text: step for step in next_steps(situation)}
    assert why in steps[f"du -xh --max-depth=1 -- {D1}"].why
    assert steps["kafka-log-dirs.sh --bootstrap-server broker-1:9092 --describe"].later
    damaged = replace(situation, found={Verdict.DAMAGED: FoundVerdict()})
    assert texts[0] == commands(damaged)[0] or known.get("trust"), "room comes before what needs it"
    freed = replace(situation, freed=("y",), trust=MetadataTrust.GOOD)
    assert not any(text.startswith("du ") for text in commands(freed))


def test_a_release_that_nothing_tells_is_asked_for_where_strays_lie_or_come_to_lie() -> None:
    strays = Situation(CALL, {Verdict.STRAY: FoundVerdict()}, on_zookeeper=True)
    staged = Situation(CALL, {Verdict.STALE_ID: FoundVerdict()}, on_zookeeper=True, in_place=(D1,))
    asked = f"logstore doctor {D1} {D2} --metadata '{SRC}' --kafka RELEASE --spare-records /spare"
    assert [commands(each)[0] for each in (strays, staged)] == [asked, asked]
    repaired = replace(strays, found=strays.found | {Verdict.LEFTOVER: FoundVerdict()})
    assert words(repaired) == ["repair", "repair", "doctor"], "what repair prints names no release"
    named = replace(CALL, release="3.9")
    for each in (replace(strays, call=named), replace(strays, on_zookeeper=False), replace(staged, in_place=())):
        assert words(each)[0] == "plan"


def test_a_stray_that_the_release_does_not_know_goes_out_of_the_log_dir_and_gets_no_due_time() -> None:
    stray = Obstacle("unknown_to_release", "the suffix is not known", D1, "gone-1.x-stray")
    known = Situation(
        CALL, {Verdict.STRAY: FoundVerdict(replaced=1)}, obstacles=(stray,), knows_strays=False, in_the_way=(stray,)
    )
    moved, asked, started = next_steps(known)
    assert moved.text == f"mv -nT {D1}/gone-1.x-stray {D1}.gone-1.x-stray"
    assert (
        moved.why == "no broker of this release starts beside it, the suffix is not known: move it out of the log dir"
    )
    assert (asked.command, started.command) == (CALL.preflight(), None)
    wanted = replace(known, found={Verdict.STRAY: FoundVerdict(wanted=1)}, in_the_way=())
    assert next_steps(wanted)[0].command == CALL.plan()
    in_place = replace(known, found={Verdict.STALE_ID: FoundVerdict()}, in_the_way=(), in_place=(D1,))
    assert words(in_place) == ["plan", "apply", "doctor"]


def test_what_was_renamed_by_hand_gets_its_name_back_and_a_foreign_directory_goes_out() -> None:
    renamed = FoundVerdict(1, D1, "kicks-0", "kicks", 0, belongs_to="clicks", directories=1)
    assert commands(Situation(CALL, {Verdict.RENAMED: renamed}))[0] == f"mv -nT {D1}/kicks-0 {D1}/clicks-0"
    missing = {Verdict.RENAMED: renamed, Verdict.MISSING: FoundVerdict(1)}
    assert next_steps(Situation(CALL, missing))[-1].why == "start the broker"
    missing[Verdict.MISSING] = FoundVerdict(2)
    assert "makes what is missing anew" in next_steps(Situation(CALL, missing))[-1].why
    foreign = FoundVerdict(1, D1, "backup of orders", directories=1)
    assert commands(Situation(CALL, {Verdict.FOREIGN: foreign}))[0] == (
        f"mv -nT '{D1}/backup of orders' '{D1}.backup of orders'"
    )
    assert words(Situation(CALL, {Verdict.FOREIGN: FoundVerdict(1, D1, "notes.txt")})) == []
    lost_and_found = {Verdict.FOREIGN: FoundVerdict(1, D1, "lost+found", directories=1)}
    assert words(Situation(CALL, lost_and_found, mount_points=(D1,)))[0] == "ls"
    assert commands(Situation(CALL, lost_and_found, mount_points=(D2,)))[0] == f"mv -nT {D1}/lost+found {D1}.lost+found"


def test_a_move_to_another_file_system_is_said_to_copy_and_one_on_the_same_is_not() -> None:
    foreign = {Verdict.FOREIGN: FoundVerdict(1, D1, "backup", directories=1)}
    abandoned = {Verdict.FUTURE_ABANDONED: FoundVerdict(1, D1, f"orders-0.{'0' * 32}-future", "orders", 0)}
    damaged = UncertainReplica(D1, f"orders-0.{'0' * 32}-stray", "orders", "damaged", is_live=False)
    stray = Obstacle("unknown_to_release", "the suffix is not known", D1, "gone-1.x-stray")
    second_log = Obstacle("metadata_log_elsewhere", "two metadata logs", D1, "__cluster_metadata-0")
    for known in (
        Situation(CALL, foreign),
        Situation(CALL, abandoned),
        Situation(CALL, uncertain=(damaged,)),
        Situation(CALL, obstacles=(stray,), in_the_way=(stray,)),
        Situation(CALL, obstacles=(second_log,), fleet={"DUPLICATE_NODE_ID": "broker 3"}),
    ):
        renames, copies = (next_steps(replace(known, moved_by_copy=each))[0] for each in ((D2,), (D1,)))
        assert renames.command == copies.command and "mv -nT" in (copies.text or "")
        assert renames.why.endswith("out of the log dir")
        assert f"{posixpath.dirname(D1)} is on another file system, so mv copies it there first" in copies.why


def test_a_directory_that_was_the_only_copy_of_a_missing_replica_gets_its_name_again_instead_of_going_out() -> None:
    copy = FoundVerdict(2, D1, "orders-0.bak", None, 0, belongs_to="orders", directories=2)
    found = {
        Verdict.FOREIGN: replace(copy, others=(FoundVerdict(1, D1, "notes"),)),
        Verdict.MISSING: FoundVerdict(1, topic="orders", partition=0, sole=1),
    }
    situation = Situation(CALL, found)
    assert commands(situation)[:2] == [f"mv -nT {D1}/orders-0.bak {D1}/orders-0", f"mv -nT {D1}/notes {D1}.notes"]
    assert next_steps(situation)[-1].why == "start the broker"
    entry = {Verdict.CHECKPOINT_ENTRY: FoundVerdict(1, D1, "recovery-point-offset-checkpoint", "orders", 0)}
    assert "repair" not in words(replace(situation, found=found | entry, repairable=1))
    found[Verdict.FOREIGN] = replace(copy, belongs_to=None)
    assert "repair" in words(replace(situation, found=found | entry, repairable=1))
    assert "had the only copy in sync" in next_steps(Situation(CALL, found))[-1].why


def test_a_staging_directory_inside_goes_beside_the_log_dir_and_out_of_one_that_is_there_already() -> None:
    inside = Obstacle("staging_inside", "there is a staging directory inside", D1, "deleting")
    foreign = FoundVerdict(1, D1, "deleting", directories=1)
    situation = Situation(CALL, {Verdict.FOREIGN: foreign}, obstacles=(inside,))
    assert commands(situation)[0] == f"mv -nT {D1}/deleting {D1}.deleting"
    assert words(situation) == ["mv", "preflight", "start the broker"]
    taken = replace(situation, beside=frozenset({f"{D1}.deleting", f"{D1}.deleting.2"}))
    assert commands(taken)[0] == f"mv -nT {D1}/deleting {D1}.deleting.3"
    # Somebody may have moved it into the staging directory.
    (step,) = next_steps(Situation(CALL, {Verdict.FOREIGN: replace(foreign, name="../kafka.deleting/deleting")}))[:1]
    assert (step.text, "no broker starts" in step.why) == (
        f"mv -nT {D1}.deleting/deleting {D1}.deleting.deleting",
        False,
    )
    # A log dir that is ours has it where it belongs, and nothing is foreign.
    assert words(Situation(CALL, obstacles=(inside,)))[0] == "staged"


@pytest.mark.parametrize("verdict", [Verdict.FOREIGN, Verdict.FUTURE_ABANDONED, Verdict.RENAMED])
def test_several_that_are_moved_by_hand_are_each_named_and_of_the_rest_the_number_is_said(verdict: Verdict) -> None:
    named = range(NAMED_AT_ONCE)
    owner = "orders" if verdict is Verdict.RENAMED else None
    each = [FoundVerdict(1, D1, f"a b-{n}", "a b", n, belongs_to=owner, directories=1) for n in named]
    several = replace(each[0], number=7, directories=7, others=tuple(each[1:]))
    *moves, look = next_steps(Situation(CALL, {verdict: several}))[:6]
    assert [step.command.argv[:3] for step in moves if step.command is not None] == [
        ("mv", "-nT", f"{D1}/a b-{n}") for n in named
    ]
    assert len({step.command.argv[3] for step in moves if step.command is not None}) == 5
    assert (look.why, look.command) == ("2 more are like that: look again, and doctor names the next", CALL.doctor())
    five = replace(several, number=5, directories=5)
    assert CALL.doctor() not in [step.command for step in next_steps(Situation(CALL, {verdict: five}))]


def test_checkpoint_entries_that_a_rename_makes_whole_are_not_repaired() -> None:
    renamed = FoundVerdict(1, D1, "kicks-0", "kicks", 0, belongs_to="clicks", directories=1)
    entry = FoundVerdict(1, D1, "recovery-point-offset-checkpoint", "clicks", 0)
    two = replace(entry, number=2, others=(entry,))
    assert words(Situation(CALL, {Verdict.RENAMED: renamed, Verdict.CHECKPOINT_ENTRY: two}))[:2] == ["mv", "preflight"]
    for other in (replace(entry, partition=1), replace(entry, number=2)):
        found = {Verdict.RENAMED: renamed, Verdict.CHECKPOINT_ENTRY: other}
        assert words(Situation(CALL, found))[:3] == ["mv", "repair", "repair"]


def order(situation: Situation) -> list[str]:
    """Verb of each step, or the first word of what is done by hand."""
    return [
        step.command.verb if isinstance(step.command, Command) else step.why.split()[0]
        for step in next_steps(situation)
        if not step.later
    ]


def test_a_broker_that_writes_missing_topic_ids_by_itself_is_not_stopped_for_them() -> None:
    found = {Verdict.NO_ID: FoundVerdict(2, D1, "orders-0")}
    (later,) = next_steps(Situation(CALL, found, in_use=(D1,), on_zookeeper=True))
    assert (later.later, later.text) == (True, CALL.repair().text)
    assert later.why.startswith("the broker writes the 2 missing topic IDs by itself")
    stands = next_steps(Situation(CALL, found, on_zookeeper=True))
    kraft = next_steps(Situation(CALL, found, in_use=(D1,)))
    more = next_steps(Situation(CALL, found | {Verdict.LEFTOVER: FoundVerdict()}, in_use=(D1,), on_zookeeper=True))
    assert not any(step.later for steps in (stands, kraft, more) for step in steps)
    assert all(CALL.repair() in [step.command for step in steps] for steps in (stands, kraft, more))


def doubtful(name: str, *, adopt: bool = False, go: bool = False, waits: bool = False) -> UncertainReplica:
    return UncertainReplica(D1, name, "orders", "no topic ID is certain", can_be_adopted=adopt, can_go=go, waits=waits)


def test_what_repair_leaves_alone_is_not_repaired_again_but_fetched_anew_from_where_it_is_in_sync() -> None:
    left = (doubtful("orders-0", adopt=True, go=True),)
    known = Situation(CALL, {Verdict.DAMAGED: FoundVerdict()}, repairable=0, uncertain=left)
    planned, applied, asked, started, purged = next_steps(known)
    assert planned.command == CALL.plan(refetched=["orders"])
    assert planned.why.endswith(f"read the plan: {D1}/orders-0, no topic ID is certain")
    assert f"{REFETCH} orders" in str(planned.text)
    assert (applied.command, asked.command) == (CALL.apply(), CALL.preflight())
    assert "fetches it from the leaders" in started.why and purged.later
    assert order(Situation(CALL, known.found, repairable=1, uncertain=left))[:3] == ["repair", "repair", "plan"]


def test_what_a_repair_would_give_an_id_that_nothing_shows_to_be_its_own_is_staged_before_the_repair() -> None:
    left = (UncertainReplica(D1, "orders-0", "orders", "nothing shows it", can_go=True, is_repaired=True),)
    found = {Verdict.NO_ID: FoundVerdict()}
    beside_zookeeper = Situation(CALL, found, repairable=1, uncertain=left, on_zookeeper=True)
    assert "--refetch" not in str([step.text for step in next_steps(beside_zookeeper)])
    alone, more = (Situation(CALL, found, repairable=number, uncertain=left) for number in (1, 2))
    assert order(alone) == ["plan", "apply", "preflight", "start"]
    assert order(more) == ["plan", "apply", "repair", "repair", "preflight", "start"]
    assert next_steps(alone)[0].command == CALL.plan(refetched=["orders"])


def test_what_may_be_the_only_copy_is_never_staged_and_the_sentence_says_what_is_at_stake() -> None:
    left = (doubtful("orders-0", adopt=True),)
    adopted, applied, *_ = next_steps(Situation(CALL, {Verdict.NO_ID: FoundVerdict()}, repairable=0, uncertain=left))
    assert adopted.command == CALL.repair(adopted=["orders"])
    assert "may be the only copy" in adopted.why and "Only if its data is the present topic's" in adopted.why
    assert applied.command == CALL.apply_repair("adoption.json")


def test_a_repair_and_an_adoption_of_one_round_are_both_applied() -> None:
    found = {Verdict.DAMAGED: FoundVerdict(), Verdict.LEFTOVER: FoundVerdict()}
    situation = Situation(CALL, found, repairable=1, uncertain=(doubtful("orders-0", adopt=True),))
    steps = [step.command.argv for step in next_steps(situation) if step.command is not None]
    written = [argv[-1] for argv in steps if argv[1] == "repair" and "-o" in argv]
    applied = [argv[3] for argv in steps if argv[1:3] == ("repair", "--apply")]
    assert written == applied == ["repair.json", "adoption.json"]


@pytest.mark.parametrize("verdict", REPAIRED)
def test_a_repair_that_would_do_nothing_is_not_printed(verdict: Verdict) -> None:
    steps = next_steps(Situation(CALL, {verdict: FoundVerdict()}, repairable=0))
    assert not any(isinstance(step.command, Command) and step.command.verb == "repair" for step in steps)


def test_where_neither_can_be_done_the_replica_is_explained() -> None:
    left = (doubtful("orders-0"),)
    steps = next_steps(Situation(CALL, {Verdict.DAMAGED: FoundVerdict()}, repairable=0, uncertain=left))
    assert steps[0].command == CALL.explain(f"{D1}/orders-0")
    assert not any(isinstance(step.command, Command) and step.command.verb in ("repair", "plan") for step in steps)


def test_a_damaged_replica_that_is_not_live_is_moved_out_of_the_log_dir() -> None:
    name = f"orders-0.{'0' * 32}-future"
    left = (UncertainReplica(D1, name, "orders", "the file is empty", is_live=False),)
    steps = next_steps(Situation(CALL, {Verdict.DAMAGED: FoundVerdict()}, repairable=0, uncertain=left))
    assert steps[0].text == f"mv -nT {D1}/{name} {D1}.{name}"
    assert order(Situation(CALL, {Verdict.DAMAGED: FoundVerdict()}, repairable=0, uncertain=left))[1] == "preflight"


def test_what_is_certain_once_the_stale_are_staged_waits_for_that() -> None:
    found = {Verdict.DAMAGED: FoundVerdict(), Verdict.STALE_ID: FoundVerdict()}
    waiting = (doubtful("orders-0", adopt=True, go=True, waits=True),)
    known = Situation(CALL, found, repairable=0, uncertain=waiting)
    assert order(known)[:4] == ["plan", "apply", "repair", "repair"]
    assert next_steps(known)[0].command == CALL.plan()
    never = (doubtful("orders-0", adopt=True, go=True),)
    assert order(Situation(CALL, found, repairable=0, uncertain=never)) == ["plan", "apply", "preflight", "start"]


def test_what_waits_for_a_name_is_repaired_after_it_and_not_fetched_anew() -> None:
    renamed = FoundVerdict(log_dir=D1, name="ordres-1", belongs_to="orders", partition=1)
    found = {Verdict.NO_ID: FoundVerdict(), Verdict.RENAMED: renamed}
    waiting = (doubtful("orders-0", go=True, waits=True),)
    steps = next_steps(Situation(CALL, found, repairable=0, uncertain=waiting))
    assert [each.text for each in steps[:3]] == [
        f"mv -nT {D1}/ordres-1 {D1}/orders-1",
        CALL.repair().text,
        CALL.apply_repair().text,
    ]
    assert not any("--refetch" in str(each.text) for each in steps)


def test_a_start_that_makes_the_only_copy_anew_is_not_asked_for() -> None:
    known = Situation(CALL, {Verdict.MISSING: FoundVerdict(3, sole=1)})
    (step,) = next_steps(known)
    assert step.command == CALL.audit(verdict="MISSING")
    assert step.why.startswith("1 of 3 missing replicas had the only copy in sync")
    assert order(Situation(CALL, {Verdict.MISSING: FoundVerdict(3)})) == ["start"]


def test_what_is_due_is_purged_and_what_waits_says_until_when() -> None:
    due = next_steps(Situation(CALL, {Verdict.STAGED_DUE: FoundVerdict()}, due=1))
    assert [step.text for step in due] == [f"logstore purge {D1} {D2} --spare-records /spare"]
    stands = {Verdict.STAGED_DUE: FoundVerdict(), Verdict.MISSING: FoundVerdict()}
    assert order(Situation(CALL, stands, due=1)) == ["start", "purge"]
    assert order(Situation(CALL, stands, due=1, due_inside=1)) == ["purge", "preflight", "start"]
    runs = Situation(CALL, {Verdict.STAGED_DUE: FoundVerdict()}, in_use=(D1,), due=1, due_inside=1)
    assert order(runs) == ["purge"]
    stopped = Situation(CALL, {Verdict.STALE_ID: FoundVerdict()}, in_use=(D1,), due=1, due_inside=1)
    assert order(stopped) == ["stop", "plan", "apply", "purge", "preflight", "start"]
    # What is wanted again comes back, and no purge takes it: not on a full disk either, where a purge comes first.
    wanted = {Verdict.STAGED_DUE: FoundVerdict(2, wanted=1)}
    purge = f"logstore purge {D1} {D2} --metadata '{SRC}' --spare-records /spare"
    now = [step.text for step in next_steps(Situation(CALL, wanted, due=2)) if not step.later]
    assert now[-1] == purge
    assert commands(Situation(CALL, wanted, full=(D1,), due=2))[0] == purge
    for known in (Situation(CALL, wanted, full=(D1,), due=1), Situation(CALL, wanted, due=1, due_inside=1)):
        assert not [step for step in next_steps(known) if not step.later and "purge" in (step.text or "")]
    # What a plan brings back waits for no purge.
    back = Situation(CALL, {Verdict.STAGED: FoundVerdict(1, wanted=1), Verdict.STAGED_DUE: FoundVerdict(1, wanted=1)})
    assert not [step.why for step in next_steps(replace(back, staged=1, due=1)) if step.later]
    (waits,) = next_steps(Situation(CALL, staged=2, due_from="2030-01-01 00:00:00 UTC"))
    assert waits.later
    assert waits.why.startswith("from 2030-01-01 00:00:00 UTC on")


def test_what_else_stops_the_broker_has_its_own_command() -> None:
    situation = Situation(CALL, obstacles=(Obstacle("damaged_identity", "it cannot be read", D1, "meta.properties"),))
    assert next_steps(situation)[0] == Step("it cannot be read", CALL.explain(f"{D1}/meta.properties"))


def test_a_step_is_a_row_of_json() -> None:
    assert Step("start the broker").as_row() == {"command": None, "why": "start the broker", "later": False}


def test_a_move_that_nobody_will_finish_is_moved_out_while_the_broker_stands_still() -> None:
    copy = FoundVerdict(1, D1, "gone-3.0123456789abcdef0123456789abcdef-future", "gone", 3)
    situation = Situation(CALL, {Verdict.FUTURE_ABANDONED: copy})
    first, *others = next_steps(situation)
    assert first.text == f"mv -nT {D1}/{copy.name} {D1}.{copy.name}"
    assert [step.text and step.text.split()[1] for step in others] == ["preflight", None]
    assert next_steps(replace(situation, in_use=(D1,))) == ()
    assert next_steps(replace(situation, found={Verdict.FUTURE_ABANDONED: replace(copy, wanted=1)})) == ()
    steps = next_steps(replace(situation, trust=MetadataTrust.OLD))
    assert not any(step.text and step.text.startswith("mv") for step in steps)


def test_a_stray_of_which_no_plan_says_what_becomes_of_it_is_not_planned_again_and_again() -> None:
    name = f"gone-3.{'0' * 32}-stray"
    unknown = UncertainReplica(D1, name, "gone", "it has no topic ID", is_live=False, is_unclaimed=True)
    situation = Situation(CALL, {Verdict.STRAY: FoundVerdict(1, D1, name, left=1)}, uncertain=(unknown,))
    assert commands(situation)[0] == f"mv -nT {D1}/{name} {D1}.{name}"
    assert words(situation) == ["mv", "preflight", "start the broker"]
    assert "plan" in words(replace(situation, found={Verdict.STRAY: FoundVerdict(2, D1, name, left=1)}))


def test_a_stray_in_whose_place_nothing_is_in_sync_yet_is_looked_at_again_after_the_start() -> None:
    found = {Verdict.STRAY: FoundVerdict(1, D1, "x", left=1), Verdict.MISSING: FoundVerdict(1)}
    start, look = next_steps(Situation(CALL, found))
    assert start.why.startswith("start the broker")
    assert (look.command, look.later) == (CALL.doctor(), True)
    assert not any(step.later for step in next_steps(Situation(CALL, found, trust=MetadataTrust.OLD)))


@pytest.mark.parametrize(
    ("sole", "said"),
    [
        (
            1,
            "1 of 1 missing replica had the only copy in sync, and a start makes it anew without its records: bring",
        ),
        (
            2,
            "2 of 2 missing replicas had the only copy in sync, and a start makes them anew without their records",
        ),
    ],
)
def test_what_a_start_would_make_anew_is_said_in_its_number(sole: int, said: str) -> None:
    found = {Verdict.MISSING: FoundVerdict(sole, topic="orders", partition=0, sole=sole)}
    assert any(step.why.startswith(said) for step in next_steps(Situation(CALL, found)))
