"""Inventories: what is written is read, and what is none is refused in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logstore import InventoryError
from logstore.rows import ROW_SCHEMA, SCHEMA_VERSION, VERSION_KEY, InventoryForm, inventory


def rows(*names: str) -> pa.Table:
    return pa.Table.from_pylist(
        [{"name": name, "log_dir": "/disks/1", "kind": "log_dir" if name == "." else "live"} for name in names],
        schema=ROW_SCHEMA,
    )


def written(path: Path, form: InventoryForm, *tables: pa.Table) -> str:
    with path.open("wb") as out:
        inventory.write_inventory(tables, out, form)
    return str(path)


@pytest.mark.parametrize("form", list(InventoryForm))
def test_what_is_written_is_read(tmp_path: Path, form: InventoryForm) -> None:
    path = written(tmp_path / "inventory", form, rows(".", "a-0"), rows(), rows("b-0"))
    assert inventory.inventory_form(path) is form
    assert inventory.read_inventory(path).equals(pa.concat_tables([rows(".", "a-0"), rows("b-0")]))
    assert [row["name"] for row in inventory.inventory_log_dirs(path)] == ["."]


@pytest.mark.parametrize("form", list(InventoryForm))
def test_an_inventory_of_nothing_is_still_one(tmp_path: Path, form: InventoryForm) -> None:
    path = written(tmp_path / "inventory", form)
    inventory.check_inventory(path)
    assert inventory.read_inventory(path).num_rows == 0


def test_small_tables_are_gathered_into_one_row_group(tmp_path: Path) -> None:
    path = written(tmp_path / "inventory", InventoryForm.PARQUET, *(rows(f"a-{number}") for number in range(50)))
    assert pq.ParquetFile(path).num_row_groups == 1


def test_the_schema_version_travels_with_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "inventory", InventoryForm.PARQUET, rows("a-0"))
    assert pq.read_schema(path).metadata[VERSION_KEY] == str(SCHEMA_VERSION).encode()


def test_columns_that_a_later_release_added_are_left_out(tmp_path: Path) -> None:
    path = str(tmp_path / "inventory")
    pq.write_table(rows("a-0").append_column("more", pa.array([1])), path)
    assert inventory.read_inventory(path).equals(rows("a-0"))


def test_text_in_large_strings_is_text(tmp_path: Path) -> None:
    path, index = str(tmp_path / "inventory"), ROW_SCHEMA.get_field_index("name")
    pq.write_table(rows("a-0").set_column(index, "name", pa.array(["a-0"], pa.large_string())), path)
    assert inventory.read_inventory(path)["name"].to_pylist() == ["a-0"]


def test_an_unknown_schema_version_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "inventory")
    pq.write_table(rows("a-0").replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION + 1).encode()}), path)
    with pytest.raises(InventoryError, match=f"schema version {SCHEMA_VERSION + 1}.*same release"):
        inventory.check_inventory(path)


def test_missing_columns_are_named(tmp_path: Path) -> None:
    path = str(tmp_path / "inventory")
    pq.write_table(rows("a-0").drop_columns(["kind", "topic_id", "inode"]), path)
    with pytest.raises(InventoryError, match="lacks the columns kind, topic_id; write"):
        inventory.check_inventory(path)


def test_columns_of_another_type_are_named(tmp_path: Path) -> None:
    path, index = str(tmp_path / "inventory"), ROW_SCHEMA.get_field_index("partition")
    pq.write_table(rows("a-0").set_column(index, "partition", pa.array(["0"])), path)
    with pytest.raises(InventoryError, match=r"partition \(string instead of int32\)"):
        inventory.check_inventory(path)


@pytest.mark.parametrize("form", list(InventoryForm))
@pytest.mark.parametrize("cut", [5, 300, -1])
def test_a_file_that_was_not_written_to_its_end_is_refused(tmp_path: Path, form: InventoryForm, cut: int) -> None:
    path = Path(written(tmp_path / "inventory", form, rows("a-0")))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InventoryError, match="damaged or was not written to its end"):
        inventory.read_inventory(str(path))


@pytest.mark.parametrize("content", [b"", b"PAR", b"not an inventory"])
def test_any_other_file_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert inventory.inventory_form(str(path)) is None
    with pytest.raises(InventoryError, match="is no inventory"):
        inventory.check_inventory(str(path))


def test_what_is_no_plain_file_has_no_form(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert [inventory.inventory_form(str(tmp_path / name)) for name in ("fifo", "absent", ".")] == [None, None, None]


def test_a_byte_that_was_damaged_anywhere_is_found(tmp_path: Path) -> None:
    path = tmp_path / "inventory"
    written(path, InventoryForm.PARQUET, rows(".", *(f"topic-{number}" for number in range(20))))
    whole, read = path.read_bytes(), inventory.read_inventory(str(path))
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x80]) + whole[position + 1 :])
        try:
            found = inventory.read_inventory(str(path))
        except InventoryError:
            continue
        assert found.equals(read), f"byte {position}"  # in the footer, not every byte bears on the rows


def test_an_inventory_of_another_writer_has_no_checksum_and_is_read(tmp_path: Path) -> None:
    pq.write_table(rows(".", "a-0"), tmp_path / "inventory")
    assert inventory.read_inventory(str(tmp_path / "inventory")).num_rows == 2


def test_a_path_is_a_path_and_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("s3:", "file:", "node_id=5", "a[1]*?"):
        (tmp_path / name).mkdir()
        assert inventory.read_inventory(written(Path(name, "x"), InventoryForm.PARQUET, rows("."))).equals(rows("."))


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / os.fsdecode(b"\xff"), InventoryForm.PARQUET, rows("."))
    for read in (inventory.check_inventory, lambda path: inventory.find_rows(path, {"topic": ["a"]})):
        with pytest.raises(InventoryError, match="has a name that is not UTF-8, which no engine can open: rename it"):
            read(path)


def test_an_inventory_that_this_user_may_not_read_is_none_of_another_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "x", InventoryForm.PARQUET, rows("."))
    monkeypatch.setattr(inventory, "inventory_form", lambda path: None)  # as of a file that cannot be opened
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InventoryError, match="x cannot be read: Permission denied; ask as another user, or as root"):
        inventory.check_inventory(path)


@pytest.mark.parametrize("form", list(InventoryForm))
def test_an_inventory_of_an_older_release_is_read_and_what_it_lacks_is_unknown(
    tmp_path: Path, form: InventoryForm
) -> None:
    older = rows(".", "a-0").select(inventory.NEEDED)
    path = str(tmp_path / "inventory")
    with open(path, "wb") as out:
        inventory.write_inventory([older], out, form, older.schema)
    found = inventory.read_inventory(path)
    assert found.schema == ROW_SCHEMA
    assert found.select(inventory.NEEDED).equals(older)
    assert found["segments"].null_count == 2
    assert [row["host"] for row in inventory.inventory_log_dirs(path)] == [None]
    assert not inventory.has_all_columns(path)
    inventory.complete_inventory(path, f"{path}-whole")
    assert inventory.read_inventory(f"{path}-whole").equals(found)
    assert inventory.has_all_columns(f"{path}-whole")
