"""A game with lines of a ledger that speak of another replica than the directory of their name, and with the others.

A line is right where it has the topic ID and the partition of the name, and in a broker's log dir the path of that
replica too; in a log dir of ours the scheme says where it lies. A line that is not right is not believed: nobody knows
what its directory was, and so it does not come back, least of all in the place of another one. Source: DESIGN §5.
"""

from __future__ import annotations

import os
from random import Random
from typing import Final

from layout.ids import TopicId
from layout.ours import StagedRecord
from layout.scheme import STAGING_DIR, Scheme
from logstore import LogDir, LogStoreError
from logstore.fs import Directory, Disk, make_directory, write_new_file
from logstore.fs.crash_disk import memory_folder
from logstore.log_dir import LedgerFile
from logstore.staging import list_staged, restore
from reconciler.simulator.checks import BrokenInvariantError
from reconciler.simulator.drills.made import make_log_dir

_FILE: Final = "00000000000000000000.log"
_REPLICAS: Final = 3


def play_records(random: Random) -> str:
    """List and restore what lies beside such lines; gives what it was.

    Raises:
        BrokenInvariantError: a line is believed that is not right, or one that is right is not.
    """
    disk, scheme = Disk(), random.choice((None, None, *Scheme))
    with memory_folder() as folder:
        path = f"{folder}/data"
        make_log_dir(path, disk, random, scheme)
        drawn = [_drawn(random, number, scheme) for number in range(_REPLICAS)]
        wanted = {name: home for name, _, home in drawn}
        parent, name = (folder, f"data.{STAGING_DIR}") if scheme is None else (path, STAGING_DIR)
        with Directory.open(parent) as opened:
            root = make_directory(disk, opened, name) if scheme is None else opened.child(name)
        with root:
            with LedgerFile.open(disk, root) as ledger:
                ledger.stage({name: record for name, record, _ in drawn})
            for name in wanted:
                with make_directory(disk, root, name) as made:
                    write_new_file(disk, made, _FILE, name.encode(), durable=False)
        with LogDir.open(path, disk=disk) as log_dir:
            for each in list_staged(log_dir):
                home = wanted.pop(each.name)
                if (each.record is None) is not (home is None):
                    raise BrokenInvariantError(f"the line of {each.name} is {each.record}, and is right: {bool(home)}")
                try:
                    found = restore(log_dir, each).path
                except LogStoreError:
                    found = None
                if found != home or (home and _content(f"{path}/{home}") != each.name):
                    raise BrokenInvariantError(f"{each.name} is restored as {found}, and should as {home}")
        if wanted:
            raise BrokenInvariantError(f"{', '.join(wanted)} is not listed")
    return "records"


def _drawn(random: Random, number: int, scheme: Scheme | None) -> tuple[str, StagedRecord, str | None]:
    """Draw a directory's name, its line, and the path to which it returns; None: the line is not right."""
    topic_id, topic = TopicId(random.randbytes(16)), random.choice(("orders", "a.b"))
    home: str | None = f"{topic}-{number}"
    if scheme is None and random.random() < 0.2:
        home = f"{topic}-0{number}"  # a broker reads such a name, too
    record = StagedRecord(topic, number, topic_id, str(home), "S", "a drill", 1, 2)
    if scheme is Scheme.BY_TOPIC_ID:
        digits = topic_id.to_bytes().hex()
        home = f"{digits[:2]}/{digits}_{number}"
    wrong = random.choice(("", "", "topic_id", "partition", "path", "path"))
    if wrong == "topic_id":
        record = record._replace(topic_id=TopicId(random.randbytes(16)))
    elif wrong == "partition":
        record = record._replace(partition=number + 7, path=f"{topic}-{number + 7}")
    elif wrong == "path":
        record = record._replace(path=random.choice((f"{topic}-{number + 7}", f"payments-{number}", f"{topic}-x")))
    is_right = not wrong or (wrong == "path" and scheme is not None)
    return f"{topic_id}_{number}", record, home if is_right else None


def _content(folder: str) -> str | None:
    try:
        with open(os.path.join(folder, _FILE), encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        return None
