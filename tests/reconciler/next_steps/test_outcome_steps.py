"""What comes after a run that changed something: nothing that it needs is dropped, and nothing leads in a circle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import click

from reconciler.next_steps import (
    AppliedPlan,
    Call,
    Command,
    steps_after_apply,
    steps_after_repair,
    undo_of_file,
    undo_of_staging,
    undo_of_stray,
)

Parse = Callable[[Command], click.Context]
CALL = Call(("/disks/1", "/disks/2"), ("/meta",))
DONE = AppliedPlan(CALL, "/root/plan.json", complete=True, staged=3, due="2030-01-01 00:00:00 UTC")


def texts(done: AppliedPlan) -> list[str | None]:
    return [step.text for step in steps_after_apply(done)]


def test_what_was_applied_leads_to_a_start_and_then_to_a_purge() -> None:
    assert texts(DONE) == [
        "logstore preflight /disks/1 /disks/2 --metadata /meta",
        None,
        "logstore purge /disks/1 /disks/2",
    ]
    assert "from 2030-01-01 00:00:00 UTC on" in steps_after_apply(DONE)[-1].why
    assert len(texts(replace(DONE, staged=0))) == 2


def test_a_full_disk_leads_to_the_same_plan_with_a_folder_for_records() -> None:
    full = replace(DONE, complete=False, no_space=True)
    made, again = texts(full)
    assert made == "mkdir -p /var/lib/logstore/spare-records"
    assert again == "logstore apply /root/plan.json --spare-records /var/lib/logstore/spare-records"
    (other,) = texts(replace(full, call=CALL.with_fallback("/spare")))
    assert other == "logstore apply /root/plan.json --spare-records /spare"


def test_a_file_that_finds_no_room_in_its_log_dir_asks_for_room_there_and_for_no_other_folder() -> None:
    for call in (CALL, CALL.with_fallback("/spare")):
        full = replace(DONE, call=call, complete=False, no_room_in_log_dir=True)
        purge, again = steps_after_apply(full)
        assert (purge.text, again.text) == (call.purge().text, call.apply("/root/plan.json").text)
        assert "make room there" in purge.why and "no room either" not in purge.why
        assert texts(replace(full, staged=0)) == [None, call.apply("/root/plan.json").text]


def test_what_was_skipped_is_looked_at_again_by_the_same_metadata_because_a_plan_does_not_say_its_options() -> None:
    left = steps_after_apply(replace(DONE, complete=False))
    assert [step.text for step in left] == ["logstore doctor /disks/1 /disks/2 --metadata /meta"]
    assert "plan anew" in left[0].why


def test_a_repair_leads_to_the_doctor(parse: Parse) -> None:
    (done,), (left,) = steps_after_repair(CALL, complete=True), steps_after_repair(CALL, complete=False)
    assert (done.text or "").startswith("logstore doctor /disks/1 /disks/2 ")
    assert (left.text, "skipped or failed" in left.why) == (done.text, True)
    for step in (done, left):
        if isinstance(step.command, Command):
            parse(step.command)


def test_an_undo_names_one_replica_in_all_log_dirs_or_one_file(parse: Parse) -> None:
    command = undo_of_staging(CALL.with_fallback("/spare"), "orders", 3, "-XyU9i5ARn6W00ON2taeWA")
    assert parse(command).params["topic_id"] == "-XyU9i5ARn6W00ON2taeWA"
    assert parse(command).params["fallback_folder"] == "/spare"
    assert undo_of_file("/disks/1/a b/partition.metadata").text == "rm '/disks/1/a b/partition.metadata'"


def test_the_undo_of_a_stray_names_its_directory_for_it_may_have_no_topic_id(parse: Parse) -> None:
    name = "or ders-3.4c0e8b0dd7f8418ab2ad1f4d8ab0a123-stray"
    params = parse(undo_of_stray("/disks/1", name)).params
    assert (params["paths"], params["locations"], params["as_stray"]) == (("/disks/1",), (name,), True)


NOTED = replace(
    DONE, staged=0, due=None, noted=("/disks/2",), noted_until="2030-01-01 00:00:00 UTC", options=("--sightings", "2")
)


def test_what_was_only_noted_leads_to_the_same_plan_later_and_to_no_start_before(parse: Parse) -> None:
    again, carried_out = steps_after_apply(NOTED)
    assert again.text == "logstore plan /disks/1 /disks/2 --metadata /meta --sightings 2 -o /root/plan.json"
    assert carried_out.text == "logstore apply /root/plan.json"
    assert again.later and carried_out.later
    assert "1 replica is only noted" in again.why and "from 2030-01-01 00:00:00 UTC on" in again.why
    assert isinstance(again.command, Command) and parse(again.command).params["sightings"] == 2


def test_the_same_plan_again_names_each_option_once_and_asks_for_metadata_that_goes_on() -> None:
    call = replace(CALL, metadata=("/disks/1/__cluster_metadata-0",), fallback="/spare", release="3.9")
    again = texts(replace(NOTED, call=call, options=("--kafka", "3.8", "--sightings", "2")))[0]
    assert again == (
        "logstore plan /disks/1 /disks/2 --metadata SOURCE --kafka 3.8 --sightings 2 --spare-records /spare "
        "-o /root/plan.json"
    )
    assert texts(replace(NOTED, options=(), noted_until=None)) == [None]


def test_a_broker_of_which_nothing_was_only_noted_starts_while_another_one_waits() -> None:
    both = replace(NOTED, staged=1, due="2030-01-08 00:00:00 UTC", brokers=(("/disks/1",), ("/disks/2",)))
    assert texts(both) == [
        "logstore preflight /disks/1 --metadata /meta",
        None,
        *texts(NOTED),
        "logstore purge /disks/1 /disks/2",
    ]
