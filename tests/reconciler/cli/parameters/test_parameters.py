"""What each command takes, which is loaded without what it does."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from reconciler.cli import parameters
from reconciler.next_steps import Call

VERBS = sorted(path.stem for path in Path(parameters.__file__).parent.glob("[a-z]*.py"))
PASSED_ON = {"release", "mode", "metadata_log_dir"}


def test_what_is_passed_on_are_words_of_a_call() -> None:
    assert set(inspect.signature(Call).parameters) >= PASSED_ON


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_takes_what_it_is_carried_out_with(verb: str) -> None:
    command = import_module(f"reconciler.cli.parameters.{verb}").command
    taken = set(inspect.signature(import_module(f"reconciler.cli.commands.{verb}").run).parameters)
    if "broker" in taken:  # what is passed on reaches the call as it is
        taken = taken - {"broker"} | PASSED_ON
    assert {parameter.name for parameter in command.params if parameter.expose_value} == taken


@pytest.mark.parametrize("verb", VERBS)
def test_what_a_command_does_is_loaded_when_it_is_carried_out(verb: str) -> None:
    code = (
        f"import sys, reconciler.cli.parameters.{verb}; "
        "print([name for name in sys.modules if name.startswith(('reconciler.cli.commands', 'pyarrow', 'orjson'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
