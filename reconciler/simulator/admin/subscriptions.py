"""Subscribing by a regular expression, which has to match a topic's whole full name (KIP37-7).

``.*`` meets the topics of all namespaces, and ``bla.*`` those of a namespace ``bla`` too: KIP-37 says so, and warns of
it. Topics that brokers create for themselves are left out, as Kafka's consumers leave them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from layout.topic import INTERNAL_TOPICS
from reconciler.errors import UsageError


def subscribed_topics(pattern: str, topics: Iterable[str]) -> list[str]:
    """The topics that a pattern subscribes to, sorted.

    Args:
        pattern: a regular expression; a plain name is one too.
        topics: full names, of all namespaces.

    Raises:
        UsageError: it is no regular expression.
    """
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern!r:.80} is no regular expression: {error}; topics are matched whole") from error
    return sorted(topic for topic in set(topics) - INTERNAL_TOPICS if expression.fullmatch(topic))
