"""Why Spark gave up, in one sentence with the cause and what to do.

Spark reports a failed task as the text of exceptions, the outermost first, with the traceback of Python in their midst.
"""

from __future__ import annotations

import re

_TRACEBACK = "Traceback (most recent call last)"
_FAILED_TASK = re.compile(r"most recent failure: Lost task .*?\(TID \d+\) \([^)]*\): (.*)")

_ADVICE = (
    (
        re.compile(r"No module named '(layout|logstore|reconciler)\b"),
        "give executors this package: spark-submit --py-files takes its wheel, copied to a name that ends in .zip",
    ),
    (
        re.compile(r"No module named"),
        "install what this package needs on every worker, or set PYSPARK_PYTHON to a Python there that has it",
    ),
    (re.compile(r"Cannot run program"), "set PYSPARK_PYTHON to a Python that every worker has"),
    (
        re.compile(r"OutOfMemoryError|exited with code (52|137)\b|exit code:? (52|137)\b"),
        "an executor ran out of memory: give it more with spark.executor.memory, or more tasks to share the work with "
        "spark.sql.shuffle.partitions",
    ),
)
"""What to do about a failure, by what its text says; the first that fits counts."""


def reason(text: str) -> str:
    """Summarise the text of an error in one line, with what to do where that is known.

    Of a failed task it is the exception that was raised in it, of several the first.
    """
    lines = [line for line in text.splitlines() if line.strip()] or ["no reason was given"]
    shown = f"{lines[0].strip():.500}"
    failed = _FAILED_TASK.search(text)
    if failed is not None:
        shown = f"a task failed: {failed[1].strip():.450}"
    start = next((number for number, line in enumerate(lines) if _TRACEBACK in line), len(lines))
    for line in lines[start + 1 :]:
        if _indent(line) <= _indent(lines[start]):
            shown = f"a task failed: {line.strip():.450}"
            break
    advice = next((what for sign, what in _ADVICE if sign.search(shown)), None)
    return shown if advice is None else f"{shown}: {advice}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
