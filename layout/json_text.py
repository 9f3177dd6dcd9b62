"""Read one JSON object strictly, and its typed fields with all reasons at once, for the JSON formats of a log dir.

This reader is stricter than Jackson, which Kafka uses, in two things that no writer produces: it refuses a repeated key
and text after the object, because either could hide which value is meant.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import TypeGuard, TypeVar

from layout.errors import BrokerEffect, DamagedFileError, InvalidIdError
from layout.ids import KafkaId

_LONE_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_Id = TypeVar("_Id", bound=KafkaId)


def parse_object(data: bytes, file: str, effect: BrokerEffect = BrokerEffect.NONE) -> dict[str, object]:
    """Read UTF-8 bytes that hold exactly one JSON object.

    Args:
        data: the whole text.
        file: name of the format, for the error.
        effect: what a real broker does with bytes that this refuses.

    Raises:
        DamagedFileError: not UTF-8, not JSON, nested deeper than the interpreter allows, no object, or a repeated key.
    """
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_without_repeats)
    except UnicodeDecodeError as error:
        raise DamagedFileError(file, f"not UTF-8 at byte {error.start}", effect) from error
    except ValueError as error:
        raise DamagedFileError(file, f"not JSON: {error}", effect) from error
    except RecursionError as error:
        raise DamagedFileError(file, "JSON nested too deep to be one of ours", effect) from error
    if not isinstance(value, dict):
        raise DamagedFileError(file, f"a JSON object is expected, not {type(value).__name__}", effect)
    return value


def is_int(value: object, bits: int) -> TypeGuard[int]:
    """Whether a JSON value is an integer of a signed width; ``true`` and ``1.0`` are not."""
    return type(value) is int and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


class FieldReader:
    """Reads typed fields of an object, and collects every reason before :meth:`check` raises.

    A field that is missing or of another type is noted, and a stand-in of the right type comes back. The values are
    valid only after :meth:`check` has passed.
    """

    def __init__(self, fields: Mapping[str, object], file: str, effect: BrokerEffect = BrokerEffect.NONE) -> None:
        """Read from an object of the format ``file``; ``effect`` is what a broker does with damage in it."""
        self._fields = fields
        self._file = file
        self._effect = effect
        self._reasons: list[str] = []

    def integer(self, key: str, bits: int, least: int | None = None) -> int:
        """Read a signed integer of a width, not below ``least``."""
        value = self._fields.get(key)
        if is_int(value, bits) and (least is None or value >= least):
            return value
        self._expected(key, f"an int{bits}" + ("" if least is None else f" from {least} on"))
        return 0

    def text(self, key: str, may_be_empty: bool = False) -> str:
        """Read a text, by default of at least one character.

        Halves of surrogate pairs are refused, because no file and no table can hold them; except U+DC80 to U+DCFF,
        with which Python spells the bytes of a file name that is not UTF-8.
        """
        value = self._fields.get(key)
        if isinstance(value, str) and (value or may_be_empty) and not _LONE_HALF.search(value):
            return value
        self._expected(key, "text")
        return ""

    def id(self, key: str, kind: type[_Id]) -> _Id:
        """Read a topic ID or a directory ID in its text form."""
        value = self._fields.get(key)
        if isinstance(value, str):
            try:
                return kind.parse(value)
            except InvalidIdError as error:
                self.note(f"{key}: {error}")
        else:
            self._expected(key, "an ID as text")
        return kind(bytes(16))

    def note(self, reason: str) -> None:
        """Add a reason of the caller's own, one clause without a full stop."""
        self._reasons.append(reason)

    def check(self) -> None:
        """Raise if anything was noted.

        Raises:
            DamagedFileError: with the reasons, in the order in which the fields were read.
        """
        if self._reasons:
            raise DamagedFileError(self._file, "; ".join(self._reasons), self._effect)

    def _expected(self, key: str, expectation: str) -> None:
        found = f"is {self._fields[key]!r:.60}" if key in self._fields else "is missing"
        self.note(f"{key} {found}, expected {expectation}")


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        repeated = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(f"key {repeated!r:.60} is given twice")
    return fields
