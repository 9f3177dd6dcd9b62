"""Tables and lines on a narrow terminal: what is cut, what stands below, and what is never touched."""

from __future__ import annotations

import pytest

from reconciler.text import Column, cut_middle, fit_table, fold, share_folders, wrapped

FOLDER = "/disks/of-the-third-rack/mounted-by-systemd/kafka"
ID = "Ogo1Z1cKS8WeUM7jCukeWA"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("/disks/1/kafka/orders-0", 23, "/disks/1/kafka/orders-0"),
        ("/disks/1/kafka/orders-0", 22, "/disks/1/…/orders-0"),
        ("/disks/a-long-name-of-a-folder/kafka/orders-0", 24, "/disks/…/kafka/orders-0"),
        ("/disks/1/2/a-long-name-of-a-folder/orders-0", 24, "/disks/1/2/…/orders-0"),
        ("/disks/1/kafka/orders-0", 12, "…/orders-0"),
        ("…/disk-1/of/kafka/orders-0", 20, "…/of/kafka/orders-0"),
        ("/disks/a-topic-with-a-long-name-17", 16, "/disk…ng-name-17"),
        ("a-topic-with-a-long-name-17", 16, "a-top…ng-name-17"),
        ("", 0, ""),
    ],
)
def test_a_path_is_cut_in_the_middle_and_its_end_stays_whole_where_it_fits(text: str, width: int, shown: str) -> None:
    assert cut_middle(text, width) == shown
    assert len(shown) <= max(width, 1)


def test_a_wide_character_takes_the_room_of_two() -> None:
    assert cut_middle("/目/目目目目目目目目/目目-0", 12) == "/目/…/目目-0"


def test_prose_keeps_its_indent_and_a_long_path_in_it_its_end() -> None:
    lines, is_cut = fold(f"    the copy in {FOLDER}/disk-1/orders-0, which is the better one", 40)
    assert lines == ["    the copy in", "    /disks/…/kafka/disk-1/orders-0,", "    which is the better one"]
    assert is_cut
    assert fold("  short", 40) == (["  short"], False)


def test_a_command_in_prose_is_never_cut() -> None:
    command = f"logstore staged {FOLDER}/disk-1"
    lines, is_cut = fold(f"see first: {command}", 40)
    assert " ".join(line.strip() for line in lines).endswith(command) and not is_cut


COLUMNS = (
    Column("VERDICT"), Column("TOPIC ID"), Column("SIZE", right=True), Column("WHERE", path=True),
    Column("WHY", prose=True), Column("UNDO", command=True),
)  # fmt: skip


def row(name: str, why: str = "nobody wants it") -> tuple[str, ...]:
    return "STRAY", ID, "8.2 kB", f"{FOLDER}/{name}", why, f"logstore restore {FOLDER} --location {name}"


def shown(rows: list[tuple[str, ...]], width: int) -> list[str]:
    return [line.text for line in fit_table(COLUMNS, rows, {}, width).lines]


def test_a_table_that_has_room_is_as_wide_as_it_is() -> None:
    fitted = fit_table(COLUMNS, [row("a-0")], {"STRAY": "red"}, 250)
    assert not fitted.is_cut and len(fitted.lines) == 2
    assert fitted.lines[1].text == f"STRAY    {'  '.join(row('a-0')[1:])}"
    assert (fitted.lines[1].style, fitted.lines[1].styled) == ("red", len("STRAY"))


def test_on_80_columns_prose_and_commands_make_room_and_the_shared_folder_stands_once() -> None:
    assert shown([row("disk-1/a-0"), row("disk-2/b-0", "its topic was deleted " * 4)], 80) == [
        f"WHERE: … is {FOLDER}",
        "VERDICT  TOPIC ID                  SIZE  WHERE",
        f"STRAY    {ID}  8.2 kB  …/disk-1/a-0",
        "  why nobody wants it",
        f"STRAY    {ID}  8.2 kB  …/disk-2/b-0",
        "  its topic was deleted its topic was deleted its topic was deleted its topic",
        "  was deleted",
        f"undo: {row('disk-1/a-0')[-1]}",
        f"undo: {row('disk-2/b-0')[-1]}",
    ]


def test_on_a_very_narrow_terminal_words_stand_below_and_ids_are_whole() -> None:
    assert shown([row("disk-1/a-0")], 40)[:4] == [
        "VERDICT    SIZE  WHERE",
        "STRAY    8.2 kB  /disks/…/disk-1/a-0",
        f"  topic id {ID}, why",
        "  nobody wants it",
    ]


def test_many_commands_are_left_out_and_that_counts_as_cut() -> None:
    assert not fit_table(COLUMNS, [row(f"a-{n}") for n in range(3)], {}, 80).is_cut
    many = fit_table(COLUMNS, [row(f"a-{n}") for n in range(4)], {}, 80)
    assert many.is_cut and not any("restore" in line.text for line in many.lines)


def test_a_shared_folder_is_taken_out_of_paths_alone() -> None:
    cells = [[f"{FOLDER}/a-0", f"{FOLDER}/a-0"], [f"{FOLDER}/b-0", f"{FOLDER}/b-0"]]
    assert share_folders((Column("WHERE", path=True), Column("WHY")), cells) == [f"WHERE: … is {FOLDER}"]
    assert cells == [["…/a-0", f"{FOLDER}/a-0"], ["…/b-0", f"{FOLDER}/b-0"]]


@pytest.mark.parametrize("width", [20, 33, 47, 64, 80, 119, 150])
@pytest.mark.parametrize("topic", ["a", "t" * 60, "u" * 249])
def test_no_line_is_wider_than_the_terminal_and_an_id_is_never_cut(width: int, topic: str) -> None:
    rows = [row(f"disk-{n}/{topic}-{n}", f"it lies in {FOLDER * 4}/{topic}-{n}") for n in range(5)]
    fitted = fit_table(COLUMNS, rows, {}, width)
    assert all(len(line.text) <= max(width, len(ID) + 3) for line in fitted.lines)
    assert sum(ID in line.text for line in fitted.lines) == 5
    if len(topic) + 10 < width:
        assert all(sum(line.text.count(f"{topic}-{n}") for line in fitted.lines) >= 1 for n in range(5))


def test_a_word_is_never_broken_and_the_lines_after_the_first_have_an_indent_of_their_own() -> None:
    assert wrapped("one two-three /a/very/long/path", 12, "> ", "  ") == ["> one", "  two-three", "  /a/very/long/path"]
    assert wrapped("", 12) == []
