"""The claim that no upstream test case and no golden vector is forgotten: ``rows.txt`` says how each is held.

It says of each row and of each kind of vector one of three things, and the tests that it names are there. A test under
``tests/upstream`` bears the name of the upstream test whose row it asserts; a test of vectors names their kind.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

TABLE = Path(__file__).with_name("rows.txt")
TESTS = TABLE.parent.parent
ASSERTED, DIFFERS, NOT_APPLICABLE = "asserted by", "differs because", "does not apply because"


class Held(NamedTuple):
    """A line of the table: what it is about, how that is held, the reason, and the tests."""

    keys: tuple[str, ...]
    how: str
    reason: str
    tests: tuple[str, ...]


def read_table(text: str) -> Iterator[Held]:
    """The lines below the first heading; a run of rows becomes the numbers in it.

    Raises:
        ValueError: a line has other columns than its kind of line has.
    """
    for line in text[text.index("\n#") :].splitlines():
        if not line or line.startswith("#"):
            continue
        key, how, *columns = re.split(r"\s{2,}", line)
        first, _, last = key.partition("-")
        is_run = first.isdigit() and last.isdigit()
        keys = tuple(map(str, range(int(first), int(last) + 1))) if is_run else (key,)
        match how, columns:
            case "asserted by", [tests]:
                yield Held(keys, how, "", tuple(tests.split(", ")))
            case "differs because", [reason, tests]:
                yield Held(keys, how, reason, tuple(tests.split(", ")))
            case "does not apply because", [reason]:
                yield Held(keys, how, reason, ())
            case _:
                raise ValueError(f"{line!r} is none of: {ASSERTED}, {DIFFERS}, {NOT_APPLICABLE}")


def miscounted(table: Iterable[Held], expected: Iterable[str]) -> list[str]:
    """What stands in no line or in two, and what is no row and no kind."""
    counted = Counter(key for line in table for key in line.keys)
    wanted = set(expected)
    found = [f"{key}: held by nothing" for key in wanted - set(counted)]
    found += [f"{key}: there is no such row and no such kind" for key in set(counted) - wanted]
    return sorted(found + [f"{key}: {number} lines" for key, number in counted.items() if number > 1])


def find_test(node: str) -> Callable[..., Any] | None:
    """The test that a node of the table names; None: it is not there."""
    path, _, name = node.partition("::")
    if not (TESTS / path).is_file() or not name.startswith("test_"):
        return None
    module = importlib.import_module(f"tests.{path.removesuffix('.py').replace('/', '.')}")
    found = getattr(module, name, None)
    return found if inspect.isfunction(found) and found.__module__ == module.__name__ else None


def is_about(test: Callable[..., Any], node: str, key: str, rows: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a test bears the name of its row, or names its kind of vectors; what lies elsewhere tells in words."""
    if key not in rows:
        marked = {kind for mark in getattr(test, "pytestmark", ()) for kind in mark.kwargs.get("kinds", ())}
        return key in marked or f'"{key}"' in inspect.getsource(test)
    if not node.startswith("upstream/"):
        return True
    name = re.sub(r"test…|\W.*", "", rows[key]["test"])
    cases = {case for mark in getattr(test, "pytestmark", ()) for case in mark.kwargs.get("ids", ())}
    is_named = name in node or name.removeprefix("test") in cases
    return is_named and test.__name__.startswith((f"test_{rows[key]['testClass']}_", f"test_{key}_"))


@pytest.fixture(scope="module")
def table() -> list[Held]:
    return list(read_table(TABLE.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def rows(shared: Path) -> dict[str, Mapping[str, Any]]:
    """The rows, by their numbers as the table writes them."""
    listed = json.loads((shared / "kafka" / "upstream-tests.json").read_text(encoding="utf-8"))
    return {str(row["n"]): row for row in listed}


@pytest.mark.shared
def test_every_row_and_every_kind_of_vector_is_held_in_one_way(
    table: list[Held], rows: Mapping[str, Mapping[str, Any]], golden_vectors: list[dict[str, Any]]
) -> None:
    assert len(rows) == 287
    assert miscounted(table, [*rows, *{vector["kind"] for vector in golden_vectors}]) == []


@pytest.mark.shared
def test_each_test_of_the_table_is_there_and_is_about_its_row(
    table: list[Held], rows: Mapping[str, Mapping[str, Any]]
) -> None:
    wrong = []
    for key, node in [(key, node) for line in table for key in line.keys for node in line.tests]:
        test = find_test(node)
        if test is None:
            wrong.append(f"{key}: there is no {node}")
        elif not is_about(test, node, key, rows):
            wrong.append(f"{key}: {node} is not about it")
    assert wrong == []


def test_a_reason_says_why(table: list[Held]) -> None:
    assert [line.keys for line in table if line.how != ASSERTED and len(line.reason.split()) < 5] == []


def test_no_test_of_an_upstream_case_is_left_out(table: list[Held]) -> None:
    named = {node for line in table for node in line.tests}
    for path in sorted(TABLE.parent.glob("test_*_upstream.py")):
        module = importlib.import_module(f"tests.upstream.{path.stem}")
        here = {f"upstream/{path.name}::{name}" for name in vars(module) if name.startswith("test_")}
        assert here and here - named == set()


def test_a_table_that_forgets_repeats_or_invents_is_seen_to_do_so() -> None:
    def faults(*lines: str) -> list[str]:
        return miscounted(read_table("\n".join(["", "# rows", *lines])), ["1", "2", "3", "a kind"])

    row, kind = "1-3  asserted by  upstream/test_x.py::test_y", "a kind  does not apply because  nothing here does it"
    assert faults(row, kind) == []
    assert faults(row) == ["a kind: held by nothing"]
    assert faults(row, kind, "2  does not apply because  it is not here") == ["2: 2 lines"]
    assert faults(row, kind, "4  asserted by  x.py::test_y") == ["4: there is no such row and no such kind"]
    for line in ("1  asserted by", "1  differs because  it does", "1  does not apply because", "1  left  out"):
        with pytest.raises(ValueError, match="is none of"):
            faults(line)
    assert find_test("upstream/test_every_row.py::test_a_reason_says_why") is test_a_reason_says_why
    for node in ("upstream/test_every_row.py::test_nothing", "upstream/test_nowhere.py::test_x", "conftest.py::SHARED"):
        assert find_test(node) is None
