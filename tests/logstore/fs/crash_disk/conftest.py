"""Empty folders for the disks of a test."""

import pytest

from tests.reconciler.simulator.machine.disk_folders import fresh_folders

fresh = pytest.fixture(fresh_folders)
