"""The syntax of java.util.Properties, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.errors import BrokerEffect, DamagedFileError
from layout.java_properties import encode, parse

ASCII = st.text(alphabet=st.characters(max_codepoint=0x7E), max_size=12)


@pytest.mark.parametrize("line", ["k=v", "k:v", "k v", "k\tv", "k\x0cv", " k = v", "k  :  v", "\t k\t=v"])
def test_equals_colon_and_white_space_all_separate(line: str) -> None:
    assert parse(line.encode(), "x") == {"k": "v"}


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        ("\n \n\t\n", {}),
        ("# a=b\n! c=d\n  # e=f\n", {}),
        ("k", {"k": ""}),
        ("=v", {"": "v"}),
        ("k==v", {"k": "=v"}),
        ("k v w ", {"k": "v w "}),
        ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
        ("k=1\nk=2", {"k": "2"}),
        (r"a\=b\:c\ d=e", {"a=b:c d": "e"}),
        (r"k=\t\n\r\f\\\q\"", {"k": '\t\n\r\f\\q"'}),
        (r"k=\u0041\u00e9\u20AC", {"k": "Aé€"}),
        (r"k=\uD83D\uDE00", {"k": "\U0001f600"}),
        (r"k=\uD83D!", {"k": "\ufffd!"}),
        (r"k=\\u00", {"k": r"\u00"}),
        ("k=a\\\n   b\\\r\n\tc", {"k": "abc"}),
        ("k=a\\\n# no comment", {"k": "a# no comment"}),
        ("k=a\\\n\nl=b", {"k": "a", "l": "b"}),
        ("k=a\\\\\nl=b", {"k": "a\\", "l": "b"}),
        ("k=a\\", {"k": "a"}),
        ("k=\\u00\\\n41x", {"k": "Ax"}),
        ("# comment \\\nk=v", {"k": "v"}),
        ("k=a\x0bb", {"k": "a\x0bb"}),
    ],
)
def test_comments_escapes_and_continued_lines_read_as_in_java(text: str, properties: dict[str, str]) -> None:
    assert parse(text.encode("iso-8859-1"), "x") == properties


def test_bytes_beyond_ascii_are_read_as_iso_8859_1() -> None:
    assert parse("k=é".encode(), "x") == {"k": "Ã©"}


@pytest.mark.parametrize("text", [r"k=\u", r"k=\u12", r"k=\u123g", r"\u=v", r"k=\u 041"])
def test_a_unicode_escape_without_four_digits_is_damage(text: str) -> None:
    with pytest.raises(DamagedFileError, match=r"malformed \\u escape") as raised:
        parse(text.encode(), "some.properties", BrokerEffect.LOG_DIR_OFFLINE)
    assert raised.value.file == "some.properties"
    assert raised.value.effect is BrokerEffect.LOG_DIR_OFFLINE


def test_the_writer_escapes_what_the_reader_would_take_for_syntax() -> None:
    assert encode({"a b": " =:#!\\ \t"}) == b"#\na\\ b=\\ \\=\\:\\#\\!\\\\ \\t\n"


def test_the_writer_uses_utf_8() -> None:
    assert encode({"k": "é€"}) == "#\nk=é€\n".encode()


def test_a_comment_of_several_lines_stays_a_comment() -> None:
    assert encode({}, "one\ntwo\r\nk=v") == b"#one\n#two\n#k=v\n"
    assert parse(encode({}, "one\nk=v"), "x") == {}


@given(st.dictionaries(ASCII, ASCII, max_size=5), ASCII)
def test_ascii_properties_survive_a_round_trip(properties: dict[str, str], comment: str) -> None:
    assert parse(encode(properties, comment), "x") == properties


@given(st.text(alphabet="ab\\u0041 =:#!\n\r\t\x0cé", max_size=40).map(lambda text: text.encode("iso-8859-1")))
def test_any_bytes_give_properties_or_our_own_error(data: bytes) -> None:
    try:
        properties = parse(data, "x")
    except DamagedFileError:
        return
    assert all(isinstance(value, str) for value in properties.values())
