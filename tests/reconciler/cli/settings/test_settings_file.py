"""Settings: option, variable, file, default, in this order; and what is said as an object of JSON to a line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from layout.ids import TopicId
from reconciler.cli import logstore
from reconciler.cli.settings import (
    DEFAULT_PLACES,
    GENERAL,
    LOG_FORMAT,
    LOG_FORMATS,
    Level,
    Settings,
    changes_log_dirs,
    choose_log_format,
    is_json,
    log_line,
    read_settings,
)
from reconciler.errors import UsageError
from reconciler.protocol.json_messages import encode_json
from tests.logstore.changes import fill_store, two_disks
from tests.logstore.engine import opened
from tests.reconciler.cli.conftest import ORDERS, Cluster, make_log_dir
from tests.reconciler.cli.settings.test_quiet_and_verbose import every_command
from tests.reconciler.protocol.control_requests import INCREMENTAL, leader_and_isr, topic

VERBS = logstore.list_commands(click.Context(logstore))


@pytest.fixture(autouse=True)
def _as_text() -> Iterator[None]:
    yield
    choose_log_format("text")


def written(tmp_path: Path, text: str) -> str:
    (tmp_path / "logstore.toml").write_text(text, encoding="utf-8")
    return str(tmp_path / "logstore.toml")


def given(settings: Settings, verb: str) -> dict[str, Any]:
    command = logstore.get_command(click.Context(logstore), verb)
    assert command is not None
    return settings.defaults_of(verb, command)


def test_a_variable_counts_more_than_the_file_and_an_option_more_than_both(cluster: Cluster, tmp_path: Path) -> None:
    file = written(
        tmp_path, f"log_dirs = ['{cluster.folder}/disks/broker-?']\nmetadata = ['none']\n[audit]\nlimit = 0\n"
    )

    def audit(*args: str, **variables: str) -> Result:
        return CliRunner().invoke(logstore, ["--settings", file, "audit", *args], env=variables)

    by_file = audit()
    assert "2 log dirs of 2 brokers" in by_file.stderr and "metadata: " not in by_file.stderr
    by_variable = audit(LOGSTORE_LOG_DIRS=cluster.log_dirs[0], LOGSTORE_METADATA=cluster.metadata)
    assert by_variable.exit_code == 0 and "1 log dir of 1 broker" in by_variable.stderr
    by_option = audit(cluster.log_dirs[1], LOGSTORE_LOG_DIRS="/nowhere", LOGSTORE_METADATA=cluster.metadata)
    assert by_option.exit_code == 1 and "1 log dir of 1 broker" in by_option.stderr


def test_a_setting_of_a_verb_counts_more_than_one_of_all_and_variables_too(tmp_path: Path) -> None:
    file = written(tmp_path, "kafka = '3.7'\nspare-records = '/spare'\n[plan]\nkafka = '3.8'\nmax-share = '5%'\n")
    settings = read_settings(file, VERBS, {})
    assert given(settings, "plan") == {"release": "3.8", "max_share": "5%", "fallback_folder": "/spare"}
    assert given(settings, "doctor") == {"kafka": "3.7", "fallback_folder": "/spare"}
    assert given(settings, "simulate") == {}
    settings = read_settings(file, VERBS, {"LOGSTORE_KAFKA": "3.9", "LOGSTORE_PLAN_MAX_SHARE": "6%"})
    assert given(settings, "plan") == {"release": "3.9", "max_share": "6%", "fallback_folder": "/spare"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# a\nmetadata = \n", ":2: this is no TOML: "),
        ("kafka = '3.9'\n\nlogdirs = ['/d']\n", ":3: 'logdirs' is no setting: a setting is one of log_dirs, "),
        ("[audits]\nlimit = 5\n", ":1: 'audits' is no setting: "),
        ("[audit]\nlimit = 5\nlimt = 6\n", ":3: 'logstore audit' has no option --limt"),
        ("[audit]\n\nlimit = -5\n", ":3: limit: "),
        ("kafka = ['3.9']\n", ":1: kafka takes one value"),
        ("metadata = [['a']]\n", ":1: metadata takes a list of values"),
        ("log_format = 'xml'\n", ":1: log_format is one of text, json, and not 'xml'"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    result = CliRunner().invoke(logstore, ["--settings", file, "audit", "/nowhere"])
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (2, "", 1), result.output
    assert result.stderr.startswith(f"logstore: {file}{said}"), result.stderr


def test_a_file_that_is_not_there_or_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_settings(str(tmp_path / "none.toml"), VERBS, {})
    (tmp_path / "bad.toml").write_bytes(b"# fine\nkafka = '\xff'\n")
    with pytest.raises(UsageError, match=r"bad\.toml:2: this is no UTF-8"):
        read_settings(str(tmp_path / "bad.toml"), VERBS, {})
    with pytest.raises(UsageError, match="LOGSTORE_LOG_DIRS: a quotation mark is never closed"):
        read_settings(os.devnull, VERBS, {"LOGSTORE_LOG_DIRS": "'/disk"})


def test_the_default_places_are_read_where_they_are_there_and_the_later_one_counts_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DEFAULT_PLACES == ("/etc/logstore.toml", "~/.config/logstore.toml")
    system, own = str(tmp_path / "etc.toml"), tmp_path / ".config" / "logstore.toml"
    monkeypatch.setattr("reconciler.cli.settings.settings_file.DEFAULT_PLACES", (system, DEFAULT_PLACES[1]))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_settings(None, VERBS, {}).files == []
    Path(system).write_text("kafka = '3.7'\nmode = 'kraft'\n")
    assert given(read_settings(None, VERBS, {}), "doctor") == {"kafka": "3.7", "mode": "kraft"}
    own.parent.mkdir()
    own.write_text("kafka = '3.8'\n")
    found = read_settings(None, VERBS, {})
    assert given(found, "doctor") == {"kafka": "3.8", "mode": "kraft"} and found.files == [system, str(own)]


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    """Two disks of a broker of ours with a topic on both."""
    paths = two_disks(tmp_path)
    with opened(*paths) as store:
        fill_store(store, "orders")
    return paths


CHANGES = [
    ["purge"], ["restore", "--all"], ["convert", "--to", "flat"], ["namespace", "create", "org"],
    ["namespace", "delete", "org"], ["namespace", "rename", "orders", "sales"], ["reconcile", "REQUEST"],
    ["namespace", "move", "orders", "--to", ""],
    ["namespace", "move", "--from-namespace", "org", "--to-namespace", "com"],
]  # fmt: skip


def test_what_changes_log_dirs_is_every_verb_of_these_and_no_other() -> None:
    names = {" ".join(words[: 2 if words[0] == "namespace" else 1]) for words in CHANGES}
    assert {name for name, _ in every_command() if changes_log_dirs(name.removeprefix("logstore "))} == {
        f"logstore {name}" for name in names
    }


@pytest.mark.parametrize("words", CHANGES, ids=" ".join)
def test_a_verb_that_changes_disks_says_which_log_dirs_it_took_from_the_settings(
    words: list[str], disks: list[Path], tmp_path: Path, run: Callable[..., Result]
) -> None:
    file = written(tmp_path, f"# all disks\nlog_dirs = ['{tmp_path}/disk-?']\n")
    request = leader_and_isr(INCREMENTAL, topic("orders", TopicId(b"another topic 16"), 0))
    (tmp_path / "request.json").write_bytes(encode_json(request, 7))
    words = [str(tmp_path / "request.json") if word == "REQUEST" else word for word in words]
    taken = f"logstore: the log dirs are those of {file}:2: {disks[0]}, {disks[1]}\n"
    assert run("--settings", file, *words, "--dry-run").stderr.startswith(taken)
    assert "those of" not in run("--settings", file, *words, disks[0], "--dry-run").stderr


def test_a_log_dir_that_is_given_is_the_only_one_though_it_is_the_first_word(
    disks: list[Path], tmp_path: Path, run: Callable[..., Result]
) -> None:
    file = written(tmp_path, f"log_dirs = ['{tmp_path}/disk-?']\n")
    move = ["namespace", "move", "--from-namespace", "org", "--to-namespace", "com", "--json", "--dry-run"]
    assert run("namespace", "create", "org", *disks).exit_code == 0
    whole = run("--settings", file, *move)
    assert {step["log_dir"] for step in json.loads(whole.stdout)["steps"]} == set(map(str, disks))
    part = run("--settings", file, *move, disks[1])
    assert part.exit_code == 3 or {step["log_dir"] for step in json.loads(part.stdout)["steps"]} == {str(disks[1])}


def test_a_repair_is_planned_for_the_log_dirs_of_the_settings_and_applied_without_them(
    cluster: Cluster, tmp_path: Path, run: Callable[..., Result]
) -> None:
    file = written(tmp_path, f"log_dirs = ['{cluster.folder}/disks/broker-?']\nmetadata = ['{cluster.metadata}']\n")
    (cluster.log_dir(1) / "orders-0" / "partition.metadata").unlink()
    plan = tmp_path / "plan.json"
    assert run("--settings", file, "repair", "-o", plan).exit_code == 1 and plan.exists()
    applied = run("--settings", file, "repair", "--apply", plan, "--json")
    assert applied.exit_code == 0, applied.stderr
    assert run("--settings", file, "repair", "--undo", json.loads(applied.stdout)["backups"][0]).exit_code == 0


def test_a_path_is_explained_beside_the_log_dirs_of_the_settings_where_its_own_is_one_of_them(
    cluster: Cluster, tmp_path: Path, run: Callable[..., Result]
) -> None:
    twin = make_log_dir(tmp_path / "disks" / "broker-1b", 1, {"orders-0": ORDERS})
    file = written(tmp_path, f"log_dirs = ['{cluster.log_dirs[0]}', '{twin}']\nmetadata = ['{cluster.metadata}']\n")
    assert "DUPLICATE" in run("--settings", file, "explain", twin / "orders-0").stdout
    other = run("--settings", file, "explain", cluster.log_dir(2) / "orders-0", "--json")
    assert (
        other.stdout == run("explain", cluster.log_dir(2) / "orders-0", "--metadata", cluster.metadata, "--json").stdout
    )


def test_a_command_in_a_group_has_a_table_and_variables_of_its_own(
    disks: list[Path], tmp_path: Path, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, f"log_dirs = ['{tmp_path}/disk-?']\n[namespace.create]\ndry-run = true\n")
    assert "nothing was changed" in run("--settings", file, "namespace", "create", "org").stderr
    monkeypatch.setenv("LOGSTORE_NAMESPACE_CREATE_DRY_RUN", "false")
    assert "org: done" in run("--settings", file, "namespace", "create", "org").stderr
    assert "\norg " in run("--settings", file, "namespace", "list").stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[namespace.create]\ndry_run = true\nbelow = 'x'\n",
            ":3: 'logstore namespace create' has no option --below",
        ),
        ("[ namespace . made ]\n\ndry_run = true\n", ":3: 'logstore namespace' has no command 'made'"),
        ("[namespace]\ndry_run = true\n", ":2: 'logstore namespace' has no option --dry-run"),
    ],
)
def test_a_mistake_in_the_table_of_a_command_in_a_group_has_its_line(
    text: str, said: str, tmp_path: Path, run: Callable[..., Result]
) -> None:
    file = written(tmp_path, text)
    result = run("--settings", file, "namespace", "create", "org", "/nowhere")
    assert (result.exit_code, result.stderr) == (2, f"logstore: {file}{said}\n")


def test_an_error_about_what_a_setting_names_says_which_setting_that_is(
    cluster: Cluster, tmp_path: Path, run: Callable[..., Result]
) -> None:
    gone, file = tmp_path / "gone.toml", written(tmp_path, f"kafka = '3.9'\npolicy = '{tmp_path}/gone.toml'\n")
    sentence = f"logstore: policy {gone}: there is no such file; name the present one with --policy"
    doctor = ("--settings", file, "doctor", cluster.log_dir(1))
    named = run(*doctor)
    assert named.exit_code == 2 and named.stderr.endswith(f"{sentence} (named by {file}:2)\n")
    assert run(*doctor, "--policy", gone).stderr.endswith(f"{sentence}\n"), "it is on the command line to be seen"


def test_the_help_says_which_settings_there_are_and_where_they_are_looked_for() -> None:
    words = " ".join(CliRunner().invoke(logstore, ["--help"]).stdout.split())
    for word in (*GENERAL, LOG_FORMAT, *DEFAULT_PLACES, *LOG_FORMATS):
        assert word in words


def test_what_is_said_is_an_object_to_a_line(cluster: Cluster, run: Callable[..., Result]) -> None:
    asked = [*cluster.log_dirs, "--metadata", cluster.metadata]
    planned = run("--log-format", "json", "plan", *asked, "--max-share", "80%", "-o", cluster.folder / "plan.json")
    refused = run("--log-format", "json", "audit", cluster.folder / "nothing")
    misused = run("--log-format", "json", "audit", "--no-such-option")
    lines = [[json.loads(line) for line in result.stderr.splitlines()] for result in (planned, refused, misused)]
    assert [sorted(each) for found in lines for each in found] == [["fields", "level", "message", "time"]] * sum(
        map(len, lines)
    )
    assert (lines[0][-1]["level"], lines[0][-1]["fields"]["command"]) == (Level.INFO, "plan")
    assert lines[0][-1]["fields"]["next"].startswith("logstore apply ")
    assert [(refused.exit_code, lines[1][-1]["level"]), (misused.exit_code, lines[2][-1]["level"])] == [
        (2, "error")
    ] * 2
    assert run("scan", cluster.log_dirs[0]).stdout and not is_json(), "the form is of one call alone"


def test_a_line_of_text_is_what_it_always_was() -> None:
    assert log_line("it is so", Level.ERROR, logger="x") == "logstore: it is so"
    choose_log_format("json")
    found = json.loads(log_line("é", Level.WARNING, logger="x"))
    assert (found["message"], found["level"], found["fields"]) == ("é", "warning", {"logger": "x"})
