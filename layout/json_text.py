"""Read one JSON object strictly, and the typed fields of any with all reasons at once.

:func:`parse_object` is for the files of a log dir. It is stricter than Jackson, which Kafka uses, in two things that no
writer produces: it refuses a repeated key and text after the object, because either could hide which value is meant.
:class:`FieldReader` reads what any parser made; its callers know the formats: the names of fields and their meaning.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard, TypeVar

from layout.errors import BrokerEffect, DamagedFileError, InvalidIdError
from layout.ids import KafkaId

_LONE_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_SHOWN_CHARACTERS = 40
_Id = TypeVar("_Id", bound=KafkaId)


def parse_object(data: bytes, file: str, effect: BrokerEffect = BrokerEffect.NONE) -> dict[str, object]:
    """Read UTF-8 bytes that hold exactly one JSON object.

    ``file`` names the format in the error, and ``effect`` what a real broker does with bytes that this refuses.

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
    """Reads typed fields of one JSON object, and collects every reason instead of stopping at the first.

    A field that is missing or of another type becomes a reason, which begins with its place
    (``topicStates[3].topicName``), and reads as a harmless value of the right type. So the values are valid only when
    there is no reason, as after :meth:`check`. Booleans and floats are no integers. A field may have several names, the
    most common first; a field with a ``default`` may be missing.

    Attributes:
        values: the object.
        path: its place in the document, empty for the document itself.
        reasons: shared by all objects of one document, in the order in which the fields were read.
    """

    __slots__ = ("path", "reasons", "values")

    def __init__(self, values: Mapping[str, Any], path: str = "", reasons: list[str] | None = None) -> None:
        """Read from an object at a place in a document, and share the reasons of the document."""
        self.values = values
        self.path = path
        self.reasons = [] if reasons is None else reasons

    @classmethod
    def of_file(cls, data: bytes, file: str, version: int) -> FieldReader:
        """Read a file of ours, of one schema version; raises as :func:`parse_object`."""
        reader = cls(parse_object(data, file))
        if reader.integer("schema_version") != version:
            reader.note(f"this release reads schema version {version} only")
        return reader

    @classmethod
    def of(cls, value: object, path: str, reasons: list[str]) -> FieldReader | None:
        """Read a value that should be an object; None, with a reason, when it is not."""
        if isinstance(value, dict):
            return cls(value, path, reasons)
        reasons.append(f"{path or 'the document'}: expected an object, found {shown(value)}")
        return None

    def has(self, *names: str) -> bool:
        """Whether the field is there under any of its names."""
        return any(name in self.values for name in names)

    def raw(self, *names: str) -> Any:
        """Get the unchecked value under the first name that is there; None when none is."""
        return next((self.values[name] for name in names if name in self.values), None)

    def integer(self, *names: str, bits: int = 32, least: int | None = None, default: int | None = None) -> int:
        """Read a signed integer of a width, not below ``least``."""
        for name in names:
            if name in self.values:
                found = self.values[name]
                if is_int(found, bits) and (least is None or found >= least):
                    return found
                bound = 1 << (bits - 1)
                lowest = -bound if least is None else least
                expected = f"an integer from {lowest} to {bound - 1}" if type(found) is int else "an integer"
                self.wrong(name, expected, found)
                return 0
        if default is None:
            self.missing(names[0])
            return 0
        return default

    def boolean(self, *names: str, default: bool) -> bool:
        """Read true or false."""
        for name in names:
            if name in self.values:
                found = self.values[name]
                if isinstance(found, bool):
                    return found
                self.wrong(name, "true or false", found)
        return default

    def text(self, *names: str, may_be_empty: bool = False) -> str:
        """Read a text, by default of at least one character.

        Halves of surrogate pairs are refused, because no file and no table can hold them; except U+DC80 to U+DCFF,
        with which Python spells the bytes of a file name that is not UTF-8.
        """
        for name in names:
            if name in self.values:
                found = self.values[name]
                if isinstance(found, str) and (found or may_be_empty):
                    if not _LONE_HALF.search(found):
                        return found
                    self.wrong(name, "a string without halves of characters", found)
                else:
                    self.wrong(name, "a string" if may_be_empty else "a string that is not empty", found)
                return ""
        self.missing(names[0])
        return ""

    def id(self, name: str, kind: type[_Id]) -> _Id:
        """Read a topic ID or a directory ID in its text form."""
        found = self.values.get(name)
        if isinstance(found, str):
            try:
                return kind.parse(found)
            except InvalidIdError as error:
                self.reasons.append(f"{self.place(name)}: {error}")
        elif name in self.values:
            self.wrong(name, "an ID as a string", found)
        else:
            self.missing(name)
        return kind(bytes(16))

    def broker_ids(self, name: str, *, optional: bool = False) -> tuple[int, ...]:
        """Read an array of distinct int32 numbers, none negative."""
        found = self._array((name,), optional)
        for index, each in enumerate(found):
            if not is_int(each, 32) or each < 0:
                self.wrong(f"{name}[{index}]", "a broker id", each)
                return ()
        if len(set(found)) != len(found):
            self.wrong(name, "distinct broker ids", found)
        return tuple(found)

    def child(self, name: str) -> FieldReader | None:
        """Read the object in a field; None, with a reason, when there is none."""
        return FieldReader.of(self.values.get(name), self.place(name), self.reasons)

    def objects(self, *names: str, optional: bool = False) -> Iterator[FieldReader]:
        """Yield each object of an array; skip any other element, with a reason."""
        name = next((each for each in names if each in self.values), names[0])
        for index, each in enumerate(self._array(names, optional)):
            fields = FieldReader.of(each, self.place(f"{name}[{index}]"), self.reasons)
            if fields is not None:
                yield fields

    def place(self, name: str) -> str:
        """Name the place of a field in the document."""
        return f"{self.path}.{name}" if self.path else name

    def wrong(self, name: str, expected: str, found: object) -> None:
        """Add a reason about a field."""
        self.reasons.append(f"{self.place(name)}: expected {expected}, found {shown(found)}")

    def missing(self, name: str) -> None:
        """Add the reason that a field is missing."""
        self.reasons.append(f"{self.place(name)}: missing")

    def note(self, reason: str) -> None:
        """Add a reason of the caller's own, one clause without a full stop."""
        self.reasons.append(reason)

    def check(self, file: str, effect: BrokerEffect = BrokerEffect.NONE) -> None:
        """Raise if there is a reason.

        ``file`` names the format, and ``effect`` what a real broker does with damage in it.

        Raises:
            DamagedFileError: with all reasons.
        """
        if self.reasons:
            raise DamagedFileError(file, "; ".join(self.reasons), effect)

    def _array(self, names: tuple[str, ...], optional: bool) -> list[Any]:
        for name in names:
            if name in self.values:
                found = self.values[name]
                if isinstance(found, list):
                    return found
                self.wrong(name, "an array", found)
                return []
        if not optional:
            self.missing(names[0])
        return []


def shown(value: object) -> str:
    """Show a value as JSON writes it, cut short."""
    if isinstance(value, dict):
        return "an object"
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    except RecursionError:
        return "an array that is nested too deep"
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        repeated = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(f"key {repeated!r:.60} is given twice")
    return fields
