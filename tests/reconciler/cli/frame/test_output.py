"""Where data goes."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pyarrow as pa
import pytest

from reconciler.cli.frame import (
    Format,
    PartlyFailedError,
    check_output,
    destination,
    is_standard,
    refuse_inside,
    write_rows,
)
from reconciler.errors import UsageError

FULL = Path("/dev/full")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_file_takes_the_bytes(tmp_path: Path) -> None:
    with destination(str(tmp_path / "file")) as out:
        out.write(b"data")
    assert (tmp_path / "file").read_bytes() == b"data"


@pytest.mark.parametrize("path", [None, "-"])
def test_no_file_and_a_dash_are_standard_output(path: str | None, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert is_standard(path)
    with destination(path) as out:
        out.write(b"data")
    assert capfdbinary.readouterr().out == b"data"


def test_a_file_that_cannot_be_opened_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file"), destination(str(tmp_path / "a" / "b")):
        pass
    with pytest.raises(UsageError, match="cannot be written: Is a directory"), destination(str(tmp_path)):
        pass


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("form", [Format.NDJSON, Format.CSV, Format.PARQUET, Format.ARROW])
def test_a_full_disk_is_told_as_incomplete_output(form: Format) -> None:
    table = pa.table({"name": ["x" * 100] * 10_000})
    with (
        pytest.raises(PartlyFailedError, match=r"/dev/full is incomplete: .*No space left"),
        destination(str(FULL)) as out,
    ):
        write_rows(form, [table], table.schema, 1, out)


def test_binary_data_is_kept_from_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    with pytest.raises(UsageError, match="parquet is nothing for a terminal: give -o FILE"):
        check_output(Format.PARQUET, None, [])
    check_output(Format.PARQUET, str(tmp_path / "file"), [])
    check_output(Format.JSON, None, [])


@pytest.mark.parametrize("path", ["disk/out.json", "disk/deep/out.json", "link/out.json", "disk"])
def test_nothing_is_written_into_a_log_dir(tmp_path: Path, path: str) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    with pytest.raises(UsageError, match="lies in the log dir"):
        refuse_inside(str(tmp_path / path), [str(tmp_path / "disk")])


def test_beside_a_log_dir_is_not_in_it(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    refuse_inside(str(tmp_path / "disk-2" / "out.json"), [str(tmp_path / "disk")])


def test_closed_standard_output_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(UsageError, match="standard output is closed"), destination(None):
        pass


def test_a_log_dir_that_was_not_given_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "disk" / "deep").mkdir(parents=True)
    (tmp_path / "disk" / "meta.properties").touch()
    with pytest.raises(UsageError, match=r"disk, where nothing is written: set it elsewhere"):
        refuse_inside(str(tmp_path / "disk" / "deep" / "report"), [], "set it elsewhere")


@pytest.mark.parametrize(
    ("name", "reason"), [("absent/file", "No such file or directory"), (".", "Is a directory"), ("in", "while it is")]
)
def test_a_file_that_cannot_be_written_is_told_before_any_work(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "in").touch()
    with pytest.raises(UsageError, match=reason):
        check_output(Format.JSON, str(tmp_path / name), [], [str(tmp_path / "in")])
    assert sorted(os.listdir(tmp_path)) == ["in"]
