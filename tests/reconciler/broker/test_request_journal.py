"""The journals of requests that a person sends: what they hold, and which request is too old after them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from layout.ours import RunJournal
from layout.topic import TopicPartition
from logstore.scan import last_leader_epoch
from reconciler.broker import (
    LOOKS_UNWANTED,
    CarriedOut,
    KnownEpochs,
    RequestJournal,
    dry_run_request,
    end_cut_short,
    last_carried_out,
    older_partitions,
    reached_epochs,
)
from reconciler.plan import UNDER_WAY, History, journal_paths, read_history, write_journal
from reconciler.protocol import LeaderAndIsrRequest
from reconciler.protocol.json_messages import encode_json
from reconciler.verdicts import Verdict
from tests.crash.killed_command import CommandLine, Outcome
from tests.logstore.engine import NOW_MS, opened
from tests.reconciler.protocol.control_requests import (
    FULL,
    INCREMENTAL,
    ORDERS,
    A,
    B,
    C,
    Sim,
    leader_and_isr,
    state,
    topic,
)


def journal(started_ms: int, controller_epoch: int, broker_epoch: int = -1) -> RunJournal:
    source = {"controller_epoch": str(controller_epoch), "broker_epoch": str(broker_epoch)}
    return RunJournal("f" * 64, "host", "me", started_ms, None, (source,), ())


OF_A_PLAN = RunJournal("e" * 64, "host", "me", 9, 9, ({"source": "kraft", "topics": "3"},), ())


def test_the_newest_epochs_are_those_of_all_journals() -> None:
    found = last_carried_out(
        History([("/d1", journal(1, 5, 70)), ("/d1", OF_A_PLAN), ("/d2", journal(2, 7)), ("/d2", journal(3, 6, 71))])
    )
    (path,) = journal_paths(["/d2"], 2, "f" * 64)
    assert found == CarriedOut(7, 71, path, 2)
    assert last_carried_out(History([("/d1", OF_A_PLAN)])) == CarriedOut()


def test_what_is_too_old_says_both_epochs_where_it_is_known_from_and_what_to_do() -> None:
    last = CarriedOut(7, 71, "/d2/journal", 0)
    for epochs, said in (({"controller_epoch": 6}, "epoch 7"), ({"controller_epoch": 9, "broker_epoch": 70}, "71")):
        refusal = last.refusal(leader_and_isr(FULL, **epochs), -1)
        assert refusal is not None
        assert all(each in refusal for each in (said, "(/d2/journal)", "1970-01-01", "--allow epoch"))
    assert last.refusal(leader_and_isr(FULL, controller_epoch=7), -1) is None
    assert last.refusal(leader_and_isr(FULL, controller_epoch=7, broker_epoch=71), -1) is None
    assert "before --broker-epoch 80" in str(last.refusal(leader_and_isr(FULL, broker_epoch=79), 80))


def test_a_first_or_a_newer_request_is_noted_though_it_changes_nothing() -> None:
    last = CarriedOut(7, 71, "/d2/journal", 0)
    assert CarriedOut().is_before(leader_and_isr(FULL, controller_epoch=1))
    assert last.is_before(leader_and_isr(FULL, controller_epoch=8))
    assert last.is_before(leader_and_isr(FULL, controller_epoch=7, broker_epoch=72))
    assert not last.is_before(leader_and_isr(FULL, controller_epoch=7, broker_epoch=71))


def test_the_records_of_a_replica_say_which_request_is_older_under_the_same_id_alone(sim: Sim, tmp_path: Path) -> None:
    for name, topic_id in {"orders-0": A, "orders-1": A, "orders-2": B}.items():
        (sim.put(name, topic_id) / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n5 9\n")
    (sim.put("orders-3", A) / "leader-epoch-checkpoint").write_text("no checkpoint")
    request = leader_and_isr(FULL, topic("orders", A, state(0, 4), state(1, 5), state(2, 4), state(3, 4), state(4, 4)))
    reached = reached_epochs(sim.start().store, request)
    assert reached == {("orders", 0): (str(A), 5), ("orders", 1): (str(A), 5)}
    assert older_partitions(request, KnownEpochs(reached=reached)) == ["orders-0 (epoch 4, and 5 here)"]
    assert last_leader_epoch(str(tmp_path)) is None


def test_a_journal_is_there_before_the_first_change_and_an_unusable_disk_has_none(sim: Sim) -> None:
    store = sim.start().store
    store.log_dirs[1].go_offline("it failed")
    written = RequestJournal(store, leader_and_isr(FULL, controller_epoch=4), "r.json", "me", 1)
    assert written.begin([]) == []
    ((log_dir, found),) = read_history(map(str, sim.paths)).journals
    assert (log_dir, found.finished_ms, found.metadata[0]["controller_epoch"]) == (str(sim.paths[0]), None, "4")
    assert written.end([]) == [] and len(written.paths()) == 1
    assert read_history(map(str, sim.paths)).journals[0][1].finished_ms == store.clock.now_ms()
    assert "it failed" in str(write_journal(store.log_dirs[1], found))
    assert UNDER_WAY == "under way"


def test_what_looks_unwanted_is_what_a_full_request_stages() -> None:
    assert {Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC} == LOOKS_UNWANTED


def test_the_journal_of_a_request_that_was_cut_short_is_ended_with_what_the_disks_show(sim: Sim) -> None:
    sim.put("orders-0", A)
    sim.put("orders-1", A, disk=1)
    broker = sim.start()
    store, request = broker.store, leader_and_isr(FULL, topic("orders", B, 0, 1, 2))
    planned = dry_run_request(store, request, broker.node_id)[1]
    assert RequestJournal(store, request, "r.json", "me", 1).begin(planned) == []
    assert write_journal(store.log_dirs[0], replace(OF_A_PLAN, started_ms=2, finished_ms=None)) is None
    store.stage([TopicPartition("orders", 0)], "STALE_ID", "a test")
    store.create(TopicPartition("orders", 0), B)
    assert end_cut_short(store, read_history(map(str, sim.paths))) == []
    *ended, of_a_plan = sorted((each for _, each in read_history(map(str, sim.paths)).journals), key=by_start)
    assert [each.finished_ms for each in (*ended, of_a_plan)] == [store.clock.now_ms()] * 2 + [None]
    lines = {
        (line["kind"], line["partition"]): (line["status"], line["detail"]) for each in ended for line in each.lines
    }
    done, not_done = (f"the run was cut short, and the next one found this {what}" for what in ("done", "not done"))
    assert lines == {
        **{(kind, 0): ("done", done) for kind in ("stage", "create")},
        **{(kind, 1): ("failed", not_done) for kind in ("stage", "create")},
        ("create", 2): ("failed", not_done),
    }


def test_a_line_has_the_evidence_of_its_action_and_where_the_replica_is_now_or_why_not(sim: Sim) -> None:
    kept = sim.put("kept-0", A, disk=1)
    sim.put("orders-0", A)
    sim.put("bare-0", None, disk=1)
    broker = sim.start()
    (kept / "partition.metadata").write_bytes(b"version: 0\ntopic_id: somebody wrote here\n")
    request = leader_and_isr(FULL, topic("orders", B, 0), topic("bare", C, 0))
    results = broker.handle_with_results(request)[1]
    assert RequestJournal(broker.store, request, "r.json", "me", 1).end(results) == []
    of_first, of_second = (each.lines for _, each in read_history(map(str, sim.paths)).journals)
    lines = {(line["kind"], line["topic"]): line for line in (*of_first, *of_second)}
    entry = next(each.action for each in results if each.action.topic == "orders")
    assert lines["stage", "orders"] == {
        **{"kind": "stage", "name": "orders-0", "topic": "orders", "partition": 0, "topic_id": str(A)},
        **{"wanted_topic_id": str(B), "verdict": "STALE_ID", "why": entry.why, "inode": entry.inode, "bytes": None},
        **{"status": "done", "detail": f"staged as deleting/{A}_0"},
    }
    assert (
        lines["stage", "kept"]["status"] == "failed"
        and "its topic ID is not readable" in lines["stage", "kept"]["detail"]
    )
    assert lines["write_topic_id", "bare"]["detail"] == f"it holds {C}"
    made = lines["create", "orders"]
    assert made["detail"] == f"empty, in {broker.store.get(ORDERS).log_dir}/orders-0" and made["name"] == "orders-0"


def by_start(each: RunJournal) -> int:
    return each.started_ms


def test_a_run_that_was_killed_anywhere_has_an_end_after_the_next_one_whichever_request_that_has(
    sim: Sim, tmp_path: Path
) -> None:
    """The truth about the killed run is what lies there between the two runs."""
    sim.put("orders-0", A)
    for path in sim.paths:
        shutil.copytree(path, tmp_path / "kept" / path.name)
    full = leader_and_isr(FULL, topic("orders", B, 0, 1), controller_epoch=1)
    newer = leader_and_isr(INCREMENTAL, topic("orders", B, 2), controller_epoch=2)
    seen = set()
    with CommandLine(NOW_MS) as line:

        def run(request: LeaderAndIsrRequest, kill_at: int | None = None) -> Outcome:
            (tmp_path / "request").write_bytes(encode_json(request, 7))
            allowed = [word for gate in ("cluster", "create", "clock") for word in ("--allow", gate)]
            words = ["--max-share", "100%", *allowed]
            return line.run("reconcile", tmp_path / "request", *sim.paths, *words, kill_at=kill_at)

        for step in range(0, run(full).steps, 4):
            for path in sim.paths:
                shutil.rmtree(path)
                shutil.copytree(tmp_path / "kept" / path.name, path)
            assert run(full, step).code is None
            begun = [each for _, each in read_history(map(str, sim.paths)).journals if each.finished_ms is None]
            with opened(*sim.paths) as store:
                is_made = ("orders", 1) in store.entries()
            assert run(newer).code == 0
            history = read_history(map(str, sim.paths))
            assert (history.unreadable, {each.finished_ms for _, each in history.journals}) == ([], {NOW_MS}), step
            lines = [each for _, journal in history.journals for each in journal.lines if each["partition"] != 2]
            assert {each["status"] for each in lines} <= {"done", "failed"}, step
            if len(begun) == 2:
                (made,) = (each for each in lines if (each["kind"], each["partition"]) == ("create", 1))
                assert made["status"] == ("done" if is_made else "failed"), step
                seen.add(made["status"])
    assert seen == {"done", "failed"}
