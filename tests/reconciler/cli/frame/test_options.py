"""Options that several commands share."""

from __future__ import annotations

import click
import pytest

from reconciler.cli import logstore
from reconciler.cli.frame import Format, metadata_option, output_options, scan_options


@pytest.mark.parametrize(
    ("decorate", "names"),
    [
        (metadata_option, {"specs"}),
        (scan_options, {"jobs", "sizes"}),
        (output_options(Format.TABLE, Format.JSON), {"form", "output"}),
    ],
)
def test_an_option_reaches_its_parameter(decorate, names: set[str]) -> None:
    command = click.command()(decorate(lambda **values: None))
    assert {parameter.name for parameter in command.params} == names


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("scan", ["table", "json", "ndjson", "csv", "parquet", "arrow"]),
        ("audit", ["table", "json", "ndjson", "csv", "parquet"]),
        ("explain", ["table", "json"]),
    ],
)
def test_a_command_takes_the_formats_that_it_can_write(name: str, formats: list[str]) -> None:
    (option,) = (each for each in logstore.get_command(None, name).params if each.name == "form")
    assert list(option.type.choices) == formats
