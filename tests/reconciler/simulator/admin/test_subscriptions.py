"""Subscriptions by regular expression match whole full names."""

from __future__ import annotations

import pytest

from reconciler.errors import UsageError
from reconciler.simulator.admin.subscriptions import subscribed_topics

TOPICS = ["bla", "black", "bla:orders", "org:apache:orders", "org:bla", "__consumer_offsets"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (".*", ["bla", "bla:orders", "black", "org:apache:orders", "org:bla"]),
        ("bla.*", ["bla", "bla:orders", "black"]),
        ("bla[^:]*", ["bla", "black"]),
        ("bla", ["bla"]),
        ("org:.*", ["org:apache:orders", "org:bla"]),
        (".*:orders", ["bla:orders", "org:apache:orders"]),
        ("orders", []),
    ],
)
def test_a_pattern_meets_whole_full_names(pattern: str, found: list[str]) -> None:  # KIP37-7
    assert subscribed_topics(pattern, TOPICS) == found


def test_what_is_no_regular_expression_is_told() -> None:
    with pytest.raises(UsageError, match="no regular expression"):
        subscribed_topics("(", TOPICS)
