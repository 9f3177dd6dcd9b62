"""``python -m tools.real_broker.fixtures``: what can be tested without a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.real_broker.errors import FetchError
from tools.real_broker.fixtures import command as fixtures


def test_a_way_that_there_is_not_is_refused_with_those_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        fixtures.main([str(tmp_path / "out"), "2.8-kraft"])
    assert ended.value.code == 2
    assert (
        "there is no way '2.8-kraft' here; take one of 2.8-zk, 3.9-kraft, 3.9-zk, 4.3-kraft" in capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_made_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_cluster(*_arguments: object, **_options: object) -> None:
        raise FetchError("there is no mvn on the PATH")

    monkeypatch.setattr(fixtures, "Cluster", no_cluster)
    assert fixtures.main([str(tmp_path), "3.9-zk"]) == 1
    assert capsys.readouterr().err == "3.9-zk: there is no mvn on the PATH\n"
