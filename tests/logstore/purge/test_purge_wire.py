"""What the processes of a purge tell each other comes back as it was, whatever is in it."""

from __future__ import annotations

import marshal

import pytest

from layout.ids import TopicId
from layout.ours import StagedRecord
from logstore.purge.judge_staged import Due, Seen
from logstore.purge.purge_batches import PurgeBatch
from logstore.purge.purge_report import Kept, Why
from logstore.purge.purge_wire import fields_of, heard, seen, told

RECORD = StagedRecord(
    "orders.\udcff",
    7,
    TopicId(bytes(range(16))),
    "orders.\udcff-7",
    "STALE_ID",
    "because",
    1_700_000_000_000,
    (1 << 63) - 1,
    {"recovery-point-offset-checkpoint": -1},
)


def _batch(**what: object) -> PurgeBatch:
    return PurgeBatch((), **what)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "batch",
    [
        _batch(),
        _batch(
            emptied=[Due("a_0", 12, RECORD, 5, 4096, held=[(13, "x.log", 512)], touched=True), Due("b_1", 1, None)],
            had_record_inside=[True, False],
        ),
        _batch(partly=[Due("c", 1 << 63, RECORD, 1, 1, "it is not purged whole", cancelled=True)]),
        _batch(failure="the disk does not confirm it", emptied=[Due("a", 1, RECORD)]),
        _batch(kept=[Kept("../d/\udcfe", why, "a reason", due_ms) for why in Why for due_ms in (None, 0)]),
    ],
)
def test_a_batch_comes_back_as_it_was(batch: PurgeBatch) -> None:
    assert heard(marshal.loads(marshal.dumps(told(batch)))) == batch


def test_a_record_that_is_due_comes_back_with_what_was_seen_beside_it() -> None:
    look = marshal.loads(marshal.dumps((12, ["a", "\udcff"], [4096, 0], fields_of(RECORD))))
    assert seen(look) == Seen(12, ["a", "\udcff"], [4096, 0], RECORD)


@pytest.mark.parametrize("look", [None, 0, 1 << 62])
def test_a_due_time_and_nothing_stand_for_themselves(look: int | None) -> None:
    assert seen(look) == look
