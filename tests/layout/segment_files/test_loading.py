"""What a broker removes when it loads a replica."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.segment_files import removed_at_load
from layout.segment_name import FileKind, Transient, segment_file_name


def named(*files: str) -> list[str]:
    """Names of files; a number in front is an offset."""
    return [f"{int(number):020d}.{rest}" for number, _, rest in (file.partition(".") for file in files)]


@pytest.mark.parametrize(
    ("files", "gone"),
    [
        (["0.log", "0.index", "0.timeindex", "0.txnindex", "0.snapshot"], []),
        (["0.log", "5.index", "5.timeindex", "5.txnindex"], ["5.index", "5.timeindex", "5.txnindex"]),
        (["0.log", "5.log.deleted", "5.index"], ["5.index", "5.log.deleted"]),
        # Snapshots that belong to a segment stay, and the last one where it lies behind all segments.
        (["0.log", "1.log", "2.log", "4.log", "1.snapshot", "2.snapshot", "3.snapshot", "4.snapshot"], ["3.snapshot"]),
        (["0.log", "3.snapshot", "7.snapshot", "9.snapshot"], ["3.snapshot", "7.snapshot"]),
        (["3.snapshot", "7.snapshot"], ["3.snapshot"]),
        # Output of the cleaner is kept where it was committed as a whole.
        (["0.log.cleaned", "0.index.cleaned"], ["0.index.cleaned", "0.log.cleaned"]),
        (["0.log.swap", "0.index"], []),
        (["0.log", "0.log.cleaned", "5.log.swap", "5.index"], ["0.log.cleaned", "5.index", "5.log.swap"]),
        (["5.log.cleaned", "5.log.swap", "5.index"], ["5.index", "5.log.cleaned", "5.log.swap"]),
        (["9.log.cleaned", "5.log.swap", "5.index"], ["9.log.cleaned"]),
    ],
)
def test_what_fits_no_segment_goes(files: list[str], gone: list[str]) -> None:
    assert removed_at_load(named(*files)) == named(*gone)


def test_other_files_stay() -> None:
    others = ["leader-epoch-checkpoint", "partition.metadata", "notes.txt", "partition.metadata.tmp"]
    assert removed_at_load([*others, "00000000000000000100-0000000003.checkpoint.deleted"]) == []


KINDS = (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.PRODUCER_SNAPSHOT)
NAMES = st.builds(segment_file_name, st.integers(0, 4), st.sampled_from(KINDS))
SUFFIXES = st.sampled_from(["", Transient.DELETED, Transient.CLEANED, Transient.SWAP])


@given(st.sets(st.builds("{}{}".format, NAMES, SUFFIXES)))
def test_what_is_left_is_left_the_next_time_too(names: set[str]) -> None:
    gone = removed_at_load(names)
    assert names.issuperset(gone)
    assert not [name for name in gone if name.endswith(".log")]
    assert removed_at_load(names.difference(gone)) == [] or any(name.endswith(Transient.SWAP) for name in names)
