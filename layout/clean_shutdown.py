"""``.kafka_cleanshutdown``: the mark of a log dir whose broker stopped cleanly.

Its being there is what skips recovery; what it holds is only the broker epoch. Releases up to 3.6 wrote an empty file,
later ones ``{"version":0,"brokerEpoch":10}`` without a line end, ZooKeeper brokers with the epoch -1. Damage in it
harms nobody: it reads as *no epoch*. Source: FACTS §2.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from layout import json_text
from layout.errors import DamagedFileError

FILE_NAME: Final = ".kafka_cleanshutdown"


def parse_broker_epoch(data: bytes) -> int | None:
    """The broker epoch (int64), or None for an empty file and for anything that does not parse."""
    try:
        epoch = json_text.parse_object(data, FILE_NAME).get("brokerEpoch")
    except DamagedFileError:
        return None
    return epoch if json_text.is_int(epoch, 64) else None


def encode(broker_epoch: int) -> bytes:
    """Write the file as 3.7 and later do."""
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode("ascii")


def combined_epoch(epochs: Iterable[int | None]) -> int | None:
    """The broker epoch of a broker with several log dirs, or None unless all of them say the same.

    Args:
        epochs: one for each configured log dir; None for one that is offline, has no file, or whose file has no epoch.
    """
    distinct = set(epochs)
    return distinct.pop() if len(distinct) == 1 else None
