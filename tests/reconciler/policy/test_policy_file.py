"""The file of a policy: its whole form, and each mistake as one sentence with its line."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.errors import UsageError
from reconciler.policy import RuleKind, parse_policy, parse_share
from reconciler.text import TomlFile

WHOLE = """\
foreign = ["lost+found", "README*"]

[gates]
max_age = "6h"
max_share = "10%"
max_count = 200
max_shrink = 0.2

[[delay]]
topics = ["payments*", "ledger"]
delay = "30d"

[[never_touch]]
topics = ["org:apache:*"]
reason = "the auditors read these"

[[hold]]
topics = ["trades-[0-9]"]
reason = "case 2026-114"
until = 2027-06-30

[[hold]]
reason = "case 2026-115"
topics = ["mail"]
until = 2027-06-30T12:00:00+02:00

[[hold]]
topics = ["*"]
reason = "for ever"
"""


def ms(*when: int) -> int:
    return int(datetime(*when, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc]


def test_a_whole_file_is_read_with_the_line_of_each_rule() -> None:
    rules = parse_policy("p", WHOLE.encode())
    assert [(rule.kind, rule.patterns, rule.origin) for rule in rules.rules] == [
        (RuleKind.DELAY, ("payments*", "ledger"), "p:9"),
        (RuleKind.NEVER_TOUCH, ("org:apache:*",), "p:13"),
        (RuleKind.HOLD, ("trades-[0-9]",), "p:17"),
        (RuleKind.HOLD, ("mail",), "p:22"),
        (RuleKind.HOLD, ("*",), "p:27"),
        (RuleKind.FOREIGN, ("lost+found",), "p:1"),
        (RuleKind.FOREIGN, ("README*",), "p:1"),
    ]
    assert [(name, each.value, each.text, each.origin) for name, each in rules.gates.items()] == [
        ("max_age", 6 * 3_600_000, "6h", "p:4"),
        ("max_share", 0.1, "10%", "p:5"),
        ("max_count", 200, "200", "p:6"),
        ("max_shrink", 0.2, "0.2", "p:7"),
    ]
    assert rules.rules[0].delay_ms == 30 * 24 * 3_600_000


def test_a_hold_until_a_day_ends_with_that_day_and_one_until_a_moment_at_that() -> None:
    ends = [rule.until_ms for rule in parse_policy("p", WHOLE.encode()).of_kind(RuleKind.HOLD)]
    assert ends == [ms(2027, 7, 1), ms(2027, 6, 30, 10), None]


def test_an_empty_file_has_no_rule() -> None:
    assert (parse_policy("p", b"# nothing yet\n").rules, parse_policy("p", b"").gates) == ((), {})


RULE = "[[hold]]\ntopics = ['a']\nreason = 'r'\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = \n", "p:1: this is no TOML: "),
        ("\nholds = 1\n", "p:2: 'holds' is no part of a policy: a policy has foreign, [gates] and [[delay]], "),
        ("[hold]\ntopics = ['a']\n", "p:1: hold is given as tables, each headed [[hold]]"),
        ("delay = '7d'\n", "p:1: delay is given as tables, each headed [[delay]]"),
        ("gates = 5\n", "p:1: gates is a table, headed [gates]"),
        ("[gates]\nmax_ages = '1d'\n", "p:2: 'max_ages' is no key of gates, which has max_age, max_shrink, "),
        ("[gates]\nmax_age = 5\n", "p:2: max_age is a time in quotes, for example '7d', and not 5"),
        ("[gates]\nmax_age = '-1d'\n", "p:2: max_age: '-1d' is no duration"),
        ("[gates]\n\nmax_share = '130%'\n", "p:3: max_share: '130%' is no share"),
        ("[gates]\nmax_shrink = -0.1\n", "p:2: max_shrink: '-0.1' is no share"),
        ("[gates]\nmax_share = true\n", "p:2: max_share is a share, for example '30%' or 0.3, and not True"),
        ("[gates]\nmax_count = -1\n", "p:2: max_count is a whole number, for example 1000, and not -1"),
        ("[gates]\nmax_count = '5'\n", "p:2: max_count is a whole number, for example 1000, and not '5'"),
        ("[[delay]]\ndelay = '7d'\n", "p:1: this [[delay]] has no topics"),
        ("[[delay]]\ntopics = ['a']\ndelay = 'soon'\n", "p:3: delay: 'soon' is no duration"),
        (f"{RULE}\n[[hold]]\ntopics = ['a']\n", "p:5: this [[hold]] has no reason"),
        (f"{RULE}\n[[hold]]\ntopic = ['a']\n", "p:6: 'topic' is no key of hold, which has topics, reason, until"),
        ("[[hold]]\ntopics = 'a'\nreason = 'r'\n", "p:2: topics is a list of patterns in quotes"),
        ("[[hold]]\ntopics = []\nreason = 'r'\n", "p:2: topics is a list of patterns in quotes"),
        ("[[hold]]\ntopics = ['']\nreason = 'r'\n", "p:2: the pattern '' is empty, or begins or ends with a blank"),
        ("[[hold]]\ntopics = ['a[b']\nreason = 'r'\n", "p:2: the pattern 'a[b' has a [ that is never closed"),
        ("[[hold]]\ntopics = ['a/b']\nreason = 'r'\n", "p:2: the pattern 'a/b' has a character that is in no topic's "),
        ("[[hold]]\ntopics = ['a']\nreason = ' '\n", "p:3: reason is a text of one line in quotes"),
        (f"{RULE}until = '2027-01-01'\n", "p:4: until is a date without quotes, for example 2027-06-30, and not"),
        (f"{RULE}until = 2027-01-01T00:00:00\n", "p:4: until is a moment without a time zone: write 2027-01-01T00:0"),
        (f"{RULE}until = 1960-01-01\n", "p:4: until 1960-01-01"),
        (f"{RULE}until = 9999-12-31\n", "p:4: until 9999-12-31 is no date that can be waited for"),
        ("foreign = 'lost+found'\n", "p:1: foreign is a list of patterns in quotes"),
        ("foreign = ['/abs']\n", "p:1: the pattern '/abs' is no name of an entry of a log dir"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_policy("p", text.encode())
    assert str(refused.value).startswith(said)
    assert len(str(refused.value).splitlines()) == 1


def test_a_share_is_a_percentage_or_a_part() -> None:
    assert [parse_share(text) for text in ("30%", "0.3", "100 %", "0")] == [0.3, 0.3, 1.0, 0.0]


def test_the_place_of_a_key_is_found_in_the_table_that_was_asked_for() -> None:
    text = "a = 1\n[t]\na = 2\n[[u]]\na = 3\n[[u]]\n'a' = 4\n[x.y]\nb = 1\n"
    file = TomlFile.parse("f", text.encode())
    asked = [("a",), ("a", "t"), ("a", "u", 1), ("a", "u", 2), ("", "u", 2), ("x",), ("t",), ("c", "u", 1), ("c",)]
    assert [file.place(*each) for each in asked] == [f"f:{line}" for line in (1, 3, 5, 7, 6, 8, 2, 4, 1)]
    inline = TomlFile.parse("f", b"\nu = [{a = 1}]\n")
    assert (inline.place("a", "u", 1), inline.place("", "u", 1)) == ("f:2", "f:2")
