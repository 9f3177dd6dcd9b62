"""A live ZooKeeper's address, and what is said where no ZooKeeper answers; the real one is in tests/zookeeper."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from reconciler.errors import MetadataError, UsageError
from reconciler.sources import load
from reconciler.sources.zookeeper import Znode, zookeeper_live


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("zk1:2181", ("zk1:2181", "")),
        ("zk1", ("zk1", "")),
        ("zk1:2181,zk2:2182/kafka", ("zk1:2181,zk2:2182", "/kafka")),
        ("zk1:2181/", ("zk1:2181", "")),
        ("[::1]:2181/a/b/", ("[::1]:2181", "/a/b")),
        ("10.0.0.1:1/brokers", ("10.0.0.1:1", "/brokers")),
    ],
)
def test_an_address_is_servers_and_a_chroot(address: str, expected: tuple[str, str]) -> None:
    assert zookeeper_live.split_address(address) == expected


@pytest.mark.parametrize(
    "address",
    [
        "",
        "/kafka",
        "a b",
        "zk1:",
        "zk1:0",
        "zk1:65536",
        "zk1:x",
        "zk1,,zk2",
        "zk1//a",
        "zk1/a//b",
        "zk1/../a",
        "zk1?a=b",
    ],
)
def test_what_is_no_address_is_refused_with_the_form_of_one(address: str) -> None:
    with pytest.raises(UsageError, match=r"zk:HOST:PORT\[,HOST:PORT…\]\[/chroot\] is expected"):
        zookeeper_live.load(address)


def test_without_kazoo_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    with pytest.raises(UsageError, match=r"pip install 'kafka-logstore\[zookeeper\]'"):
        load("zk:localhost:2181")


@contextmanager
def strangers(reply: bytes) -> Iterator[str]:
    """The address of a server that says the same to everybody and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(reply)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        # A listener that somebody waits at is woken by its shutdown, and not by its end.
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\4what", b"\xff" * 20], ids=repr)
def test_a_server_that_is_no_zookeeper_is_one_sentence(
    reply: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("kazoo", reason="kazoo is not installed")
    monkeypatch.setattr(zookeeper_live, "CONNECT_TIMEOUT_S", 0.5)
    with strangers(reply) as address, pytest.raises(MetadataError, match=f"{address}: no ZooKeeper answered within"):
        load(f"zk:{address}")
    assert capfd.readouterr() == ("", "")


def test_a_port_where_nobody_listens_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kazoo", reason="kazoo is not installed")
    monkeypatch.setattr(zookeeper_live, "CONNECT_TIMEOUT_S", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(MetadataError, match=r"Connection refused.*check host and port"):
            load(f"zk:127.0.0.1:{port}/kafka")


def test_the_digest_is_of_the_content_and_not_of_the_order() -> None:
    nodes = {"/a": Znode(b"1", 1, 5, 0), "/b": Znode(b"2", 2, 5, 0)}
    digest = zookeeper_live.content_digest(nodes)
    assert zookeeper_live.content_digest(dict(reversed(nodes.items()))) == digest
    changed = [
        {**nodes, "/a": Znode(b"3", 1, 5, 0)},
        {**nodes, "/a": Znode(b"1", 9, 5, 0)},
        {**nodes, "/a": Znode(b"1", 1, 5, 1)},
        {**nodes, "/c": Znode(b"", 1, 5, 0)},
        {"/a": nodes["/a"]},
    ]
    assert len({digest, *map(zookeeper_live.content_digest, changed)}) == 6
