"""The releases that can be had, and how Maven is asked for them; with a Maven of our own making."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.real_broker import RELEASES, fetch
from tools.real_broker.errors import FetchError, RealBrokerError
from tools.real_broker.releases import EACH_WAY, Mode, find_release

RELEASE = RELEASES["3.9"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a path on which there is neither Maven nor Java but what a test puts there."""
    for name in ("cache", "bin"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(fetch, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(fetch, "why_no_java", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "cache"


def maven(folder: Path, script: str) -> None:
    """Put a Maven on the path that notes that it was called, then does as the script says."""
    calls = folder.parent / "calls"
    program = folder.parent / "bin" / "mvn"
    program.write_text(f'#!/bin/sh\necho "$@" >>{calls}\nfor last; do :; done\nfile=${{last#*=}}\n{script}\n')
    program.chmod(0o755)


def calls(folder: Path) -> list[str]:
    noted = folder.parent / "calls"
    return noted.read_text().splitlines() if noted.exists() else []


@pytest.fixture
def jars(cache: Path) -> list[Path]:
    """Two jars, and a Maven that answers with them."""
    paths = [cache.parent / name for name in ("kafka.jar", "clients.jar")]
    for path in paths:
        path.write_bytes(b"")
    maven(cache, f"echo {os.pathsep.join(map(str, paths))} >$file")
    return paths


def test_each_release_is_found_by_its_name_and_by_its_version() -> None:
    for release in RELEASES.values():
        assert find_release(release.name) is find_release(release.version) is release
    assert find_release("4").version.startswith("4.")


def test_each_pinned_version_is_exact_and_of_its_name() -> None:
    for release in RELEASES.values():
        assert release.version.startswith(release.name + ".")
        assert release.version.replace(".", "").isdigit()


def test_every_way_is_a_release_with_one_of_its_modes() -> None:
    assert {name for name, _ in EACH_WAY} == set(RELEASES)
    for name, mode in EACH_WAY:
        assert RELEASES[name].mode(mode) == mode


def test_an_unknown_release_is_refused_with_those_there_are() -> None:
    with pytest.raises(RealBrokerError, match=r"no release '1\.0' here; take one of 2\.8, 3\.9, "):
        find_release("1.0")


def test_a_mode_that_a_release_cannot_run_in_is_refused() -> None:
    assert RELEASE.mode("zk") is Mode.ZOOKEEPER
    with pytest.raises(RealBrokerError, match=r"Kafka 2\.8\.2 does not start in mode 'kraft' here; take zk"):
        RELEASES["2.8"].mode("kraft")


@pytest.mark.parametrize("name", RELEASES)
def test_the_project_asks_for_the_broker_its_commands_and_a_logger_and_names_no_repository(name: str) -> None:
    project = ElementTree.fromstring(fetch.pom(RELEASES[name]))
    wanted = {
        dependency.findtext("artifactId"): dependency.findtext("version") for dependency in project.iter("dependency")
    }
    assert wanted["kafka_2.13"] == RELEASES[name].version
    assert wanted.get("kafka-tools") == (RELEASES[name].version if RELEASES[name].tools else None)
    assert any("slf4j" in str(artifact) for artifact in wanted)
    assert not list(project.iter("repository"))


def test_maven_is_asked_once_and_its_answer_is_kept(cache: Path, jars: list[Path]) -> None:
    found = fetch.class_path(RELEASE)
    assert found.split(os.pathsep) == list(map(str, jars))
    assert fetch.class_path(RELEASE) == fetch.known_class_path(RELEASE) == found
    assert len(calls(cache)) == 1
    assert sorted(path.name for path in fetch.release_folder(RELEASE).iterdir()) == ["classpath", "pom.xml"]


def test_maven_is_asked_again_when_a_jar_is_gone(cache: Path, jars: list[Path]) -> None:
    fetch.class_path(RELEASE)
    jars[0].unlink()
    assert fetch.known_class_path(RELEASE) is None
    fetch.class_path(RELEASE)
    assert len(calls(cache)) == 2


def test_maven_is_asked_again_when_something_else_is_wanted_and_old_archives_go(cache: Path, jars: list[Path]) -> None:
    fetch.class_path(RELEASE)
    folder = fetch.release_folder(RELEASE)
    (folder / "broker-17.jsa").write_bytes(b"")
    (folder / "pom.xml").write_text("<project/>")
    fetch.class_path(RELEASE)
    assert len(calls(cache)) == 2
    assert not (folder / "broker-17.jsa").exists()


def test_a_maven_that_fails_is_quoted_and_leaves_nothing(cache: Path) -> None:
    maven(cache, "echo '[ERROR] no route to the repository'; exit 1")
    with pytest.raises(FetchError, match=r"(?s)could not resolve Kafka 3\.9\.2:.*no route.*fetch again"):
        fetch.class_path(RELEASE)
    assert list(fetch.release_folder(RELEASE).iterdir()) == []


def test_a_maven_that_hangs_is_given_up(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven(cache, "while :; do :; done")
    monkeypatch.setattr(fetch, "SECONDS_TO_RESOLVE", 0.2)
    with pytest.raises(FetchError, match="did not resolve"):
        fetch.class_path(RELEASE)


def test_without_maven_a_release_that_was_not_fetched_cannot_be_had(cache: Path) -> None:
    with pytest.raises(FetchError, match=r"Kafka 3\.9\.2 was not fetched yet and no mvn is on the path"):
        fetch.class_path(RELEASE)


def test_without_maven_a_release_that_was_fetched_can_be_had(cache: Path, jars: list[Path]) -> None:
    found = fetch.class_path(RELEASE)
    (cache.parent / "bin" / "mvn").unlink()
    assert fetch.why_not(RELEASE) is None
    assert fetch.class_path(RELEASE) == found


def test_without_java_nothing_can_be_had(cache: Path, jars: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "why_no_java", lambda: "no Java was found")
    with pytest.raises(FetchError, match="no Java was found; install it"):
        fetch.class_path(RELEASE)
    assert calls(cache) == []
