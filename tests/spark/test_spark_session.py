"""What is checked and set before Spark starts, with shell scripts in the part of Java."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from reconciler.audit.spark import open_session
from reconciler.audit.spark.session import check_java, local_cores, settings
from reconciler.errors import EngineUnavailableError


def java(folder: Path, version: str) -> dict[str, str]:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


@pytest.mark.parametrize("version", ['openjdk version "17.0.15" 2025-04-15', 'java version "21" 2023-09-19'])
def test_a_java_that_is_new_enough_is_taken(tmp_path: Path, version: str) -> None:
    check_java(java(tmp_path, version))


@pytest.mark.parametrize(("version", "shown"), [('openjdk version "11.0.2"', "11"), ('java version "1.8.0_291"', "8")])
def test_a_java_that_is_too_old_is_refused_with_its_version(tmp_path: Path, version: str, shown: str) -> None:
    with pytest.raises(EngineUnavailableError, match=f"is version {shown}: install Java 17"):
        check_java(java(tmp_path, version))


def test_a_java_that_tells_no_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailableError, match="tells no version"):
        check_java(java(tmp_path, "hello"))


def test_a_java_home_without_java_is_refused_and_named(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailableError, match=f"{tmp_path}/bin/java does not run"):
        check_java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


def test_no_java_at_all_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        EngineUnavailableError, match=r"no `java` on the PATH: install Java 17 or newer.* leave out --spark"
    ):
        check_java({"PATH": str(tmp_path)})


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'pyspark>=4.3,<4.4' 'pandas>=2.2,<3'"):
        open_session()


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 1), ("local[3]", 3), ("local[2,4]", 2), ("spark://h:7077", None)]
)
def test_a_local_master_tells_its_cores(master: str, cores: int | None) -> None:
    assert local_cores(master) == cores


def test_only_a_local_master_is_held_to_this_machine() -> None:
    assert settings("local[2]", "1g")["spark.driver.bindAddress"] == "127.0.0.1"
    cluster = settings("spark://h:7077", "1g")
    assert "spark.driver.bindAddress" not in cluster
    assert "spark.sql.shuffle.partitions" not in cluster


@pytest.mark.spark
def test_a_session_that_runs_is_taken_as_it_is(spark) -> None:
    assert open_session("spark://nobody:1") is spark
