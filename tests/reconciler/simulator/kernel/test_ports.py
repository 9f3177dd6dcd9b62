from __future__ import annotations

from reconciler.simulator.kernel import broker_endpoint


def test_a_broker_and_the_controller_in_its_process_listen_at_one_endpoint() -> None:
    assert [broker_endpoint(node_id) for node_id in (1, 22)] == ["broker-1", "broker-22"]
