"""Read typed fields from decoded JSON, and gather every reason instead of stopping at the first.

A field that is absent or of a wrong type becomes a reason, which begins with its place (``topicStates[3].topicName``),
and reads as a harmless value of the right type. So check the reasons before you use the values. Booleans and floats are
no integers. The callers know the formats: the names of fields and their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from layout.errors import InvalidIdError
from layout.ids import TopicId

INT32 = 2**31
INT64 = 2**63

_SHOWN_CHARACTERS = 40


class JsonFields:
    """One JSON object that is being read.

    A field may have several names, the most common first; a field with a ``default`` may be absent.

    Attributes:
        path: the object's place in the document, empty for the document itself.
        reasons: shared by all objects of one document.
    """

    __slots__ = ("_values", "path", "reasons")

    def __init__(self, values: Mapping[str, Any], path: str, reasons: list[str]) -> None:
        self._values = values
        self.path = path
        self.reasons = reasons

    @classmethod
    def of(cls, value: object, path: str, reasons: list[str]) -> JsonFields | None:
        """The fields of a value that should be an object; None, with a reason, when it is not."""
        if isinstance(value, dict):
            return cls(value, path, reasons)
        reasons.append(f"{path or 'the document'}: expected an object, found {shown(value)}")
        return None

    def has(self, *names: str) -> bool:
        """Whether the field is there under any of its names."""
        return any(name in self._values for name in names)

    def raw(self, *names: str) -> Any:
        """The unchecked value under the first name that is there; None when none is."""
        return next((self._values[name] for name in names if name in self._values), None)

    def child(self, name: str) -> JsonFields | None:
        """The object in a field; None, with a reason, when there is none."""
        return JsonFields.of(self._values.get(name), self.place(name), self.reasons)

    def integer(self, *names: str, default: int | None = None, least: int | None = None, bound: int = INT32) -> int:
        """An integer from ``least`` (``-bound`` when not given) to ``bound`` - 1."""
        for name in names:
            if name in self._values:
                found = self._values[name]
                lowest = -bound if least is None else least
                if type(found) is int and lowest <= found < bound:
                    return found
                expected = f"an integer from {lowest} to {bound - 1}" if type(found) is int else "an integer"
                self.wrong(name, expected, found)
                return 0
        if default is None:
            self.missing(names[0])
            return 0
        return default

    def topic_id(self) -> TopicId | None:
        """The topic ID; None for an absent ID and for the zero ID, which means the same."""
        found = self.raw("topicId", "topic_id")
        if found is None:
            return None
        try:
            topic_id = TopicId.parse(found) if isinstance(found, str) else None
        except InvalidIdError:
            topic_id = None
        if topic_id is None:
            self.wrong("topicId", "a topic ID of 22 characters of base64url", found)
        return None if topic_id is None or topic_id.is_zero else topic_id

    def boolean(self, *names: str, default: bool) -> bool:
        """True or false."""
        for name in names:
            if name in self._values:
                found = self._values[name]
                if isinstance(found, bool):
                    return found
                self.wrong(name, "true or false", found)
        return default

    def text(self, *names: str) -> str:
        """A string that is not empty."""
        for name in names:
            if name in self._values:
                found = self._values[name]
                if isinstance(found, str) and found:
                    return found
                self.wrong(name, "a string that is not empty", found)
                return ""
        self.missing(names[0])
        return ""

    def broker_ids(self, name: str, *, optional: bool = False) -> tuple[int, ...]:
        """An array of distinct int32 numbers, none negative."""
        found = self._array((name,), optional)
        for index, each in enumerate(found):
            if type(each) is not int or not 0 <= each < INT32:
                self.wrong(f"{name}[{index}]", "a broker id", each)
                return ()
        if len(set(found)) != len(found):
            self.wrong(name, "distinct broker ids", found)
        return tuple(found)

    def objects(self, *names: str, optional: bool = False) -> Iterator[JsonFields]:
        """Yield each object of an array; skip any other element, with a reason."""
        name = next((each for each in names if each in self._values), names[0])
        for index, each in enumerate(self._array(names, optional)):
            fields = JsonFields.of(each, self.place(f"{name}[{index}]"), self.reasons)
            if fields is not None:
                yield fields

    def place(self, name: str) -> str:
        """The place of a field in the document."""
        return f"{self.path}.{name}" if self.path else name

    def wrong(self, name: str, expected: str, found: object) -> None:
        """Add a reason about a field."""
        self.reasons.append(f"{self.place(name)}: expected {expected}, found {shown(found)}")

    def missing(self, name: str) -> None:
        """Add the reason that a field is absent."""
        self.reasons.append(f"{self.place(name)}: missing")

    def _array(self, names: tuple[str, ...], optional: bool) -> list[Any]:
        for name in names:
            if name in self._values:
                found = self._values[name]
                if isinstance(found, list):
                    return found
                self.wrong(name, "an array", found)
                return []
        if not optional:
            self.missing(names[0])
        return []


def shown(value: object) -> str:
    """A value as JSON writes it, cut short."""
    if isinstance(value, dict):
        return "an object"
    text = orjson.dumps(value).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
