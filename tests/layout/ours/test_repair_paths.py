"""Paths of a repair lead nowhere else, and sums are what they are taken for."""

from __future__ import annotations

import pytest

from layout.ours import MISSING, is_absolute, sum_of
from layout.ours.repair_paths import is_sum


@pytest.mark.parametrize(("path", "right"), [("/d", True), ("d", False), ("/d/../e", False), ("/", False)])
def test_a_log_dir_is_an_absolute_path_without_detours(path: str, right: bool) -> None:
    assert is_absolute(path) is right


def test_a_file_that_is_missing_has_a_sum_of_its_own() -> None:
    assert (sum_of(None), sum_of(b"")) == (MISSING, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    assert is_sum(MISSING) and is_sum(sum_of(b"x"))
    assert not is_sum("0" * 63) and not is_sum("G" * 64)
