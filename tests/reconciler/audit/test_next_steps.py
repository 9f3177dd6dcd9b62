"""The steps that are advised after an audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.audit import AuditResult, BrokerCalls, advised_steps, with_next
from reconciler.audit.next_steps import first_step, next_of_fleet
from reconciler.audit.result import BrokerSummary
from reconciler.desired import Mode
from reconciler.next_steps import FLEET_STEPS, Call
from reconciler.verdicts import URGENCY, Verdict, advice_of

Make = Callable[..., AuditResult]


def test_each_verdict_that_asks_for_action_has_one_step_with_a_command(make_result: Make) -> None:
    result = make_result({"verdict": "STRAY"}, {"verdict": "STALE_ID"}, {"verdict": "STRAY"}, ok=2)
    steps = advised_steps(result, URGENCY)
    assert sorted(step.verdict for step in steps) == [Verdict.STALE_ID, Verdict.STRAY]
    assert all(
        step.advice == advice_of(step.verdict, Mode.KRAFT) and step.command.startswith("logstore ") for step in steps
    )


def test_steps_come_in_the_order_in_which_the_verdicts_were_given(make_result: Make) -> None:
    result = make_result({"verdict": "STRAY"}, {"verdict": "STALE_ID"})
    given = (Verdict.STRAY, Verdict.STALE_ID)
    assert tuple(step.verdict for step in advised_steps(result, given)) == given


def test_an_audit_in_which_all_is_ok_advises_nothing(make_result: Make) -> None:
    assert advised_steps(make_result(ok=3), URGENCY) == []


def of_two_disks(make_result: Make, *verdicts: str) -> AuditResult:
    disks = tuple({"log_dir": f"/disks/{number}", "state": "ok"} for number in (1, 2))
    broker = BrokerSummary("c1", 1, ("host",), disks, 2, 0, 0)
    return make_result(*({"verdict": verdict} for verdict in verdicts), brokers=(broker,))


def test_a_step_names_all_log_dirs_of_the_broker_and_the_metadata_of_its_cluster(make_result: Make) -> None:
    (step,) = advised_steps(of_two_disks(make_result, "STALE_ID"), URGENCY)
    assert step.command == "logstore plan /disks/1 /disks/2 --metadata /meta -o plan.json"


def test_a_step_names_a_log_dir_once_that_was_scanned_by_two_names_of_its_host(make_result: Make) -> None:
    result = of_two_disks(make_result, "STALE_ID")
    (broker,) = result.brokers
    twice = replace(broker, hosts=("a", "b"), log_dirs=(*broker.log_dirs, *broker.log_dirs))
    result = replace(result, brokers=(twice, replace(broker, node_id=2)))
    (step,) = advised_steps(result, URGENCY)
    assert step.command == "logstore plan /disks/1 /disks/2 --metadata /meta -o plan.json"


def test_a_source_that_was_named_is_named_as_it_was(make_result: Make) -> None:
    call = Call(metadata=("describe-all:topics.txt",))
    (step,) = advised_steps(of_two_disks(make_result, "DUPLICATE"), URGENCY, call)
    assert step.command == "logstore repair /disks/1 /disks/2 --metadata describe-all:topics.txt -o repair.json"


def test_a_file_of_metadata_is_named_in_full_as_the_log_dirs_are(
    make_result: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meta").mkdir()
    monkeypatch.chdir(tmp_path)
    for given, named in (("meta", f"{tmp_path}/meta"), ("kraft:meta", f"kraft:{tmp_path}/meta"), ("zk:h:1", "zk:h:1")):
        (step,) = advised_steps(of_two_disks(make_result, "STALE_ID"), URGENCY, Call(metadata=(given,)))
        assert step.command == f"logstore plan /disks/1 /disks/2 --metadata {named} -o plan.json"


def test_a_log_dir_that_names_no_broker_stands_alone(make_result: Make) -> None:
    result = make_result({"verdict": "ABSENT", "broker": None, "cluster_id": None, "name": ".", "log_dir": "/gone"})
    assert [step.command for step in advised_steps(result, URGENCY)] == ["findmnt --real"]


def test_beside_a_log_dir_of_no_known_broker_every_step_looks_at_all_of_them_first(make_result: Make) -> None:
    unread = BrokerSummary(None, None, (), ({"log_dir": "/disks/0", "state": "unreadable"},), 0, 0, 0)
    disk = {"verdict": "ABSENT", "broker": None, "cluster_id": None, "name": ".", "log_dir": "/disks/0"}
    one = of_two_disks(make_result).brokers[0]
    result = make_result({"verdict": "STALE_ID"}, disk, brokers=(one, unread))
    doctor = "logstore doctor /disks/0 /disks/1 /disks/2 --metadata /meta"
    found = {step.verdict: step.command for step in advised_steps(result, URGENCY)}
    assert found == {"ABSENT": "findmnt --real", "STALE_ID": doctor}
    first = first_step(result, advised_steps(result, URGENCY))
    assert first is not None and first.text == doctor
    several = make_result({"verdict": "STALE_ID"}, brokers=(one, replace(one, node_id=2), unread))
    assert [step.command for step in advised_steps(several, URGENCY)] == [
        "logstore plan /disks/1 /disks/2 --metadata /meta -o plan.json"
    ]


def test_each_finding_has_its_next_command_in_a_column(make_result: Make) -> None:
    result = of_two_disks(make_result, "STRAY", "STALE_ID", "OK")
    (table,) = with_next([result.most_urgent(9)], BrokerCalls(result))
    found = dict(zip(table.column("verdict").to_pylist(), table.column("next").to_pylist(), strict=True))
    assert found == {
        "STALE_ID": "logstore plan /disks/1 /disks/2 --metadata /meta -o plan.json",
        "STRAY": "logstore doctor /disks/1 /disks/2 --metadata /meta",
        "OK": None,
    }


def test_what_nothing_was_compared_with_asks_for_other_metadata_than_those_that_were_given(make_result: Make) -> None:
    calls = BrokerCalls(of_two_disks(make_result, "NOT_COMPARED"), Call(metadata=("/of-another-cluster",)))
    (table,) = with_next([of_two_disks(make_result, "NOT_COMPARED").most_urgent(9)], calls)
    assert table.column("next").to_pylist() == ["logstore audit /disks/1 /disks/2 --metadata SOURCE"]


def test_a_finding_of_the_fleet_leads_on_where_one_broker_was_audited(make_result: Make) -> None:
    calls = BrokerCalls(of_two_disks(make_result))
    assert next_of_fleet("LOG_DIR_NOT_SEEN", calls) == (
        "logstore doctor /disks/1 /disks/2 OTHER_LOG_DIR --metadata /meta"
    )
    assert all(next_of_fleet(kind, calls) for kind in FLEET_STEPS)
    assert next_of_fleet("ONLY_KNOWN_COPY", calls) is None
    assert next_of_fleet("LOG_DIR_NOT_SEEN", BrokerCalls(make_result(brokers=()))) is None
