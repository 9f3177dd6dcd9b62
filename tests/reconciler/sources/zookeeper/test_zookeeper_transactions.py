"""The transaction log beside a snapshot: as of when the snapshot speaks, and what that rests on."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout.ids import TopicId
from reconciler.desired import MetadataIdentity
from reconciler.sources.zookeeper import snapshot
from reconciler.sources.zookeeper.transactions import MOST_TRANSACTIONS, last_spoken_for
from tools.writers.zookeeper_writer import log_bytes, snapshot_bytes, topic_nodes

NODES = {"/brokers/ids/1": b"{}", **topic_nodes("orders", {0: [1]}, topic_id=TopicId.from_halves(7, 9))}
MODIFIED_MS, LAST_MS = 1_700_000_000_000, 1_700_000_500_000
CREATE, DELETE, SET, ERROR, MULTI, OPEN, CLOSE = 1, 2, 5, -1, 14, -10, -11
OWNER = 7
LAST = (0x2A, LAST_MS, OPEN, "")
OTHERS = "/config/users/me"
"""A node that Kafka keeps and nobody reads here."""


def dated(folder: Path, *logs: tuple[int, bytes], zxid: int = 0x2A, **more: int) -> MetadataIdentity:
    """What a snapshot says of itself beside these logs, each with its first zxid."""
    for first, data in logs:
        (folder / f"log.{first:x}").write_bytes(data)
    owners = {"/brokers/ids/1": OWNER}
    (folder / f"snapshot.{zxid:x}").write_bytes(snapshot_bytes(NODES, modified_ms=MODIFIED_MS, owners=owners))
    return snapshot.load(str(folder)).identity


def test_a_snapshot_speaks_as_of_its_last_transaction_where_the_log_has_it(tmp_path: Path) -> None:
    log = log_bytes([(0x29, LAST_MS - 1, CREATE, "/brokers/topics/orders"), LAST])
    identity = dated(tmp_path, (0x29, log))
    assert identity.as_of_ms == LAST_MS
    assert identity.as_of_from == "the time of its last transaction 0x2a in the log beside it"


def test_without_its_log_a_snapshot_speaks_as_of_its_newest_node_and_says_why(tmp_path: Path) -> None:
    identity = dated(tmp_path, (0x2B, log_bytes([(0x2B, LAST_MS, OPEN, "")])))
    assert identity.as_of_ms == MODIFIED_MS
    assert "its last transaction is in no log.<zxid> file beside it" in identity.as_of_from


def test_a_node_that_changed_while_the_snapshot_was_written_does_not_date_it(tmp_path: Path) -> None:
    """Changes of other nodes before that one may not be in it."""
    later = snapshot_bytes(NODES, czxids=dict.fromkeys([*NODES, "/brokers", ""], 0x2B), modified_ms=MODIFIED_MS)
    (tmp_path / "snapshot.2a").write_bytes(later)
    assert snapshot.load(str(tmp_path)).identity.as_of_ms == MODIFIED_MS, "some nodes are older"
    everything = dict.fromkeys(_all_paths(), 43)
    (tmp_path / "snapshot.2a").write_bytes(snapshot_bytes(NODES, czxids=everything, modified_ms=MODIFIED_MS))
    assert snapshot.load(str(tmp_path)).identity.as_of_ms is None


def _all_paths() -> list[str]:
    return ["", *{"/".join(path.split("/")[:depth]) for path in NODES for depth in range(2, path.count("/") + 2)}]


@pytest.mark.parametrize(
    "harmless",
    [(OPEN, ""), (ERROR, ""), (CREATE, OTHERS), (SET, OTHERS), (DELETE, OTHERS), (7, "/brokers/topics/orders")],
)
def test_it_goes_on_to_speak_over_transactions_that_change_nothing_here(
    tmp_path: Path, harmless: tuple[int, str]
) -> None:
    later = (0x2B, LAST_MS + 9_000, *harmless)
    identity = dated(tmp_path, (0x20, log_bytes([LAST, later])))
    assert identity.as_of_ms == LAST_MS + 9_000
    assert identity.as_of_from.endswith("in the log beside it, and up to 0x2b nothing changed that is read here")


@pytest.mark.parametrize(
    "change",
    [
        *((CREATE, "/brokers/topics/new"), (SET, "/brokers/topics/orders"), (DELETE, "/brokers/topics/orders")),
        *((15, "/admin/delete_topics/orders"), (MULTI, ""), (16, ""), (99, ""), (CLOSE, ""), (CREATE, "")),
    ],
)
def test_it_speaks_no_longer_than_until_what_may_change_something_here(tmp_path: Path, change: tuple[int, str]) -> None:
    later = [(0x2B, LAST_MS + 9_000, OPEN, ""), (0x2C, LAST_MS + 20_000, *change), (0x2D, LAST_MS + 30_000, OPEN, "")]
    identity = dated(tmp_path, (0x20, log_bytes([LAST, *later], session=OWNER)))
    assert identity.as_of_ms == LAST_MS + 20_000 - 1


def test_the_end_of_a_session_that_owns_nothing_here_changes_nothing(tmp_path: Path) -> None:
    later = (0x2B, LAST_MS + 9_000, CLOSE, "")
    assert dated(tmp_path, (0x20, log_bytes([LAST, later], session=OWNER + 1))).as_of_ms == LAST_MS + 9_000


def test_a_change_that_a_clock_set_back_dates_before_the_snapshot_ends_its_word_before_that(tmp_path: Path) -> None:
    change = (0x2B, LAST_MS - 60_000, SET, "/brokers/topics/orders")
    assert dated(tmp_path, (0x20, log_bytes([LAST, change]))).as_of_ms == LAST_MS - 60_001


def test_the_next_log_goes_on_where_the_first_one_ends(tmp_path: Path) -> None:
    logs = ((0x20, log_bytes([LAST])), (0x2B, log_bytes([(0x2B, LAST_MS + 5, OPEN, "")])))
    assert dated(tmp_path, *logs).as_of_ms == LAST_MS + 5


@pytest.mark.parametrize("gap", [0x2C, 0x1_0000_0001], ids=["one is missing", "another leader"])
def test_what_does_not_follow_in_the_log_ends_the_reading(tmp_path: Path, gap: int) -> None:
    later = (gap, LAST_MS + 9_000, OPEN, "")
    assert dated(tmp_path, (0x20, log_bytes([LAST, later]))).as_of_ms == LAST_MS


def test_a_damaged_log_is_read_as_far_as_it_is_sound(tmp_path: Path) -> None:
    sound = log_bytes([LAST, (0x2B, LAST_MS + 9_000, OPEN, "")], filled_to=0)
    for end in range(len(sound)):
        as_of_ms = dated(tmp_path, (0x20, sound[:end])).as_of_ms
        assert as_of_ms in (MODIFIED_MS, LAST_MS)
        flipped = sound[:end] + bytes([sound[end] ^ 0x40]) + sound[end + 1 :]
        assert dated(tmp_path, (0x20, flipped)).as_of_ms in (MODIFIED_MS, LAST_MS, LAST_MS + 9_000)
    assert dated(tmp_path, (0x20, sound + b"\0")).as_of_ms == LAST_MS + 9_000


def test_a_log_without_an_end_is_not_followed_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.sources.zookeeper.transactions.MOST_TRANSACTIONS", 10)
    endless = log_bytes([(0x2A + number, LAST_MS + number, OPEN, "") for number in range(100)])
    (tmp_path / "log.2a").write_bytes(endless)
    spoken = last_spoken_for(str(tmp_path), 0x2A, bool, ())
    assert spoken is not None and spoken.last_zxid == 0x2A + 9
    assert MOST_TRANSACTIONS > 2 * 100_000, "a server's own logs are shorter"
