"""Files are read where they can be; a missing file is kept apart from a file that cannot be read."""

from __future__ import annotations

import os

from logstore.repair import read_files


def test_what_is_there_what_is_missing_and_what_cannot_be_read_are_three_things(log_dir) -> None:
    log_dir.replica("orders-0", b"data")
    log_dir.replica("empty-0", None)
    os.mkfifo(log_dir.path / "empty-0" / "leader-epoch-checkpoint")
    asked = [
        "orders-0/partition.metadata",
        "empty-0/partition.metadata",
        "empty-0/leader-epoch-checkpoint",
        "gone-0/partition.metadata",
        "nul\0-0/partition.metadata",
    ]
    found = read_files((str(log_dir), path) for path in asked)
    assert found == {(str(log_dir), asked[0]): b"data", (str(log_dir), asked[1]): None}
