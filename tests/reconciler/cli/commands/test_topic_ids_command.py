"""``logstore topic-ids``: what it says, what it writes when it is asked to, and how it ends."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import Result

from reconciler.cli.commands import topic_ids as topic_ids_command
from tests.reconciler.topic_ids.test_topic_ids_write import GOOD, Tree

Run = Callable[..., Result]


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> Tree:
    """What the command connects to."""
    made = Tree()

    @contextmanager
    def connect(_address: str) -> Iterator[Any]:
        yield made

    monkeypatch.setattr(topic_ids_command, "connect", connect)
    return made


def states(result: Result) -> dict[str, str]:
    return {each["topic"]: each["state"] for each in json.loads(result.stdout)["topics"]}


def test_a_look_writes_nothing_and_says_what_comes_next(tree: Tree, run: Run) -> None:
    before = dict(tree.nodes)
    result = run("topic-ids", "zk:2181")
    assert (result.exit_code, "--assign gives an ID" in result.stderr) == (1, True)
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:]] == [["without", "id"]] * 2
    assert tree.nodes == before


# KIP516-11
def test_ids_are_given_to_what_is_chosen_and_the_second_run_has_nothing_to_do(tree: Tree, run: Run) -> None:
    result = run("topic-ids", "zk:2181", "--assign", "--topic", "org:*", "--format", "json")
    assert (result.exit_code, states(result)) == (0, {"org:orders": "assigned"})
    assert tree.nodes["/brokers/topics/orders"][0] == GOOD
    assert run("topic-ids", "zk:2181", "--assign").exit_code == 0
    after = dict(tree.nodes)
    again = run("topic-ids", "zk:2181", "--assign", "--format", "json")
    assert (again.exit_code, set(states(again).values())) == (0, {"has_id"})
    assert tree.nodes == after


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_what_was_written_is_summed_up_where_the_output_has_no_room(tree: Tree, run: Run) -> None:
    result = run("topic-ids", "zk:2181", "--assign", "-o", "/dev/full")
    assert result.exit_code == 4
    assert "/dev/full is incomplete: No space left" in result.stderr
    assert "2 topics: 2 assigned" in result.stderr


def test_a_controller_in_office_is_a_refusal_with_its_override(tree: Tree, run: Run) -> None:
    tree.put("/controller", b'{"brokerid":1}')
    before = dict(tree.nodes)
    result = run("topic-ids", "zk:2181", "--assign")
    assert (result.exit_code, "(override: --running-controller)" in result.stderr) == (3, True)
    assert tree.nodes == before
    assert run("topic-ids", "zk:2181", "--assign", "--running-controller").exit_code == 0


def test_what_was_overtaken_makes_the_run_partly_failed(tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    written = topic_ids_command.assign_topic_id

    def overtaken(client: Any, seen: Any, topic: Any, topic_id: Any) -> str | None:
        if topic.topic == "orders":
            tree.put("/brokers/topics/orders", GOOD)
        return written(client, seen, topic, topic_id)

    monkeypatch.setattr(topic_ids_command, "assign_topic_id", overtaken)
    result = run("topic-ids", "zk:2181", "--assign", "--format", "json")
    assert (result.exit_code, states(result)) == (4, {"orders": "not_written", "org:orders": "assigned"})


def test_an_interrupt_says_how_far_it_came(tree: Tree, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(topic_ids_command, "assign_topic_id", interrupted)
    result = run("topic-ids", "zk:2181", "--assign")
    assert (result.exit_code, "interrupted after 0 topics" in result.stderr) == (130, True)


def test_an_address_that_is_none_is_a_usage_error(run: Run) -> None:
    result = run("topic-ids", "not an address")
    assert (result.exit_code, "Traceback" in result.output) == (2, False)
