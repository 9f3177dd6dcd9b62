from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from logstore.rows import (
    ROW_SCHEMA,
    SCHEMA_VERSION,
    VARYING,
    VERSION_KEY,
    LogDirFacts,
    by_column,
    columns_to_batch,
    plain_row,
    to_batch,
    to_table,
    utf8,
)


def test_the_schema_carries_its_version_to_wherever_rows_are_written() -> None:
    assert ROW_SCHEMA.metadata == {VERSION_KEY: b"%d" % SCHEMA_VERSION}


def test_each_column_has_one_name_and_those_that_differ_from_row_to_row_are_among_them() -> None:
    assert len(set(ROW_SCHEMA.names)) == len(ROW_SCHEMA.names)
    assert set(VARYING) < set(ROW_SCHEMA.names)


FACTS = LogDirFacts("host", "/data", 5, "C", 1, None)


def test_the_table_has_the_row_schema_and_the_log_dirs_facts_in_every_row() -> None:
    table = to_table([to_batch([plain_row("a", "live", topic="a", partition=0)]), to_batch([])], FACTS)
    table.validate(full=True)
    assert table.schema.equals(ROW_SCHEMA, check_metadata=True)
    row = table.to_pylist()[0]
    assert (row["host"], row["log_dir"], row["scanned_ms"], row["node_id"]) == ("host", "/data", 5, 1)
    assert (row["name"], row["kind"], row["topic"], row["partition"], row["namespace"]) == ("a", "live", "a", 0, "")
    assert row["directory_id"] is row["bytes"] is row["leader_epoch"] is None


def test_no_batches_are_an_empty_table() -> None:
    assert to_table([], FACTS).schema.equals(ROW_SCHEMA, check_metadata=True)


def test_a_namespace_follows_from_its_topic_and_is_null_without_one() -> None:
    rows = [plain_row("x", "live", topic=topic) for topic in ("org:apache:orders", "orders", None)]
    assert to_batch(rows).column("namespace").to_pylist() == ["org:apache", "", None]


def test_bytes_that_are_not_utf8_stand_as_escapes_and_the_rest_is_untouched() -> None:
    name = b"caf\xc3\xa9\xff-0".decode("utf-8", "surrogateescape")
    assert utf8(name) == "café\\xff-0"
    batch = to_batch([plain_row(name, "live", topic=name[:-2]), plain_row("plain", "live")])
    assert batch.column("name").to_pylist() == ["café\\xff-0", "plain"]


@given(names=st.lists(st.binary(min_size=1, max_size=20), max_size=20))
def test_any_names_of_a_linux_directory_fit_into_arrow(names: list[bytes]) -> None:
    texts = [name.decode("utf-8", "surrogateescape") for name in names]
    rows = [plain_row(text, "foreign", topic=f"{text}:{text}", problem=text) for text in texts]
    table = to_table([to_batch(rows)], LogDirFacts("h", "\udcff", 0, None, None, None))
    table.validate(full=True)
    assert table["name"].type == pa.string()
    assert table.num_rows == len(names)


def test_rows_and_their_columns_give_the_same_batch() -> None:
    rows = [plain_row("a", "live", topic="org:a", partition=0), plain_row("caf\udce9", "foreign", problem="odd")]
    assert columns_to_batch(by_column(rows)).equals(to_batch(rows))
