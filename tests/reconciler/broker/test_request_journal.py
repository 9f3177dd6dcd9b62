"""The journals of requests that a person sends: what they hold, and which request is too old after them."""

from __future__ import annotations

from pathlib import Path

from layout.ours import RunJournal
from logstore.scan import last_leader_epoch
from reconciler.broker import (
    LOOKS_UNWANTED,
    CarriedOut,
    KnownEpochs,
    RequestJournal,
    last_carried_out,
    older_partitions,
    reached_epochs,
)
from reconciler.plan import UNDER_WAY, History, journal_paths, read_history, write_journal
from reconciler.verdicts import Verdict
from tests.reconciler.protocol.control_requests import FULL, A, B, Sim, leader_and_isr, state, topic


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
