"""Finds what the reference of the Python API documents, and writes the pages that Sphinx's autodoc fills.

What a door exports is documented under the door's name, which is what a user imports; so is what this refers to: the
types that it takes and returns, and what its docstrings name. ``layout`` has no exports: its modules are its door.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from types import FunctionType

import pyarrow
from sphinx.pycode import ModuleAnalyzer

import layout

DOORS = ("logstore", "reconciler")
_ERROR = re.compile(r"\b\w+Error\b")
_ROLE = re.compile(rf":(?:class|func|data|exc):`~?((?:{'|'.join(DOORS)})[\w.]*)\.(\w+)`")
_BUILT_IN = "object, tuple, str, int, Enum, BaseException, Protocol"
"""What is inherited from these is not shown."""


def reference_pages() -> Iterator[tuple[str, str]]:
    """Yield the name of each page, and its reStructuredText."""
    exported = {f"{door}.{name}": getattr(import_module(door), name) for door in DOORS for name in _exports(door)}
    handed_out = _with_what_they_refer_to(exported)
    for door in DOORS:
        lines = [f".. automodule:: {door}", "   :no-members:", ""]
        for name, value in exported.items():
            lines += _entry(name, value) if name.startswith(f"{door}.") else []
        lines += ["", "What these refer to", "-" * 19, ""]
        for name, value in sorted(handed_out.items()):
            lines += _entry(name, value) if name.startswith(f"{door}.") and name not in exported else []
        yield door, _page(door, lines)
    for name in ("layout", *(f"layout.{each.name}" for each in pkgutil.iter_modules(layout.__path__))):
        yield name, _page(name, [f".. automodule:: {name}"])


def _exports(door: str) -> Sequence[str]:
    names: Sequence[str] = getattr(import_module(door), "__all__", ())
    return names


def _page(name: str, lines: list[str]) -> str:
    return "\n".join([name, "=" * len(name), "", *lines, ""])


def _entry(name: str, value: object) -> list[str]:
    if isinstance(value, type):
        kind = "exception" if issubclass(value, BaseException) else "class"
        return [f".. auto{kind}:: {name}", f"   :inherited-members: {_BUILT_IN}", ""]
    if inspect.isfunction(value):
        return [f".. autofunction:: {name}", ""]
    door, _, short = name.rpartition(".")
    said = (f"   {line}".rstrip() for line in _said_below(name, value))
    return [f".. data:: {short}", f"   :module: {door}", "", *said, ""]


def _said_below(name: str, value: object) -> list[str]:
    """Return the docstring below a constant, which stands in the module that defines it."""
    door, _, short = name.rpartition(".")
    for module in [each for each in sys.modules if each.startswith(f"{door}.")]:
        if vars(sys.modules[module]).get(short) is value:
            found = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", short))
            if found is not None:
                return found
    raise LookupError(f"{name} has no docstring below it")


def _with_what_they_refer_to(named: Mapping[str, object]) -> dict[str, object]:
    """Return functions, classes and constants by name, with those that they refer to, and so on."""
    found = dict(named)
    waiting = list(named.items())
    while waiting:
        new = {name: value for name, value in _referred(*waiting.pop()) if name not in found}
        found |= new
        waiting += new.items()
    return found


def _referred(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield what a function or a constant refers to, or a class with its fields, methods and properties."""
    if inspect.isfunction(value):
        yield from _named_by(value)
    elif isinstance(value, type):
        for kind in _ours(value.__mro__):
            yield from _named_by(kind)
            for said in ModuleAnalyzer.for_module(kind.__module__).find_attr_docs().items():
                yield from _named_in("\n".join(said[1])) if said[0][0] == kind.__qualname__ else ()
            for short, member in vars(kind).items():
                function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
                if inspect.isfunction(function) and (short == "__init__" or not short.startswith("_")):
                    yield from _named_by(function)
    else:
        yield from _named_in("\n".join(_said_below(name, value)))


def _named_by(value: type | FunctionType) -> Iterator[tuple[str, object]]:
    """Yield what the annotations name, and the docstring in a role or as an error."""
    if not _is_ours(value):
        return
    said = value.__doc__ or ""
    package = value.__module__.partition(".")[0]
    names = vars(import_module(f"{package}.errors")) | vars(sys.modules[value.__module__])
    kinds = [names.get(name) for name in _ERROR.findall(said)]
    for annotation in typing.get_type_hints(value, localns={"pa": pyarrow}).values():
        kinds += _parts(annotation)
    yield from ((_name_of(each), each) for each in _ours(kinds))
    yield from _named_in(said)


def _named_in(said: str) -> Iterator[tuple[str, object]]:
    """Yield what a docstring names in roles, by its full name."""
    return ((f"{door}.{name}", getattr(import_module(door), name)) for door, name in _ROLE.findall(said))


def _parts(annotation: object) -> Iterator[object]:
    yield annotation
    for part in typing.get_args(annotation):
        for each in part if isinstance(part, list) else [part]:
            yield from _parts(each)


def _ours(values: Iterable[object]) -> Iterator[type]:
    return (each for each in values if inspect.isclass(each) and _is_ours(each))


def _is_ours(value: type | FunctionType) -> bool:
    return value.__module__.partition(".")[0] in DOORS


def _name_of(kind: type) -> str:
    """Return the name by which a user imports a class: that of the outermost door that exports it, else its own."""
    folders = kind.__module__.split(".")
    doors = [".".join(folders[:length]) for length in range(1, len(folders))]
    home = next((door for door in doors if kind.__name__ in _exports(door)), kind.__module__)
    return f"{home}.{kind.__name__}"
