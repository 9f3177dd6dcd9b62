"""meta.properties, versions 0 and 1."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import BrokerEffect, DamagedFileError
from layout.ids import DirectoryId
from layout.meta_properties import MetaProperties, encode, parse, to_properties
from layout.scheme import Scheme

DIRECTORY_ID = DirectoryId.parse("s33AdXtkR8Gf_xRO-R_dpA")
ASCII = st.text(alphabet=st.characters(max_codepoint=0x7E), max_size=12)
KNOWN = {"version", "cluster.id", "broker.id", "node.id", "directory.id", "logstore.scheme"}


def test_version_1_holds_cluster_node_and_directory() -> None:
    data = b"#\n#date\nnode.id=1\ndirectory.id=s33AdXtkR8Gf_xRO-R_dpA\nversion=1\ncluster.id=AtgGav8yQjiaJ3rTXE7VCA\n"
    assert parse(data) == MetaProperties(1, "AtgGav8yQjiaJ3rTXE7VCA", 1, DIRECTORY_ID)


def test_an_empty_file_is_version_0_with_nothing() -> None:
    assert parse(b"") == MetaProperties(0)


def test_version_0_reads_broker_id_and_keeps_node_id_among_the_others() -> None:
    assert parse(b"broker.id=3\nnode.id=5\n") == MetaProperties(0, None, 3, other={"node.id": "5"})


def test_the_scheme_marks_a_log_dir_as_ours() -> None:
    found = parse(b"version=1\nnode.id=1\ncluster.id=c\nlogstore.scheme=namespaced\nfuture.key=x\n")
    assert found.scheme == "namespaced"
    assert found.other == {"future.key": "x"}


def test_only_the_version_is_trimmed() -> None:
    assert parse(b"version=1\\t \nnode.id=+01\ncluster.id= c \n") == MetaProperties(1, "c ", 1)
    with pytest.raises(DamagedFileError, match=r"node\.id"):
        parse(b"version=1\nnode.id=1 \ncluster.id=c\n")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"version=2\n", "version 2 is not known"),
        (b"version=-1\n", "version -1 is not known"),
        (b"version=orange\n", "'orange' is no integer"),
        (b"version=\n", "'' is no integer"),
        (b"version=1\nnode.id=1\n", "cluster.id is missing"),
        (b"version=1\ncluster.id=c\nbroker.id=1\n", "node.id is missing"),
        (b"version=0\nbroker.id=2147483648\n", "broker.id: '2147483648' does not fit 32 bits"),
        (b"version=0\ndirectory.id=bad\n", "directory.id: 'bad' is no ID"),
        (b"cluster.id=\\u12\n", "malformed"),
    ],
)
def test_damage_takes_the_log_dir_offline_and_says_why(data: bytes, problem: str) -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse(data)
    assert problem in str(raised.value)
    assert raised.value.file == "meta.properties"
    assert raised.value.effect is BrokerEffect.LOG_DIR_OFFLINE


def test_all_reasons_come_at_once() -> None:
    with pytest.raises(DamagedFileError) as raised:
        parse(b"version=1\nnode.id=x\ndirectory.id=bad\n")
    assert [reason.split(" ")[0] for reason in raised.value.problem.split("; ")] == [
        "cluster.id",
        "node.id:",
        "directory.id:",
    ]


@pytest.mark.parametrize(
    ("version", "cluster_id", "node_id"), [(1, None, 1), (1, "c", None), (2, "c", 1), (-1, None, None)]
)
def test_an_identity_that_breaks_its_version_cannot_be_built(
    version: int, cluster_id: str | None, node_id: int | None
) -> None:
    with pytest.raises(DamagedFileError):
        MetaProperties(version, cluster_id, node_id)


def test_the_writer_sorts_the_keys_below_two_comment_lines() -> None:
    identity = MetaProperties(0, "c", 1, DIRECTORY_ID, "flat", {"apple": "1", "zebra": "2"})
    assert encode(identity, "today").decode().splitlines() == [
        "#",
        "#today",
        "apple=1",
        "broker.id=1",
        "cluster.id=c",
        "directory.id=s33AdXtkR8Gf_xRO-R_dpA",
        "logstore.scheme=flat",
        "version=0",
        "zebra=2",
    ]


def test_what_is_not_known_is_not_written() -> None:
    assert to_properties(MetaProperties(0)) == {"version": "0"}


@given(
    version=st.sampled_from([0, 1]),
    cluster_id=ASCII,
    node_id=st.integers(-(2**31), 2**31 - 1),
    directory_id=st.none() | st.binary(min_size=16, max_size=16).map(DirectoryId),
    scheme=st.none() | st.sampled_from(list(map(str, Scheme))),
    other=st.dictionaries(ASCII.filter(lambda key: key not in KNOWN), ASCII, max_size=3),
)
def test_an_ascii_identity_survives_a_round_trip(
    version: int,
    cluster_id: str,
    node_id: int,
    directory_id: DirectoryId | None,
    scheme: str | None,
    other: dict[str, str],
) -> None:
    identity = MetaProperties(version, cluster_id, node_id, directory_id, scheme, other)
    assert parse(encode(identity, "date")) == identity


@given(st.lists(st.sampled_from([*KNOWN, "=", "1", "0", "A" * 22, "\n", "\\", " ", "\\u00e", "é"]), max_size=15))
def test_any_file_gives_an_identity_or_our_own_error(parts: list[str]) -> None:
    try:
        identity = parse("".join(parts).encode("iso-8859-1"))
    except DamagedFileError:
        return
    assert identity.version in (0, 1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"scheme": "nope"}, "logstore.scheme is none of flat, namespaced, by-topic-id: 'nope'"),
        ({"scheme": ["flat"]}, "logstore.scheme is none of"),
        ({"cluster_id": 5}, "cluster.id is no text: 5"),
        ({"node_id": "1"}, "the node ID is no int32: '1'"),
        ({"node_id": 1 << 31}, "the node ID is no int32"),
        ({"directory_id": "s33AdXtkR8Gf_xRO-R_dpA"}, "directory.id is no DirectoryId"),
    ],
)
def test_a_value_of_no_use_to_the_file_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(DamagedFileError, match=re.escape(said)):
        MetaProperties(**{"version": 1, "cluster_id": "C", "node_id": 1, **wrong})


def test_a_scheme_of_another_release_is_read_as_a_broker_reads_it_and_made_by_nobody() -> None:
    found = parse(b"version=1\ncluster.id=C\nnode.id=1\nlogstore.scheme=zigzag\n")
    assert (found.scheme, parse(encode(found, "today"))) == ("zigzag", found)
    with pytest.raises(DamagedFileError, match="zigzag"):
        replace(found, node_id=2)
