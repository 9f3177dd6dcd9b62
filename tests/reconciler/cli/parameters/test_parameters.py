"""What each command takes, which is loaded without what it does."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import Result

from reconciler.cli import parameters
from reconciler.next_steps import Call
from tests.logstore.changes import two_disks
from tests.reconciler.cli.conftest import Cluster
from tests.reconciler.cli.settings.test_quiet_and_verbose import every_command

VERBS = sorted(path.stem for path in Path(parameters.__file__).parent.glob("[a-z]*.py"))
PASSED_ON = {"release", "mode", "metadata_log_dir", "policy"}


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


def test_every_command_that_has_json_takes_it_as_everybody_types_it() -> None:
    has_json = {
        name: "json" in [str(each) for option in command.params for each in getattr(option.type, "choices", ())]
        for name, command in every_command()
        if name not in ("logstore", "logstore watch")
    }
    takes_it = {
        name: any("--json" in option.opts for option in command.params)
        for name, command in every_command()
        if name in has_json
    }
    assert takes_it == has_json and sum(has_json.values()) > 20


def test_json_before_the_verb_is_that_behind_it(cluster: Cluster, tmp_path: Path, run: Callable[..., Result]) -> None:
    for words in (["staged", *cluster.log_dirs], ["namespace", "list", *two_disks(tmp_path)]):
        asked = run("--json", *words)
        assert (asked.exit_code, asked.stdout) == (0, run(*words, "--json").stdout) and json.loads(asked.stdout)
    clash = run("--json", "staged", "--format", "csv", *cluster.log_dirs)
    assert (clash.exit_code, clash.stdout) == (2, "") and "--json and --format csv name two formats" in clash.stderr
    without = run("--json", "purge", *cluster.log_dirs)
    assert (without.exit_code, without.output) == (2, "logstore: 'logstore purge' has no --json: leave it out\n")
    watched = run("watch", "--json", *cluster.log_dirs, "--metadata", "none", "--initial", "--for", "0")
    assert watched.exit_code == 0 and all(map(json.loads, watched.stdout.splitlines()))
