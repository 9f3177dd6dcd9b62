"""What an interrupt leaves of a job."""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any

import pytest

from reconciler.audit.spark.interrupts import cancelled_by_signals
from tests.patience import PATIENCE_S
from tools.real_broker.client import until


@pytest.mark.spark
def test_a_signal_ends_the_job_that_runs_and_the_session_goes_on(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    def send() -> None:
        until("a job runs", lambda: bool(spark.sparkContext.statusTracker().getActiveJobsIds()), PATIENCE_S)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sender = threading.Thread(target=send)
        with pytest.raises(KeyboardInterrupt), cancelled_by_signals(spark):
            sender.start()
            spark.range(10**15).selectExpr("sum(id % 7)").collect()
        sender.join()
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert spark.range(3).count() == 3
    assert [record.message for record in caplog.records if record.name == "root"] == []
    filters = list(logging.getLogger().filters)
    with cancelled_by_signals(spark):
        pass
    assert logging.getLogger().filters == filters
