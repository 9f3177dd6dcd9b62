"""What an embedding program gives to a door: a wrong value is one sentence of the package's own error.

The values that a program makes itself are found by their annotations, each field with every value that does not fit it;
the functions stand in a table, with an argument each that is wrong.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import logstore
import reconciler
from layout.errors import LayoutError
from layout.ids import TopicId
from layout.meta_properties import MetaProperties
from layout.topic import Namespace, TopicPartition
from logstore import (
    InvalidArgumentError,
    LogDir,
    LogStore,
    LogStoreError,
    Settings,
    StoreOptions,
    SystemClock,
    Watch,
    check_argument,
    check_fields,
    check_path,
    check_paths,
    parse_duration,
    scan,
    scan_all,
)
from logstore.log_dir import ExpectedIdentity
from logstore.purge import PurgeRules, Throttle
from logstore.rows import ROW_SCHEMA
from logstore.staging import Candidate
from logstore.watch import WatchTimes
from reconciler import Broker, ReconcilerError
from reconciler.audit import audit
from reconciler.broker import KnownEpochs
from reconciler.desired import (
    TOPIC_SCHEMA,
    DesiredBuilder,
    DesiredState,
    MetadataIdentity,
    Mode,
    SavedTable,
    check_columns,
)
from reconciler.plan import ApplyOptions, PlanChoice, PlanOrigin, Policy, RepairChoice
from reconciler.preflight import BrokerAsked, KafkaRelease
from reconciler.protocol import LeaderAndIsrRequest, LiveLeader, PartitionState, StopPartition, TopicState
from reconciler.simulator import Cluster, ClusterSettings
from reconciler.simulator.controller import ControllerSettings
from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.machine import BrokerSettings

ERRORS = (LayoutError, LogStoreError, ReconcilerError)

MADE_BY_PROGRAMS: Mapping[type, Callable[[], Any]] = {
    TopicPartition: lambda: TopicPartition("orders", 0),
    Namespace: lambda: Namespace(("org",)),
    MetaProperties: lambda: MetaProperties(1, "cluster", 1),
    Settings: Settings,
    StoreOptions: StoreOptions,
    ExpectedIdentity: ExpectedIdentity,
    WatchTimes: WatchTimes,
    Candidate: lambda: Candidate("orders-0", TopicPartition("orders", 0), None, "STALE_ID", "", 0),
    PurgeRules: lambda: PurgeRules(0),
    MetadataIdentity: lambda: MetadataIdentity("kraft", "/metadata"),
    DesiredState: lambda: DesiredBuilder().build(MetadataIdentity("kraft", "/metadata")),
    KnownEpochs: KnownEpochs,
    Policy: Policy.cautious,
    PlanChoice: PlanChoice,
    PlanOrigin: lambda: PlanOrigin(0, "host", "user"),
    ApplyOptions: lambda: ApplyOptions("host", "user"),
    RepairChoice: RepairChoice,
    KafkaRelease: lambda: KafkaRelease(3, 9),
    BrokerAsked: lambda: BrokerAsked(KafkaRelease(3, 9), Mode.KRAFT),
    PartitionState: lambda: PartitionState(0, 1, 1, 1, (1,), 1, (1,)),
    TopicState: lambda: TopicState("orders", None, ()),
    LiveLeader: lambda: LiveLeader(1, "host", 9092),
    StopPartition: lambda: StopPartition(0),
    LeaderAndIsrRequest: lambda: LeaderAndIsrRequest(1, 1, ()),
    ClusterSettings: ClusterSettings,
    ControllerSettings: ControllerSettings,
    BrokerSettings: BrokerSettings,
    FaultRates: FaultRates.none,
}

CHECKED_IN_THE_REQUEST = {(PartitionState, name) for name in ("isr", "replicas", "adding", "removing")}
"""A request has up to a million of these, so that their elements are checked by lists, when it is handled."""

STRANGE: tuple[object, ...] = (None, True, -7, 2.5, math.nan, math.inf, "text", b"bytes", (), ("text",), {}, object())


def fits(value: object, annotation: str) -> bool:
    """Whether a value may be right for an annotation; whatever it is not, it is never right for it."""
    names = [name.strip() for name in annotation.replace("Version", "int").split("|")]
    kind = "None" if value is None else type(value).__name__
    if kind in names or (kind == "int" and "float" in names):
        return not (isinstance(value, float) and not math.isfinite(value))
    if isinstance(value, tuple):
        return any(name.startswith("tuple[") and (not value or "str" in name) for name in names)
    if isinstance(value, dict):
        return any(name.startswith("Mapping[") for name in names)
    return False


def test_every_field_that_a_program_gives_refuses_what_its_annotation_does_not_allow() -> None:
    passed = []
    for kind, make in MADE_BY_PROGRAMS.items():
        right = make()
        for field in dataclasses.fields(kind):
            for value in STRANGE:
                late = (kind, field.name) in CHECKED_IN_THE_REQUEST and isinstance(value, tuple)
                if late or fits(value, str(field.type)):
                    continue
                try:
                    dataclasses.replace(right, **{field.name: value})
                except ERRORS as error:
                    assert "\n" not in str(error) and len(str(error)) < 400, error
                    assert field.name.split("_")[0] in str(error) or repr(value)[:20] in str(error), error
                else:
                    passed.append(f"{kind.__name__}.{field.name}: {field.type} takes {value!r}")
    assert not passed, "\n".join(passed)


def test_no_gate_can_be_opened_by_a_number_that_is_none_or_out_of_its_range() -> None:
    for field in ("most_share", "most_shrink"):
        for value in (math.nan, math.inf, -0.1, 1.1, 30):
            with pytest.raises(reconciler.ReconcilerError, match=f"Policy was given {field} = "):
                dataclasses.replace(Policy.cautious(), **{field: value})
    for field, value in (("delay_ms", -1), ("need", -1), ("sightings", 0), ("topics", "clicks*"), ("verdicts", "OK")):
        with pytest.raises(reconciler.ReconcilerError, match=f"PlanChoice was given {field} = "):
            PlanChoice(**{field: value})  # type: ignore[arg-type]


def test_a_desired_state_takes_no_table_of_another_schema_in_memory_or_in_a_file() -> None:
    state = MADE_BY_PROGRAMS[DesiredState]()
    for field in ("replicas", "topics", "brokers"):
        for table in (
            pa.table({"topic": ["orders"]}),
            getattr(state, field).append_column("x", pa.array([], pa.int8())),
        ):
            with pytest.raises(
                ReconcilerError, match=f"^{field} of DesiredState has (the|no more) column.*, where .* is expected"
            ):
                dataclasses.replace(state, **{field: table})
    with pytest.raises(ReconcilerError) as raised:
        check_columns("topics", pa.table({"topic": ["orders"], "topic_id": [5]}), TOPIC_SCHEMA)
    assert str(raised.value) == "topics has the column topic_id: int64, where the column topic_id: string is expected"
    saved = SavedTable("/nowhere.parquet", TOPIC_SCHEMA, 0)
    with pytest.raises(ReconcilerError, match="where the column partition: int32 is expected"):
        dataclasses.replace(state, replicas=saved)


def test_epochs_that_no_request_has_and_steps_that_remove_nothing_are_refused() -> None:
    for call in (lambda: KnownEpochs(-1), lambda: KnownEpochs(0, -2), lambda: KnownEpochs(reached={"orders-0": 5})):  # type: ignore[dict-item]
        with pytest.raises(ReconcilerError, match="KnownEpochs was given "):
            call()
    with pytest.raises(InvalidArgumentError, match="PurgeRules was given step_bytes = 0, where 1 or more is expected"):
        PurgeRules(0, step_bytes=0)


AUDITS: Mapping[str, dict[str, object]] = {
    "tables": {"tables": ROW_SCHEMA.empty_table()},
    "one of tables": {"tables": [{"kind": "live"}]},
    "one of tables has no more columns, where the column cluster_id: string is expected": {
        "tables": [ROW_SCHEMA.empty_table().select(["host"])]
    },
    "inventories": {"inventories": "/rows.parquet"},
    "one of inventories": {"inventories": [5]},
    "states": {"states": None},
    "one of states": {"states": ["/metadata"]},
    "folder": {"folder": None},
    "now_ms": {"now_ms": "now"},
    "now_ms = -1": {"now_ms": -1},
    "previous": {"previous": 5},
    "memory_limit": {"memory_limit": 4_000_000},
    "threads": {"threads": 0},
    "gap_ms": {"gap_ms": math.inf},
}


@pytest.mark.parametrize("said", AUDITS)
def test_an_audit_says_which_argument_is_wrong(said: str, tmp_path: Path) -> None:
    right: dict[str, Any] = {"tables": [], "inventories": [], "states": [], "folder": str(tmp_path), "now_ms": 0}
    with pytest.raises(ReconcilerError, match=f"^{said}") as raised:
        audit(**right | AUDITS[said])
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
    assert audit(**right).count == 0


def request_of(in_sync: tuple[Any, ...]) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(1, 1, (TopicState("orders", None, (PartitionState(0, 1, 1, 1, in_sync, 1, (1,)),)),))


STORE_CALLS: tuple[Callable[[Any], object], ...] = (
    lambda store: store.create("orders-0", None),
    lambda store: store.create(TopicPartition("orders", 0), "an ID"),
    lambda store: store.create_many([TopicPartition("orders", 0)]),
    lambda store: store.stage("orders-0", "STALE_ID", ""),
    lambda store: store.stage(["orders-0"], "STALE_ID", ""),
    lambda store: store.stage(TopicPartition("orders", 0), "STALE_ID", ""),
    lambda store: store.stage(5, "STALE_ID", ""),
    lambda store: store.stage([TopicPartition("orders", 0)], "STALE_ID", "", setting="delay"),
    lambda store: store.stage_each([TopicPartition("orders", 0)]),
    lambda store: store.stage_each({"orders-0": ("STALE_ID", "")}),
    lambda store: store.stage_copies({TopicPartition("orders", 0): ("STALE_ID", "")}),
    lambda store: store.restore("orders-0"),
    lambda store: store.purge(throttle=5),
    lambda store: store.assign_topic_ids([TopicPartition("orders", 0)]),
    lambda store: store.move(TopicPartition("orders", 0), "an ID"),
    lambda store: store.write_offsets(5, {}),
    lambda store: store.write_offsets("recovery-point-offset-checkpoint", [5]),
    lambda store: store.move("orders-0", None),
    lambda store: store.fence("orders-0"),
    lambda store: store.find("orders-0"),
    lambda store: store.assign_topic_id("orders-0", "an ID"),
    lambda store: Broker("store"),  # type: ignore[arg-type]
    lambda store: Broker(store, "1"),  # type: ignore[arg-type]
    lambda store: Broker(store, broker_epoch="1"),  # type: ignore[arg-type]
    lambda store: Broker(store).handle({"type": "FULL"}),  # type: ignore[call-overload]
    lambda store: Broker(store).handle(request_of(("text",))),
    lambda store: Broker(store).handle(request_of(([],))),
    lambda store: LogStore.open(store.log_dirs[0].path, {"jobs": 1}),  # type: ignore[arg-type]
)


@pytest.mark.parametrize("number", range(len(STORE_CALLS)))
def test_a_store_and_its_broker_refuse_what_is_no_argument_of_theirs(number: int, our_store: LogStore) -> None:
    with pytest.raises(ERRORS) as raised:
        STORE_CALLS[number](our_store)
    assert "\n" not in str(raised.value) and str(raised.value)
    assert our_store.log_dirs[0].offline is None
    assert our_store.create(TopicPartition("orders", 0), TopicId(b"1" * 16)).partition.topic == "orders"


@pytest.fixture
def our_store(tmp_path: Path) -> Any:
    LogDir.format(str(tmp_path / "disk"), MetaProperties(1, "cluster", 1, scheme="flat")).close()
    with LogStore.open(tmp_path / "disk") as store:
        yield store


CALLS: Mapping[str, Callable[[], object]] = {
    "scan a number": lambda: scan(5),  # type: ignore[arg-type]
    "scan an empty path": lambda: scan(""),
    "scan an empty path among others": lambda: list(scan_all([""])),
    "open an empty path": lambda: LogStore.open(""),
    "open an empty path among others": lambda: LogStore.open(["/disk", ""]),
    "open an empty path as a log dir": lambda: LogDir.open(""),
    "watch an empty path": lambda: Watch([""]),
    "format for a broker that none is": lambda: LogDir.format("/nowhere/disk", MetaProperties(1, "cluster", -1)),
    "load an empty path": lambda: reconciler.load(""),
    "scan a list": lambda: scan(["/disk"]),  # type: ignore[arg-type]
    "scan the letters of a path": lambda: list(scan_all("/disk")),
    "scan a number among paths": lambda: list(scan_all(["/disk", 5])),  # type: ignore[list-item]
    "watch the letters of a path": lambda: Watch("/disk"),
    "watch a number": lambda: Watch([5]),  # type: ignore[list-item]
    "watch without times": lambda: Watch(["/disk"], None),  # type: ignore[arg-type]
    "open a number": lambda: LogStore.open(5),  # type: ignore[arg-type]
    "open a number among paths": lambda: LogStore.open(["/disk", 5]),  # type: ignore[list-item]
    "open nothing": lambda: LogStore.open([]),
    "open a log dir that is a number": lambda: LogDir.open(5),  # type: ignore[arg-type]
    "format by a dict": lambda: LogDir.format("/nowhere/disk", {"version": 1}),  # type: ignore[arg-type]
    "a duration in hours": lambda: parse_duration(4),  # type: ignore[arg-type]
    "a rate that is none": lambda: Throttle(SystemClock(), bytes_per_s=math.nan),
    "load a number": lambda: reconciler.load(5),  # type: ignore[arg-type]
    "a cluster by a dict": lambda: Cluster({"brokers": 3}),  # type: ignore[arg-type]
    "a seed that is a text": lambda: Cluster(seed="7"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", CALLS)
def test_a_door_refuses_what_is_no_argument_of_its(what: str) -> None:
    with pytest.raises(ERRORS) as raised:
        CALLS[what]()
    assert "\n" not in str(raised.value) and str(raised.value)


CLUSTER_CALLS: tuple[Callable[[Cluster], object], ...] = (
    lambda cluster: cluster.stop_broker(9),
    lambda cluster: cluster.stop_broker("1"),  # type: ignore[arg-type]
    lambda cluster: cluster.stop_broker([1]),  # type: ignore[arg-type]
    lambda cluster: cluster.create_topic("orders", partitions=0),
    lambda cluster: cluster.create_topic("orders", factor=9),
    lambda cluster: cluster.create_topic("orders", assignment={0: 1}),  # type: ignore[dict-item]
    lambda cluster: cluster.create_topic("orders", partitions="3"),  # type: ignore[arg-type]
    lambda cluster: cluster.create_topic(5),  # type: ignore[arg-type]
    lambda cluster: cluster.delete_topic("nobody"),
    lambda cluster: cluster.produce("orders", "5"),  # type: ignore[arg-type]
    lambda cluster: cluster.produce("orders", -1),
    lambda cluster: cluster.run("5"),  # type: ignore[arg-type]
    lambda cluster: cluster.run(-5),
    lambda cluster: cluster.run(for_ms=-5),
    lambda cluster: cluster.run(for_ms=math.nan),  # type: ignore[arg-type]
)


def test_a_cluster_refuses_in_one_sentence_what_it_cannot_do_and_goes_on() -> None:
    with Cluster(ClusterSettings(brokers=1, log_dirs=1), seed=7) as cluster:
        for number, call in enumerate(CLUSTER_CALLS):
            with pytest.raises(ReconcilerError) as raised:
                call(cluster)
            assert str(raised.value) and "\n" not in str(raised.value), number
        cluster.create_topic("payments")
        assert len(cluster.produce("payments", 2)) == 2


def test_what_is_no_path_and_no_list_of_paths_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match="name = 5, where a text is expected"):
        check_argument("name", 5, str, InvalidArgumentError)
    with pytest.raises(InvalidArgumentError, match=r"log_dirs = '/disk', where a list of paths is expected"):
        check_paths("log_dirs", "/disk", InvalidArgumentError)
    with pytest.raises(InvalidArgumentError, match="path = None, where a path is expected"):
        check_path("path", None, InvalidArgumentError)


def test_all_reasons_stand_in_one_sentence() -> None:
    with pytest.raises(ReconcilerError) as raised:
        Policy(-1, None, math.nan, "many")  # type: ignore[arg-type]
    assert str(raised.value) == (
        "Policy was given oldest_ms = -1, where 0 to 4.61169e+18 is expected; most_share = nan, where a number or None "
        "is expected; most_count = 'many', where an integer or None is expected"
    )


def test_what_programs_make_is_all_in_the_table() -> None:
    """Every dataclass of the doors that checks itself has a right value here, from which the wrong ones are made."""
    checked = set()
    of_engine = ("logstore", "logstore.log_dir", "logstore.watch", "logstore.staging", "logstore.purge")
    for door in (*of_engine, *(f"reconciler.{name}" for name in ("plan", "preflight", "desired", "broker"))):
        module = importlib.import_module(door)
        for name in module.__all__:
            each = getattr(module, name)
            if inspect.isclass(each) and dataclasses.is_dataclass(each) and not issubclass(each, Enum):
                checked |= {each} if "__post_init__" in vars(each) else set()
    assert checked <= set(MADE_BY_PROGRAMS)
    assert check_fields is logstore.check_fields
