"""Errors of real brokers; each message says what was found, where, and what to do next."""

from __future__ import annotations


class RealBrokerError(Exception):
    """The root: no cluster could be made, or it did not do as asked."""


class FetchError(RealBrokerError):
    """Maven or a Java is missing, or Maven could not resolve a release."""


class StartError(RealBrokerError):
    """A server ended while it started, or was not ready in time; the message ends with the tail of its log."""


class NotInTimeError(RealBrokerError):
    """A running cluster did not come to the state that was waited for."""


class CommandError(RealBrokerError):
    """One of Kafka's own commands failed, or a client's request was refused."""
