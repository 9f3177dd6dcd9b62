"""Topic IDs and directory IDs: 128 bits, as text, as hex, and in Kafka's order.

Kafka keeps an ID as two signed 64-bit halves, most significant first, and prints it as 22 characters of base64url
without padding. Never compare texts: several texts stand for the same ID. The objects compare their 16 bytes.
Source: FACTS §3; KIP516-1 (the proposal's "64 bit" is a slip).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import ClassVar, Self

from layout.errors import InvalidIdError

_TEXT = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{32}", re.ASCII)


class KafkaId:
    """128 bits with Kafka's text form. Use :class:`TopicId` or :class:`DirectoryId`; the two never compare equal."""

    __slots__ = ("_bytes", "_text")

    def __init__(self, raw: bytes) -> None:
        """Take 16 bytes, big-endian.

        Raises:
            InvalidIdError: ``raw`` is not 16 bytes.
        """
        if type(raw) is not bytes and not isinstance(raw, bytes | bytearray | memoryview):
            raise InvalidIdError(
                f"an ID has 16 bytes, and {raw!r:.60} is none: {type(self).__name__}.parse reads texts"
            )
        if len(raw) != 16:
            raise InvalidIdError(f"an ID has 16 bytes, not {len(raw)}")
        self._bytes = bytes(raw)
        self._text: str | None = None

    @classmethod
    @lru_cache(maxsize=4096)  # the replicas of a topic share its ID, so the same few texts are read again and again
    def parse(cls, text: str) -> Self:
        """Read the text form as Kafka reads it: 22 characters of base64url, or those and ``==``.

        Unused bits of the last character are dropped, so ``…AAAR`` stands for the same ID as ``…AAAQ``.

        Raises:
            InvalidIdError: any other text.
        """
        if not isinstance(text, str) or not _TEXT.fullmatch(text):
            raise InvalidIdError(f"{text!r:.60} is no ID: 22 characters of base64url are expected")
        return cls(base64.urlsafe_b64decode(text[:22] + "=="))

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Read 32 lower-case hexadecimal digits, the form of the by-topic-id scheme.

        Raises:
            InvalidIdError: any other text.
        """
        if not isinstance(text, str) or not _HEX.fullmatch(text):
            raise InvalidIdError(f"{text!r:.60} is no hex ID: 32 digits of [0-9a-f] are expected")
        return cls(bytes.fromhex(text))

    @classmethod
    def from_halves(cls, most: int, least: int) -> Self:
        """Build from the two signed 64-bit halves that Kafka's own code shows.

        Raises:
            InvalidIdError: a half is no int64.
        """
        for half in (most, least):
            if not isinstance(half, int) or not -(1 << 63) <= half < 1 << 63:
                raise InvalidIdError(f"{half!r:.60} is no half of an ID: a signed 64-bit number is expected")
        return cls(most.to_bytes(8, "big", signed=True) + least.to_bytes(8, "big", signed=True))

    def to_bytes(self) -> bytes:
        """The 16 bytes, big-endian."""
        return self._bytes

    @property
    def halves(self) -> tuple[int, int]:
        """The most and the least significant half, signed."""
        return int.from_bytes(self._bytes[:8], "big", signed=True), int.from_bytes(self._bytes[8:], "big", signed=True)

    @property
    def hex(self) -> str:
        """32 lower-case hexadecimal digits."""
        return self._bytes.hex()

    @property
    def is_zero(self) -> bool:
        """Whether all bits are zero, which means *no ID*."""
        return not any(self._bytes)

    @property
    def java_hash(self) -> int:
        """The signed 32-bit hash of Kafka's own class (FACTS §3)."""
        most, least = self.halves
        mixed = (most ^ least) & 0xFFFF_FFFF_FFFF_FFFF
        folded = (mixed >> 32) ^ (mixed & 0xFFFF_FFFF)
        return folded - (1 << 32) if folded >= 1 << 31 else folded

    def __str__(self) -> str:
        if self._text is None:
            self._text = base64.urlsafe_b64encode(self._bytes)[:22].decode("ascii")
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, KafkaId)
        return self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._bytes))

    def __lt__(self, other: Self) -> bool:
        return self.halves < other.halves


class TopicId(KafkaId):
    """The identity of a topic; a topic that is re-created under the same name gets a new one."""

    __slots__ = ()
    ZERO: ClassVar[TopicId]
    METADATA: ClassVar[TopicId]

    @classmethod
    def random(cls, random_bytes: Callable[[int], bytes]) -> TopicId:
        """Draw a version 4 UUID that Kafka itself could have drawn: no reserved value, no text that begins with ``-``.

        Args:
            random_bytes: gives so many random bytes: ``os.urandom``, or a seeded generator's ``randbytes``.
        """
        while True:
            raw = bytearray(random_bytes(16))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            candidate = cls(bytes(raw))
            if candidate not in (cls.ZERO, cls.METADATA) and not str(candidate).startswith("-"):
                return candidate


class DirectoryId(KafkaId):
    """The identity of one log dir (``directory.id`` in ``meta.properties``)."""

    __slots__ = ()
    MIGRATING: ClassVar[DirectoryId]
    UNASSIGNED: ClassVar[DirectoryId]
    LOST: ClassVar[DirectoryId]

    @property
    def is_reserved(self) -> bool:
        """Whether no log dir may have it: high half zero and low half below 100, compared signed as Kafka does."""
        most, least = self.halves
        return most == 0 and least < 100

    def is_online(self, registered: Iterable[DirectoryId]) -> bool:
        """Whether a replica in this directory counts as online on a broker that registered these directories."""
        if self in (self.MIGRATING, self.UNASSIGNED):
            return True
        if self == self.LOST:
            return False
        known = tuple(registered)
        return not known or self in known

    @classmethod
    def random(cls, random_bytes: Callable[[int], bytes], taken: Iterable[DirectoryId] = ()) -> DirectoryId:
        """Draw 128 random bits, again while reserved, taken, or printed with ``-`` first (FACTS §2.2)."""
        used = frozenset(taken)
        while True:
            candidate = cls(random_bytes(16))
            if not (candidate.is_reserved or candidate in used or str(candidate).startswith("-")):
                return candidate


TopicId.ZERO = TopicId(bytes(16))
TopicId.METADATA = TopicId.from_halves(0, 1)
DirectoryId.MIGRATING = DirectoryId(bytes(16))
DirectoryId.UNASSIGNED = DirectoryId.from_halves(0, 1)
DirectoryId.LOST = DirectoryId.from_halves(0, 2)
