"""The bytes of a ZooKeeper snapshot: what is read, and that every damage is one message with the byte."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import MetadataError
from reconciler.sources.zookeeper import jute
from tools.writers.zookeeper_writer import seal, snapshot_bytes

NODES = {"/brokers/topics/orders": b'{"version":1,"partitions":{"0":[1]}}', "/cluster/id": b'{"id":"x"}'}
SOUND = snapshot_bytes(NODES)
HEADER_BYTES = 16


def everything(_path: str) -> bool:
    return True


def read(data: bytes) -> jute.ZooKeeperSnapshot:
    return jute.read(data, "snapshot.1", everything)


def test_every_node_is_read_with_its_data_and_stat() -> None:
    data = snapshot_bytes(NODES, versions={"/cluster/id": 7}, czxids={"/cluster/id": 0x2A}, modified_ms=1234)
    snapshot = read(data)
    assert set(snapshot.nodes) == {
        "",
        "/brokers",
        "/brokers/topics",
        "/brokers/topics/orders",
        "/cluster",
        "/cluster/id",
    }
    assert snapshot.nodes["/cluster/id"] == jute.Znode(b'{"id":"x"}', 0x2A, 1234, 7)
    assert (snapshot.last_zxid, snapshot.modified_ms, snapshot.problem) == (0x2A, 1234, None)


def test_only_the_nodes_that_are_wanted_are_kept() -> None:
    snapshot = jute.read(SOUND, "snapshot.1", lambda path: path.startswith("/cluster/"))
    assert list(snapshot.nodes) == ["/cluster/id"]


def test_a_snapshot_of_a_server_before_3_6_ends_with_its_first_seal() -> None:
    old = snapshot_bytes(NODES, digest=False)
    assert read(old).problem is None
    assert len(old) < len(SOUND)


@pytest.mark.parametrize("additions", [struct.pack(">qiq", 1, 2, 3), struct.pack(">q", 9)])
def test_each_addition_of_newer_servers_may_stand_alone(additions: bytes) -> None:
    assert read(seal(snapshot_bytes(NODES, digest=False) + additions)).problem is None


def test_an_unknown_addition_is_a_problem_and_not_the_end() -> None:
    snapshot = read(SOUND + b"news")
    assert snapshot.nodes
    assert "bytes behind the checksum" in (snapshot.problem or "")


def test_a_damaged_addition_is_a_problem_and_not_the_end() -> None:
    damaged = bytearray(SOUND)
    damaged[-14] ^= 1
    assert "Adler-32" in (read(bytes(damaged)).problem or "")


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(MetadataError, match="at byte 0, the file is empty"):
        read(b"")


def test_another_file_is_refused_with_what_is_found() -> None:
    with pytest.raises(MetadataError, match="at byte 0, b'ZKSN' is expected and b'PK"):
        read(b"PK\x03\x04 and so on")


def test_another_version_is_refused() -> None:
    with pytest.raises(MetadataError, match="at byte 4, version 3 is not known"):
        read(struct.pack(">4siq", b"ZKSN", 3, -1))


@pytest.mark.parametrize("offset", [HEADER_BYTES, HEADER_BYTES + 16, HEADER_BYTES + 28])
def test_a_claim_of_two_gigabytes_is_refused_at_its_byte_without_being_believed(offset: int) -> None:
    # The three places hold the numbers of sessions, of access control lists, and of entries in the first list.
    damaged = SOUND[:offset] + struct.pack(">i", 2**31 - 1) + SOUND[offset + 4 :]
    with pytest.raises(MetadataError, match=f"at byte {offset}, 2147483647 .* are claimed"):
        read(damaged)


def test_a_negative_length_is_refused() -> None:
    damaged = SOUND[:HEADER_BYTES] + struct.pack(">i", -2) + SOUND[HEADER_BYTES + 4 :]
    with pytest.raises(MetadataError, match=f"at byte {HEADER_BYTES}, -2 sessions are claimed"):
        read(damaged)


class Counted(bytearray):
    """Counts the values that are read from it."""

    slices = 0

    def __getitem__(self, at: object) -> object:  # type: ignore[override]
        self.slices += 1
        return super().__getitem__(at)  # type: ignore[call-overload]


ACLS_AT = HEADER_BYTES + 4
NO_SESSION = struct.pack(">4siqi", b"ZKSN", 2, 0, 0)
MANY = struct.pack(">i", 100_000)


@pytest.mark.parametrize(
    ("beginning", "at", "said"),
    [
        (NO_SESSION, 100, "the node '' cannot follow ''"),
        (NO_SESSION + MANY, 36, "the index 0 of an access control list stands for the second time"),
        (NO_SESSION + struct.pack(">iq", 1, 0) + MANY, 40, "an access control entry has no scheme"),
        (NO_SESSION + struct.pack(">iii", 0, 0, jute.MAX_VALUE_BYTES + 1), 28, f"{jute.MAX_VALUE_BYTES} are the most"),
    ],
)
def test_any_number_of_zeros_is_refused_by_the_first_of_them(beginning: bytes, at: int, said: str) -> None:
    data = Counted(beginning + bytes(jute.MAX_VALUE_BYTES + 1000))
    with pytest.raises(MetadataError, match=f"at byte {at}, .*{said}"):
        read(data)  # type: ignore[arg-type]
    assert data.slices < 10


def test_sessions_are_passed_over_at_once() -> None:
    data = Counted(NO_SESSION[:-4] + struct.pack(">i", 1 << 20) + bytes(12 << 20) + SOUND[ACLS_AT + 12 :])
    with pytest.raises(MetadataError, match="Adler-32"):  # all of it was read, and only the seal is another file's
        read(data)  # type: ignore[arg-type]
    assert data.slices < 100


@pytest.mark.parametrize("path", ["", "brokers", "/brokers"])
def test_a_node_that_no_server_writes_there_is_refused(path: str) -> None:
    before, _, after = snapshot_bytes({"/brokers": b"", "/cluster": b""}).partition(b"/cluster")
    raw = path.encode()
    damaged = before[:-4] + struct.pack(">i", len(raw)) + raw + after
    with pytest.raises(MetadataError, match="cannot follow '/brokers'"):
        read(damaged)


def test_null_data_reads_as_empty() -> None:
    node = struct.pack(">i", 0) + struct.pack(">i", -1) + bytes(68)
    data = struct.pack(">4siqii", b"ZKSN", 2, 0, 0, 0) + node + struct.pack(">i", 1) + b"/"
    assert read(seal(data)).nodes[""].data == b""


def test_a_path_that_is_not_utf_8_is_refused() -> None:
    damaged = SOUND.replace(b"/brokers/topics/orders", b"/brokers/topics/order\xff")
    with pytest.raises(MetadataError, match="a path is not UTF-8"):
        read(damaged)


def test_a_changed_byte_of_data_is_found_by_the_checksum() -> None:
    damaged = SOUND.replace(b'"0":[1]', b'"0":[2]')
    first_seal = len(snapshot_bytes(NODES, digest=False)) - 13
    with pytest.raises(MetadataError, match=f"at byte {first_seal}, the Adler-32 checksum is"):
        read(damaged)


def test_a_seal_without_its_end_mark_is_refused() -> None:
    body = snapshot_bytes({}, digest=False)[:-13]
    with pytest.raises(MetadataError, match="the end mark is not '/'"):
        read(body + struct.pack(">qi", zlib.adler32(body), 1) + b"x")


def test_every_prefix_of_a_snapshot_is_refused() -> None:
    whole = snapshot_bytes(NODES, digest=False)
    for length in range(len(whole)):
        with pytest.raises(MetadataError, match="at byte"):
            read(whole[:length])


@settings(max_examples=300)
@given(st.data())
def test_arbitrary_damage_gives_a_snapshot_or_our_error(data: st.DataObject) -> None:
    mutated = bytearray(SOUND)
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(SOUND) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(read(bytes(mutated)), jute.ZooKeeperSnapshot)
    except MetadataError as error:
        assert "at byte" in str(error)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_behind_the_header_are_refused(tail: bytes) -> None:
    # Fewer than 200 random bytes hold no node tail and a right checksum: 2**-32 at best.
    with pytest.raises(MetadataError):
        read(struct.pack(">4siq", b"ZKSN", 2, 0) + tail)
