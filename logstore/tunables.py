"""The numbers that were chosen for speed, with what each was measured on; no other module chooses one.

None of them changes a result. The figures were taken on two shared cores with Python 3.11, on ext4 and xfs, from trees
of 100,000 partition dirs with 5 files each. Where no figure stands, the number follows from a limit that is named.
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

ENTRIES_LISTED_FOR_A_NAME: Final = 8
"""Entries that one listing gives in the time of one look-up of a name that is not there: 0.27 to 0.37 us each and 3.9
us in memory, 0.46 to 0.53 us each and 2.5 to 7 us on ext4."""

# Staging, and the ledger of what is staged

STAGING_BATCH_SIZE: Final = 1000
"""Replicas behind one sync of the ledger, and one of the directories. Bare renames took 1.05 to 1.4 times as long with
a sync for each 1,000 as without any, 1.3 to 1.7 with one for each 100, and ten times as long with one for each."""

LISTING_PAYS_FROM: Final = 256
"""Replicas from which one listing of the staging root costs less than a look-up for each name."""

LEAST_DEAD_LINES: Final = 1000
"""Lines without meaning from which a new ledger pays; fewer are read in some milliseconds."""

# A purge

PURGE_WORKERS: Final = 2
"""Workers on each disk, by default. Two take 0.59 of the time of one in C, and two ``rm -rf`` 0.61."""

PURGE_BATCH_SIZE: Final = 1000
"""Most directories that a worker takes at a time."""

PURGE_PROCESSES_FROM: Final = 2000
"""Directories from which processes pay. On an ext4 in memory two threads took 0.9 to 1.1 of the time of ``rm -rf``, and
two ``rm -rf`` 0.6."""

PURGE_SMALLEST_BATCH: Final = 25
"""Least directories in a batch: so few are not worth a second worker."""

PURGE_BATCHES_EACH: Final = 4
"""Least batches for each worker of a large purge, so that at the end no worker waits long for the others."""

PURGE_THREADS: Final = 4
"""Threads that remove where each removal waits; more gain nothing. On an ext4 that discards free blocks, some 60 us a
file, 10,000 directories take 0.62 of the time of ``rm -rf`` with them, and 0.95 without."""

PURGED_PER_PIECE: Final = 25
"""Directories that such a thread takes at a time."""

PURGE_WAITS_PAY_FROM: Final = 12
"""Waits for the disk during one piece from which they pay. A piece has up to four where removals do not wait, and where
they do, some seventy."""

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

STORE_BYTES_AT_ONCE: Final = 1 << 20
"""Bytes in one read from an object store; a request takes some milliseconds, and this much about ten."""

STORE_TRIED_AGAIN_S: Final = 60
"""Seconds for which a request to Google's store is tried again; those to the others end after some seconds anyway."""

STORE_THREADS: Final = 8
"""Inventories that are fetched from an object store together: they wait for its answers, and one file is small."""

INVENTORY_GROUP_ROWS: Final = 1 << 14
"""Rows of a row group of an inventory. To find a topic among 10 million replicas in 100 inventories took 0.9 s of CPU
with so many, 1.4 with twice as many and 4.3 with all of a broker in one; smaller ones make files larger, by 5 % each
time they are halved."""

SWEEP_AT_ONCE: Final = 512
"""Partition dirs that a sweep of a watch reads at a time: 5 ms when they are cached, and other work waits no longer
than that."""
