"""Readings as Prometheus takes them: its text format, by the official client library, which is imported here alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from logstore.rows import utf8
from reconciler.metrics.families import Readings

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry


def exposition(readings: Readings) -> bytes:
    """Write readings in the text format of Prometheus 0.0.4, which the textfile collector of node_exporter reads."""
    from prometheus_client import generate_latest

    return generate_latest(registry_of(lambda: readings))


def registry_of(current: Callable[[], Readings]) -> CollectorRegistry:
    """Make a registry that asks for the readings of the moment whenever it is asked itself."""
    from prometheus_client.registry import Collector, CollectorRegistry

    class Current(Collector):
        def collect(self) -> Iterator[Metric]:
            yield from _metrics(current())

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Current())
    return registry


def _metrics(readings: Readings) -> Iterator[Metric]:
    """Make a metric of each family that has samples; bytes in labels that are not UTF-8 are escaped."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for family, samples in groupby(readings.named(), key=lambda sample: sample[0]):
        kind = CounterMetricFamily if family.is_counter else GaugeMetricFamily
        names = ["command", *family.labels]
        metric = kind(family.name, family.text, labels=names)
        for _, labels, value in samples:
            metric.add_metric([utf8(labels[name]) for name in names], value)
        yield metric
