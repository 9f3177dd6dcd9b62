"""The step for one finding: every verdict and every rule of preflight that asks for action has one that exists."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import click
import pytest

from reconciler.next_steps import (
    FINDING_STEPS,
    FLEET_STEPS,
    PLAN_FILE,
    RULE_COMMANDS,
    Call,
    Command,
    step_of_broker,
    step_of_finding,
    step_of_fleet,
    step_of_rule,
    step_of_strays,
    step_of_unshown,
)
from reconciler.preflight.rules import RULES
from reconciler.verdicts import FLEET_ADVICE, Verdict

Parse = Callable[[Command], click.Context]
D1, D2 = "/disks/1", "/disks/a b"
CALL = Call((D1, D2), ("/meta",))
FINDING = {"log_dir": D1, "name": "orders-0", "topic": "orders", "partition": 0, "broker": 3}
NOWHERE = {**FINDING, "log_dir": None, "name": None, "broker": None}
FUTURE, STRAY = (f".{'0' * 32}-{kind}" for kind in ("future", "stray"))
LOOKING = {"findmnt", "kafka-log-dirs.sh", "kafka-reassign-partitions.sh"}


@pytest.mark.parametrize("finding", [FINDING, NOWHERE])
@pytest.mark.parametrize("explained", [False, True])
@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_a_step_that_looks_or_plans(
    parse: Parse, verdict: Verdict, explained: bool, finding: dict[str, object]
) -> None:
    step = step_of_finding(verdict, finding, CALL, explained=explained)
    assert (step is None) == (verdict is Verdict.OK) == (verdict not in FINDING_STEPS)
    if step is None:
        return
    if isinstance(step.command, Command):
        parse(step.command)
        assert not {"--apply", "--before-due"} & set(step.command.arguments)
        assert step.command.verb not in ("apply", "restore")
        assert not (explained and step.command.verb == "explain")
    else:
        assert step.command is not None
        assert step.command.program in LOOKING


@pytest.mark.parametrize("verdict", [Verdict.STALE_ID, Verdict.NOT_ASSIGNED, Verdict.UNKNOWN_TOPIC])
def test_what_nobody_wants_leads_to_a_plan_of_the_whole_broker_with_its_metadata(verdict: Verdict) -> None:
    step = step_of_finding(verdict, FINDING, CALL)
    assert step is not None
    assert step.text == f"logstore plan {D1} '{D2}' --metadata /meta -o {PLAN_FILE}"


def test_what_the_system_refuses_to_read_leads_to_doctor_and_to_no_repair() -> None:
    steps = [
        step_of_finding(Verdict.DAMAGED, {**FINDING, **said}, CALL)
        for said in (
            {"evidence": "partition.metadata cannot be read: Permission denied; a broker takes the log dir offline"},
            {"problem": "the directory cannot be read: Input/output error; what lies in it is not known"},
            {"evidence": "partition.metadata: it is empty; a broker does not start"},
        )
    ]
    verbs = [step.command.verb for step in steps if step is not None and isinstance(step.command, Command)]
    assert verbs == ["doctor", "doctor", "repair"]


def test_a_stray_leads_to_a_plan_that_takes_strays_and_a_duplicate_to_a_repair_of_both_disks() -> None:
    with_id = {**FINDING, "disk_topic_id": "AAECAwQFBgcICQoLDA0ODw"}
    stray, duplicate = (step_of_finding(verdict, with_id, CALL) for verdict in (Verdict.STRAY, Verdict.DUPLICATE))
    assert stray is not None
    assert duplicate is not None
    assert "--strays" in (stray.text or "")
    assert duplicate.text == f"logstore repair {D1} '{D2}' --metadata /meta -o repair.json"


@pytest.mark.parametrize("name", ["orders-0.0123456789abcdef0123456789abcdef-stray", "x" * 255])
def test_a_stray_that_does_not_tell_what_it_was_leads_to_what_decides_it_everywhere(name: str) -> None:
    """No plan takes it by itself: what becomes of it depends on the replica in its place."""
    topic_id = "AAECAwQFBgcICQoLDA0ODw" if len(name) == 255 else None
    finding = {**FINDING, "name": name, "topic_id": topic_id}
    found = step_of_finding(Verdict.STRAY, finding, CALL, explained=True)
    rule = step_of_rule("stray", D1, name, "a stray", CALL, topic_id=topic_id)
    assert found is not None and rule is not None
    assert found.command == rule.command == CALL.doctor()
    whole = step_of_rule("stray", D1, "orders-0.x-stray", "a stray", CALL, topic_id="AAECAwQFBgcICQoLDA0ODw")
    assert whole is not None and whole.command == CALL.plan(strays=True)


def test_a_replica_without_topic_id_leads_from_preflight_to_what_decides_whether_it_is_adopted() -> None:
    found = step_of_rule("no_topic_id", D1, "orders-0", "no topic ID", CALL)
    assert found is not None and found.command == CALL.doctor()


def test_strays_without_a_due_time_lead_to_a_plan_that_gives_them_one() -> None:
    one, two = (step_of_strays(number, CALL) for number in (1, 2))
    assert one.why.startswith("1 stray has no due time here")
    assert two.why.startswith("2 strays have no due time here")
    assert one.command == two.command == CALL.plan(strays=True)


def test_a_missing_replica_is_said_to_come_by_itself() -> None:
    step = step_of_finding(Verdict.MISSING, FINDING, CALL)
    assert step is not None
    assert "makes it anew" in step.why
    assert (step.text or "").startswith("logstore preflight ")


def test_an_explanation_has_the_other_log_dirs_in_view(parse: Parse) -> None:
    command = CALL.explain(f"{D1}/orders-0")
    assert parse(command).params["log_dirs"] == (D1, D2)
    assert "--log-dir" not in Call((D1,)).explain(f"{D1}/orders-0").text


@pytest.mark.parametrize("rule", list(RULES))
def test_every_rule_of_preflight_leads_to_a_command_that_exists_or_to_none(parse: Parse, rule: str) -> None:
    step = step_of_rule(rule, D2, "orders-0", "what is wrong", CALL)
    assert (step is None) == (rule not in RULE_COMMANDS)
    if step is not None and isinstance(step.command, Command):
        parse(step.command)
    if step is not None:
        assert step.why == "what is wrong"


@pytest.mark.parametrize(("rule", "verb"), [("unwanted", "plan"), ("partition_metadata", "repair")])
def test_what_no_plan_stages_and_no_repair_mends_leads_to_doctor(rule: str, verb: str) -> None:
    live, *others = (step_of_rule(rule, D1, f"orders-0{end}", None, CALL) for end in ("", FUTURE, STRAY))
    assert live is not None
    assert (live.text or "").startswith(f"logstore {verb} ")
    assert {None if each is None else each.text for each in others} == {CALL.doctor().text}


@pytest.mark.parametrize("kind", list(FLEET_ADVICE))
def test_a_finding_of_the_fleet_leads_to_a_command_that_exists_or_only_warns(parse: Parse, kind: str) -> None:
    step = step_of_fleet(kind, CALL)
    assert (step is None) == (kind not in FLEET_STEPS)
    if step is not None and isinstance(step.command, Command):
        parse(step.command)


def test_a_broker_as_a_whole_is_looked_at_with_all_its_log_dirs_and_its_metadata(parse: Parse) -> None:
    command = step_of_broker(CALL).command
    assert isinstance(command, Command)
    assert parse(command).params["paths"] == (D1, D2)
    assert command == CALL.doctor()


def test_every_command_for_a_rule_is_for_a_rule_that_there_is() -> None:
    assert set(RULE_COMMANDS) <= set(RULES)
    of_broker = step_of_rule("identity", None, None, None, CALL)
    assert of_broker is not None
    assert of_broker.text == f"grep -H = {D1}/meta.properties '{D2}/meta.properties'"


@pytest.mark.parametrize(("name", "path"), [(".", D2), ("__cluster_metadata-0", f"{D2}/__cluster_metadata-0")])
def test_what_another_user_owns_is_given_to_the_owner_of_its_log_dir(name: str, path: str) -> None:
    step = step_of_rule("another_owner", D2, name, None, CALL)
    assert step is not None
    assert shlex.split(step.text or "") == ["chown", "-RH", f"--reference={D2}", "--", path]


def test_topic_ids_that_nothing_vouches_for_are_read_first_without_a_way_back_to_what_led_there() -> None:
    step = step_of_unshown(2)
    assert "2 topic IDs are written over data of which nothing shows" in step.why and "--refetch TOPIC" in step.why
    assert step.command is None
