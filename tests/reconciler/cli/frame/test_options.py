"""Options that several commands share, and the values that are read from them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from reconciler.cli import logstore
from reconciler.cli.frame import (
    TEXT_FORMATS,
    Format,
    change_options,
    fallback_records,
    fallback_records_option,
    is_given,
    is_of_settings,
    metadata_option,
    note_json,
    options,
    output_options,
    parse_duration_option,
    passed_on_fallback_option,
    passed_on_options,
    scan_options,
    without_settings,
    words_of_call,
)
from reconciler.errors import UsageError


@pytest.mark.parametrize(
    ("decorate", "names"),
    [
        (metadata_option, {"specs"}),
        (scan_options, {"jobs", "sizes"}),
        (output_options(Format.TABLE, Format.JSON), {"form", "output"}),
        (fallback_records_option, {"fallback_folder"}),
        (passed_on_fallback_option, {"fallback_folder"}),
        (passed_on_options, {"release", "mode", "metadata_log_dir", "policy"}),
        (change_options, {"dry_run", "form", "output", "fallback_folder"}),
    ],
)
def test_an_option_reaches_its_parameter(decorate, names: set[str]) -> None:
    command = click.command()(decorate(lambda **values: None))
    assert {parameter.name for parameter in command.params if parameter.expose_value} == names


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("scan", ["table", "json", "ndjson", "csv", "parquet", "arrow"]),
        ("audit", ["table", "json", "ndjson", "csv", "parquet"]),
        ("explain", ["table", "json"]),
        ("convert", list(TEXT_FORMATS)),
    ],
)
def test_a_command_takes_the_formats_that_it_can_write(name: str, formats: list[str]) -> None:
    (option,) = (each for each in logstore.get_command(None, name).params if each.name == "form")
    assert list(option.type.choices) == formats


def test_fallback_records_lie_in_the_named_folder_else_in_the_default_one_where_it_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "FALLBACK_FOLDER", str(tmp_path / "usual"))
    assert fallback_records(None).folder is None
    (tmp_path / "usual").mkdir()
    assert fallback_records(None).folder == str(tmp_path / "usual")
    assert fallback_records(str(tmp_path)).folder == str(tmp_path)
    with pytest.raises(UsageError, match="is no directory"):
        fallback_records(str(tmp_path / "missing"))


def test_the_environment_names_the_folder_too(run, cluster, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(options.FALLBACK_VARIABLE, str(tmp_path / "missing"))
    result = run("staged", cluster.log_dirs[0])
    assert result.exit_code == 2
    assert "missing is no directory" in result.stderr


def test_a_duration_is_read_or_refused_by_the_name_of_its_option() -> None:
    assert parse_duration_option("--delay", "4h") == 4 * 3_600_000
    with pytest.raises(UsageError, match="--delay: "):
        parse_duration_option("--delay", "soon")


@pytest.mark.parametrize(
    ("typed", "form"),
    [
        ([], "table"),
        (["--json"], "json"),
        (["--format", "csv"], "csv"),
        (["--json", "--format", "json"], "json"),
        (["--format", "json", "--json"], "json"),
    ],
)
def test_json_is_a_format_as_everybody_types_it(typed: list[str], form: str) -> None:
    command = click.command()(output_options(*TEXT_FORMATS)(lambda form, output: form))
    assert command.main(typed, standalone_mode=False) == form


@pytest.mark.parametrize("typed", [["--json", "--format", "csv"], ["--format", "table", "--json"]])
def test_json_beside_another_format_is_a_usage_error(typed: list[str]) -> None:
    command = click.command()(output_options(*TEXT_FORMATS)(lambda form, output: form))
    with pytest.raises(
        UsageError, match=f"--json and --format {'csv' if 'csv' in typed else 'table'} name two formats"
    ):
        command.main(typed, standalone_mode=False)


def test_json_is_noted_where_it_is_given_and_stays_noted() -> None:
    with click.Context(click.Command("audit")) as context:
        option = click.Option(["--json"], is_flag=True)
        for given in (True, False):
            note_json(context, option, given)
        assert list(context.meta.values()) == [True]


def test_what_the_settings_gave_can_be_taken_back() -> None:
    @click.command(params=[click.Argument(["paths"], nargs=-1), click.Option(["--only"], multiple=True)])
    def command(**given: object) -> list[object]:
        was = [is_of_settings("paths"), is_of_settings("only")]
        without_settings(given, "paths", "only")
        return [*was, given["paths"], given["only"], is_of_settings("paths")]

    settings = {"paths": ["/disk"], "only": ["x"]}
    assert command.main([], standalone_mode=False, default_map=settings) == [True, True, (), (), False]
    assert command.main(["/a"], standalone_mode=False, default_map=settings) == [False, True, ("/a",), (), False]


def test_a_command_without_json_does_not_take_it() -> None:
    command = click.command()(output_options(Format.TABLE)(lambda form, output: form))
    with pytest.raises(click.NoSuchOption):
        command.main(["--json"], standalone_mode=False)


def test_the_words_of_a_call_are_its_arguments_and_the_options_that_were_given() -> None:
    @click.command()
    @click.argument("paths", nargs=-1)
    @click.option("--metadata", "specs", multiple=True)
    @click.option("-o", "--output")
    @click.option("--notes/--no-notes", default=True)
    @click.option("--strays", is_flag=True)
    @click.option("--kafka", default="3.9")
    @click.pass_context
    def command(context: click.Context, **given: object) -> tuple[object, ...]:
        return words_of_call(context), words_of_call(context, {"--metadata"}), is_given(context, "kafka")

    typed = ["/a", "--metadata", "m", "-o", "f", "--no-notes", "/b", "--strays", "--metadata", "n"]
    words, without, release_is_given = command.main(typed, standalone_mode=False)
    rest = ("--output", "f", "--no-notes", "--strays")
    assert words == ("/a", "/b", "--metadata", "m", "--metadata", "n", *rest)
    assert (without, release_is_given) == (("/a", "/b", *rest), False)
    assert command.main(words, standalone_mode=False)[0] == words
