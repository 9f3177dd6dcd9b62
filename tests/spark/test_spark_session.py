"""What is checked and set before Spark starts, with shell scripts in the part of Java."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from reconciler.audit.spark import open_session, runs_on_cluster, session
from reconciler.audit.spark.session import (
    check_java,
    check_master,
    local_cores,
    settings,
    user_settings,
    warn_without_executors,
)
from reconciler.errors import EngineUnavailableError, UsageError


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
    with (
        pytest.raises(EngineUnavailableError, match=r"pip install 'pyspark>=4.3,<4.4' 'pandas>=2.2,<3'"),
        open_session(),
    ):
        pass


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 1), ("local[3]", 3), ("local[2,4]", 2), ("spark://h:7077", None)]
)
def test_a_local_master_tells_its_cores(master: str, cores: int | None) -> None:
    assert local_cores(master) == cores


def test_only_a_local_master_is_held_to_this_machine() -> None:
    assert settings("local[2]", "1g", {})["spark.driver.bindAddress"] == "127.0.0.1"
    cluster = settings("spark://h:7077", "1g", {})
    assert "spark.driver.bindAddress" not in cluster
    assert "spark.sql.shuffle.partitions" not in cluster


def test_what_the_user_has_set_for_spark_holds_and_what_is_asked_for_goes_before_it() -> None:
    user = {"spark.master": "spark://h:7077", "spark.driver.memory": "20g", "spark.ui.enabled": "true"}
    chosen = settings(None, None, user)
    assert not chosen.keys() & user.keys()
    assert "spark.driver.bindAddress" not in chosen
    assert settings("local[2]", "1g", user).items() >= {("spark.master", "local[2]"), ("spark.driver.memory", "1g")}
    assert settings(None, None, {})["spark.master"] == "local[*]"


def test_the_users_settings_are_read_from_the_file_of_defaults_and_from_what_pyspark_is_given(tmp_path: Path) -> None:
    text = "# comment\n\nspark.master   spark://a:1\nspark.driver.memory=5g\nspark.x:y z\nnot.spark 1\nspark.lonely\n"
    (tmp_path / "spark-defaults.conf").write_text(text)
    environ = {"SPARK_CONF_DIR": str(tmp_path)}
    assert user_settings(environ) == {"spark.master": "spark://a:1", "spark.driver.memory": "5g", "spark.x": "y z"}
    environ["PYSPARK_SUBMIT_ARGS"] = "--master yarn --conf spark.x=2 --driver-memory 9g --jars a.jar pyspark-shell"
    assert user_settings(environ) == {"spark.master": "yarn", "spark.driver.memory": "9g", "spark.x": "2"}
    assert user_settings({"SPARK_CONF_DIR": "/nowhere"}) == {}


@pytest.mark.parametrize(
    ("asked", "environ", "elsewhere"),
    [
        (None, {}, False),
        ("local[2]", {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}, False),
        (None, {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}, True),
        ("spark://host:7077", {}, True),
        ("local", {"PYSPARK_GATEWAY_PORT": "1"}, True),
        (None, {"SPARK_REMOTE": "sc://host"}, True),
        (None, {"SPARK_REMOTE": "local[2]"}, False),
    ],
)
def test_whether_other_machines_take_part_is_known_before_spark_starts(
    asked: str | None, environ: dict[str, str], elsewhere: bool
) -> None:
    assert runs_on_cluster(asked, {"SPARK_CONF_DIR": "/nowhere", **environ}) is elsewhere


@pytest.mark.spark
def test_a_session_that_runs_is_taken_as_it_is_and_goes_on_afterwards(spark) -> None:
    with open_session("spark://nobody:1") as taken:
        assert taken is spark
    assert spark.range(3).count() == 3
    with pytest.raises(UsageError, match="give spark-submit --driver-memory instead"), open_session(memory="1g"):
        pass


@pytest.mark.spark
def test_a_cluster_that_gives_no_executor_is_named_with_what_was_asked_for(
    spark, caplog: pytest.LogCaptureFixture
) -> None:
    warn_without_executors(spark)  # a session on this machine alone has none either
    assert "local[2] has given no executor yet" in caplog.text
    assert "none has the 1g that spark.executor.memory asks for" in caplog.text


def test_a_standalone_master_that_answers_is_taken_and_one_that_does_not_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(
        EngineUnavailableError, match=rf"no Spark master answers at 127.0.0.1:{port} \(Connection refused"
    ):
        check_master(f"spark://127.0.0.1:{port}")
    for odd in ("spark://host", "spark://", "spark://host:port"):
        with pytest.raises(EngineUnavailableError, match="is no address of a Spark master: HOST:PORT is expected"):
            check_master(odd)
    check_master("yarn")


def test_a_connect_server_that_does_not_answer_is_named_and_a_master_does_not_go_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "_running", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{port}/;user_id=me")
    with (
        pytest.raises(EngineUnavailableError, match=f"no Spark Connect server answers at 127.0.0.1:{port}"),
        open_session(),
    ):
        pass
    with pytest.raises(UsageError, match="--master local does not go with SPARK_REMOTE"), open_session("local"):
        pass
