"""What the processes of a purge send each other is decoded as it was encoded, whatever is in it."""

from __future__ import annotations

import marshal

import pytest

from layout.ids import TopicId
from layout.ours import StagedRecord
from logstore.purge.batches import PurgeBatch
from logstore.purge.eligibility import DueDirectory, PrefetchedDirectory
from logstore.purge.encoding import decode_batch, decode_prefetch, encode_batch, encode_record
from logstore.purge.report import KeepReason, KeptDirectory

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
            emptied=[
                DueDirectory("a_0", 12, RECORD, 5, 4096, held=[(13, "x.log", 512)], touched=True),
                DueDirectory("b_1", 1, None),
            ],
            had_record_inside=[True, False],
        ),
        _batch(partly=[DueDirectory("c", 1 << 63, RECORD, 1, 1, "it is not purged whole", cancelled=True)]),
        _batch(failure="the disk does not confirm it", emptied=[DueDirectory("a", 1, RECORD)]),
        _batch(
            kept=[KeptDirectory("../d/\udcfe", why, "a reason", due_ms) for why in KeepReason for due_ms in (None, 0)]
        ),
    ],
)
def test_a_batch_comes_back_as_it_was(batch: PurgeBatch) -> None:
    assert decode_batch(marshal.loads(marshal.dumps(encode_batch(batch)))) == batch


def test_a_record_that_is_due_comes_back_with_what_was_seen_beside_it() -> None:
    look = marshal.loads(marshal.dumps((12, ["a", "\udcff"], [4096, 0], encode_record(RECORD))))
    assert decode_prefetch(look) == PrefetchedDirectory(12, ["a", "\udcff"], [4096, 0], RECORD)


@pytest.mark.parametrize("look", [None, 0, 1 << 62])
def test_a_due_time_and_nothing_stand_for_themselves(look: int | None) -> None:
    assert decode_prefetch(look) == look
