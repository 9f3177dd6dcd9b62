"""A log dir to scan, built file by file as a broker would leave it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.logstore.children import children
from tests.logstore.engine import formatted

TOPIC_ID = "UXyU9i5ARn6W00ON2taeWA"
OTHER_ID = "AtgGav8yQjiaJ3rTXE7VCA"
DIRECTORY_ID = "s33AdXtkR8Gf_xRO-R_dpA"


class LogDir:
    """Builds one log dir under a path."""

    topic_id = TOPIC_ID
    other_id = OTHER_ID
    directory_id = DIRECTORY_ID

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)

    def __str__(self) -> str:
        return str(self.path)

    def identity(self, node_id: int = 1, extra: str = "", directory_id: str = DIRECTORY_ID) -> LogDir:
        """Write ``meta.properties``."""
        text = f"version=1\ncluster.id=C\nnode.id={node_id}\ndirectory.id={directory_id}\n{extra}"
        (self.path / "meta.properties").write_text(text)
        return self

    def replica(self, name: str, metadata: bytes | str | None = TOPIC_ID, **files: int) -> Path:
        """Make a partition dir; ``metadata`` is a topic ID, bytes as they are, or None; files by name without dots."""
        path = self.path / name
        path.mkdir(parents=True)
        if metadata is not None:
            shipped = f"version: 0\ntopic_id: {metadata}".encode() if isinstance(metadata, str) else metadata
            (path / "partition.metadata").write_bytes(shipped)
        for file, length in files.items():
            (path / file.replace("__", ".")).write_bytes(b"x" * length)
        return path

    def file(self, name: str, text: str = "") -> Path:
        """Write a plain file."""
        path = self.path / name
        path.write_text(text)
        return path


@pytest.fixture
def log_dir(tmp_path: Path) -> LogDir:
    """An empty log dir with an identity."""
    return LogDir(tmp_path / "data").identity()


@pytest.fixture
def new_log_dir() -> type[LogDir]:
    """Makes further log dirs: ``new_log_dir(path)``."""
    return LogDir


@pytest.fixture
def our_log_dir(tmp_path: Path) -> Path:
    """An empty log dir that is ours, formatted and closed again: flat, node 1."""
    return formatted(tmp_path / "ours")


@pytest.fixture(autouse=True)
def _logs_that_can_be_handed_on() -> Iterator[None]:
    """Names that are not UTF-8 stand as escapes in captured logs, which processes hand to each other as UTF-8."""
    original = logging.getLogRecordFactory()

    def escaped(*arguments: Any, **options: Any) -> logging.LogRecord:
        record = original(*arguments, **options)
        text = record.getMessage()
        if not text.isascii():
            record.msg, record.args = text.encode("utf-8", "backslashreplace").decode("utf-8"), ()
        return record

    logging.setLogRecordFactory(escaped)
    yield
    logging.setLogRecordFactory(original)


@pytest.fixture
def nobody_is_left() -> Callable[[], bool]:
    """Says whether this process has no child but those that it had as the test began, which are not the test's."""
    before = children()
    return lambda: children() <= before
