"""Each kind of action, checked again in an open store."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from layout.directory_name import stray_name
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import ChangeFailedError, ChangeRefusedError, OfflineLogDirError
from logstore.namespaces import create_namespace
from logstore.store import LogStore, StoreOptions
from reconciler.plan import Action, PlanChoice, Policy
from reconciler.plan.revalidate import CheckedAction, Revalidation, status_of
from tests.reconciler.plan.plan_broker import GONE, OLD, ORDERS, UNUSED, PlanBroker


@pytest.fixture
def broker(tmp_path: Path) -> PlanBroker:
    made = PlanBroker(tmp_path)
    made.wanted("orders", ORDERS, 0, 1)
    return made


def only(broker: PlanBroker) -> Action:
    (action,) = broker.plan(PlanChoice(Policy.kip516(), strays=True)).actions
    return action


def looked_at(broker: PlanBroker, action: Action, *, changed_data: bool = False) -> CheckedAction:
    with LogStore.open(broker.paths, StoreOptions(clock=broker.clock, jobs=0)) as store:
        return Revalidation(store, changed_data=changed_data).check(action)


def test_what_is_as_it_was_may_be_carried_out(broker: PlanBroker) -> None:
    broker.replica("gone-0", GONE)
    assert looked_at(broker, only(broker)).status is None


def test_a_replica_that_is_gone_is_skipped(broker: PlanBroker) -> None:
    replica = broker.replica("gone-0", GONE)
    action = only(broker)
    shutil.rmtree(replica)
    checked = looked_at(broker, action)
    assert (checked.status, "no such replica" in checked.detail) == ("skipped", True)


def test_a_replica_that_holds_another_id_is_skipped_though_its_data_may_have_changed(broker: PlanBroker) -> None:
    replica = broker.replica("gone-0", GONE)
    action = only(broker)
    (replica / "partition.metadata").write_text(f"version: 0\ntopic_id: {UNUSED}")
    checked = looked_at(broker, action, changed_data=True)
    assert (checked.status, f"it holds topic ID {UNUSED}" in checked.detail) == ("skipped", True)


def test_another_directory_at_its_path_is_skipped_though_its_data_may_have_changed(broker: PlanBroker) -> None:
    replica = broker.replica("gone-0", GONE)
    action = only(broker)
    shutil.copytree(replica, replica.with_name("copy"))
    shutil.rmtree(replica)
    replica.with_name("copy").rename(replica)
    assert looked_at(broker, action, changed_data=True).status == "skipped"


def test_a_stray_that_came_back_is_recognised(broker: PlanBroker) -> None:
    stray = broker.stray("orders-0", ORDERS)
    action = only(broker)
    stray.rename(stray.parent / "orders-0")
    checked = looked_at(broker, action)
    assert (checked.status, checked.detail) == ("already", "live as orders-0")


def test_a_stray_that_is_gone_or_holds_another_id_is_skipped(broker: PlanBroker) -> None:
    stray = broker.stray("orders-0", ORDERS)
    action = only(broker)
    (stray / "partition.metadata").write_text(f"version: 0\ntopic_id: {UNUSED}")
    assert str(UNUSED) in looked_at(broker, action).detail
    shutil.rmtree(stray)
    assert looked_at(broker, action).status == "skipped"


def test_an_id_that_was_written_meanwhile_is_recognised(broker: PlanBroker) -> None:
    replica = broker.replica("orders-0", None)
    action = only(broker)
    assert looked_at(broker, action).status is None
    for topic_id, status in ((ORDERS, "already"), (OLD, "skipped")):
        (replica / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
        assert looked_at(broker, action).status == status


def test_a_due_time_that_was_given_before_is_recognised(broker: PlanBroker) -> None:
    broker.stray("gone-0", GONE)
    plan = broker.plan(PlanChoice(Policy.kip516(), strays=True))
    assert looked_at(broker, plan.actions[0]).status is None
    broker.apply(plan)
    assert looked_at(broker, plan.actions[0]).status == "already"


def test_a_directory_that_was_staged_as_another_partition_is_not_taken_for_what_was_planned(broker: PlanBroker) -> None:
    replica = broker.replica("gone-0", GONE)
    action = only(broker)
    replica.rename(replica.with_name("gone-5"))
    assert broker.apply(broker.plan()).is_complete
    assert looked_at(broker, action).status == "skipped"


def test_another_replica_that_lives_in_its_place_is_not_the_one_that_was_to_come_back(broker: PlanBroker) -> None:
    stray = broker.stray("orders-0", ORDERS)
    action = only(broker)
    broker.replica("orders-0", ORDERS)
    shutil.rmtree(stray)
    checked = looked_at(broker, action)
    assert (checked.status, "another directory" in checked.detail) == ("skipped", True)


def test_a_stray_whose_name_a_broker_cut_comes_back_as_what_the_metadata_wants(broker: PlanBroker) -> None:
    topic = "o" * 240
    broker.wanted(topic, GONE, 7)
    broker.replica(stray_name(topic, 7, "0" * 32), GONE)
    plan = broker.plan()
    assert [(each.kind, each.topic) for each in plan.actions] == [("restore", topic)]
    assert broker.apply(plan).is_complete
    assert (broker.log_dirs[0] / f"{topic}-7").is_dir()


def test_what_was_staged_under_a_former_name_comes_back_under_the_one_that_the_metadata_has(
    tmp_path: Path,
) -> None:
    """KIP37-3, KIP516-13"""
    broker = PlanBroker(tmp_path, Scheme.NAMESPACED.value)
    at, by_now = TopicPartition("org:orders", 0), TopicPartition("net:orders", 0)
    with LogStore.open(broker.paths, StoreOptions(clock=broker.clock, jobs=0)) as store:
        create_namespace(store, "org")
        create_namespace(store, "net")
        made = store.create(at, ORDERS)
        Path(made.log_dir, made.path, "00000000000000000000.log").write_bytes(b"data")
        store.stage([at], "UNKNOWN_TOPIC", "nobody knew it")
    broker.wanted("net:orders", ORDERS, 0)
    plan = broker.plan()
    assert [(each.kind, each.replica) for each in plan.actions] == [("restore", by_now)]
    assert broker.apply(plan).is_complete
    assert (Path(made.log_dir) / "net" / "orders-0" / "00000000000000000000.log").read_bytes() == b"data"
    assert list(broker.verdicts().values()) == []
    assert looked_at(broker, plan.actions[0]).status == "already"


def test_data_of_which_the_plan_does_not_say_how_much_it_is_may_be_any(broker: PlanBroker) -> None:
    broker.replica("gone-0", GONE)
    action = only(broker)
    assert looked_at(broker, replace(action, bytes=None, modified_ms=None)).status is None
    assert looked_at(broker, replace(action, bytes=1)).status == "skipped"
    assert looked_at(broker, replace(action, modified_ms=1)).status == "skipped"


def test_what_the_disk_or_the_system_refuses_failed_and_what_is_not_as_planned_is_skipped() -> None:
    assert status_of(OfflineLogDirError("/d1 is offline")) == status_of(ChangeFailedError("no")) == "failed"
    assert status_of(ChangeRefusedError("it is another replica")) == "skipped"
