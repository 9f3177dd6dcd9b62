"""Golden vectors about names: what Kafka's own classes, or its rule stated anew, gave for each input."""

from __future__ import annotations

from typing import Any

import pytest

from layout.directory_name import DirectoryKind, delete_name, future_name, parse, stray_name
from layout.errors import InvalidNameError
from layout.segment_name import (
    FileKind,
    filename_prefix,
    metadata_snapshot_name,
    parse_metadata_snapshot,
    segment_file_name,
)
from layout.segment_name import parse as parse_file
from layout.topic import check_topic_name

Vector = dict[str, Any]

UNIQUE = "0123456789abcdef0123456789abcdef"
ABOUT_NAMES = ("dirname", "topic.", "filename", "snapshot.")
OF_BYTES = {"snapshot.file"}
"""A kind that begins like ours, but tells what a metadata snapshot contains."""

REASONS = {
    "empty-name": "it is empty",
    "dot-name": "'.' names a directory",
    "dotdot-name": "'..' names a directory",
    "name-too-long": "it has 250 characters",
    "illegal-char": "it has a character other than",
}
"""What the vectors call the first reason, and how our message begins to give it."""


@pytest.mark.shared(kinds=("dirname.parse",))
def test_a_directory_name_reads_as_kafka_reads_it(vector: Vector) -> None:
    given, expected = vector["input"], vector["output"]
    read = parse(given)
    if expected == "REJECT":
        # The vectors know the rule only; that brokers pass over one rejected name since 3.5 stands in FACTS §1.6.
        rejected = DirectoryKind.INTERNAL if given == "remote-log-index-cache" else DirectoryKind.FOREIGN
        assert (read.kind, read.partition) == (rejected, None)
        return
    kind = next((kind for kind in ("DELETE", "STRAY", "FUTURE") if expected.endswith(" " + kind)), "")
    assert f"topic={read.topic} partition={read.partition} {kind}".strip() == expected
    if read.topic == "__cluster_metadata":
        assert read.kind is DirectoryKind.INTERNAL
    else:
        assert read.kind is DirectoryKind[kind or "LIVE"]


@pytest.mark.shared(kinds=("dirname.capped",))
def test_a_delete_or_stray_name_is_cut_where_kafka_cuts_it(vector: Vector) -> None:
    given, expected = vector["input"], vector["output"]
    build = {"-delete": delete_name, "-stray": stray_name}[given["suffix"]]
    name = build("t" * given["topicLen"], given["partition"], UNIQUE)
    assert len(name) == expected["totalLen"]
    assert name == f"{'t' * expected['keptTopicChars']}-{given['partition']}.{UNIQUE}{given['suffix']}"


@pytest.mark.shared(kinds=("dirname.future(uncapped)",))
def test_a_future_name_is_as_long_as_kafka_makes_it(vector: Vector) -> None:
    given, expected = vector["input"], vector["output"]
    assert len(future_name("t" * given["topicLen"], given["partition"], UNIQUE)) == expected["totalLen"]


@pytest.mark.shared(kinds=("topic.validate",))
def test_a_topic_name_is_accepted_or_refused_for_the_same_first_reason(vector: Vector) -> None:
    given, expected = vector["input"], vector["output"]
    letter, star, count = given.partition("*")
    name = letter * int(count) if star else given
    if expected == "ok":
        check_topic_name(name)
        return
    with pytest.raises(InvalidNameError) as refused:
        check_topic_name(name)
    assert f"is no topic name: {REASONS[expected['error']['reason']]}" in str(refused.value)


@pytest.mark.shared(kinds=("filenamePrefixFromOffset",))
def test_a_segment_is_named_as_kafka_names_it(vector: Vector) -> None:
    given, expected = vector["input"], vector["output"]
    assert filename_prefix(given) == expected
    assert parse_file(segment_file_name(given, FileKind.LOG)).offset == given


@pytest.mark.shared(kinds=("filenamePrefixFromOffset(JVM locale ar_EG)",))
def test_a_segment_named_under_an_arabic_locale_reads_back(vector: Vector) -> None:
    given, expected = vector["input"], vector["output"]
    assert parse_file(expected + ".log")[1:3] == (FileKind.LOG, given)


@pytest.mark.shared(kinds=("snapshot.name",))
def test_a_metadata_snapshot_is_named_as_kafka_names_it(vector: Vector) -> None:
    given, expected = vector["input"], vector["output"]
    assert metadata_snapshot_name(*given) == expected


@pytest.mark.shared(kinds=("snapshot.name(JVM locale ar_EG)",))
def test_a_metadata_snapshot_named_under_an_arabic_locale_reads_back(vector: Vector) -> None:
    given, expected = vector["input"], vector["output"]
    read = parse_metadata_snapshot(expected + ".checkpoint")
    assert read is not None
    assert [read.offset, read.epoch] == given


@pytest.mark.shared(kinds=("snapshot.parse",))
def test_a_metadata_snapshot_name_reads_as_kafka_reads_it(vector: Vector) -> None:
    given, expected = vector["input"], vector["output"]
    if isinstance(expected, dict):
        with pytest.raises(InvalidNameError):
            parse_metadata_snapshot(given)
        return
    read = parse_metadata_snapshot(given)
    if read is None:
        assert expected == "<not a snapshot>"
    else:
        flags = f"partial={str(read.partial).lower()} deleted={str(read.deleted).lower()}"
        assert f"{read.offset}/{read.epoch} {flags}" == expected


@pytest.mark.shared
def test_no_vector_about_names_is_left_out(golden_vectors: list[Vector]) -> None:
    covered = {
        kind
        for test in globals().values()
        for marker in getattr(test, "pytestmark", [])
        for kind in marker.kwargs.get("kinds", ())
    }
    kinds = {vector["kind"] for vector in golden_vectors if vector["kind"].startswith(ABOUT_NAMES)}
    assert kinds - OF_BYTES == covered
