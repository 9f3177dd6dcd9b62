"""What an argument stands for: a manifest, a pattern, a folder of a store; and the order in which files come."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore import InventoryError
from logstore.rows import expand, inventories_below
from logstore.rows.uris import join_uri, put
from tests.object_store import BUCKET, ObjectStore

NAMES = (
    "cluster=c/day=2026-11-24/broker=1/a.parquet",
    "cluster=c/day=2026-11-25/broker=1/b.parquet",
    "cluster=c/day=2026-11-25/broker=2/c d.arrow",
)
NONE = ("cluster=c/_SUCCESS", "_delta_log/x.parquet", "cluster=c/.hidden/y.parquet", "cluster=c/readme.txt")


def laid(folder: Path) -> Path:
    for name in (*NAMES, *NONE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


@pytest.fixture
def filled(tmp_path: Path, s3: ObjectStore) -> str:
    folder = f"s3://{BUCKET}/of%20all/"
    (tmp_path / "file").write_bytes(b"")
    for name in (*NAMES, *NONE):
        put(str(tmp_path / "file"), join_uri(folder, name))
    return folder


def uris(folder: str, *numbers: int) -> list[str]:
    return [join_uri(folder, NAMES[number]) for number in numbers]


def test_a_folder_gives_its_inventories_in_the_order_of_their_names(tmp_path: Path) -> None:
    assert inventories_below(str(laid(tmp_path / "x"))) == [f"{tmp_path}/x/{name}" for name in NAMES]
    assert inventories_below(str(tmp_path / "absent")) == []


def test_a_folder_of_a_store_gives_the_same_files(filled: str) -> None:
    for uri in (filled, filled.rstrip("/")):
        assert expand(uri) == uris(uri, 0, 1, 2)
    assert expand(f"{filled}?region=us-east-1") == [f"{each}?region=us-east-1" for each in uris(filled, 0, 1, 2)]
    assert expand(uris(filled, 2)[0]) == uris(filled, 2)


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [
        ("cluster=*/day=2026-11-25", (1, 2)),
        ("cluster=*/day=2026-11-25/", (1, 2)),
        ("*/*/broker=[1]/*.parquet", (0, 1)),
        ("**/*.parquet", (0, 1)),
        ("cluster=c/**/broker=2/*", (2,)),
        ("**", (0, 1, 2)),
    ],
)
def test_a_pattern_of_a_store_gives_what_matches_and_what_lies_below(
    filled: str, pattern: str, numbers: tuple[int, ...]
) -> None:
    assert expand(filled + pattern) == uris(filled, *numbers)


def test_a_pattern_of_paths_is_one_only_where_no_file_has_that_name(tmp_path: Path) -> None:
    laid(tmp_path)
    for start in (f"{tmp_path}", f"file://{tmp_path}"):
        assert expand(f"{start}/**/broker=1/*.parquet") == [f"{tmp_path}/{name}" for name in NAMES[:2]]
    (tmp_path / "[a]").write_bytes(b"")
    assert expand(f"{tmp_path}/[a]") == [f"{tmp_path}/[a]"]
    assert expand(f"{tmp_path}/absent*") == [f"{tmp_path}/absent*"]
    assert expand("") == [""]


def test_a_manifest_gives_what_its_lines_give_in_their_order(tmp_path: Path, filled: str) -> None:
    laid(tmp_path / "x")
    manifest = tmp_path / "list"
    manifest.write_text(f"# of today\n\n {uris(filled, 1)[0]} \n/disks/1/kafka\n{tmp_path}/x/*/*/broker=2/*\n")
    assert expand(f"@{manifest}") == [*uris(filled, 1), "/disks/1/kafka", f"{tmp_path}/x/{NAMES[2]}"]


def test_a_manifest_that_is_an_inventory_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.parquet").write_bytes(b"PAR1\x15\x04\0\nlist\n")
    with pytest.raises(InventoryError, match=r"one\.parquet is no list of inventories .* is given without @$"):
        expand(f"@{tmp_path}/one.parquet")


def test_a_manifest_may_begin_with_the_mark_of_windows_editors(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"\xef\xbb\xbf/disks/1\r\n# /disks/2\r\n")
    assert expand(f"@{tmp_path}/list") == ["/disks/1"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("# none\n", "names no path"), ("@other\n", "names another list, @other"), (None, "cannot be read: No such file")],
)
def test_a_manifest_that_says_nothing_is_refused(tmp_path: Path, text: str | None, sentence: str) -> None:
    if text is not None:
        (tmp_path / "list").write_text(text)
    with pytest.raises(InventoryError, match=sentence):
        expand(f"@{tmp_path}/list")


@pytest.mark.parametrize(
    ("below", "sentence"),
    [
        ("nothing/", r"nothing/ holds no inventory \(.*\): check it, or write .* -o s3://fleet/of%20all/nothing/$"),
        (
            "nothing/?region=us-east-1&scheme=http",
            r"with 'logstore scan' and this option: -o 's3://fleet/of%20all/nothing/\?region=us-east-1&scheme=http'$",
        ),
        ("cluster=x*/", r"cluster=x\*/ matches no inventory \(.*\); 7 files lie at s3://fleet/of%20all/: "),
    ],
)
def test_a_place_without_inventories_is_an_error_that_says_what_to_do(filled: str, below: str, sentence: str) -> None:
    with pytest.raises(InventoryError, match=sentence):
        expand(filled + below)
