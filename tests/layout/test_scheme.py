"""Where a partition lives under each scheme, what each scheme refuses, and where staged replicas go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.directory_name import DirectoryKind, parse, parse_by_topic_id
from layout.errors import InvalidNameError
from layout.ids import TopicId
from layout.scheme import (
    MARKER_FILE,
    MAX_PATH,
    STAGING_DIR,
    Scheme,
    check_namespace_depth,
    check_namespace_fits,
    namespace_path,
    partition_path,
    sibling_staging_root,
)
from layout.topic import Namespace, TopicPartition

SAMPLE_ID = TopicId.parse("UXyU9i5ARn6W00ON2taeWA")
TIERS = st.lists(st.from_regex(r"[a-z][a-z0-9.-]{0,8}[0-9]", fullmatch=True), max_size=3)


def test_the_schemes_have_the_names_that_stand_in_meta_properties() -> None:
    assert [scheme.value for scheme in Scheme] == ["flat", "namespaced", "by-topic-id"]


def test_flat_is_kafkas_own_way() -> None:
    assert partition_path(Scheme.FLAT, TopicPartition("orders", 3)) == "orders-3"


def test_namespaced_has_one_directory_per_tier() -> None:
    # KIP37-2: <log_dir>/<tier>/.../<topic>-<partition>
    assert partition_path(Scheme.NAMESPACED, TopicPartition("org:apache:orders", 3)) == "org/apache/orders-3"


def test_namespaced_is_flat_in_the_default_namespace() -> None:
    # KIP37-1: everything works as before.
    assert partition_path(Scheme.NAMESPACED, TopicPartition("orders", 3)) == "orders-3"


def test_by_topic_id_puts_the_hex_form_under_its_first_two_digits() -> None:
    # KIP516-12; the hex is that of the 16 bytes.
    path = partition_path(Scheme.BY_TOPIC_ID, TopicPartition("orders", 3), SAMPLE_ID)
    assert path == f"51/{SAMPLE_ID.to_bytes().hex()}_3"


def test_by_topic_id_does_not_change_when_the_topic_is_renamed() -> None:
    # KIP516-13: a rename touches no data.
    paths = {
        partition_path(Scheme.BY_TOPIC_ID, TopicPartition(name, 0), SAMPLE_ID) for name in ("old", "new", "ns:new")
    }
    assert len(paths) == 1


@given(TIERS, st.integers(0, 2**31 - 1), st.binary(min_size=16, max_size=16).filter(any))
def test_the_last_component_reads_back_under_every_scheme(tiers: list[str], number: int, raw: bytes) -> None:
    partition = TopicPartition(Namespace(tuple(tiers)).full_name("orders"), number)
    path = partition_path(Scheme.NAMESPACED, partition)
    assert path.split("/")[:-1] == tiers
    assert parse(path.split("/")[-1])[1:4] == (DirectoryKind.LIVE, "orders", number)
    by_id = parse_by_topic_id(partition_path(Scheme.BY_TOPIC_ID, partition, TopicId(raw)))
    assert (by_id.topic_id, by_id.partition) == (TopicId(raw), number)


def test_flat_refuses_a_namespace() -> None:
    with pytest.raises(InvalidNameError, match="namespaced"):
        partition_path(Scheme.FLAT, TopicPartition("org:orders", 0))


@pytest.mark.parametrize("topic_id", [None, TopicId.ZERO])
def test_by_topic_id_refuses_a_topic_without_an_id(topic_id: TopicId | None) -> None:
    with pytest.raises(InvalidNameError, match="no topic ID"):
        partition_path(Scheme.BY_TOPIC_ID, TopicPartition("orders", 0), topic_id)


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("topic", ["", "foo bar", "..", "a/b", "x" * 250, "org:", "a_b:orders"])
def test_every_scheme_refuses_an_illegal_topic(scheme: Scheme, topic: str) -> None:
    with pytest.raises(InvalidNameError):
        partition_path(scheme, TopicPartition(topic, 0), SAMPLE_ID)


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("partition", [-1, 2**31])
def test_every_scheme_refuses_a_partition_out_of_range(scheme: Scheme, partition: int) -> None:
    with pytest.raises(InvalidNameError):
        partition_path(scheme, TopicPartition("orders", partition), SAMPLE_ID)


def test_a_topic_of_249_characters_leaves_room_for_five_digits_of_partition() -> None:
    # FACTS §1.4: 249 + "-" + 5 digits = 255.
    topic = "x" * 249
    for scheme in (Scheme.FLAT, Scheme.NAMESPACED):
        assert len(partition_path(scheme, TopicPartition(topic, 99_999))) == 255
        with pytest.raises(InvalidNameError, match="256 bytes"):
            partition_path(scheme, TopicPartition(topic, 100_000))
    assert partition_path(Scheme.BY_TOPIC_ID, TopicPartition(topic, 100_000), SAMPLE_ID).endswith("_100000")


def test_a_namespace_fits_as_long_as_a_directory_and_a_file_of_255_bytes_fit_below_it() -> None:
    tier = "t" * 249
    namespace = Namespace((tier,) * 14)  # 14 × 250 = 3500 bytes with their slashes
    longest = MAX_PATH - 2 * 256 - 14 * 250
    check_namespace_fits("/" + "d" * (longest - 1), namespace)
    check_namespace_fits("/" + "d" * (longest - 1) + "/", namespace)
    with pytest.raises(InvalidNameError, match=f"{MAX_PATH - 2 * 256 + 1} bytes"):
        check_namespace_fits("/" + "d" * longest, namespace)


def test_a_namespace_has_no_more_tiers_than_a_scan_follows() -> None:
    check_namespace_fits("/d", Namespace(("t",) * 64))
    for check in (check_namespace_depth, lambda namespace: check_namespace_fits("/d", namespace)):
        with pytest.raises(
            InvalidNameError, match="has 65 tiers, and 64 are the most that a scan of a log dir follows"
        ):
            check(Namespace(("t",) * 65))


def test_bytes_count_for_a_path_and_characters_do_not() -> None:
    length = MAX_PATH - 2 * 256 - 4  # "/" before the log dir, "/ns" behind it
    check_namespace_fits("/" + "d" * length, Namespace(("ns",)))
    with pytest.raises(InvalidNameError):
        check_namespace_fits("/" + "é" * (length // 2 + 1), Namespace(("ns",)))
    check_namespace_fits("/\udcff", Namespace(("ns",)))


def test_the_path_of_the_default_namespace_is_the_log_dir_itself() -> None:
    assert namespace_path(Namespace.DEFAULT) == ""
    assert namespace_path(Namespace.parse("org:apache")) == "org/apache"


def test_no_tier_can_be_called_as_the_marker_is() -> None:
    with pytest.raises(InvalidNameError):
        Namespace((MARKER_FILE,))


def test_the_staging_directory_is_the_one_of_kip_516_and_no_tier() -> None:
    assert STAGING_DIR == "deleting"
    with pytest.raises(InvalidNameError, match="reserved"):
        Namespace((STAGING_DIR,))


@pytest.mark.parametrize(
    ("log_dir", "root"),
    [("/disk1/kafka", "/disk1/kafka.deleting"), ("/disk1/kafka//", "/disk1/kafka.deleting"), ("data", "data.deleting")],
)
def test_the_sibling_staging_root_stands_beside_the_log_dir(log_dir: str, root: str) -> None:
    assert sibling_staging_root(log_dir) == root


@pytest.mark.parametrize("log_dir", ["/", "", "//", ".", "..", "data/..", "/disk1/."])
def test_a_log_dir_without_a_name_has_no_sibling(log_dir: str) -> None:
    with pytest.raises(InvalidNameError):
        sibling_staging_root(log_dir)
