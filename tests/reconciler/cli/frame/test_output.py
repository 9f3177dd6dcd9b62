"""Output to files and standard output, pages as wide as their reader, and progress for terminals only."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from reconciler.cli.frame import (
    Format,
    PartlyFailedError,
    check_output,
    destination,
    is_standard,
    open_page,
    refuse_inside,
    show_busy,
    show_text,
    tell_of,
    with_progress,
    write_document,
    write_rows,
)
from reconciler.cli.frame.output import PlainPage, TerminalPage
from reconciler.errors import UsageError
from reconciler.text import Column

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


def test_a_text_that_goes_to_no_terminal_is_eighty_columns_wide_and_has_no_styles(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    show_text(lambda width, styled: f"{width} {styled}\n")
    assert capfdbinary.readouterr().out == b"80 False\n"


def test_a_file_that_cannot_be_opened_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file"), destination(str(tmp_path / "a" / "b")):
        pass
    with pytest.raises(UsageError, match="cannot be written: Is a directory"), destination(str(tmp_path)):
        pass


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("form", [Format.NDJSON, Format.CSV, Format.PARQUET, Format.ARROW])
def test_a_full_disk_is_reported_as_incomplete_output(form: Format) -> None:
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


def test_a_table_in_a_file_that_is_named_for_rows_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form, name in ((Format.TABLE, "a.txt"), (Format.PARQUET, "a.parquet"), (Format.JSON, "a.arrow")):
        check_output(form, str(tmp_path / name), [])
    assert capsys.readouterr().err == ""
    for name in ("a.parquet", "a.arrow"):
        check_output(Format.TABLE, str(tmp_path / name), [])
        assert f"{tmp_path / name} gets a table for people, and no rows in {name[2:]}" in capsys.readouterr().err


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
def test_a_file_that_cannot_be_written_is_reported_before_any_work(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "in").touch()
    with pytest.raises(UsageError, match=reason):
        check_output(Format.JSON, str(tmp_path / name), [], [str(tmp_path / "in")])
    assert sorted(os.listdir(tmp_path)) == ["in"]


COLUMNS = (Column("NAME"), Column("SIZE", right=True), Column("WHY"))


def test_plain_text_is_aligned_and_ends_without_blanks() -> None:
    out = io.BytesIO()
    opened = PlainPage(out)
    opened.line("heading\x1b[2J", "bold")
    opened.table(COLUMNS, [("a", "1 B", ""), ("long-name", "10 kB", "because")], {"a": "red"})
    assert out.getvalue().decode().splitlines() == [
        "heading\\x1b[2J",
        "NAME        SIZE  WHY",
        "a            1 B",
        "long-name  10 kB  because",
    ]


def plain(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    out = io.BytesIO()
    PlainPage(out).table(columns, rows, {})
    return out.getvalue().decode().splitlines()


def test_a_folder_that_all_paths_share_is_written_once() -> None:
    columns = (Column("WHERE", path=True), Column("WHY"))
    rows = [("/disks/fleet/1/kafka/a-0", "old"), ("late-0", "gone"), ("/disks/fleet/2/kafka/b-0", "new")]
    assert plain(columns, rows) == [
        "WHERE: … is /disks/fleet",
        "WHERE          WHY",
        "…/1/kafka/a-0  old",
        "late-0         gone",
        "…/2/kafka/b-0  new",
    ]
    in_one = [("/disks/fleet/1/kafka", "whole"), ("/disks/fleet/1/kafka/a-0", "old")]
    assert plain(columns, in_one)[0] == "WHERE: … is /disks/fleet/1"
    assert plain(columns, in_one)[2] == "…/kafka      whole"


@pytest.mark.parametrize(
    "paths", [["/disks/fleet/1/kafka/a-0"], ["/disks/1/a-0", "/mnt/1/a-0"], ["/d/1", "/d/2"], ["a-0", "b-0"]]
)
def test_a_path_is_whole_where_nothing_worth_writing_once_is_shared(paths: list[str]) -> None:
    assert plain((Column("WHERE", path=True),), [[path] for path in paths]) == ["WHERE", *paths]


def test_a_very_long_cell_is_whole_and_shifts_only_its_own_line() -> None:
    lines = plain((Column("A"), Column("B")), [("x" * 300, "1"), ("yy", "2")])
    assert lines == ["A   B", f"{'x' * 300}  1", "yy  2"]


def test_control_characters_in_a_cell_do_not_reach_a_terminal() -> None:
    out = io.StringIO()
    opened = TerminalPage(Console(file=out, width=40, force_terminal=True, highlight=False))
    opened.table(COLUMNS, [("n" * 30, "1 B", "why\x1b]0;x\x07")], {"n" * 30: "red"})
    text = out.getvalue()
    assert text.count("n") == 30 and "\x1b[31m" in text
    assert "\x1b]0" not in text
    assert "\x07" not in text


def test_a_page_knows_whether_something_was_cut() -> None:
    opened = TerminalPage(Console(file=io.StringIO(), width=40, highlight=False))
    opened.table((Column("WHERE", path=True),), [("/disks/1/kafka/orders-0",)], {})
    opened.line("prose of many words that have no room in one line of the terminal")
    opened.line(f"logstore staged {'/disks' * 20}", whole=True)
    assert not opened.is_cut
    opened.table((Column("WHERE", path=True),), [(f"/disks/{'of-a-rack-' * 5}/orders-0",)], {})
    assert opened.is_cut


def test_lines_about_a_log_dir_stand_below_it_on_a_terminal_and_behind_it_in_a_pipe(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_of("/disk", ["keep a-0", "keep b-0"])
    assert capsysbinary.readouterr().out == b"/disk: keep a-0\n/disk: keep b-0\n"
    out = io.StringIO()
    page = TerminalPage(Console(file=out, width=40, highlight=False))
    monkeypatch.setattr("reconciler.cli.frame.output.open_page", lambda _: nullcontext(page))
    tell_of("/disk", ["keep a-0"])
    tell_of("/disk", ["keep b-0"], headed=True)
    assert out.getvalue() == "/disk\n  keep a-0\n  keep b-0\n"
    monkeypatch.setattr("sys.stdout", None)
    tell_of("/disk", ["what is done is done"])


def test_a_table_that_has_room_stays_a_table() -> None:
    out = io.StringIO()
    TerminalPage(Console(file=out, width=40, highlight=False)).table(COLUMNS, [("orders-0", "1 B", "why")], {})
    assert [line.split() for line in out.getvalue().splitlines()][1] == ["orders-0", "1", "B", "why"]


def test_a_terminal_wraps_prose_and_never_a_command() -> None:
    out, text = io.StringIO(), "logstore plan /disks/1/kafka --metadata /disks/1/kafka -o plan.json"
    opened = TerminalPage(Console(file=out, width=40, highlight=False))
    opened.line(text, whole=True)
    opened.line(text)
    lines = out.getvalue().splitlines()
    assert lines[0] == text and len(lines) > 2
    assert " ".join(lines[1:]) == text and all(len(line) <= 40 for line in lines[1:])


def test_a_document_is_json_that_people_can_read_too(tmp_path: Path) -> None:
    write_document({"brokers": [{"name": "größer"}]}, str(tmp_path / "file"))
    text = (tmp_path / "file").read_text(encoding="utf-8")
    assert text == '{\n  "brokers": [\n    {\n      "name": "größer"\n    }\n  ]\n}\n'


def test_brackets_in_a_name_are_no_markup() -> None:
    out = io.StringIO()
    TerminalPage(Console(file=out, width=80, highlight=False)).line("[bold]x[/bold]")
    assert out.getvalue() == "[bold]x[/bold]\n"


def test_a_file_gets_plain_text(tmp_path: Path) -> None:
    with open_page(str(tmp_path / "file")) as opened:
        assert not opened.is_terminal
        opened.line("ö")
    assert (tmp_path / "file").read_text("utf-8") == "ö\n"


def test_a_terminal_gets_a_terminal_page(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", Terminal(io.BytesIO(), "utf-8"))
    with open_page(None) as opened:
        assert opened.is_terminal


def test_items_are_handed_on_in_silence_when_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with show_busy("comparing"):
        assert list(with_progress(iter("abc"), 3, "scanning")) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_what_is_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert list(with_progress(iter("abc"), 3, "scanning\x1b[2J")) == ["a", "b", "c"]
    assert "scanning\\x1b[2J" in terminal.getvalue()


def test_a_single_item_is_not_worth_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert list(with_progress(iter("a"), 1, "scanning")) == ["a"]
    assert terminal.getvalue() == ""
