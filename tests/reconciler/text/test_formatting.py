"""How numbers and names are formatted."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.text import NOTHING, age, count, listed, moment, quoted, size, visible


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, NOTHING),
        (0, "0 B"),
        (43, "43 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_900_000_000_000, "1.9 TB"),
        (349_000_000_000, "349 GB"),
        (999_999, "1.0 MB"),
        (9_960, "10 kB"),
        (2**63, "9.2 EB"),
    ],
)
def test_bytes_read_as_disks_are_sold(number: int | None, text: str) -> None:
    assert size(number) == text


def test_counts_have_their_thousands_apart_and_agree_with_their_noun() -> None:
    assert [count(12000), count(1, "log dir"), count(2, "log dir"), count(0, "entry", "entries")] == [
        "12,000",
        "1 log dir",
        "2 log dirs",
        "0 entries",
    ]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, NOTHING),
        (0, "0 s"),
        (1999, "1 s"),
        (90 * 60_000, "90 min"),
        (3 * 86_400_000, "3 d"),
        (-7_200_000, "in 2 h"),
        (-(7 * 86_400_000 - 1), "in 7 d"),
        (7 * 86_400_000 - 1, "6 d"),
        (-1, "in 0 s"),
    ],
)
def test_an_age_has_the_largest_unit_of_which_there_are_two(milliseconds: int | None, text: str) -> None:
    assert age(milliseconds) == text


def test_a_moment_is_a_date_in_utc_and_one_that_no_calendar_has_stays_a_number() -> None:
    assert moment(0) == "1970-01-01 00:00:00 UTC"
    assert moment(2**63 - 1) == "9223372036854775807 ms since 1970"
    assert moment(None) == "–"


def test_a_list_of_names_says_how_many_it_leaves_out() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(["a", "b", "c", "d"], most=2) == "a, b and 2 more"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-0", "orders-0"),
        ("größe", "größe"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\nb", "a\\nb"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        (b"caf\xe9".decode("utf-8", "surrogateescape"), "caf\\xe9"),
    ],
)
def test_what_does_not_print_stands_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_visible_text_always_prints(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(text).encode("utf-8").decode("utf-8") == visible(text)


@pytest.mark.parametrize("word", ["orders-0", "two words", "it's", "$(reboot)", "a\nb", "back\\slash\x07", "'\x1b'"])
def test_a_quoted_word_is_one_word_to_bash_and_means_the_same(word: str) -> None:
    answer = subprocess.run(["bash", "-c", f"printf %s {quoted(word)}"], capture_output=True, check=True)
    assert answer.stdout.decode() == word
    assert quoted(word).isprintable()
