"""The numbers that were chosen for speed, with what each was measured on; no other module chooses one.

None of them changes a result. The figures were taken on two shared cores with Python 3.11, on ext4 and xfs, from trees
of 100,000 partition dirs with 5 files each. Where no figure stands, the number follows from a limit that is named. The
numbers of staging and of a purge stand with their steps, whose order they depend on.
"""

from __future__ import annotations

from typing import Final

# Threads and processes

THREADS: Final = 8
"""Threads that wait for a disk together. Cold, IDs alone: 8 take 0.39 and 32 take 0.34 of the time of one in C; 32 took
twice as long as 8 to add up cold files. Warm, they lose: 2, 4 and 8 take 1.3, 1.5 and 2.4 times as long as C."""

WAITS_PAY_THREADS_FROM: Final = 8
"""Waits for the disk during one piece from which threads pay. With warm caches there are none, with cold ones
hundreds."""

DIRECTORIES_PER_PIECE: Final = 64
"""Partition dirs that one thread takes at a time; the fast path of a scan takes a whole piece or nothing."""

PROCESSES_PAY_FROM: Final = 8192
"""Partition dirs below which a second process costs more than it saves. Two take 0.83 of the time of one in C on a warm
tree of 100,000, where one in Python takes 1.34."""

DIRECTORIES_PER_UNIT: Final = 2048
"""Partition dirs that one process takes at a time."""

MOST_PROCESSES: Final = 8
"""More processes only wait for one disk, and for each other in the kernel."""

PIPE_BYTES: Final = 1 << 20
"""Size of a pipe between processes, where the system allows it. A result or several fit, so that each takes few
calls."""

# Behind one barrier

FILES_SYNCED_ALONE: Final = 4
"""Files up to which each is synced by itself. A barrier over the file system costs about as much as a few syncs, and
waits for everything that others wrote."""

DIRECTORIES_SYNCED_ALONE: Final = 8
"""The same of directories whose entries changed."""

FILES_AT_ONCE: Final = 400
"""Files behind one pair of barriers, and directories that stay open: a process may usually open 1024 files."""

# One read of a file

FIRST_READ_BYTES: Final = 256
"""Bytes of the first read of a small file. ``partition.metadata`` has 43, and most files that are read fit. For more
than some 450 bytes Python would turn to the C library, which takes longer."""

FURTHER_READ_BYTES: Final = 1 << 16
"""The same of each further read."""

BYTES_AT_ONCE: Final = 1 << 20
"""Bytes of a large file that are read at a time, for a copy and for a checksum."""

# In memory at once

ENTRIES_AT_ONCE: Final = 8192
"""Entries of a log dir that are taken from one listing at a time."""

LOG_DIR_ROWS_AT_ONCE: Final = 64
"""Small log dirs whose rows are in memory together, unless one broker has more."""

INVENTORY_ROWS_AT_ONCE: Final = 1 << 17
"""Rows that are gathered before a write, so that many small log dirs make few row groups."""

SWEEP_AT_ONCE: Final = 512
"""Partition dirs that a sweep of a watch reads at a time: 5 ms when they are cached, and other work waits no longer
than that."""
