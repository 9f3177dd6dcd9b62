"""Strays that a broker left get a due time where they lie."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from layout.ours import STAGED_RECORD
from logstore import ChangeFailedError, ChangeRefusedError
from logstore.log_dir import LogDir
from logstore.purge import PurgeRules, purge
from logstore.staging import Placement, Staged, adopt_stray, list_staged
from tests.logstore.engine import NOW_MS, ORDERS, ORDERS_ID, DiskThat, contents, fill, formatted, identity, picture

NAME = f"orders-0.{'0123456789abcdef' * 2}-stray"
REASON = ("STRAY", "nobody wants it")


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A real broker's log dir with a stray."""
    from layout import meta_properties

    root = tmp_path / "kafka"
    fill(root / NAME)
    (root / "meta.properties").write_bytes(meta_properties.encode(identity(scheme=None), "today"))
    return root


def only(log_dir: LogDir) -> Staged:
    (stray,) = list_staged(log_dir)
    return stray


def test_it_stays_where_it_is_until_its_time_has_come_and_then_a_purge_takes_it(broker: Path) -> None:
    with LogDir.open(str(broker)) as log_dir:
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
        stray = only(log_dir)
        assert (stray.partition, stray.topic_id, stray.due_ms) == (ORDERS, ORDERS_ID, NOW_MS + 1000)
        assert stray.record is not None and (stray.record.verdict, stray.record.path) == ("STRAY", "orders-0")
        purge([log_dir], PurgeRules(NOW_MS + 999))
        assert (broker / NAME).exists()
        purge([log_dir], PurgeRules(NOW_MS + 1000))
        assert not (broker / NAME).exists()


def test_its_due_time_is_logged_as_a_date(broker: Path, caplog: pytest.LogCaptureFixture) -> None:
    with LogDir.open(str(broker)) as log_dir:
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
    assert caplog.messages == [
        f"{broker}/{NAME}: it may be purged from 2023-11-14 22:13:21 UTC on, because of STRAY; 'logstore purge' does it"
    ]


def test_the_record_is_all_that_is_added(broker: Path) -> None:
    before = contents(broker)
    with LogDir.open(str(broker)) as log_dir:
        adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
    (broker / NAME / STAGED_RECORD).unlink()
    assert contents(broker) == before


def test_what_cannot_be_written_leaves_nothing(broker: Path) -> None:
    with LogDir.open(str(broker)) as log_dir:
        stray = only(log_dir)
    before = picture(broker / NAME)
    with LogDir.open(str(broker), disk=DiskThat(errno.ENOSPC, {"write"})) as log_dir, pytest.raises(ChangeFailedError):
        adopt_stray(log_dir, stray, REASON, NOW_MS, 1000)
    assert {name: look[3] for name, look in picture(broker / NAME).items()} == {
        name: look[3] for name, look in before.items()
    }


def test_another_directory_one_without_a_name_and_one_with_a_record_are_refused(broker: Path) -> None:
    with LogDir.open(str(broker)) as log_dir:
        stray = only(log_dir)
        for other in (
            replace(stray, inode=1),
            replace(stray, partition=None),
            replace(stray, placement=Placement.SIBLING),
        ):
            with pytest.raises(ChangeRefusedError):
                adopt_stray(log_dir, other, REASON, NOW_MS, 1000)
        adopt_stray(log_dir, stray, REASON, NOW_MS, 1000)
        with pytest.raises(ChangeRefusedError):
            adopt_stray(log_dir, only(log_dir), REASON, NOW_MS, 1000)
        with pytest.raises(ChangeRefusedError, match="no use"):
            adopt_stray(log_dir, stray, REASON, NOW_MS, 1000)


def test_a_log_dir_that_is_ours_has_no_strays(tmp_path: Path) -> None:
    fill(formatted(tmp_path / "ours") / NAME)
    with LogDir.open(str(tmp_path / "ours")) as log_dir:
        assert list_staged(log_dir) == []
