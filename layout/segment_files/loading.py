"""Which files of a partition dir a broker removes when it loads the replica, by their names (FACTS §1.9).

It removes what was being removed (``.deleted``), output of a compaction or a split that was not committed
(``.cleaned``, and the ``.swap`` from the first ``.cleaned`` on), indexes without a segment, and producer snapshots that
belong to no segment, but for the one behind all of them. Segments that committed output replaces are not among these,
because it hangs on their records which ones go.
"""

from __future__ import annotations

from collections.abc import Collection

from layout.segment_name import FileKind, SegmentFileName, Transient, parse

_INDEXES = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


def removed_at_load(names: Collection[str]) -> list[str]:
    """Return those of the plain files in a partition dir that a broker removes when it loads the replica, in order."""
    files = [parse(name) for name in names]
    gone = [each.text for each in files if each.transient is Transient.CLEANED or _is_deleted(each)]
    cleaned = _numbered(files, Transient.CLEANED)
    swaps = _numbered(files, Transient.SWAP)
    uncommitted = [each for offset, each in swaps if cleaned and offset >= cleaned[0][0]]
    gone += [each.text for each in uncommitted]
    plain = _numbered(files, None)
    segments = {offset for offset, each in plain + swaps if each.kind is FileKind.LOG and each not in uncommitted}
    gone += [each.text for offset, each in plain if each.kind in _INDEXES and offset not in segments]
    strays = [(o, each) for o, each in plain if each.kind is FileKind.PRODUCER_SNAPSHOT and o not in segments]
    if strays and strays[-1][0] > max(segments, default=-1):
        strays.pop()
    return sorted([*gone, *(each.text for _, each in strays)])


def _numbered(files: Collection[SegmentFileName], transient: Transient | None) -> list[tuple[int, SegmentFileName]]:
    """Return the files with an offset in their names that are in one state, by offset."""
    found = [(each.offset, each) for each in files if each.transient is transient and each.offset is not None]
    return sorted(found)


def _is_deleted(file: SegmentFileName) -> bool:
    """Whether the file awaits removal, which a metadata snapshot does for a minute."""
    return file.transient is Transient.DELETED and file.kind is not FileKind.METADATA_SNAPSHOT
