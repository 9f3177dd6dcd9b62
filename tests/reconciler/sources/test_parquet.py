"""A saved desired state: what is loaded, and what is wrong with a folder that is not complete."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.desired import DESIRED_VERSION, Completeness, DesiredBuilder, DesiredState, MetadataIdentity, in_memory
from reconciler.errors import MetadataError, UsageError
from reconciler.sources import is_saved_state, parquet, save_state

IDENTITY = MetadataIdentity(
    "kraft",
    "/metadata",
    cluster_id="XB4QhweWTe-kZwMNW25y1A",
    completeness=Completeness.INCREMENTAL,
    scope=frozenset({3, 1}),
    offset=2**40,
    epoch=7,
    timestamp_ms=1_700_000_000_000,
    tail_uncommitted=True,
    digest="00ff",
    problems=("one", "two"),
)


def built(identity: MetadataIdentity = IDENTITY) -> DesiredState:
    builder = DesiredBuilder()
    builder.partition("orders", "b8tRS7h4TJ2Vt43Dp85v2A", 0, [1, 2], isr=[1], adding=[2], leader=1, leader_epoch=4)
    builder.partition("legacy", None, 0, [3], directories=["AAAAAAAAAAAAAAAAAAAAZA"])
    builder.broker(1, 77, False, ["AAAAAAAAAAAAAAAAAAAAZA"])
    return builder.build(identity)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_state(built(), str(tmp_path))
    return tmp_path


def test_what_was_saved_comes_back(saved: Path) -> None:
    state = parquet.load(str(saved))
    assert in_memory(state.replicas).equals(built().replicas.take([2, 0, 1]), check_metadata=True)
    assert state.topics.equals(built().topics, check_metadata=True)
    assert state.brokers.equals(built().brokers, check_metadata=True)
    assert state.identity == replace(IDENTITY, source="parquet", location=str(saved))


def test_a_topic_is_found_in_few_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "STATE_GROUP_ROWS", 2)
    builder = DesiredBuilder()
    for number in (3, 1, 2):
        builder.partition(f"t{number}", None, 0, [1, 2])
    save_state(builder.build(IDENTITY), str(tmp_path))
    footer = pq.read_metadata(tmp_path / "replicas.parquet")
    ranges = [footer.row_group(group).column(0).statistics for group in range(footer.num_row_groups)]
    assert [(each.min, each.max) for each in ranges] == [("t1", "t1"), ("t2", "t2"), ("t3", "t3")]


def test_replicas_are_sorted_by_topic_however_much_text_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "STATE_GROUP_ROWS", 3)
    state = built()
    unsorted = pa.concat_tables([state.replicas.slice(1), state.replicas.slice(0, 1)])
    assert unsorted["topic"].num_chunks == 2
    expected = unsorted.take([1, 0, 2])
    assert expected["topic"].to_pylist() == ["legacy", "orders", "orders"]
    for most in (parquet.MAX_TEXT_BYTES, 0):
        monkeypatch.setattr(parquet, "MAX_TEXT_BYTES", most)
        for replicas in (unsorted, expected):
            save_state(replace(state, replicas=replicas), str(tmp_path))
            loaded = parquet.load(str(tmp_path))
            assert in_memory(loaded.replicas).equals(expected, check_metadata=True)


def test_an_identity_that_says_nothing_comes_back(tmp_path: Path) -> None:
    plain = MetadataIdentity("request", "r.json")
    save_state(built(plain), str(tmp_path))
    assert parquet.load(str(tmp_path)).identity == replace(plain, source="parquet", location=str(tmp_path))


def test_a_path_that_is_not_utf_8_is_saved_as_an_escape(tmp_path: Path) -> None:
    odd = os.fsdecode(b"/disk\xff")
    save_state(built(replace(IDENTITY, location=odd, problems=(odd,))), str(tmp_path))
    assert parquet.load(str(tmp_path)).identity.problems == (r"/disk\udcff",)


def test_an_empty_state_comes_back(tmp_path: Path) -> None:
    save_state(DesiredBuilder().build(IDENTITY), str(tmp_path))
    state = parquet.load(str(tmp_path))
    assert (state.replicas.num_rows, state.topics.num_rows, state.brokers.num_rows) == (0, 0, 0)


def test_a_later_state_replaces_an_earlier_one(saved: Path) -> None:
    save_state(DesiredBuilder().build(IDENTITY), str(saved))
    assert parquet.load(str(saved)).topics.num_rows == 0


def test_the_tables_are_plain_parquet(saved: Path) -> None:
    assert sorted(pq.read_table(saved / "replicas.parquet")["node_id"].to_pylist()) == [1, 2, 3]


def test_a_saved_state_is_recognised(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert is_saved_state(str(saved))
    assert not is_saved_state(str(tmp_path_factory.mktemp("empty")))
    assert not is_saved_state(str(saved / "replicas.parquet"))


def test_a_folder_with_anything_else_in_it_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(UsageError, match=r"holds 'meta.properties'"):
        save_state(built(), str(tmp_path))
    assert os.listdir(tmp_path) == ["meta.properties"]


def test_a_folder_that_is_absent_or_a_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("absent", "file"):
        with pytest.raises(UsageError, match="cannot be saved there"):
            save_state(built(), str(tmp_path / name))


def test_a_save_that_breaks_off_never_loads(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(UsageError, match="No space left on device"):
        save_state(built(), str(saved))
    with pytest.raises(MetadataError, match=r"identity.json is no JSON"):
        parquet.load(str(saved))


@pytest.mark.parametrize("name", ["identity.json", "replicas.parquet", "topics.parquet", "brokers.parquet"])
def test_each_file_that_is_absent_empty_or_cut_short_is_named(saved: Path, name: str) -> None:
    path = saved / name
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], b""):
        path.write_bytes(data)
        with pytest.raises(MetadataError, match=name):
            parquet.load(str(saved))
    path.unlink()
    with pytest.raises(MetadataError, match=name):
        parquet.load(str(saved))


def test_tables_of_another_state_are_refused(saved: Path) -> None:
    pq.write_table(built().topics.slice(0, 1), saved / "topics.parquet")
    with pytest.raises(MetadataError, match=r"topics.parquet has 1 rows where identity.json says 2"):
        parquet.load(str(saved))


def test_a_table_without_a_column_is_refused_with_its_name(saved: Path) -> None:
    pq.write_table(built().replicas.drop_columns(["isr_size"]), saved / "replicas.parquet")
    with pytest.raises(MetadataError, match=r"replicas.parquet .* it lacks isr_size"):
        parquet.load(str(saved))


def test_a_column_of_another_type_is_refused(saved: Path) -> None:
    table = built().topics
    pq.write_table(table.set_column(2, "partitions", table["partitions"].cast(pa.int64())), saved / "topics.parquet")
    with pytest.raises(MetadataError, match=r"topics.parquet does not have the columns .*partitions: int64"):
        parquet.load(str(saved))


def edit(saved: Path, change: Any) -> None:
    path = saved / "identity.json"
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


def test_another_schema_version_is_refused(saved: Path) -> None:
    edit(saved, lambda document: document.update(schema_version=99))
    with pytest.raises(MetadataError, match=f"schema version 99; this program reads {DESIRED_VERSION}"):
        parquet.load(str(saved))


@pytest.mark.parametrize("content", ["[]", "7", "null", "{}"])
def test_an_identity_of_another_shape_is_refused(saved: Path, content: str) -> None:
    (saved / "identity.json").write_text(content)
    with pytest.raises(MetadataError, match="schema version None"):
        parquet.load(str(saved))


def test_an_identity_without_rows_or_fields_is_refused(saved: Path) -> None:
    edit(saved, lambda document: document.update(identity=[]))
    with pytest.raises(MetadataError, match="has no identity"):
        parquet.load(str(saved))
    edit(saved, lambda document: document.pop("rows"))
    with pytest.raises(MetadataError, match="how many rows"):
        parquet.load(str(saved))


def test_all_wrong_fields_of_an_identity_are_named(saved: Path) -> None:
    wrong = {"scope": [True], "offset": 1.5, "completeness": "SOME", "problems": [1], "digest": None, "cluster_id": 3}
    edit(saved, lambda document: document["identity"].update(wrong))
    with pytest.raises(MetadataError, match="cluster_id, completeness, scope, offset, digest, problems cannot be read"):
        parquet.load(str(saved))


def test_an_identity_that_is_too_long_is_not_read(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_IDENTITY_BYTES", 10)
    with pytest.raises(MetadataError, match="longer than 10 bytes"):
        parquet.load(str(saved))


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, reason in (("absent", "is not there"), ("file", "is no folder")):
        with pytest.raises(UsageError, match=reason):
            parquet.load(str(tmp_path / name))


@pytest.mark.parametrize("name", ["identity.json", "replicas.parquet", "topics.parquet", "brokers.parquet"])
def test_a_byte_that_was_damaged_anywhere_is_refused(saved: Path, name: str) -> None:
    path = saved / name
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x81]) + whole[position + 1 :])
        with pytest.raises(MetadataError):
            parquet.load(str(saved))


def test_an_identity_that_was_edited_is_refused_and_named(saved: Path) -> None:
    edit(saved, lambda document: document["identity"].update(offset=1))
    with pytest.raises(MetadataError, match=r"identity.json changed after the state was saved"):
        parquet.load(str(saved))
    edit(saved, lambda document: document.pop("crc32c"))
    with pytest.raises(MetadataError, match="has no checksums: save the state again"):
        parquet.load(str(saved))
