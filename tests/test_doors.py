"""Every name that a door says it exports can be had, in a process that imports nothing else before it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOORS = sorted(
    ".".join(path.parent.relative_to(ROOT).parts)
    for package in ("layout", "logstore", "reconciler")
    for path in (ROOT / package).rglob("__init__.py")
    if "__all__" in path.read_text(encoding="utf-8")
)

NEED_ARROW = (
    "reconciler.broker",
    *(f"reconciler.simulator.{name}" for name in ("machine", "cluster", "checks", "drills", "runs")),
)
"""A broker compares what a request wants with what it has, in the tables of a desired state."""


@pytest.mark.parametrize("door", [pytest.param(door, marks=[pytest.mark.spark] * ("spark" in door)) for door in DOORS])
def test_every_export_can_be_had(door: str) -> None:
    code = (
        f"from importlib import import_module; door = import_module('{door}'); "
        "print(*(name for name in door.__all__ if getattr(door, name, door) is door))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("\n", "")


@pytest.mark.parametrize(
    ("before", "door", "name"),
    [("logstore.scan.scanner", "logstore", "scan"), ("reconciler.audit.embedded", "reconciler", "audit")],
)
def test_a_function_that_has_a_packages_name_is_the_function_whatever_was_imported_before(
    before: str, door: str, name: str
) -> None:
    code = f"import {before}; from {door} import {name}; print(callable({name}))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"


@pytest.mark.parametrize("door", [door for door in DOORS if not door.startswith(NEED_ARROW)])
def test_no_door_imports_what_takes_long_before_it_is_asked_for(door: str) -> None:
    code = (
        f"import sys, {door}; print(*sorted({{'pyarrow', 'duckdb', 'watchdog', 'pyspark', 'rich'}} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "\n"
