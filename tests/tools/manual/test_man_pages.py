"""Man pages: one of every command and of every topic, which groff reads without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from reconciler.cli import logstore
from reconciler.cli.guide import TOPICS, read_page
from tools.manual.man_pages import main, man_pages


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return dict(man_pages())


@pytest.fixture
def groff() -> str:
    program = shutil.which("groff")
    if program is None:
        pytest.skip("groff is not installed")
    return program


def test_every_command_and_every_topic_has_its_page(pages: dict[str, str]) -> None:
    assert isinstance(logstore, click.Group)
    commands = logstore.list_commands(click.Context(logstore))
    assert {f"man1/logstore-{name}.1" for name in commands} <= set(pages)
    assert {f"man7/logstore-{name}.7" for name in TOPICS} <= set(pages)
    assert {"man1/logstore.1", "man1/logstore-namespace-create.1"} <= set(pages)


def test_a_page_has_every_option_and_the_examples(pages: dict[str, str]) -> None:
    page = pages["man1/logstore-doctor.1"].replace(r"\-", "-")
    shown = [
        record[0] for each in command("doctor").params if (record := each.get_help_record(context())) and record[1]
    ]
    assert all(f"\\fB{names}\\fP" in page for names in shown)
    assert '.SH "EXAMPLES"' in page
    assert "logstore doctor /disks/*/kafka --metadata kafka:broker-1:9092" in page
    assert "\b" not in "".join(pages.values())


def context() -> click.Context:
    return click.Context(logstore, info_name="logstore")


def command(name: str) -> click.Command:
    assert isinstance(logstore, click.Group)
    found = logstore.get_command(context(), name)
    assert found is not None
    return found


def test_pages_refer_to_pages_that_there_are(pages: dict[str, str]) -> None:
    named = {
        f"man{section}/{name}.{section}"
        for text in pages.values()
        for name, section in re.findall(r"\\fB(logstore[\\a-z-]*)\\fP\((\d)\)", text)
    }
    assert len(named) > len(TOPICS)
    assert {name.replace("\\", "") for name in named} <= set(pages)


@pytest.mark.groff
def test_groff_warns_of_nothing(groff: str, tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    files = sorted(str(path) for path in tmp_path.glob("man?/*"))
    ran = subprocess.run(
        [groff, "-man", "-Kutf8", "-Tutf8", "-ww", "-z", *files], capture_output=True, text=True, check=True
    )
    assert ran.stderr == ""


@pytest.mark.groff
def test_what_is_read_is_what_was_written(groff: str, pages: dict[str, str]) -> None:
    command = [groff, "-man", "-Kutf8", "-Tutf8", "-rLL=200n", "-P-cbou"]
    ran = subprocess.run(command, input=pages["man7/logstore-exit-codes.7"], capture_output=True, text=True, check=True)
    shown = " ".join(ran.stdout.replace("‐\n", "").split())
    assert read_page("exit-codes").title in shown
    assert "141 nobody reads the output" in shown
    assert "LOGSTORE_TRACEBACK=1 shows where an error came from" in shown
