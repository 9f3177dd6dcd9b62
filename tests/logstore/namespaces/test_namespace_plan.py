"""A change that was planned: every step in words, log dir by log dir."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout.ours import MakeDirectory, RemoveDirectory, Rename, RenameEntries, Rewrite, Stage, Unstage
from layout.topic import TopicPartition
from logstore import ChangeRefusedError
from logstore.namespaces import convert, rename_topic
from logstore.namespaces.plan import MOST_NAMED, ChangePlanner, check_no_duplicates, describe, first_few
from tests.logstore.changes import fill_store, two_disks
from tests.logstore.engine import fill, opened

STAGE = ("org/a-3", "org:a", 3, "", "V", "because", 1, 2)


def test_every_step_has_its_words() -> None:
    words = [
        describe(step)
        for step in (
            MakeDirectory(0, "org", tier=True),
            MakeDirectory(0, "51", tier=False),
            RemoveDirectory(0, "org", tier=True),
            Rename(0, "a-0", "org/a-0"),
            Rewrite(0, "meta.properties", "", ""),
            RenameEntries(0, "a", "org:a"),
            Stage(0, *STAGE),
            Unstage(0, *STAGE),
        )
    ]
    assert words == [
        "make the tier org",
        "make the directory 51",
        "remove the tier org",
        "rename a-0 to org/a-0",
        "rewrite meta.properties",
        "rename the checkpoint entries of a to org:a",
        "stage org/a-3, which is org:a-3",
        "bring back org/a-3",
    ]


def test_steps_are_gathered_by_log_dir_and_one_without_steps_takes_no_part(tmp_path: Path) -> None:
    with opened(*two_disks(tmp_path)) as store:
        planner = ChangePlanner("try", "try it")
        first, second = store.log_dirs
        planner.add(second, Rename(0, "a-0", "b-0"))
        planner.add(first)
        planned = planner.planned()
        assert planned.intent.log_dirs == (second.directory_id,)
        assert list(planned.lines()) == [(second.path, "rename a-0 to b-0")]
        planner.add(first, Rename(0, "a-1", "b-1"))
        assert [step.at for step in planner.planned().intent.steps] == [0, 1]


def test_of_many_things_a_few_are_named() -> None:
    assert first_few(["a", "b"]) == "a, b"
    assert first_few([str(number) for number in range(MOST_NAMED + 3)]) == "0, 1, 2, 3, 4 and 3 more"


def test_replicas_that_are_live_twice_are_refused(tmp_path: Path) -> None:
    paths = two_disks(tmp_path)
    with opened(*paths) as store:
        fill_store(store, "orders", "clicks")
    fill(paths[1] / "orders-0")
    with opened(*paths) as store:
        check_no_duplicates(store, ["clicks"])
        for change in (
            lambda: rename_topic(store, "orders", "purchases"),
            lambda: convert(store, store.log_dirs[0].scheme.__class__("by-topic-id")),
        ):
            with pytest.raises(ChangeRefusedError, match=r"orders-0.*live in another log dir too"):
                change()
        assert store.get(TopicPartition("orders", 0))
