"""How what was found in a file is quoted in a message."""

from __future__ import annotations

import pytest

from layout.checkpoint import parse_leader_epochs
from layout.errors import DamagedFileError, excerpt


@pytest.mark.parametrize("text", ["", "orders 0 42", "it's", '"', "\x1b[2J"])
def test_a_short_text_is_quoted_whole(text: str) -> None:
    assert excerpt(text) == repr(text)


@pytest.mark.parametrize("text", ["\0" * 4096, "a" * 61, "'" * 500, '"' * 61 + "'", "\U0001f600" * 99, "\x85" * 99])
@pytest.mark.parametrize("most", [20, 60])
def test_a_long_one_is_cut_between_characters_and_its_quote_is_closed(text: str, most: int) -> None:
    found = excerpt(text, most)
    assert most - 10 < len(found) <= most
    head = found[1:-2].encode("ascii", "backslashreplace").decode("unicode_escape")
    assert (found[0] in "'\"", found[-2:]) == (True, f"…{found[0]}") and text.startswith(head)


def test_a_checkpoint_of_zero_bytes_is_quoted_with_both_quotes() -> None:
    with pytest.raises(DamagedFileError, match=r"is '(\\x00)+…', expected 2 fields"):
        parse_leader_epochs(b"0\n1\n" + bytes(4096))
