"""The random numbers of ``java.util.Random``, and the order in which a ``java.util.HashMap`` is walked.

KRaft's placement draws its starts and shuffles its brokers with the former, one rack after the other in the order of
the latter, so that the same draws give the same placement only where both are the same. Source: FACTS §9.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_MULTIPLIER, _INCREMENT, _STATE_BITS = 0x5DEECE66D, 0xB, 48
_LEAST_BUCKETS, _LARGEST_INT = 16, (1 << 31) - 1

Value = TypeVar("Value")


class JavaRandom:
    """``java.util.Random``; a subclass that draws its bits in another way bounds and shuffles in the same way."""

    def __init__(self, seed: int) -> None:
        """Begin with a seed, of which the lowest 48 bits count."""
        self._state = (seed ^ _MULTIPLIER) & ((1 << _STATE_BITS) - 1)

    def next_bits(self, bits: int) -> int:
        """Draw so many bits, from 1 to 31, as a number that is not negative."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & ((1 << _STATE_BITS) - 1)
        return self._state >> (_STATE_BITS - bits)

    def next_int(self, bound: int) -> int:
        """Draw a number from 0 to one less than the bound, which is positive.

        Where the bound is no power of two, a draw from the incomplete last round of remainders is thrown away: else
        small numbers would come more often.
        """
        drawn = self.next_bits(31)
        if bound & (bound - 1) == 0:
            return (bound * drawn) >> 31
        while drawn - drawn % bound + bound - 1 > _LARGEST_INT:
            drawn = self.next_bits(31)
        return drawn % bound

    def shuffle(self, values: list[Value]) -> None:
        """Shuffle a list in place, from its end, as ``java.util.Collections`` does."""
        for size in range(len(values), 1, -1):
            other = self.next_int(size)
            values[size - 1], values[other] = values[other], values[size - 1]


def hash_map_order(names: Iterable[str | None]) -> list[str | None]:
    """Put names into the order in which a ``HashMap`` of optional texts is walked; None is no text.

    Within a bucket the first that was put in comes first. A map with nine names or more in one bucket would have more
    buckets; that is not followed.
    """
    known = list(dict.fromkeys(names))
    buckets = _LEAST_BUCKETS
    while 4 * len(known) > 3 * buckets:
        buckets *= 2

    def bucket(name: str | None) -> int:
        code = 0 if name is None else _hash_code(name)
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(known, key=bucket)


def _hash_code(text: str) -> int:
    """The 32 bits of ``String.hashCode``, over the UTF-16 units of a text."""
    data, code = text.encode("utf-16-be", "surrogatepass"), 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFF_FFFF
    return code
