"""What the README shows as a program runs as it stands, except for where its disks are."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from logstore.kafka_error import KafkaError
from logstore.store import LogStore

README = Path(__file__).resolve().parents[2] / "README.md"


def programs() -> list[str]:
    """Every indented block of the README that imports something of ours and opens a store."""
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", README.read_text(encoding="utf-8"), re.MULTILINE)
    return [textwrap.dedent(block) for block in blocks if "LogStore.open(" in block]


def test_the_program_that_embeds_the_engine_runs(tmp_path: Path) -> None:
    (program,) = programs()
    names: dict[str, object] = {}
    exec(program.replace("/disk", f"{tmp_path}/disk"), names)
    orders, another_id, moved_to = names["orders"], names["another_id"], f"{tmp_path}/disk2/logstore"
    with LogStore.open(list(names["disks"])) as store:  # type: ignore[call-overload]
        assert store.get(orders).log_dir == moved_to  # type: ignore[arg-type]
        assert store.fence(orders, another_id) is KafkaError.INCONSISTENT_TOPIC_ID  # type: ignore[arg-type]
