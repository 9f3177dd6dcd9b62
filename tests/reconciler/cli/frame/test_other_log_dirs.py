"""What is known of a broker's other log dirs, and which replicas stay staged because of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from layout import meta_properties
from layout.ids import DirectoryId, TopicId
from layout.meta_properties import MetaProperties
from layout.ours import RunJournal, encode_run_journal, run_journal_name
from layout.topic import TopicPartition
from reconciler.cli.frame import KnownLogDirs, Returning, TwinSearch, find_log_dirs
from reconciler.desired import BrokerKey, DesiredBuilder, DesiredState, MetadataIdentity
from reconciler.next_steps import OTHER_LOG_DIR

CLUSTER = "c"
BROKER = BrokerKey(CLUSTER, 1)
OLD, NEW = TopicId(bytes(range(1, 17))), TopicId(bytes(range(2, 18)))
ORDERS = TopicPartition("orders", 0)
STALE = Returning(ORDERS, str(OLD), "STALE_ID")


def an_id(number: int) -> DirectoryId:
    return DirectoryId.from_halves(9, number)


def log_dir(path: Path, number: int | None, node: int = 1) -> str:
    """A log dir; without a number it has no directory.id, as before Kafka 3.7."""
    path.mkdir(parents=True)
    identity = MetaProperties(0, CLUSTER, node) if number is None else MetaProperties(1, CLUSTER, node, an_id(number))
    (path / meta_properties.FILE_NAME).write_bytes(meta_properties.encode(identity, "today"))
    return str(path)


def journal(path: str, *log_dirs: str) -> None:
    run = RunJournal("a" * 64, "h", "u", 5, 6, (), (), log_dirs)
    Path(path, run_journal_name(5, run.plan)).write_bytes(encode_run_journal(run))


def metadata(
    *registered: int, topic_id: TopicId | None = None, place: int | None = None, as_of_ms: int = 7
) -> DesiredState:
    """Metadata with a broker that registered log dirs, and with ``orders-0`` on it where a topic ID is given."""
    builder = DesiredBuilder()
    builder.broker(1, 3, False, [str(an_id(number)) for number in registered])
    builder.partition("other", str(NEW), 0, [2])
    if topic_id is not None:
        directories = [] if place is None else [str(an_id(place))]
        builder.partition("orders", str(topic_id), 0, [1], directories=directories)
    return builder.build(MetadataIdentity("kraft", "m", CLUSTER, timestamp_ms=as_of_ms))


@pytest.mark.parametrize("below", ["", "kafka"])
def test_log_dirs_of_the_same_broker_that_lie_beside_are_found_and_no_others(tmp_path: Path, below: str) -> None:
    first, second = (log_dir(tmp_path / f"disk{number}" / below, number) for number in (1, 2))
    log_dir(tmp_path / "disk3" / below, 3, node=2)
    shutil.copytree(tmp_path / "disk1", tmp_path / "copy-of-1")
    known = find_log_dirs(BROKER, [first])
    assert known == KnownLogDirs(BROKER, (first,), (second,))
    Path(second, "orders-0").mkdir()
    assert (known.twin_of("orders-0"), known.twin_of("orders-1")) == (f"{second}/orders-0", None)


def test_without_directory_ids_a_backup_is_known_by_the_replicas_that_it_shares(tmp_path: Path) -> None:
    first, second = (log_dir(tmp_path / "disks" / f"disk{number}", None) for number in (1, 2))
    for name in ("orders-0", "orders-1", "orders-2"):
        Path(first, name).mkdir()
    shutil.copytree(first, tmp_path / "disks" / "backup")
    Path(first, "orders-2").rename(tmp_path / "staged")
    for name in ("clicks-0", "clicks-1", "orders-0"):
        Path(second, name).mkdir()
    assert find_log_dirs(BROKER, [first]) == KnownLogDirs(BROKER, (first,), (second,))


def test_log_dirs_that_a_journal_names_are_found_wherever_they_are(tmp_path: Path) -> None:
    first, second = log_dir(tmp_path / "a" / "b" / "c", None), log_dir(tmp_path / "x" / "y" / "z", None)
    journal(first, first, second)
    assert find_log_dirs(BROKER, [first]) == KnownLogDirs(BROKER, (first,), (second,), 2)
    shutil.rmtree(second)
    gone = find_log_dirs(BROKER, [first])
    assert gone == KnownLogDirs(BROKER, (first,), (), 2)
    assert TwinSearch(gone, []).why_it_stays(STALE) == (
        "a run here was given 2 log dirs of broker 1: orders-0 may be live in another"
    )
    assert TwinSearch(gone, []).other_log_dirs == [OTHER_LOG_DIR]


def test_a_log_dir_that_the_broker_registered_and_nobody_gave_keeps_what_may_be_live_in_it(tmp_path: Path) -> None:
    first = log_dir(tmp_path / "a" / "b" / "c", 1)
    search = TwinSearch(find_log_dirs(BROKER, [first]), [metadata(1, 2)])
    assert search.why_it_stays(Returning(ORDERS, str(OLD), "NOT_ASSIGNED")) == (
        f"broker 1 registered 2 log dirs, and directory.id {an_id(2)} is none of those given: "
        "orders-0 may be live there"
    )
    placed = TwinSearch(find_log_dirs(BROKER, [first]), [metadata(1, 2, topic_id=NEW, place=2)])
    assert placed.why_it_stays(STALE) == (
        f"the metadata places orders-0 of broker 1 in directory.id {an_id(2)}, which is none of those given"
    )
    here = TwinSearch(find_log_dirs(BROKER, [first]), [metadata(1, 2, topic_id=NEW, place=1)])
    assert here.why_it_stays(STALE) is None, "it is live in the log dir that was given, or nowhere"
    second = log_dir(tmp_path / "x" / "y" / "z", 2)
    both = TwinSearch(find_log_dirs(BROKER, [first, second]), [metadata(1, 2, topic_id=NEW, place=2)])
    assert both.why_it_stays(STALE) is None, "the caller looks into every log dir that was given"


def test_the_newest_metadata_that_tells_says_which_log_dirs_there_are(tmp_path: Path) -> None:
    known = find_log_dirs(BROKER, [log_dir(tmp_path / "a" / "b" / "c", 1)])
    assert TwinSearch(known, [metadata(1, 2), metadata(1)]).why_it_stays(STALE) is None
    assert TwinSearch(known, [metadata(1), metadata(1, 2), metadata()]).why_it_stays(STALE) is not None


@pytest.mark.parametrize(
    ("wanted", "stays"),
    [(NEW, "with topic ID"), (OLD, None), (None, None)],
    ids=["re-created", "wanted again", "not wanted"],
)
def test_where_no_log_dir_is_registered_the_metadata_says_whether_a_twin_should_be_here(
    tmp_path: Path, wanted: TopicId | None, stays: str | None
) -> None:
    known = find_log_dirs(BROKER, [log_dir(tmp_path / "a" / "b" / "c", None)])
    why = TwinSearch(known, [metadata(topic_id=wanted)]).why_it_stays(STALE)
    assert (why is None) if stays is None else (why is not None and stays in why)


def test_a_journal_that_names_no_further_log_dir_lets_it_come_back(tmp_path: Path) -> None:
    first = log_dir(tmp_path / "a" / "b" / "c", None)
    journal(first, first)
    search = TwinSearch(find_log_dirs(BROKER, [first]), [metadata(topic_id=NEW)])
    assert (search.why_it_stays(STALE), search.is_blind) == (None, False)


def test_where_nothing_is_known_only_what_was_re_created_stays(tmp_path: Path) -> None:
    search = TwinSearch(find_log_dirs(BROKER, [log_dir(tmp_path / "a" / "b" / "c", None)]), [])
    assert search.is_blind
    assert "nothing here says whether broker 1 has other log dirs" in (search.why_it_stays(STALE) or "")
    assert search.why_it_stays(Returning(ORDERS, str(OLD), "NOT_ASSIGNED")) is None
    assert search.why_it_stays(Returning(ORDERS, None, "")) is None
