"""What a shell is told when somebody presses the tab key."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from reconciler.cli import logstore
from reconciler.sources import SOURCES


def completed(*words: str) -> set[tuple[str, str]]:
    """Kind and text of what may follow the words, the last of which is not complete."""
    shell = ShellComplete(logstore, {}, "logstore", "_LOGSTORE_COMPLETE")
    return {(item.type, item.value) for item in shell.get_completions(list(words[:-1]), words[-1])}


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "pl"),
        ("audit", "/va"),
        ("audit", "/var/lib/kafka", "--metadata", "/v"),
        ("audit", "/var/lib/kafka", "--metadata", "kraft:/v"),
        ("explain", "/var/lib/kafka/data/or"),
        ("plan", "/disks/1", "-o", "pl"),
        ("namespace", "create", "org", "/di"),
        ("repair", "--apply", "pl"),
    ],
)
def test_a_path_is_left_to_the_shell(words: tuple[str, ...]) -> None:
    assert completed(*words) == {("file", words[-1])}


def test_commands_options_and_choices_are_completed_by_us() -> None:
    assert completed("pre") == {("plain", "preflight")}
    assert ("plain", "create") in completed("namespace", "c")
    assert ("plain", "--metadata") in completed("audit", "--met")
    assert ("plain", "ndjson") in completed("audit", "--format", "n")


def test_the_prefixes_of_metadata_sources_are_completed_beside_paths() -> None:
    assert completed("audit", "--metadata", "ka") == {("file", "ka"), ("plain", "kafka:"), ("plain", "kafka-all:")}
    named = {value for kind, value in completed("audit", "--metadata", "") if kind == "plain"}
    assert named == {f"{each.scheme}:" for each in SOURCES}


def test_verdicts_and_topics_are_completed_by_us() -> None:
    assert completed("audit", "--verdict", "STALE") == {("plain", "stale_id")}
    assert completed("help", "so") == {("plain", "sources")}
    assert completed("help", "doc") == {("plain", "doctor")}
    assert completed("help", "sources", "a") == set()


def test_what_is_no_path_is_not_completed_as_one() -> None:
    assert completed("restore", "/disks/1", "--topic", "or") == set()


def test_a_prefix_that_is_whole_is_not_offered_again() -> None:
    assert completed("audit", "--metadata", "kraft:") == {("file", "kraft:")}
