"""ACLs in ZooKeeper's nodes: they come back as they were written, and what cannot be read denies. KIP37-4, KIP37-6."""

from __future__ import annotations

import orjson
import pytest

from reconciler.sources.zookeeper import (
    EVERYBODY,
    TOPIC_OPERATIONS,
    Acl,
    AclOperation,
    decode_acls,
    encode_acls,
    operation_bits,
)

ACLS = (Acl("User:alice", AclOperation.READ), Acl(EVERYBODY, AclOperation.ALL, allow=False))


def test_acls_are_written_as_kafka_writes_them_sorted_and_each_once() -> None:
    assert orjson.loads(encode_acls([*ACLS, *ACLS])) == {
        "version": 1,
        "acls": [
            {"principal": "User:*", "permissionType": "Deny", "operation": "All", "host": "*"},
            {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"},
        ],
    }


def test_acls_come_back_as_they_were_written() -> None:
    assert decode_acls(encode_acls(ACLS)) == tuple(sorted(ACLS))
    every = [Acl("User:alice", operation) for operation in AclOperation]
    assert set(decode_acls(encode_acls(every))) == set(every)
    assert decode_acls(b"") == decode_acls(b"{}") == ()


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"acls":7}', b'{"acls":[{"principal":"User:a"}]}'])
def test_what_cannot_be_read_denies_everything_to_everybody(data: bytes) -> None:
    assert decode_acls(data) == (Acl(EVERYBODY, AclOperation.ALL, allow=False),)


def test_an_entry_reads_as_a_sentence() -> None:
    assert list(map(str, ACLS)) == ["User:alice Allow Read", "User:* Deny All"]


def test_the_operations_of_a_topic_have_kafkas_bits() -> None:  # KIP516-9
    assert operation_bits([]) == 0
    assert operation_bits([AclOperation.READ, AclOperation.READ, AclOperation.ALTER_CONFIGS]) == 1 << 3 | 1 << 11
    assert operation_bits(TOPIC_OPERATIONS) == 0b1101_1111_1000
    assert AclOperation.ALL not in TOPIC_OPERATIONS and AclOperation.CLUSTER_ACTION not in TOPIC_OPERATIONS
