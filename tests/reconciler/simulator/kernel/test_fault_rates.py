"""Rates as text: what is read, what is refused, and with which words."""

from __future__ import annotations

from dataclasses import fields

import pytest

from reconciler.errors import UsageError
from reconciler.simulator.kernel import FaultRates
from reconciler.simulator.kernel.fault_rates import KINDS


def test_what_is_not_given_never_happens() -> None:
    rates = FaultRates.parse("loss=0.01, crash=.002,restart=1")
    assert (rates.loss, rates.crash, rates.restart, rates.double) == (0.01, 0.002, 1.0, 0.0)


def test_a_list_may_be_on_top_of_the_default() -> None:
    rates = FaultRates.parse("default,crash=0")
    assert rates.crash == 0
    assert rates.loss == FaultRates.default().loss > 0
    assert FaultRates.parse("default") == FaultRates.default()


@pytest.mark.parametrize("text", ["none", "", " , "])
def test_nothing_goes_wrong_where_none_is_asked_for(text: str) -> None:
    assert FaultRates.parse(text) == FaultRates.none() == FaultRates()


def test_the_default_lets_everything_happen() -> None:
    assert [kind for kind in KINDS if not 0 < FaultRates.default().of(kind) < 1] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fire=0.1", "'fire=0.1' is no fault and its rate: write KIND=RATE, where KIND is one of loss, answer_loss,"),
        ("loss", "'loss' is no fault and its rate"),
        ("loss=0.1,none", "'none' is no fault and its rate"),
        ("loss=0.1,loss=0.2", "loss is given twice"),
        ("loss=1.5", "loss=1.5 is no rate: write a number from 0 to 1, for example loss=0.01"),
        ("loss=-1", "loss=-1 is no rate"),
        ("loss=nan", "loss=nan is no rate"),
        ("loss=", "loss= is no rate"),
        ("loss=1e-3", "loss=1e-3 is no rate"),
        ("loss=٠", "is no rate"),
    ],
)
def test_what_is_no_rate_is_refused_with_what_would_be_one(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        FaultRates.parse(text)
    assert words in str(caught.value)


@pytest.mark.parametrize("rates", [FaultRates.none(), FaultRates.default(), FaultRates(loss=1.0, crash=1e-7)])
def test_rates_as_text_are_read_as_the_same_rates(rates: FaultRates) -> None:
    assert FaultRates.parse(str(rates)) == rates


def test_every_field_is_a_kind_and_nothing_else_has_a_rate() -> None:
    assert tuple(each.name for each in fields(FaultRates)) == KINDS
    assert FaultRates.default().of("parse") == 0.0
