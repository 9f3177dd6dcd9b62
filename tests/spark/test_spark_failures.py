"""What Spark says where a task fails, as one sentence."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from reconciler.audit.spark.engine import reason

ABORTED = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times, most "
    "recent failure: Lost task 1.3 in stage 0.0 (TID 6) (127.0.0.1 executor 0): "
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            ABORTED + "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            "  File \"worker.py\", line 1, in main\n    read()\nModuleNotFoundError: No module named 'reconciler'\n\n"
            "\tat org.apache.spark.api.python.BasePythonRunner",
            "a task failed: ModuleNotFoundError: No module named 'reconciler': give executors this package: "
            "spark-submit --py-files takes its wheel, copied to a name that ends in .zip",
        ),
        (
            ABORTED + "org.apache.spark.SparkException: \nError from python worker:\n"
            "  Traceback (most recent call last):\n    File \"x\"\n  ModuleNotFoundError: No module named 'duckdb'\n"
            "PYTHONPATH was:\n  /x",
            "a task failed: ModuleNotFoundError: No module named 'duckdb': install what this package needs on every "
            "worker, or set PYSPARK_PYTHON to a Python there that has it",
        ),
        (
            ABORTED
            + 'java.io.IOException: Cannot run program "/no/python": error=2, No such file or directory\n\tat x',
            'a task failed: java.io.IOException: Cannot run program "/no/python": error=2, No such file or directory: '
            "set PYSPARK_PYTHON to a Python that every worker has",
        ),
        (
            ABORTED + "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command "
            "exited with code 52\nDriver stacktrace:",
            "a task failed: ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command "
            "exited with code 52: an executor ran out of memory: give it more with spark.executor.memory, or more "
            "tasks to share the work with spark.sql.shuffle.partitions",
        ),
        (
            ABORTED + "java.lang.OutOfMemoryError: Java heap space\n"
            "\tat org.apache.spark.sql.execution.vectorized.OnHeapColumnVector.reserve(OnHeapColumnVector.java)",
            "a task failed: java.lang.OutOfMemoryError: Java heap space: an executor ran out of memory: give it more "
            "with spark.executor.memory, or more tasks to share the work with spark.sql.shuffle.partitions",
        ),
        (
            "[PATH_NOT_FOUND] Path does not exist: file:/x.parquet.\n",
            "[PATH_NOT_FOUND] Path does not exist: file:/x.parquet.",
        ),
        (
            "An error occurred while calling o7858.parquet.\n: java.lang.RuntimeException: "
            "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found\n\tat x",
            "java.lang.RuntimeException: java.lang.ClassNotFoundException: Class "
            "org.apache.hadoop.fs.s3a.S3AFileSystem not found: give Spark the connector of the store, for s3a:// the "
            "package org.apache.hadoop:hadoop-aws in the release of Spark's Hadoop (spark-submit --packages), or name "
            "a scheme that it has",
        ),
        ("", "no reason was given"),
    ],
)
def test_a_failure_is_its_cause_and_what_to_do(text: str, said: str) -> None:
    assert reason(text) == said
