"""``logstore namespace configs`` and ``acls``: what they show, write, and refuse. KIP37-4, KIP37-5, KIP37-6."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import Result

from reconciler.cli.commands.ours import namespace_nodes
from reconciler.sources.zookeeper import decode_acls, decode_config, encode_registration
from tests.reconciler.namespaces.tree import SimulatedClient

Run = Callable[..., Result]
APACHE = "/config/topics/org/apache"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> SimulatedClient:
    """What the commands connect to."""
    made = SimulatedClient()

    @contextmanager
    def connect(_address: str) -> Iterator[Any]:
        yield made

    monkeypatch.setattr(namespace_nodes, "connect", connect)
    return made


def cells(result: Result) -> list[list[str]]:
    return [line.split() for line in result.stdout.splitlines()[1:]]


def test_configs_are_set_removed_and_shown_with_the_tier_that_gives_them(client: SimulatedClient, run: Run) -> None:
    assert (
        run("namespace", "configs", "zk:2181", "org", "--set", "retention.ms=5", "--set", "segment.ms=9").exit_code == 0
    )
    result = run("namespace", "configs", "zk:2181", "org:apache", "--set", "retention.ms=7")
    assert (result.exit_code, "org:apache: written; 2 of 2 registered brokers know namespaces" in result.stderr) == (
        0,
        True,
    )
    assert cells(result) == [["retention.ms", "7", "org:apache"], ["segment.ms", "9", "org"]]
    assert run("namespace", "configs", "zk:2181", "org:apache", "--remove", "retention.ms").exit_code == 0
    shown = run("namespace", "configs", "zk:2181", "org:apache")
    assert cells(shown) == [["retention.ms", "5", "org"], ["segment.ms", "9", "org"]]
    assert "org:apache: 2 configs, its own and inherited ones" in shown.stderr
    assert decode_config(client.session.get(APACHE).data) == {}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_what_was_written_is_summed_up_where_the_output_has_no_room(client: SimulatedClient, run: Run) -> None:
    result = run("namespace", "configs", "zk:2181", "org", "--set", "retention.ms=5", "-o", "/dev/full")
    assert result.exit_code == 4
    assert "/dev/full is incomplete: No space left" in result.stderr
    assert "org: written; 2 of 2 registered brokers know namespaces" in result.stderr
    assert decode_config(client.session.get("/config/topics/org").data) == {"retention.ms": "5"}


def test_acls_are_added_removed_and_shown_with_which_count(client: SimulatedClient, run: Run) -> None:
    above = ("--allow", "User:ann", "All", "--deny", "User:bob", "Write")
    assert run("namespace", "acls", "zk:2181", "org", *above).exit_code == 0
    result = run("namespace", "acls", "zk:2181", "org:apache", "--allow", "User:bob", "Read", "--format", "json")
    found = json.loads(result.stdout)
    assert (found["namespace"], [tuple(each.values()) for each in found["acls"]]) == (
        "org:apache",
        [
            ("User:bob", "Allow", "Read", "org:apache", "yes"),
            ("User:ann", "Allow", "All", "org", "no"),
            ("User:bob", "Deny", "Write", "org", "yes"),
        ],
    )
    gone = ("--remove-allow", "User:ann", "All", "--remove-deny", "User:bob", "Write")
    assert run("namespace", "acls", "zk:2181", "org", *gone).exit_code == 0
    assert decode_acls(client.session.get("/kafka-acl/Namespace/org").data) == ()


def test_a_dry_run_shows_what_would_hold_and_writes_nothing(client: SimulatedClient, run: Run) -> None:
    result = run("namespace", "configs", "zk:2181", "org:apache", "--set", "retention.ms=7", "--dry-run")
    assert (result.exit_code, cells(result)) == (0, [["retention.ms", "7", "org:apache"]])
    assert "this would hold; nothing was written" in result.stderr
    assert client.session.find(APACHE) is None


def test_older_brokers_are_a_refusal_with_its_override(client: SimulatedClient, run: Run) -> None:
    client.register(2, encode_registration("broker-2", 9092))
    for words in (
        ("configs", "zk:2181", "org:apache", "--set", "retention.ms=7"),
        ("acls", "zk:2181", "org:apache", "--allow", "User:ann", "All"),
    ):
        refused = run("namespace", *words)
        assert (refused.exit_code, "(override: --older-brokers)" in refused.stderr) == (3, True)
        assert run("namespace", *words, "--dry-run").exit_code == 3
    assert client.session.find(APACHE) is None
    assert run("namespace", "configs", "zk:2181", "org:apache").exit_code == 0, "a look is allowed"
    written = run("namespace", "configs", "zk:2181", "org:apache", "--set", "retention.ms=7", "--older-brokers")
    assert (written.exit_code, "1 of 2 registered brokers know namespaces" in written.stderr) == (0, True)


def test_another_writer_wins_and_what_is_there_is_shown(
    client: SimulatedClient, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = namespace_nodes.write_configs

    def overtaken(*given: Any) -> str | None:
        client.session.set("/controller_epoch", b"4")
        return written(*given)

    monkeypatch.setattr(namespace_nodes, "write_configs", overtaken)
    result = run("namespace", "configs", "zk:2181", "org", "--set", "retention.ms=7")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "org: nothing was written: " in result.stderr and "run it again" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("configs", "zk:2181", "net"), 3, "net was not created"),
        (("configs", "zk:2181", ""), 2, "name a namespace"),
        (("configs", "zk:2181", "org", "--set", "retention.ms"), 2, "NAME=VALUE is expected"),
        (("configs", "zk:2181", "org", "--set", "retention.mss=1"), 2, "retention.ms"),
        (("configs", "zk:2181", "org", "--remove", "retention.ms"), 2, "is not set for the namespace itself"),
        (("acls", "zk:2181", "org", "--allow", "ann", "All"), 2, "is no principal"),
        (("acls", "zk:2181", "org", "--remove-deny", "User:ann", "All"), 2, "has no User:ann Deny All"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    client: SimulatedClient, run: Run, words: tuple[str, ...], code: int, text: str
) -> None:
    result = run("namespace", *words)
    assert (result.exit_code, text in result.stderr, result.stderr.count("\n")) == (code, True, 1), result.stderr
