"""Numbers, lines and splits as Java reads them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import LayoutError, NumberFormatError
from layout.java_text import java_lines, java_split, parse_java_int

WHITE_SPACE = re.compile(r"\s+", re.ASCII)
COLON = re.compile(r":\s+", re.ASCII)


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_int32_reads_back_from_its_decimal_text(value: int) -> None:
    assert parse_java_int(str(value)) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_int64_reads_back_from_its_decimal_text(value: int) -> None:
    assert parse_java_int(str(value), 64) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("+1", 1), ("-0", 0), ("007", 7), ("-007", -7), ("٣", 3), ("１２", 12), ("+٠١", 1), ("0" * 9000 + "5", 5)],
)
def test_signs_leading_zeros_and_digits_of_any_script_are_numbers(text: str, value: int) -> None:
    assert parse_java_int(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "-",
        "--1",
        "+-1",
        " 1",
        "1 ",
        "1\n",
        "1_0",
        "0x1",
        "1.0",
        "x",
        "²",
        "½",
        "Ⅷ",
        "−1",
        "\U0001d7cf",
        "\ud835",
    ],
)
def test_spaces_underscores_and_other_symbols_are_no_numbers(text: str) -> None:
    with pytest.raises(NumberFormatError):
        parse_java_int(text)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("2147483648", 32),
        ("-2147483649", 32),
        ("9223372036854775808", 64),
        ("-9223372036854775809", 64),
        ("9" * 100_000, 64),
        ("-" + "9" * 100_000, 64),
    ],
)
def test_a_number_beyond_the_width_is_refused(text: str, bits: int) -> None:
    with pytest.raises(NumberFormatError, match=f"does not fit {bits} bits"):
        parse_java_int(text, bits)


@given(st.text(alphabet="+-0123456789٣９_ .x\n", max_size=30), st.sampled_from([32, 64]))
def test_any_text_gives_a_number_of_that_width_or_our_own_error(text: str, bits: int) -> None:
    try:
        value = parse_java_int(text, bits)
    except LayoutError:
        return
    assert value.bit_length() < bits or value == -(1 << (bits - 1))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("a\r\nb\rc\nd", ["a", "b", "c", "d"]),
        ("\n\r", ["", ""]),
        ("a\x0bb\x0cc\x85d\u2028e", ["a\x0bb\x0cc\x85d\u2028e"]),
    ],
)
def test_only_lf_cr_and_crlf_end_a_line(text: str, lines: list[str]) -> None:
    assert java_lines(text) == lines


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a b", ["a", "b"]),
        ("a \t b", ["a", "b"]),
        ("a b ", ["a", "b"]),
        (" a b", ["", "a", "b"]),
        ("", [""]),
        (" ", []),
        ("a\u00a0b\u2003c", ["a\u00a0b\u2003c"]),
    ],
)
def test_a_split_drops_empty_parts_at_the_end_and_keeps_them_at_the_start(text: str, parts: list[str]) -> None:
    assert java_split(WHITE_SPACE, text) == parts


def test_a_colon_without_white_space_after_it_does_not_split() -> None:
    assert java_split(COLON, "version:0") == ["version:0"]
    assert java_split(COLON, "a:b: c: ") == ["a:b", "c"]
