"""A store that counts its operations does what the engine does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.scheme import Scheme
from layout.topic import TopicPartition
from logstore import LogDir, LogStore, NameTakenError, StoreOptions
from reconciler.simulator.kernel import CountedStore

AT, ID = TopicPartition("orders", 0), TopicId(bytes(range(16)))


@pytest.fixture
def counts() -> Counter[str]:
    return Counter()


@pytest.fixture
def store(tmp_path: Path, counts: Counter[str]) -> Iterator[LogStore]:
    for number in (1, 2):
        identity = MetaProperties(0, "cluster", 1, DirectoryId(bytes([number] * 16)), Scheme.FLAT)
        LogDir.format(str(tmp_path / str(number)), identity).close()
    with CountedStore.open([tmp_path / "1", tmp_path / "2"], StoreOptions(jobs=0)) as opened:
        opened.reach = lambda what, times: counts.update({what: times})
        yield opened


def test_each_operation_and_each_error_is_counted(store: LogStore, counts: Counter[str]) -> None:
    store.create(AT, ID)
    target = next(each for each in store.log_dirs if each.path != store.get(AT).log_dir)
    assert target.identity.directory_id is not None
    store.move(AT, target.identity.directory_id)
    staged = store.stage([AT], "NOT_ASSIGNED", "nobody wants it").staged[0]
    store.create(AT, ID)
    with pytest.raises(NameTakenError):
        store.restore(staged)
    assert store.purge_step() is None
    assert {what for what, times in counts.items() if times} == {
        "operation create",
        "operation move",
        "operation stage",
        "error restore NameTakenError",
    }
    assert counts["operation create"] == 2
