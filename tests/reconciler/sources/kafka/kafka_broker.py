"""A broker on a socket that answers by Kafka's own bytes: ApiVersions 3, Metadata 12, DescribeConfigs 1.

Enough for a real client to list and describe topics; everything else ends the connection.
"""

from __future__ import annotations

import socket
import struct
import threading
from types import TracebackType

from layout.ids import TopicId

CLUSTER = "XB4QhweWTe-kZwMNW25y1A"
METADATA, API_VERSIONS, DESCRIBE_CONFIGS = 3, 18, 32
_VERSIONS = {METADATA: (0, 12), API_VERSIONS: (0, 3), DESCRIBE_CONFIGS: (1, 1)}


class FakeBroker:
    """Topics by name: the ID (None for none), and the replicas of each partition, the first of which leads.

    Attributes:
        authorizer: in its configuration; empty: it checks no rights.
        hidden: topics that the user may not describe.
    """

    def __init__(self, topics: dict[str, tuple[TopicId | None, list[list[int]]]]) -> None:
        self.topics = topics
        self.authorizer = ""
        self.hidden: set[str] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> FakeBroker:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Who waits at a socket is woken by its shutdown, and not by its end.
        for each in (self._listener, *self._connections):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._connections):
            each.close()

    def _start(self, target: object, *arguments: object) -> None:
        assert callable(target)
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection.makefile("rwb") as stream:
                while len(head := stream.read(4)) == 4:
                    request = stream.read(struct.unpack(">i", head)[0])
                    answer = self._answer(request)
                    if answer is None:
                        break
                    stream.write(struct.pack(">i", len(answer)) + answer)
                    stream.flush()
        except OSError:
            return

    def _answer(self, request: bytes) -> bytes | None:
        key, _, correlation, client = struct.unpack_from(">hhih", request)
        head = struct.pack(">i", correlation)
        if key == API_VERSIONS:
            keys = [struct.pack(">hhh", each, *versions) + b"\0" for each, versions in _VERSIONS.items()]
            return head + struct.pack(">h", 0) + _array(keys) + struct.pack(">i", 0) + b"\0"
        if key == METADATA:
            return head + b"\0" + self._metadata(_named(request[10 + max(client, 0) + 1 :]))
        if key == DESCRIBE_CONFIGS:
            entry = _old_text("authorizer.class.name") + _old_text(self.authorizer) + bytes([1, 5, 0]) + bytes(4)
            results = struct.pack(">ihhb", 1, 0, -1, 4) + _old_text("1") + struct.pack(">i", 1) + entry
            return head + bytes(4) + results
        return None

    def _metadata(self, names: list[str] | None) -> bytes:
        host, port = self._listener.getsockname()[:2]
        broker = struct.pack(">i", 1) + _text(host) + struct.pack(">i", port) + b"\0\0"
        visible = [name for name in self.topics if name not in self.hidden]
        topics = [self._topic(name) for name in (visible if names is None else names)]
        return struct.pack(">i", 0) + _array([broker]) + _text(CLUSTER) + struct.pack(">i", 1) + _array(topics) + b"\0"

    def _topic(self, name: str) -> bytes:
        topic_id, partitions = self.topics.get(name, (None, []))
        error = 0 if name in self.topics else 3
        raw = topic_id.to_bytes() if topic_id else bytes(16)
        each = [
            struct.pack(">hiii", 0, number, replicas[0], 0) + _ints(replicas) + _ints(replicas) + _ints([]) + b"\0"
            for number, replicas in enumerate(partitions)
        ]
        return struct.pack(">h", error) + _text(name) + raw + b"\0" + _array(each) + struct.pack(">i", -(2**31)) + b"\0"


def _named(body: bytes) -> list[str] | None:
    """The topics that a Metadata request names; None: all. Short counts and names only."""
    if body[0] == 0:
        return None
    names, at = [], 1
    for _ in range(body[0] - 1):
        length = body[at + 16] - 1
        names.append(body[at + 17 : at + 17 + length].decode())
        at += 17 + length + 1
    return names


def _array(items: list[bytes]) -> bytes:
    assert len(items) < 127
    return bytes([len(items) + 1]) + b"".join(items)


def _ints(values: list[int]) -> bytes:
    return _array([struct.pack(">i", value) for value in values])


def _text(value: str) -> bytes:
    assert len(value) < 127
    return bytes([len(value) + 1]) + value.encode()


def _old_text(value: str) -> bytes:
    """As in versions that are not flexible."""
    return struct.pack(">h", len(value)) + value.encode()
