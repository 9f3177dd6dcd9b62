"""What the README shows as a program runs as it stands, except for where its disks are."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from logstore import KafkaError
from logstore.store import LogStore
from reconciler.simulator.runs import shipped_scenarios

README = Path(__file__).resolve().parents[2] / "README.md"


def programs(with_text: str) -> list[str]:
    """The Python in every indented block of the README that has this text; command lines are left out."""
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", README.read_text(encoding="utf-8"), re.MULTILINE)
    python = [re.sub(r"^    (logstore|tools/).*\n", "", block, flags=re.MULTILINE) for block in blocks]
    return [textwrap.dedent(block) for block in python if with_text in block]


def test_the_program_that_embeds_the_engine_runs(tmp_path: Path) -> None:
    (program,) = programs("LogStore.open(")
    names: dict[str, object] = {}
    exec(program.replace("/disk", f"{tmp_path}/disk"), names)
    orders, another_id, moved_to = names["orders"], names["another_id"], f"{tmp_path}/disk2/logstore"
    with LogStore.open(list(names["disks"])) as store:  # type: ignore[call-overload]
        assert store.get(orders).log_dir == moved_to  # type: ignore[arg-type]
        assert store.fence(orders, another_id) is KafkaError.INCONSISTENT_TOPIC_ID  # type: ignore[arg-type]


def test_the_ten_lines_that_run_a_cluster_show_a_stale_replica_staged() -> None:
    # KIP516-5: "stale state"
    (program,) = programs("Cluster(")
    assert len([line for line in program.splitlines() if line.strip()]) <= 10
    names: dict[str, Any] = {}
    exec(program, names)
    (staged,) = names["staged"]
    assert (str(staged.partition), staged.record.verdict) == ("orders-0", "STALE_ID")


def proposal_rows() -> list[tuple[str, str]]:
    """The rows of the README's table of proposals: of which proposal, and how it is seen."""
    row = re.compile(r"^\| (KIP-\d+|creation in 2\.8) \|[^|]*\|([^|]*)\|", re.MULTILINE)
    return row.findall(README.read_text(encoding="utf-8"))


def test_every_scenario_is_shown_by_a_row_of_the_proposals_and_every_row_names_one_that_is_shipped() -> None:
    shown = " ".join(shown for _, shown in proposal_rows())
    named = set(re.findall(r"`logstore simulate --scenario ([a-z-]+)`", shown))
    assert named <= set(shipped_scenarios())
    assert set(shipped_scenarios()) - named == {"failed-disk"}  # of no proposal: what a disk that fails does


@pytest.mark.shared
def test_every_row_of_the_proposals_is_in_the_readme_with_how_to_see_it(shared: Path) -> None:
    text = (shared / "KIPS.md").read_text(encoding="utf-8")
    asked = Counter(re.findall(r"^\| ([A-Z0-9]+)-\d+ \|", text, re.MULTILINE))
    names = {"KIP516": "KIP-516", "KIP37": "KIP-37", "KIP694": "KIP-694", "KIP4": "KIP-4", "CREATE": "creation in 2.8"}
    assert Counter(proposal for proposal, _ in proposal_rows()) == {names[each]: rows for each, rows in asked.items()}
    assert all(shown.strip() for _, shown in proposal_rows())
