"""``.kafka_cleanshutdown``: the mark of a log dir whose broker stopped cleanly.

A broker skips recovery when the file exists; it holds only the broker epoch. Releases up to 3.6 wrote an empty file,
later ones ``{"version":0,"brokerEpoch":10}`` without a line end, ZooKeeper brokers with the epoch -1. Damage in it does
no harm: it reads as *no epoch*. Source: FACTS §2.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from layout import json_text
from layout.errors import DamagedFileError

FILE_NAME: Final = ".kafka_cleanshutdown"


def parse_broker_epoch(data: bytes) -> int | None:
    """Read the broker epoch (int64); None: the file is empty or does not parse."""
    try:
        epoch = json_text.parse_object(data, FILE_NAME).get("brokerEpoch")
    except DamagedFileError:
        return None
    return epoch if json_text.is_int(epoch, 64) else None


def encode(broker_epoch: int) -> bytes:
    """Write the file as releases from 3.7 on do."""
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode("ascii")


def combined_epoch(epochs: Iterable[int | None]) -> int | None:
    """Combine the epochs of a broker's log dirs into one; None: they differ.

    Args:
        epochs: one for each configured log dir; None for a log dir that is offline, or that has no epoch.
    """
    distinct = set(epochs)
    return distinct.pop() if len(distinct) == 1 else None
